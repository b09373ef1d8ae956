// Package quiet keeps etcd's client from writing to standard error what the API server that uses it reports anyway.
package quiet

import "go.etcd.io/etcd/client/pkg/v3/logutil"

// The API server's storage makes its client's logger from this configuration when it is initialised, and offers no
// other way in. Go initialises packages in the order of their paths, each as soon as its imports are: this
// one's path and few imports put it first, which is why it holds nothing else.
func init() {
	logutil.DefaultZapLoggerConfig.OutputPaths = nil
}
