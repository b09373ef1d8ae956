// Package version returns the source version of this binary. The Makefile sets it through the linker; other builds use
// the build information of the Go toolchain.
package version

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	kubernetes "k8s.io/component-base/version"
)

// Set by the linker: see LDFLAGS in the Makefile.
var (
	// the tag, the tag and the commits since, or the commit; "-dirty" at the end for a changed working copy
	version   string
	commit    string // the full hash
	date      string // when the commit was made, in RFC 3339: the same source makes the same binary
	treeState string // clean or dirty
)

// unknown is a value that the linker was not given.
const unknown = "unknown"

// Build is the source of a binary.
type Build struct {
	// Version is a tag such as v1.2.0, a tag with the commits since, or a commit.
	Version string `json:"version"`
	// Commit is the hash of the commit, TreeState clean or dirty: whether the working copy had more than that.
	Commit    string `json:"commit"`
	TreeState string `json:"treeState,omitempty"`
	// Date is the date of the commit, in RFC 3339; empty if it is not known.
	Date      string `json:"date,omitempty"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

// Get returns the source of this binary.
func Get() Build {
	b := Build{Version: version, Commit: commit, TreeState: treeState, Date: date, GoVersion: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.complete(info)
	}
	b.Version, b.Commit = cmp.Or(b.Version, unknown), cmp.Or(b.Commit, unknown)
	return b
}

// complete adds from the toolchain the values that the linker was not given.
func (b *Build) complete(info *debug.BuildInfo) {
	if b.Version != "" {
		return // one source for all
	}
	noted := map[string]string{}
	for _, s := range info.Settings {
		noted[s.Key] = s.Value
	}
	b.Commit, b.Date = noted["vcs.revision"], noted["vcs.time"]
	switch noted["vcs.modified"] {
	case "true":
		b.TreeState = "dirty"
	case "false":
		b.TreeState = "clean"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	} else if b.Commit != "" {
		b.Version = b.Commit[:min(len(b.Commit), short)]
		if b.TreeState == "dirty" {
			b.Version += "-dirty"
		}
	}
}

// short is how much of a hash people read.
const short = 12

// String is for people: "v1.2.0 (commit 0123456789ab of 2026-01-31)".
func (b Build) String() string {
	if b.Commit == unknown || b.Commit == "" {
		return b.Version
	}
	of := ""
	if at, err := time.Parse(time.RFC3339, b.Date); err == nil {
		of = " of " + at.UTC().Format(time.DateOnly)
	}
	hash := b.Commit[:min(len(b.Commit), short)]
	if strings.TrimSuffix(b.Version, "-dirty") == hash {
		return fmt.Sprintf("%s (commit%s)", b.Version, of)
	}
	return fmt.Sprintf("%s (commit %s%s)", b.Version, hash, of)
}

// Kubernetes returns the release whose API server and libraries are built in, such as v1.36.3. The
// linker sets it; other builds use the build information of the Go toolchain.
func Kubernetes() string {
	linked := kubernetes.Get().GitVersion
	if !strings.HasPrefix(linked, "v0.0.0") {
		return linked
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "k8s.io/kubernetes" {
				return module.Version
			}
		}
	}
	return linked
}
