package kit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// PeersFolder returns the folder of the programs that others wrote: PEERS, or ~/.cache/argosy-peers.
func PeersFolder() string {
	if dir := os.Getenv("PEERS"); dir != "" {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".cache", "argosy-peers")
}

// Peers returns the paths of programs in that folder. It skips the test if one is missing.
func Peers(t *testing.T, names ...string) []string {
	t.Helper()
	Long(t)
	var paths, missing []string
	for _, name := range names {
		path := filepath.Join(PeersFolder(), name)
		if _, err := os.Stat(path); err != nil {
			missing = append(missing, name)
		}
		paths = append(paths, path)
	}
	if len(missing) > 0 {
		t.Skipf("SKIPPED: %s is not built", strings.Join(missing, " and "))
	}
	return paths
}
