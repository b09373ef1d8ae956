package execute

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// difference returns the path of the first of Differences; false if there is none.
func difference(desired, observed *unstructured.Unstructured) (string, bool) {
	all := Differences(desired, observed)
	if len(all) == 0 {
		return "", false
	}
	return all[0].Path, true
}

// Difference is a field that one object sets and another has otherwise.
type Difference struct {
	// Path is dotted; items of a list are their index in the object that sets it: spec.template.spec.containers.0.image.
	Path string `json:"path"`
	// Want is the desired value, Have the current one; nil for none.
	Want any `json:"want,omitempty"`
	Have any `json:"have,omitempty"`
}

// Differences returns the fields that desired sets and observed has otherwise, sorted by path. Labels and annotations
// count, other metadata and the status do not. What desired leaves open is the member's: defaults, injected containers,
// status.
//
//	map            each key of desired
//	list of items  with a known key (containers by name): each item of desired; else item by item, and the length
//	number         by value: 1 is 1.0
//	quantity       by value where the API has quantities: 0.5 is 500m
//	null, {}, []   is absent; so are "", 0 and false, which API servers leave out, except in maps of user data
func Differences(desired, observed *unstructured.Unstructured) []Difference {
	c := comparison{kind: desired.GroupVersionKind().GroupKind()}
	object := desired.Object
	if c.kind == secret {
		object = withoutStringData(object)
	}
	var all differences
	for key, d := range object {
		switch key {
		case "apiVersion", "kind", "status":
			// The member answers in the version it was asked in; the status is its own.
		case "metadata":
			metadata, _ := d.(map[string]any)
			there, _ := observed.Object["metadata"].(map[string]any)
			for _, in := range []string{"annotations", "labels"} {
				all.add("metadata."+in, c.value(position{parent: "metadata", key: in}, metadata[in], there[in]))
			}
		default:
			all.add(key, c.value(position{key: key}, d, observed.Object[key]))
		}
	}
	return all.sorted()
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

// differences of a map, in any order of its keys.
type differences []keyed

// keyed are the differences below a key; their paths start there.
type keyed struct {
	key string
	all []Difference
}

// add takes over the differences below a key. It allocates nothing if there are none.
func (d *differences) add(key string, below []Difference) {
	if len(below) > 0 {
		*d = append(*d, keyed{key, below})
	}
}

// sorted returns the differences by key.
func (d differences) sorted() (all []Difference) {
	slices.SortFunc(d, func(a, b keyed) int { return strings.Compare(a.key, b.key) })
	for _, k := range d {
		all = append(all, under(k.key, k.all)...)
	}
	return all
}

// under returns the differences with paths that begin at key.
func under(key string, below []Difference) []Difference {
	for i := range below {
		if below[i].Path != "" {
			below[i].Path = "." + below[i].Path
		}
		below[i].Path = key + below[i].Path
	}
	return below
}

// value returns the smallest values that differ, with their paths from the position on; nil if there are none.
func (c comparison) value(at position, desired, observed any) []Difference {
	same := false
	switch d := desired.(type) {
	case nil:
		same = true
	case map[string]any:
		if there, ok := observed.(map[string]any); ok {
			return c.object(at, d, there)
		}
		same = observed == nil && (len(d) == 0 || zero(d) && !userData[at.key])
	case []any:
		if there, ok := observed.([]any); ok {
			if all, compared := c.list(at, d, there); compared {
				return all
			}
		}
		same = observed == nil && len(d) == 0
	default:
		if observed == nil {
			same = zero(d) && !userData[at.parent]
		} else {
			same = sameScalar(d, observed) || c.quantity(at) && sameQuantity(d, observed)
		}
	}
	if same {
		return nil
	}
	return []Difference{{Want: desired, Have: observed}}
}

func (c comparison) object(at position, desired, observed map[string]any) []Difference {
	var all differences
	for key, d := range desired {
		all.add(key, c.value(position{at.key, key}, d, observed[key]))
	}
	return all.sorted()
}

// list compares the items of two lists; compared is false for lists of different lengths that have no keys.
func (c comparison) list(at position, desired, observed []any) (all []Difference, compared bool) {
	matches := c.byKey(at, desired, observed)
	if matches == nil && len(desired) != len(observed) {
		return nil, false
	}
	for i, d := range desired {
		j := i
		if matches != nil {
			j = matches[i]
		}
		below := []Difference{{Want: d}}
		if j >= 0 {
			below = c.value(at, d, observed[j])
		}
		if len(below) > 0 {
			all = append(all, under(strconv.Itoa(i), below)...)
		}
	}
	return all, true
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
			if len(c.value(at, d, o)) == 0 {
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
