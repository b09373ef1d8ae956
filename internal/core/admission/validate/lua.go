package validate

import "github.com/argosy-io/argosy/internal/core/workload/interpret/script"

// scriptLimit is the maximal size of a script in bytes.
const scriptLimit = script.SizeLimit

// compiles returns the first syntax error of a Lua script.
func compiles(source string) error { return script.Check(source) }
