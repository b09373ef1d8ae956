package schedule

import (
	"fmt"
	"slices"
	"strings"
)

// Plugin is a filter or score plugin, with its name in Karmada's scheduler.
type Plugin string

// The plugins. All are filters except ClusterLocality.
const (
	ClusterAffinity      Plugin = "ClusterAffinity"
	ClusterEviction      Plugin = "ClusterEviction"
	TaintToleration      Plugin = "TaintToleration"
	APIEnablement        Plugin = "APIEnablement" // also whether a served version can express the template
	SpreadConstraint     Plugin = "SpreadConstraint"
	WorkloadAffinity     Plugin = "WorkloadAffinity"
	WorkloadAntiAffinity Plugin = "WorkloadAntiAffinity"
	ClusterLocality      Plugin = "ClusterLocality"
)

// allPlugins are all there are. A Plugins has a bit for each, by position.
var allPlugins = [...]Plugin{
	APIEnablement, ClusterAffinity, ClusterEviction, ClusterLocality, SpreadConstraint, TaintToleration, WorkloadAffinity,
	WorkloadAntiAffinity,
}

// Plugins are the plugins that run; the zero value is all of them.
type Plugins struct{ off uint16 }

// ParsePlugins parses Karmada's --plugins: "*" selects all, "foo" that one, and "-foo" excludes one. A list of only
// exclusions selects all others; an empty one selects all. The error names unknown and known plugins.
func ParsePlugins(list []string) (Plugins, error) {
	var named, left uint16
	all := true
	for _, item := range list {
		name, without := strings.CutPrefix(item, "-")
		i := slices.Index(allPlugins[:], Plugin(name))
		switch {
		case item == "*":
			named, all = 1<<len(allPlugins)-1, false
		case item == "-*":
			all = false
		case i < 0:
			return Plugins{}, fmt.Errorf("there is no scheduler plugin %q: name one of %s; * enables all, and -NAME disables one", name, strings.Join(PluginNames(), ", "))
		case without:
			left |= 1 << i
		default:
			named, all = named|1<<i, false
		}
	}
	if all {
		named = 1<<len(allPlugins) - 1
	}
	return Plugins{off: (1<<len(allPlugins) - 1) &^ (named &^ left)}, nil
}

// PluginNames returns the names of all plugins, sorted.
func PluginNames() []string {
	var names []string
	for _, p := range allPlugins {
		names = append(names, string(p))
	}
	return names
}

// Runs reports whether a plugin does.
func (p Plugins) Runs(name Plugin) bool {
	return p.off == 0 || p.off&(1<<slices.Index(allPlugins[:], name)) == 0
}

// Off returns the plugins that do not run, sorted.
func (p Plugins) Off() (names []Plugin) {
	for i, name := range allPlugins {
		if p.off&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// String returns a list that ParsePlugins reads: "*", or "*,-TaintToleration".
func (p Plugins) String() string {
	text := "*"
	for _, name := range p.Off() {
		text += ",-" + string(name)
	}
	return text
}
