// Package examples holds the manifests that the demo applies and the README names.
package examples

import "embed"

// Files are the manifests, by file name.
//
//go:embed *.yaml
var Files embed.FS
