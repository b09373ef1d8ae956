// Command print writes what the linker told of a build, for a test.
package main

import (
	"encoding/json"
	"os"

	kubernetes "k8s.io/component-base/version"

	"github.com/argosy-io/argosy/internal/version"
)

func main() {
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"argosy": version.Get(), "kubernetes": kubernetes.Get()})
}
