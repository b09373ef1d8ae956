// Package examples holds the manifests that the demo applies and the README names.
package examples

import "embed"

// Files are the manifests, by folder and file name, and a list of workloads for argosy migrate.
//
//go:embed */*.yaml
var Files embed.FS
