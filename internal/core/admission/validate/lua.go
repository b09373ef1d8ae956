package validate

import "github.com/argosy-io/argosy/internal/core/workload/interpret/script"

// scriptLimit is how long a script may be, in bytes.
const scriptLimit = script.SizeLimit

// compiles says where and why a script is no Lua.
func compiles(source string) error { return script.Check(source) }
