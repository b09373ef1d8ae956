package jsonpath

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// fold aggregates statuses field by field.
type fold struct{ sum, max, last []Path }

func newFold(p *configv1alpha1.AggregationPaths) (f fold, err error) {
	for _, list := range []struct {
		into  *[]Path
		texts []string
	}{{&f.sum, p.Sum}, {&f.max, p.Max}, {&f.last, p.Last}} {
		if *list.into, err = several(list.texts); err != nil {
			return fold{}, err
		}
	}
	return f, nil
}

// aggregate aggregates the listed fields; others of the template's status stay. A sum over no members is zero; a
// maximum or last value is absent.
func (f fold) aggregate(template *unstructured.Unstructured,
	items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
	members, err := statuses(items)
	if err != nil {
		return nil, err
	}
	status := interpret.WholeStatus(template)
	if status == nil {
		status = map[string]any{}
	}
	out := map[string]any{"status": status}
	for _, p := range f.sum {
		total, err := p.total(members)
		if err != nil {
			return nil, err
		}
		if err := p.set(out, total); err != nil {
			return nil, err
		}
	}
	for _, p := range f.max {
		if err := p.choose(out, members, larger); err != nil {
			return nil, err
		}
	}
	for _, p := range f.last {
		if err := p.choose(out, members, func(any, any) (bool, error) { return true, nil }); err != nil {
			return nil, err
		}
	}
	return interpret.WithStatus(template, status), nil
}

// member is the report of one cluster, as an object with only a status.
type member struct {
	cluster string
	object  map[string]any
}

func statuses(items []workv1alpha2.AggregatedStatusItem) ([]member, error) {
	var all []member
	for _, item := range items {
		if item.Status == nil || len(item.Status.Raw) == 0 {
			continue
		}
		var status map[string]any
		if err := utiljson.Unmarshal(item.Status.Raw, &status); err != nil {
			return nil, fmt.Errorf("the status from cluster %q is not an object: %w", item.ClusterName, err)
		}
		all = append(all, member{item.ClusterName, map[string]any{"status": status}})
	}
	return all, nil
}

// total returns the sum over the members: an integer unless a value has a fraction.
func (p Path) total(members []member) (any, error) {
	var sum int64
	var fraction float64
	exact := true
	for _, m := range members {
		v, found, err := p.get(m.object)
		if err != nil {
			return nil, fmt.Errorf("cluster %q: %w", m.cluster, err)
		}
		if !found {
			continue
		}
		f, ok := fields.Float(v)
		if !ok {
			return nil, fmt.Errorf("cluster %q: %s %s, and only numbers can be summed", m.cluster, p, describe(v))
		}
		fraction += f
		n, isWhole := fields.Whole(v)
		if !isWhole || n > 0 && sum > math.MaxInt64-n || n < 0 && sum < math.MinInt64-n {
			exact = false
			continue
		}
		sum += n
	}
	if exact {
		return sum, nil
	}
	return fraction, nil
}

// choose writes the value of one member: the first one, replaced by each later one that is better.
func (p Path) choose(out map[string]any, members []member, better func(v, than any) (bool, error)) error {
	var chosen any
	for _, m := range members {
		v, found, err := p.get(m.object)
		if err != nil {
			return fmt.Errorf("cluster %q: %w", m.cluster, err)
		}
		if !found {
			continue
		}
		replaces, err := better(v, chosen)
		if err != nil {
			return fmt.Errorf("cluster %q: %s %w", m.cluster, p, err)
		}
		if replaces {
			chosen = v
		}
	}
	if chosen == nil {
		return p.remove(out)
	}
	return p.set(out, copied(chosen))
}

// larger compares numbers, and strings in the order that also sorts RFC 3339 times.
func larger(v, than any) (bool, error) {
	if n, ok := fields.Float(v); ok {
		if than == nil {
			return true, nil
		}
		if o, ok := fields.Float(than); ok {
			return n > o, nil
		}
	}
	if s, ok := v.(string); ok {
		if than == nil {
			return true, nil
		}
		if o, ok := than.(string); ok {
			return s > o, nil
		}
	}
	if than == nil {
		return false, fmt.Errorf("%s, and only numbers and strings can be compared", describe(v))
	}
	return false, fmt.Errorf("%s, and in another cluster it %s", describe(v), describe(than))
}
