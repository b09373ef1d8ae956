package install

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// record lists what installations wrote below a root. Uninstall removes only that.
type record struct {
	// Files are digests by path. A file with another digest was changed by a user.
	Files map[string]string `json:"files"`
	// Coming are the digests of files that are being written. Meanwhile, a file may have this digest or that in Files.
	Coming map[string]string `json:"coming,omitempty"`
	// Folders are the folders that Install created.
	Folders []string `json:"folders,omitempty"`
	// User is the user that Install created; empty if the user existed.
	User string `json:"user,omitempty"`
	// RunsAs is the user of the unit.
	RunsAs string `json:"runsAs,omitempty"`
	// DataDir is the hub's data folder; OwnFolders are others that the user owns.
	DataDir    string   `json:"dataDir"`
	OwnFolders []string `json:"ownFolders,omitempty"`
}

// wrote reports whether Install wrote the content with the digest.
func (r *record) wrote(path, digest string) bool {
	return digest != "" && (r.Files[path] == digest || r.Coming[path] == digest)
}

// paths returns all files that Install may have written.
func (r *record) paths() []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(r.Files)), maps.Keys(r.Coming))
	slices.Sort(all)
	return slices.Compact(all)
}

// readRecord returns the record below root. It is empty if nothing was installed.
func readRecord(root string) (record, error) {
	var r record
	path := filepath.Join(root, recordPath)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%s is damaged (%w): delete it; installed files are then treated as not written by argosy install", path, err)
	}
	return r, nil
}

// write writes the record if it changed.
func (r *record) write(root string) error {
	for _, list := range []*[]string{&r.Folders, &r.OwnFolders} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(root, recordPath)
	data = append(data, '\n')
	if have, err := os.ReadFile(path); err == nil && string(have) == string(data) {
		return nil
	}
	return replace(path, file{mode: 0o644, data: data})
}
