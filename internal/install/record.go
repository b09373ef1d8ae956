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

// record is what installations wrote below a root, so that uninstall removes that and nothing else.
type record struct {
	// Files are digests by path: a file of another content is somebody else's by now.
	Files map[string]string `json:"files"`
	// Coming are digests of what is being written: until that is done, a file may have this or that of Files.
	Coming map[string]string `json:"coming,omitempty"`
	// Folders were not there before.
	Folders []string `json:"folders,omitempty"`
	// User was made; empty if there was one.
	User string `json:"user,omitempty"`
	// RunsAs is the user of the unit.
	RunsAs string `json:"runsAs,omitempty"`
	// DataDir is the hub's data folder; OwnFolders are others that the user owns.
	DataDir    string   `json:"dataDir"`
	OwnFolders []string `json:"ownFolders,omitempty"`
}

// wrote reports whether the content of a file, by its digest, is ours.
func (r *record) wrote(path, digest string) bool {
	return digest != "" && (r.Files[path] == digest || r.Coming[path] == digest)
}

// paths are all files that are, or may be, there.
func (r *record) paths() []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(r.Files)), maps.Keys(r.Coming))
	slices.Sort(all)
	return slices.Compact(all)
}

// readRecord is what was installed below root: nothing, if nothing was.
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

// write writes nothing when nothing changed.
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
