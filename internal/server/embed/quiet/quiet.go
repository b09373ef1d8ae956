// Package quiet stops etcd's client from logging errors that the API server reports anyway.
package quiet

import "go.etcd.io/etcd/client/pkg/v3/logutil"

// The API server's storage creates its client's logger from this configuration in its own init function, without
// another way to change it. Go initialises packages in the order of their paths, each after its imports. This package's
// path and few imports make it the first, so it must not contain anything else.
func init() {
	logutil.DefaultZapLoggerConfig.OutputPaths = nil
}
