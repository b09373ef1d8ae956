package execute

import (
	"encoding/base64"
	"fmt"
	"maps"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// difference returns the path of a field that desired sets and observed has otherwise; false if there is none. Of
// several it is the same one each time. What desired leaves open is the member's: defaults, injected containers,
// status.
//
//	map            each key of desired
//	list of items  with a known key (containers by name): each item of desired; else item by item, and the length
//	number         by value: 1 is 1.0
//	quantity       by value where the API has quantities: 0.5 is 500m
//	null, {}, []   is absent; so are "", 0 and false, which API servers leave out, except in maps of user data
func difference(desired, observed *unstructured.Unstructured) (string, bool) {
	c := comparison{kind: desired.GroupVersionKind().GroupKind()}
	object := desired.Object
	if c.kind == secret && object["stringData"] != nil {
		object = withoutStringData(object)
	}

	var first finding
	for key, d := range object {
		switch key {
		case "apiVersion", "kind", "status":
			// The member answers in the version it was asked in; the status is its own.
		case "metadata":
			metadata, _ := d.(map[string]any)
			there, _ := observed.Object["metadata"].(map[string]any)
			for _, in := range []string{"labels", "annotations"} {
				if !first.beats("metadata." + in) {
					first.note("metadata."+in, c.value(position{parent: "metadata", key: in}, metadata[in], there[in]))
				}
			}
		default:
			if !first.beats(key) {
				first.note(key, c.value(position{key: key}, d, observed.Object[key]))
			}
		}
	}
	return first.path, first.found
}

var (
	secret     = schema.GroupKind{Kind: "Secret"}
	service    = schema.GroupKind{Kind: "Service"}
	account    = schema.GroupKind{Kind: "ServiceAccount"}
	pod        = schema.GroupKind{Kind: "Pod"}
	limitRange = schema.GroupKind{Kind: "LimitRange"}
)

// comparison compares two objects of one kind.
type comparison struct{ kind schema.GroupKind }

// position is the place of a value: under key, in an object under parent.
type position struct{ parent, key string }

// finding is the difference with the smallest key, so that the order of a map does not show.
type finding struct {
	found     bool
	key, path string
}

// equal is the finding that there is no difference.
var equal = finding{}

func (f *finding) beats(key string) bool { return f.found && f.key <= key }

// note takes over a difference below key.
func (f *finding) note(key string, below finding) {
	if !below.found {
		return
	}
	f.found, f.key, f.path = true, key, key
	if below.path != "" {
		f.path += "." + below.path
	}
}

var different = finding{found: true}

func (c comparison) value(at position, desired, observed any) finding {
	switch d := desired.(type) {
	case nil:
		return equal
	case map[string]any:
		return c.object(at, d, observed)
	case []any:
		return c.list(at, d, observed)
	default:
		if observed == nil {
			if zero(d) && !userData[at.parent] {
				return equal
			}
			return different
		}
		if sameScalar(d, observed) || (c.quantity(at) && sameQuantity(d, observed)) {
			return equal
		}
		return different
	}
}

func (c comparison) object(at position, desired map[string]any, observed any) finding {
	there, ok := observed.(map[string]any)
	if !ok {
		if observed == nil && (len(desired) == 0 || zero(desired) && !userData[at.key]) {
			return equal
		}
		return different
	}
	var first finding
	for key, d := range desired {
		if !first.beats(key) {
			first.note(key, c.value(position{at.key, key}, d, there[key]))
		}
	}
	return first
}

func (c comparison) list(at position, desired []any, observed any) finding {
	there, ok := observed.([]any)
	if !ok && observed != nil {
		return different
	}
	if matches := c.byKey(at, desired, there); matches != nil {
		for i, d := range desired {
			j := matches[i]
			if j < 0 {
				return finding{found: true, path: strconv.Itoa(i)}
			}
			if below := c.value(at, d, there[j]); below.found {
				var f finding
				f.note(strconv.Itoa(i), below)
				return f
			}
		}
		return equal
	}
	if len(desired) != len(there) {
		return different
	}
	for i, d := range desired {
		if below := c.value(at, d, there[i]); below.found {
			var f finding
			f.note(strconv.Itoa(i), below)
			return f
		}
	}
	return equal
}

// byKey pairs each item of desired with one of observed, -1 where there is none. It is nil if the list has no keys:
// then its order and length count, as they do for the API server.
func (c comparison) byKey(at position, desired, observed []any) []int {
	if c.kind == pod && at.key == "tolerations" {
		// The member's admission adds some to every Pod.
		return c.bySubset(at, desired, observed)
	}
	key := c.itemKey(at)
	if key == nil {
		return nil
	}
	index := make(map[any]int, len(observed))
	for j, o := range observed {
		k, ok := key(o)
		if _, twice := index[k]; !ok || twice {
			return nil
		}
		index[k] = j
	}
	matches := make([]int, len(desired))
	seen := make(map[any]bool, len(desired))
	for i, d := range desired {
		k, ok := key(d)
		if !ok || seen[k] {
			return nil
		}
		seen[k] = true
		j, ok := index[k]
		if !ok {
			j = -1
		}
		matches[i] = j
	}
	return matches
}

func (c comparison) bySubset(at position, desired, observed []any) []int {
	matches := make([]int, len(desired))
	for i, d := range desired {
		matches[i] = -1
		for j, o := range observed {
			if !c.value(at, d, o).found {
				matches[i] = j
				break
			}
		}
	}
	return matches
}

// itemKey reads the key of an item of the list; nil if the items of such a list have none.
// Only lists that API servers merge by key, or that admission is known to add to, are here: in a list of
// RBAC subjects or of firewall ports one more item is a difference.
func (c comparison) itemKey(at position) func(item any) (any, bool) {
	switch at.key {
	case "containers", "initContainers", "ephemeralContainers", "volumes", "env", "imagePullSecrets", "claims",
		"resourceClaims", "schedulingGates", "webhooks":
		return stringKey("name")
	case "volumeMounts":
		return stringKey("mountPath")
	case "volumeDevices":
		return stringKey("devicePath")
	case "hostAliases":
		return stringKey("ip")
	case "topologySpreadConstraints":
		return func(item any) (any, bool) {
			topology, ok := stringKey("topologyKey")(item)
			when, _ := stringKey("whenUnsatisfiable")(item)
			return [2]any{topology, when}, ok
		}
	case "ports":
		if c.kind == service {
			return portKey("port")
		}
		return portKey("containerPort")
	case "secrets":
		if c.kind == account {
			return stringKey("name")
		}
	}
	return nil
}

func stringKey(key string) func(any) (any, bool) {
	return func(item any) (any, bool) {
		m, _ := item.(map[string]any)
		s, ok := m[key].(string)
		return s, ok
	}
}

// portKey returns a port and its protocol, TCP if it is left out.
func portKey(key string) func(any) (any, bool) {
	return func(item any) (any, bool) {
		m, _ := item.(map[string]any)
		port, ok := fields.Float(m[key])
		protocol, _ := m["protocol"].(string)
		if protocol == "" {
			protocol = "TCP"
		}
		return [2]any{port, protocol}, ok
	}
}

// userData are the maps whose keys are the user's: there an empty value is a value.
var userData = map[string]bool{
	"labels": true, "annotations": true, "matchLabels": true, "nodeSelector": true, "data": true, "binaryData": true,
	"parameters": true, "limits": true, "requests": true,
}

// quantity reports whether the API has a quantity at the position.
func (c comparison) quantity(at position) bool {
	switch at.parent {
	case "limits", "requests", "capacity", "allocatable", "hard", "overhead", "podFixed":
		return true
	case "default", "defaultRequest", "min", "max", "maxLimitRequestRatio":
		return c.kind == limitRange
	case "target":
		return at.key == "value" || at.key == "averageValue"
	}
	switch at.key {
	case "sizeLimit", "divisor", "targetAverageValue":
		return true
	}
	return false
}

func sameQuantity(a, b any) bool {
	x, ok := quantityOf(a)
	if !ok {
		return false
	}
	y, ok := quantityOf(b)
	return ok && x.Cmp(y) == 0
}

// quantityOf reads a quantity as people write it: "500m", 0.5, 1.
func quantityOf(v any) (resource.Quantity, bool) {
	s, ok := v.(string)
	if !ok {
		if _, ok := fields.Float(v); !ok {
			return resource.Quantity{}, false
		}
		s = fmt.Sprint(v)
	}
	q, err := resource.ParseQuantity(s)
	return q, err == nil
}

func sameScalar(a, b any) bool {
	if a, ok := a.(int64); ok {
		if b, ok := b.(int64); ok {
			return a == b // exact where a float is not
		}
	}
	if x, ok := fields.Float(a); ok {
		y, ok := fields.Float(b)
		return ok && x == y
	}
	switch a := a.(type) {
	case string:
		b, ok := b.(string)
		return ok && a == b
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	}
	return false
}

// zero reports whether an API server may omit v: it is empty, or everything in it is.
func zero(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case bool:
		return !v
	case []any:
		return len(v) == 0
	case map[string]any:
		for key, value := range v {
			if !zero(value) || userData[key] && !empty(value) {
				return false
			}
		}
		return true
	}
	n, ok := fields.Float(v)
	return ok && n == 0
}

func empty(v any) bool {
	m, ok := v.(map[string]any)
	return ok && len(m) == 0 || v == nil
}

// withoutStringData returns a Secret as API servers store it: stringData is encoded into data.
func withoutStringData(object map[string]any) map[string]any {
	plain, ok := object["stringData"].(map[string]any)
	if !ok {
		return object
	}
	there, _ := object["data"].(map[string]any)
	data := make(map[string]any, len(plain)+len(there))
	maps.Copy(data, there)
	for key, v := range plain {
		s, _ := v.(string)
		data[key] = base64.StdEncoding.EncodeToString([]byte(s))
	}
	out := maps.Clone(object)
	delete(out, "stringData")
	out["data"] = data
	return out
}
