package dialect

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

func (r *rewrite) propagation() {
	if placement := child(r.spec, "placement"); placement != nil {
		if scheduling := child(placement, "replicaScheduling"); scheduling != nil {
			r.dynamicWeight(scheduling)
			r.standby(placement, scheduling)
		}
		r.regionSpread(placement)
	}
	if failover := child(r.spec, "failover"); failover != nil {
		r.failover(failover)
	}
}

// dynamicWeight: Dynamic is no preference of its own, it is Weighted with a dynamic weight.
func (r *rewrite) dynamicWeight(scheduling map[string]any) {
	const path = "spec.placement.replicaScheduling"
	if _, ok := scheduling["dynamicWeight"]; ok {
		r.move(scheduling, "dynamicWeight", path+".dynamicWeight",
			fields.Ensure(scheduling, "weightPreference"), "dynamicWeight", "weightPreference.dynamicWeight")
	}
	if scheduling["replicaDivisionPreference"] != "Dynamic" {
		return
	}
	scheduling["replicaDivisionPreference"] = string(policyv1alpha1.ReplicaDivisionPreferenceWeighted)
	weights := fields.Ensure(scheduling, "weightPreference")
	if weights["dynamicWeight"] == nil {
		weights["dynamicWeight"] = string(policyv1alpha1.DynamicWeightByAvailableReplicas)
	}
	r.rewritten(path+".replicaDivisionPreference", "Dynamic",
		fmt.Sprintf("Weighted with weightPreference.dynamicWeight %v", weights["dynamicWeight"]))
}

// standby: a cluster of weight 0 is meant to take over when those with a weight cannot. That is an affinity term of its
// own, tried after the term of the others.
func (r *rewrite) standby(placement, scheduling map[string]any) {
	const path = "spec.placement.replicaScheduling.weightPreference.staticWeightList"
	weights := child(scheduling, "weightPreference")
	var active, standby []map[string]any
	list := objects(weights, "staticWeightList")
	for _, rule := range list {
		if weight, ok := fields.Float(rule["weight"]); ok && weight == 0 {
			standby = append(standby, child(rule, "targetCluster"))
		} else {
			active = append(active, child(rule, "targetCluster"))
		}
	}
	if len(standby) == 0 || len(active) == 0 {
		return // nothing to stand by for: left to the schema, which refuses a weight of 0
	}
	if _, ok := placement["clusterAffinities"]; ok && !r.submittedBefore(path) {
		r.refuse(path, "weight 0 means standby, which cannot be combined with clusterAffinities; give every cluster a weight above 0")
		return
	}
	base := child(placement, "clusterAffinity")
	var terms []any
	for _, term := range []struct {
		name    string
		targets []map[string]any
	}{{"active", active}, {"standby", standby}} {
		affinity, err := narrow(base, term.targets)
		if err != nil {
			r.refuse(path, "weight 0 means standby, but %v", err)
			return
		}
		affinity["affinityName"] = term.name
		terms = append(terms, affinity)
	}
	submitted := slices.Clone(weights["staticWeightList"].([]any))
	for i, rule := range list {
		if weight, ok := fields.Float(rule["weight"]); ok && weight == 0 {
			submitted[i] = map[string]any{"targetCluster": rule["targetCluster"], "weight": int64(0)}
			rule["weight"] = int64(1)
		}
	}
	placement["clusterAffinities"] = terms
	delete(placement, "clusterAffinity")
	r.rewritten(path, submitted, "clusterAffinities active and standby, because weight 0 means a standby cluster")
}

// narrow returns the affinity that holds where base and any of targets do. Only names can be joined; several selectors
// cannot.
func narrow(base map[string]any, targets []map[string]any) (map[string]any, error) {
	out := map[string]any{}
	if base != nil {
		out = runtime.DeepCopyJSON(base)
	}
	var names []string
	for _, target := range targets {
		selects := target["labelSelector"] != nil || target["fieldSelector"] != nil || len(strs(target, "exclude")) > 0
		if selects && len(targets) > 1 {
			return nil, errors.New("several rules can be combined only if each uses clusterNames")
		}
		if !selects && len(strs(target, "clusterNames")) == 0 {
			return nil, errors.New("the rule matches every cluster")
		}
		names = union(names, strs(target, "clusterNames"))
		for _, selector := range []string{"labelSelector", "fieldSelector"} {
			if target[selector] == nil {
				continue
			}
			if out[selector] != nil {
				return nil, fmt.Errorf("the %s of clusterAffinity and that of the rule cannot be combined", selector)
			}
			out[selector] = runtime.DeepCopyJSONValue(target[selector])
		}
		if exclude := union(strs(out, "exclude"), strs(target, "exclude")); len(exclude) > 0 {
			out["exclude"] = anys(exclude)
		}
	}
	if len(names) > 0 {
		if allowed := strs(base, "clusterNames"); len(allowed) > 0 {
			names = slices.DeleteFunc(names, func(n string) bool { return !slices.Contains(allowed, n) })
			if len(names) == 0 {
				return nil, errors.New("clusterAffinity allows none of the clusters")
			}
		}
		out["clusterNames"] = anys(names)
	}
	return out, nil
}

// regionSpread: the API requires a constraint by cluster beside one by region; n regions need at least n clusters.
func (r *rewrite) regionSpread(placement map[string]any) {
	const path = "spec.placement.spreadConstraints"
	var region map[string]any
	for _, c := range objects(placement, "spreadConstraints") {
		switch c["spreadByField"] {
		case nil, "":
			if c["spreadByLabel"] == nil || c["spreadByLabel"] == "" {
				return // defaulted to cluster
			}
		case string(policyv1alpha1.SpreadByFieldRegion):
			region = c
		default:
			return
		}
	}
	if region == nil {
		return
	}
	atLeast := int64(1)
	if n, ok := fields.Float(region["minGroups"]); ok && n > 1 {
		atLeast = int64(n)
	}
	submitted := placement["spreadConstraints"].([]any)
	placement["spreadConstraints"] = append(slices.Clone(submitted), map[string]any{
		"spreadByField": string(policyv1alpha1.SpreadByFieldCluster),
		"minGroups":     atLeast,
	})
	r.rewritten(path, submitted, fmt.Sprintf(
		"that and {spreadByField: cluster, minGroups: %d}, which a region constraint requires", atLeast))
}

func (r *rewrite) failover(failover map[string]any) {
	const path = "spec.failover"
	migration, former := child(failover, "applicationMigrationPolicy"), child(failover, "application")
	if migration != nil {
		r.rename(migration, path+".applicationMigrationPolicy", "purgePolicy", "purgeMode")
		r.rename(failover, path, "applicationMigrationPolicy", "application")
		if r.spec["propagateDeps"] != true {
			r.spec["propagateDeps"] = true
			r.warnings = append(r.warnings, "spec.propagateDeps: set to true, because application failover requires it")
		}
	}
	if application := child(failover, "application"); application != nil && application["purgePolicy"] != nil {
		// The schema has written its default before we came.
		if application["purgeMode"] == string(policyv1alpha1.PurgeModeGracefully) {
			delete(application, "purgeMode")
		}
		r.rename(application, path+".application", "purgePolicy", "purgeMode")
	}
	for _, of := range []string{"application", "cluster"} {
		if behavior := child(failover, of); behavior != nil {
			r.purgeMode(behavior, path+"."+of)
		}
	}
	if migration != nil {
		r.lostCluster(failover, former)
	}
}

// lostCluster: an applicationMigrationPolicy is also about the loss of a cluster. What the user says about that goes
// first. former is what an earlier version of the same spelling was stored as.
func (r *rewrite) lostCluster(failover, former map[string]any) {
	application := child(failover, "application")
	is, was := child(failover, "cluster"), clusterFailover(former)
	if want := clusterFailover(application); is == nil || reflect.DeepEqual(is, was) && !reflect.DeepEqual(is, want) {
		failover["cluster"] = want
		r.warnings = append(r.warnings, fmt.Sprintf(
			"spec.failover.cluster: set to purgeMode %v, because applicationMigrationPolicy is also about lost clusters",
			want["purgeMode"]))
	}
	var placement policyv1alpha1.Placement
	if submitted := child(r.spec, "placement"); submitted == nil && r.spec["placement"] != nil ||
		runtime.DefaultUnstructuredConverter.FromUnstructured(submitted, &placement) != nil {
		return // left to the schema
	}
	ours := lossTolerations(former, nil)
	own := slices.DeleteFunc(slices.Clone(placement.ClusterTolerations), func(t corev1.Toleration) bool {
		return slices.ContainsFunc(ours, func(o corev1.Toleration) bool { return reflect.DeepEqual(o, t) })
	})
	want := lossTolerations(application, own)
	if len(want) > 0 && !reflect.DeepEqual(want, placement.ClusterTolerations) {
		// A list of tolerations is always convertible.
		list, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(&policyv1alpha1.Placement{ClusterTolerations: want})
		fields.Ensure(r.spec, "placement")["clusterTolerations"] = list["clusterTolerations"]
		r.warnings = append(r.warnings, fmt.Sprintf(
			"spec.placement.clusterTolerations: lost clusters are tolerated for %v s, as applicationMigrationPolicy says",
			fields.Value(application, "decisionConditions", "tolerationSeconds")))
	}
}

// clusterFailover returns what an application failover means if its cluster is lost; nil without one. Never, which
// failover of clusters does not have, becomes Directly: the old copy is not deleted.
func clusterFailover(application map[string]any) map[string]any {
	if application == nil {
		return nil
	}
	cluster := map[string]any{"purgeMode": string(policyv1alpha1.PurgeModeGracefully)}
	switch application["purgeMode"] {
	case string(policyv1alpha1.PurgeModeDirectly), string(policyv1alpha1.PurgeModeNever):
		cluster["purgeMode"] = string(policyv1alpha1.PurgeModeDirectly)
	}
	if state := child(application, "statePreservation"); state != nil {
		cluster["statePreservation"] = runtime.DeepCopyJSON(state)
	}
	return cluster
}

// lossTolerations adds tolerations of lost clusters to others, for as long as an application may be unhealthy.
func lossTolerations(application map[string]any, others []corev1.Toleration) []corev1.Toleration {
	seconds, ok := fields.Whole(fields.Value(application, "decisionConditions", "tolerationSeconds"))
	if !ok {
		return others
	}
	return membership.TolerationDefaults{NotReady: seconds, Unreachable: seconds}.WithDefaults(others)
}

// purgeModes are the names that Karmada used up to v1.18, with the present ones.
var purgeModes = map[string]policyv1alpha1.PurgeMode{
	"Immediately": policyv1alpha1.PurgeModeDirectly,
	"Graciously":  policyv1alpha1.PurgeModeGracefully,
}

// purgeMode replaces an old name of a purge mode.
func (r *rewrite) purgeMode(behavior map[string]any, path string) {
	old, _ := behavior["purgeMode"].(string)
	if mode, ok := purgeModes[old]; ok {
		behavior["purgeMode"] = string(mode)
		r.rewritten(path+".purgeMode", old, string(mode))
	}
}

// ofStatefulSet are names that StatefulSets give to the claims of their pods: template, set and ordinal.
var ofStatefulSet = regexp.MustCompile(`^[a-z0-9.-]+-[a-z0-9.-]+-[0-9]+$`)

// advisePropagation warns of selectors and spread constraints.
func advisePropagation(spec map[string]any) []string {
	return append(adviseSelectors(spec), adviseSpread(spec)...)
}

// adviseSpread warns of a maximum of clusters that the required groups exceed.
func adviseSpread(spec map[string]any) []string {
	placement, _ := spec["placement"].(map[string]any)
	constraints := objects(placement, "spreadConstraints")
	number := func(c map[string]any, key string) int64 {
		n, _ := fields.Whole(c[key])
		return n
	}
	var out []string
	for i, clusters := range constraints {
		most := number(clusters, "maxGroups")
		if clusters["spreadByField"] != string(policyv1alpha1.SpreadByFieldCluster) || most <= 0 {
			continue
		}
		for _, groups := range constraints {
			by, _ := groups["spreadByField"].(string)
			if label, _ := groups["spreadByLabel"].(string); label != "" {
				by = "label " + label
			}
			// A cluster may be in several zones.
			if least := number(groups, "minGroups"); by != string(policyv1alpha1.SpreadByFieldCluster) &&
				by != string(policyv1alpha1.SpreadByFieldZone) && by != "" && least > most {
				out = append(out, fmt.Sprintf("spec.placement.spreadConstraints[%d]: maxGroups %d is lower than minGroups %d by %s; %[3]d clusters are chosen", i, most, least, by))
			}
		}
	}
	return out
}

// adviseSelectors warns of a selector that takes in more than most authors think of.
func adviseSelectors(spec map[string]any) []string {
	var out []string
	for i, s := range objects(spec, "resourceSelectors") {
		if name, _ := s["name"].(string); s["kind"] == "PersistentVolumeClaim" && ofStatefulSet.MatchString(name) {
			out = append(out, fmt.Sprintf("spec.resourceSelectors[%d]: %s looks like a claim of a StatefulSet; the StatefulSet creates its claims in each member, and a propagated claim conflicts with them", i, name))
		}
		if s == nil || s["labelSelector"] != nil || s["name"] != nil && s["name"] != "" {
			continue
		}
		out = append(out, fmt.Sprintf("spec.resourceSelectors[%d]: selects every %v, because it has neither name nor labelSelector", i, s["kind"]))
	}
	return out
}
