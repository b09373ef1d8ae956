package placement

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	placementv1beta1 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta1"
	"github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
	"github.com/argosy-io/argosy/internal/core/source/ocm"
)

// candidates returns the names of the bound sets that the Placement names, and their clusters, sorted by name.
func candidates(in Input) (sets []string, clusters []*clusterv1.ManagedCluster, err error) {
	named, all := in.Placement.Spec.ClusterSets, existing(in.Clusters)
	for i := range in.Sets {
		set := &in.Sets[i]
		if len(named) > 0 && !slices.Contains(named, set.Name) {
			continue
		}
		sets = append(sets, set.Name)
		selects, unreadable := klusterlet.Selector(set)
		if unreadable != nil {
			err = &misconfigured{"Predicate", unreadable.Error()}
			continue
		}
		for _, mc := range all {
			if selects(mc) {
				clusters = append(clusters, mc)
			}
		}
	}
	slices.Sort(sets)
	sortByName(clusters)
	return sets, slices.Compact(clusters), err
}

// existing returns the clusters that are not being deleted.
func existing(clusters []clusterv1.ManagedCluster) (all []*clusterv1.ManagedCluster) {
	for i := range clusters {
		if clusters[i].DeletionTimestamp == nil {
			all = append(all, &clusters[i])
		}
	}
	return all
}

const (
	// costOfPredicate is the cost of a predicate for a cluster, beside its requirements and expressions.
	costOfPredicate = 10
	// costOfVariables is the cost of a cluster that expressions read.
	costOfVariables = 500
	// clusterLimit is what the expressions for one cluster may cost: about 10 ms.
	clusterLimit = 100_000
	// maxExpressions and maxExpressionBytes limit the expressions of a Placement: compiling one costs more than running
	// it.
	maxExpressions, maxExpressionBytes = 100, 64 << 10
)

// matching returns the clusters that one of the predicates selects.
func matching(in Input, clusters []*clusterv1.ManagedCluster) (matched []*clusterv1.ManagedCluster, err error) {
	if len(in.Placement.Spec.Predicates) == 0 || len(clusters) == 0 {
		return clusters, nil
	}
	if n, size := expressions(in.Placement); n > maxExpressions || size > maxExpressionBytes {
		return nil, &misconfigured{"Predicate", fmt.Sprintf("the predicates have %d expressions with %d bytes: use at most "+
			"%d with %d", n, size, maxExpressions, maxExpressionBytes)}
	}
	var selectors []selector
	for _, predicate := range in.Placement.Spec.Predicates {
		of := predicate.RequiredClusterSelector
		s, err := newSelector(of.LabelSelector, of.ClaimSelector)
		for _, expression := range of.CelSelector.CelExpressions {
			var program cel.Program
			if err == nil {
				if program, err = in.Programs.Compile(expression, cel.BoolType); err != nil {
					err = fmt.Errorf("compilation failed: %w", err)
				}
				s.programs = append(s.programs, program)
			}
		}
		if err != nil {
			return nil, &misconfigured{"Predicate", err.Error()}
		}
		selectors = append(selectors, s)
	}
	for _, mc := range clusters {
		of := newSubject(mc)
		for _, s := range selectors {
			matches, err := s.matches(in, of)
			if err != nil {
				return nil, &misconfigured{"Predicate", err.Error()}
			}
			if matches {
				matched = append(matched, mc)
				break
			}
		}
	}
	return matched, nil
}

// expressions returns the number of expressions of a Placement, and their length in bytes.
func expressions(p *placementv1beta1.Placement) (n, size int) {
	for _, predicate := range p.Spec.Predicates {
		for _, expression := range predicate.RequiredClusterSelector.CelSelector.CelExpressions {
			n, size = n+1, size+len(expression)
		}
	}
	return n, size
}

// subject is a cluster as selectors read it.
type subject struct {
	*clusterv1.ManagedCluster
	claims labels.Set
	// variables of expressions; nil until an expression needs them.
	variables map[string]any
	// spent is what its expressions have cost.
	spent uint64
}

// managedCluster is the variable of expressions. It has a type of its own so that scores knows it from other maps: an
// expression must not read the scores of another cluster.
type managedCluster map[string]any

func newSubject(mc *clusterv1.ManagedCluster) *subject {
	s := &subject{ManagedCluster: mc, claims: labels.Set{}}
	for _, claim := range mc.Status.ClusterClaims {
		s.claims[claim.Name] = claim.Value
	}
	return s
}

// selector selects clusters by labels, claims and expressions.
type selector struct {
	labels, claims labels.Selector
	programs       []cel.Program
	cost           uint64
}

func newSelector(byLabels metav1.LabelSelector, byClaims placementv1beta1.ClusterClaimSelector) (s selector,
	err error) {
	if s.labels, err = metav1.LabelSelectorAsSelector(&byLabels); err != nil {
		return s, err
	}
	if s.claims, err = metav1.LabelSelectorAsSelector(&metav1.LabelSelector{
		MatchExpressions: byClaims.MatchExpressions}); err != nil {
		return s, err
	}
	s.cost = costOfPredicate
	for _, of := range []labels.Selector{s.labels, s.claims} {
		requirements, _ := of.Requirements()
		for _, r := range requirements {
			s.cost += 1 + uint64(r.Values().Len())
		}
	}
	return s, nil
}

// matches reports whether a cluster is selected. An expression that fails, as one about a missing field does, does not
// match. A cluster whose own expressions cost too much, perhaps because of what it reports, stays what it was: that
// must neither remove workloads nor stop the choice of others. The error is that of the budget of all clusters.
func (s *selector) matches(in Input, mc *subject) (bool, error) {
	if err := in.spending.add(s.cost); err != nil {
		return false, err
	}
	if !s.labels.Matches(labels.Set(mc.Labels)) || !s.claims.Matches(mc.claims) {
		return false, nil
	}
	if len(s.programs) > 0 && mc.variables == nil {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(mc.ManagedCluster)
		if err = errors.Join(err, in.spending.add(costOfVariables)); err != nil {
			return false, err
		}
		mc.variables = map[string]any{"managedCluster": managedCluster(object)}
	}
	for _, program := range s.programs {
		before := mc.spent
		out, err := in.Programs.Run(program, mc.variables, &mc.spent, clusterLimit)
		if over := in.spending.add(min(mc.spent-before, clusterLimit)); over != nil {
			return false, over
		}
		if mc.spent >= clusterLimit {
			return in.chosen[mc.Name], nil
		}
		if err != nil {
			return false, nil //nolint:nilerr // see above
		}
		if holds, is := out.(types.Bool); !is {
			return in.chosen[mc.Name], nil
		} else if !bool(holds) {
			return false, nil
		}
	}
	return true, nil
}

// NewPrograms returns a cache of the expressions of Placements, which read scores.
func NewPrograms(scores Scores) (*ocm.Programs, error) {
	env, err := ocm.NewEnvironment(math.MaxUint32,
		cel.Variable("managedCluster", cel.MapType(cel.StringType, cel.DynType)),
		cel.Function("scores", cel.MemberOverload("cluster_scores", []*cel.Type{cel.DynType, cel.StringType},
			cel.ListType(cel.DynType), cel.BinaryBinding(func(cluster, name ref.Val) ref.Val {
				native, is := cluster.Value().(managedCluster)
				if !is {
					return types.NewErr("only managedCluster has scores")
				}
				metadata, _ := native["metadata"].(map[string]any)
				of, _ := metadata["name"].(string)
				score := scores(of, string(name.(types.String)))
				if score == nil {
					return types.NewErr("cluster %q has no AddOnPlacementScore %q", of, name.Value())
				}
				items := make([]any, len(score.Status.Scores))
				for i, item := range score.Status.Scores {
					items[i] = map[string]any{"name": item.Name, "value": int64(item.Value)}
				}
				return types.DefaultTypeAdapter.NativeToValue(items)
			}))),
		cel.Function("parseJSON", cel.MemberOverload("parse_json_string", []*cel.Type{cel.StringType}, cel.DynType,
			cel.UnaryBinding(func(text ref.Val) ref.Val {
				var value any
				if err := json.Unmarshal([]byte(text.(types.String)), &value); err != nil {
					return types.NewErr("parse JSON: %v", err)
				}
				return types.DefaultTypeAdapter.NativeToValue(value)
			}))))
	return &ocm.Programs{Environment: env, CostLimit: clusterLimit}, err
}

// tolerated returns the clusters whose taints the Placement tolerates.
func (c *Choice) tolerated(in Input, clusters []*clusterv1.ManagedCluster) (all []*clusterv1.ManagedCluster,
	err error) {
	for _, t := range in.Placement.Spec.Tolerations {
		switch {
		case t.Key == "" && t.Operator != placementv1beta1.TolerationExists:
			return nil, &misconfigured{"TaintToleration", "If the key is empty, operator must be Exists."}
		case t.Operator == placementv1beta1.TolerationExists && t.Value != "":
			return nil, &misconfigured{"TaintToleration", "If the operator is Exists, the value should be empty."}
		}
	}
	for _, mc := range clusters {
		if err := in.spending.add(uint64(len(mc.Spec.Taints) * len(in.Placement.Spec.Tolerations))); err != nil {
			return nil, &misconfigured{"TaintToleration", err.Error()}
		}
		untolerated := slices.ContainsFunc(mc.Spec.Taints, func(taint clusterv1.Taint) bool {
			if taint.Effect == clusterv1.PreferNoSelect || taint.Effect == clusterv1.NoSelectIfNew && in.chosen[mc.Name] {
				return false
			}
			tolerates, rest := toleration(taint, in.Placement.Spec.Tolerations, in.Now)
			c.repeatAfter(rest)
			return !tolerates
		})
		if !untolerated {
			all = append(all, mc)
		}
	}
	return all, nil
}

// toleration reports whether a taint is tolerated, and for how long; 0 if always.
func toleration(taint clusterv1.Taint, tolerations []placementv1beta1.Toleration,
	now time.Time) (tolerates bool, rest time.Duration) {
	for _, t := range tolerations {
		if t.Effect != "" && t.Effect != string(taint.Effect) || t.Key != "" && t.Key != taint.Key ||
			t.Operator != placementv1beta1.TolerationExists && (t.Value != taint.Value ||
				t.Operator != placementv1beta1.TolerationEqual && t.Operator != "") {
			continue
		}
		if t.TolerationSeconds == nil {
			return true, 0
		}
		seconds := min(*t.TolerationSeconds, math.MaxInt32) // 68 years: more seconds than a Duration has would end at once
		ends := taint.TimeAdded.Add(time.Duration(seconds) * time.Second).Sub(now)
		tolerates, rest = tolerates || ends > 0, max(rest, ends)
	}
	return tolerates, max(rest, 0)
}

func sortByName(clusters []*clusterv1.ManagedCluster) {
	slices.SortFunc(clusters, func(a, b *clusterv1.ManagedCluster) int { return strings.Compare(a.Name, b.Name) })
}
