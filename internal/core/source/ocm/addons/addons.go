// Package addons decides about the add-ons of Open Cluster Management: in which clusters an add-on is installed, with
// which configuration, and in which order clusters get a change; and what an AddOnTemplate puts there. Callers read and
// write.
package addons

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonv1alpha1 "github.com/argosy-io/argosy/api/ocm/addon/v1alpha1"
	addonv1beta1 "github.com/argosy-io/argosy/api/ocm/addon/v1beta1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	scorev1alpha1 "github.com/argosy-io/argosy/api/ocm/cluster/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/source/ocm/rollout"
)

// Input is what a decision about an add-on depends on. It is read-only.
type Input struct {
	Addon *addonv1beta1.ClusterManagementAddOn
	// Placements are the existing ones of those that the add-on names.
	Placements map[addonv1alpha1.PlacementRef]rollout.Placement
	// Clusters are the ManagedClusters, by name.
	Clusters map[string]*clusterv1.ManagedCluster
	// Installed are the ManagedClusterAddOns with the name of the add-on.
	Installed []addonv1beta1.ManagedClusterAddOn
	// Works are the ManifestWorks with the label of the add-on, by cluster.
	Works map[string][]ocmv1.ManifestWork
	// Templates and Settings are the configurations of kinds that the hub knows, by name and by namespace and name. Others
	// are for the manager of the add-on.
	Templates map[string]*addonv1alpha1.AddOnTemplate
	Settings  map[addonv1alpha1.ConfigReferent]*addonv1alpha1.AddOnDeploymentConfig
	Now       time.Time
}

// Decision is what follows for an add-on.
type Decision struct {
	// Creates are the ManagedClusterAddOns to create, and Deletes those to delete.
	Creates, Deletes []*addonv1beta1.ManagedClusterAddOn
	// Changes are the ManagedClusterAddOns that stay, also those without a change.
	Changes []Change
	// Works are the ManifestWorks to create or update, by what an AddOnTemplate says.
	Works []Work
	// Bindings are the RoleBindings on the hub of the agents of the add-on. Those of the clusters in Kept stay as they
	// are.
	Bindings []*rbacv1.RoleBinding
	Kept     []string
	// Status of the ClusterManagementAddOn.
	Status addonv1beta1.ClusterManagementAddOnStatus
	// After is the delay until the decision may change by time alone; 0: never.
	After time.Duration
}

// Change is a ManagedClusterAddOn as it is and as it should be.
type Change struct {
	Was, Want *addonv1beta1.ManagedClusterAddOn
}

// Work is a ManifestWork to create, if Was is nil, or to update.
type Work struct {
	Was, Want *ocmv1.ManifestWork
}

// Fail records in the add-on of a cluster that its ManifestWork or, if rights is true, its RoleBindings could not be
// written.
func (d *Decision) Fail(cluster string, rights bool, err error, now time.Time) {
	c := metav1.Condition{Type: addonv1alpha1.ManifestApplied, Status: metav1.ConditionFalse,
		Reason:  addonv1alpha1.ReasonManifestWorkApplyFailed,
		Message: fmt.Sprintf("failed to apply manifestWork: %v", err), LastTransitionTime: metav1.NewTime(now)}
	if rights {
		c.Type, c.Reason = addonv1alpha1.RegistrationApplied, addonv1alpha1.ReasonSetPermissionFailed
		c.Message = fmt.Sprintf("Failed to set permission for hub agent: %v", err)
	}
	for _, change := range d.Changes {
		if change.Want.Namespace == cluster {
			meta.SetStatusCondition(&change.Want.Status.Conditions, c)
		}
	}
}

// The kinds of configurations that the hub knows.
var (
	templates = addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupVersion.Group, Resource: "addontemplates"}
	settings  = addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupVersion.Group,
		Resource: "addondeploymentconfigs"}
)

// Templated reports whether the hub installs an add-on by its AddOnTemplate. Another add-on has a manager of its own.
func Templated(addon *addonv1beta1.ClusterManagementAddOn) bool {
	return Managed(addon) && slices.ContainsFunc(addon.Spec.DefaultConfigs, func(c addonv1alpha1.AddOnConfig) bool {
		return c.ConfigGroupResource == templates
	})
}

// Managed reports whether the hub installs and configures an add-on. Other add-ons have a manager that does it.
func Managed(addon *addonv1beta1.ClusterManagementAddOn) bool {
	const byHub = "addon-manager"
	return cmp.Or(addon.Annotations[addonv1alpha1.LifecycleAnnotation], byHub) == byHub
}

// place has the clusters of a Placement of an add-on. One without a Placement has the clusters that none chooses.
type place struct {
	addonv1alpha1.PlacementRef
	configs  []addonv1alpha1.AddOnConfig
	strategy scorev1alpha1.RolloutStrategy
	groups   []rollout.Group
	// all are the clusters that the Placement chooses, and own those of them that have the add-on or can get it, and that
	// no later Placement chooses.
	all, own []string
	members  map[string]*member
	rollout.Decision
}

// member is an add-on in a cluster.
type member struct {
	*addonv1beta1.ManagedClusterAddOn
	wanted []addonv1alpha1.ConfigState
	state  rollout.Cluster
}

// Decide returns what follows for an add-on.
func Decide(in Input) Decision {
	d := Decision{Status: *in.Addon.Status.DeepCopy()}
	d.Status.DefaultConfigReferences = nil
	for _, c := range defaults(in.Addon) {
		d.Status.DefaultConfigReferences = append(d.Status.DefaultConfigReferences, addonv1alpha1.DefaultConfigReference{
			ConfigGroupResource: c.ConfigGroupResource, DesiredConfig: in.hashed(c, nil)})
	}
	placed := in.Addon.Spec.InstallStrategy.Type == addonv1alpha1.InstallPlacements
	if !Managed(in.Addon) {
		return d
	}
	places, rest, undecided := []*place{}, &place{configs: defaults(in.Addon)}, ""
	if placed {
		places, undecided = in.places()
		in.install(&d, places, undecided == "")
	}
	in.assign(append(places, rest))
	d.Status.InstallProgressions = nil
	for _, p := range append(places, rest) {
		if err := p.roll(in.Now); err != nil {
			p.Decision = rollout.Decision{Held: err.Error()}
		}
		if undecided != "" { // a cluster may belong to another Placement
			p.Next, p.Held = nil, undecided
		}
		if p.After > 0 && (d.After == 0 || p.After < d.After) {
			d.After = p.After
		}
		for _, cluster := range slices.Sorted(maps.Keys(p.members)) {
			in.member(&d, p, p.members[cluster])
		}
		if p != rest {
			d.Status.InstallProgressions = append(d.Status.InstallProgressions, in.progression(p))
		}
	}
	return d
}

// places returns the Placements of the add-on. undecided says which of them is missing or has not decided; empty for
// none.
func (in Input) places() (places []*place, undecided string) {
	for _, strategy := range in.Addon.Spec.InstallStrategy.Placements {
		p := in.Placements[strategy.PlacementRef]
		pl := &place{PlacementRef: strategy.PlacementRef, strategy: *strategy.RolloutStrategy.DeepCopy(),
			configs: override(defaults(in.Addon), strategy.Configs)}
		places = append(places, pl)
		if !p.Exists() {
			undecided = fmt.Sprintf("Placement %s/%s does not exist", pl.Namespace, pl.Name)
			continue
		}
		var whole bool
		pl.groups = p.Groups(nil)
		if pl.all, whole = p.Clusters(); !whole && undecided == "" {
			undecided = fmt.Sprintf("Placement %s/%s has not decided yet", pl.Namespace, pl.Name)
		}
		if of := pl.strategy.Progressive; pl.strategy.Type == scorev1alpha1.RolloutProgressive && (of == nil ||
			of.MaxConcurrency.IntVal == 0 && of.MaxConcurrency.StrVal == "") {
			if of == nil {
				of = &scorev1alpha1.RolloutProgressiveConfig{}
				pl.strategy.Progressive = of
			}
			of.MaxConcurrency = p.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup
		}
	}
	taken, has := map[string]bool{}, in.locations()
	for _, pl := range slices.Backward(places) {
		for _, cluster := range pl.all {
			if !taken[cluster] && (has[cluster] || eligible(in.Clusters[cluster])) {
				pl.own = append(pl.own, cluster)
			}
			taken[cluster] = true
		}
	}
	return places, undecided
}

// locations returns the clusters that have the add-on.
func (in Input) locations() map[string]bool {
	has := map[string]bool{}
	for i := range in.Installed {
		has[in.Installed[i].Namespace] = true
	}
	return has
}

// install creates the add-on in the clusters that Placements choose, and deletes it where the hub created it and none
// does. whole is false while a cluster may be chosen of which nothing is known.
func (in Input) install(d *Decision, places []*place, whole bool) {
	has, chosen := in.locations(), map[string]bool{}
	for _, p := range places {
		for _, cluster := range p.all {
			mc := in.Clusters[cluster]
			if chosen[cluster] = true; has[cluster] || !eligible(mc) {
				continue
			}
			has[cluster] = true
			addon := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: in.Addon.Name,
				OwnerReferences: []metav1.OwnerReference{*in.owner(true)}}}
			configure(addon, mc)
			if Templated(in.Addon) {
				addon.Finalizers = []string{wellknown.AddonFinalizer}
			}
			d.Creates = append(d.Creates, addon)
		}
	}
	for i := range in.Installed {
		if addon := &in.Installed[i]; whole && !chosen[addon.Namespace] && addon.DeletionTimestamp == nil &&
			metav1.IsControlledBy(addon, in.Addon) {
			d.Deletes = append(d.Deletes, addon)
		}
	}
}

// configure copies the annotations that configure add-ons from a cluster to its add-on.
func configure(addon *addonv1beta1.ManagedClusterAddOn, mc *clusterv1.ManagedCluster) {
	for key, value := range mc.Annotations {
		if strings.HasPrefix(key, addonv1alpha1.GroupVersion.Group+"/") {
			metav1.SetMetaDataAnnotation(&addon.ObjectMeta, key, value)
		}
	}
}

// eligible reports whether a cluster can get add-ons.
func eligible(mc *clusterv1.ManagedCluster) bool {
	return mc != nil && mc.DeletionTimestamp == nil && mc.Spec.HubAcceptsClient
}

// owner returns a reference to the ClusterManagementAddOn. It controls what the hub created, not what others did.
func (in Input) owner(controls bool) *metav1.OwnerReference {
	owner := metav1.NewControllerRef(in.Addon, addonv1beta1.GroupVersion.WithKind("ClusterManagementAddOn"))
	if !controls {
		owner.Controller, owner.BlockOwnerDeletion = nil, nil
	}
	return owner
}

// assign gives each place the add-ons in its own clusters, and the last place the rest.
func (in Input) assign(places []*place) {
	rest, of := places[len(places)-1], map[string]*place{}
	for _, p := range places {
		p.members = map[string]*member{}
		for _, cluster := range p.all { // the last one counts
			of[cluster] = p
		}
	}
	for i := range in.Installed {
		addon := &in.Installed[i]
		if addon.DeletionTimestamp != nil {
			continue
		}
		to := of[addon.Namespace]
		if to == nil {
			to = rest
		}
		m := &member{ManagedClusterAddOn: addon}
		for _, c := range override(to.configs, addon.Spec.Configs) {
			state := addonv1alpha1.ConfigState{ConfigGroupResource: c.ConfigGroupResource, DesiredConfig: in.hashed(c, addon)}
			if of := find(addon.Status.ConfigReferences, c); of != nil {
				state.LastAppliedConfig, state.LastObservedGeneration = of.LastAppliedConfig, of.LastObservedGeneration
			}
			m.wanted = append(m.wanted, state)
		}
		m.state = m.rolloutState()
		to.members[addon.Namespace] = m
	}
}

// sent reports whether the status names exactly the wanted configurations, with their content.
func (m *member) sent() bool {
	return len(m.wanted) == len(m.Status.ConfigReferences) && !slices.ContainsFunc(m.wanted,
		func(want addonv1alpha1.ConfigState) bool {
			is := find(m.Status.ConfigReferences, configOf(want))
			return is == nil || *is.DesiredConfig != *want.DesiredConfig
		})
}

// rolloutState is the state of the wanted configuration in the cluster, if it was sent.
func (m *member) rolloutState() rollout.Cluster {
	c := rollout.Cluster{State: rollout.Succeeded}
	progressing := meta.FindStatusCondition(m.Status.Conditions, addonv1alpha1.Progressing)
	since := func(reason string) {
		if progressing != nil && progressing.Reason == reason {
			c.Since = progressing.LastTransitionTime.Time
		}
	}
	for _, is := range m.Status.ConfigReferences {
		if is.LastAppliedConfig != nil && is.DesiredConfig != nil && *is.LastAppliedConfig == *is.DesiredConfig {
			continue
		}
		c.State = rollout.Sent
		switch {
		case progressing == nil:
		case progressing.Reason == addonv1alpha1.ReasonFailed:
			c.State = rollout.Failed
			since(addonv1alpha1.ReasonFailed)
		case progressing.Reason == addonv1alpha1.ReasonProgressing:
			c.State = rollout.Progressing
			since(addonv1alpha1.ReasonProgressing)
		}
		return c
	}
	since(addonv1alpha1.ReasonCompleted)
	return c
}

// roll decides which members get their configuration now.
func (p *place) roll(now time.Time) (err error) {
	sent := map[string]rollout.Cluster{}
	for cluster, m := range p.members {
		if m.sent() {
			sent[cluster] = m.state
		}
	}
	if p.Name == "" { // no Placement: all at once
		for cluster := range p.members {
			p.Next = append(p.Next, cluster)
		}
		return nil
	}
	var groups []rollout.Group
	for _, g := range p.groups {
		g.Clusters = slices.DeleteFunc(slices.Clone(g.Clusters), func(c string) bool { return p.members[c] == nil })
		groups = append(groups, g)
	}
	p.Decision, err = rollout.Decide(rollout.Input{Strategy: p.strategy, Groups: groups, Sent: sent, Now: now})
	return err
}

// defaults returns the configurations that an add-on has everywhere.
func defaults(addon *addonv1beta1.ClusterManagementAddOn) []addonv1alpha1.AddOnConfig {
	named := slices.DeleteFunc(slices.Clone(addon.Spec.DefaultConfigs), func(c addonv1alpha1.AddOnConfig) bool {
		return c.Name == "" || c.Name == addonv1alpha1.NoDefaultConfig
	})
	return override(nil, named)
}

// override returns configurations in which those of over replace all of the same kinds, sorted by kind.
func override(of, over []addonv1alpha1.AddOnConfig) (all []addonv1alpha1.AddOnConfig) {
	all = slices.DeleteFunc(slices.Clone(of), func(c addonv1alpha1.AddOnConfig) bool {
		return slices.ContainsFunc(over, func(o addonv1alpha1.AddOnConfig) bool {
			return o.ConfigGroupResource == c.ConfigGroupResource
		})
	})
	for _, c := range over {
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b addonv1alpha1.AddOnConfig) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource))
	})
	return all
}

// configOf returns the configuration that a state is about.
func configOf(s addonv1alpha1.ConfigState) addonv1alpha1.AddOnConfig {
	c := addonv1alpha1.AddOnConfig{ConfigGroupResource: s.ConfigGroupResource}
	if s.DesiredConfig != nil {
		c.Namespace, c.Name = s.DesiredConfig.Namespace, s.DesiredConfig.Name
	}
	return c
}

func find(states []addonv1alpha1.ConfigState, c addonv1alpha1.AddOnConfig) *addonv1alpha1.ConfigState {
	for i := range states {
		if states[i].DesiredConfig != nil && configOf(states[i]) == c {
			return &states[i]
		}
	}
	return nil
}

// hashed returns a configuration with the hash of its content; without one if it does not exist. For an add-on with a
// manager of its own, this is the hash that the manager wrote: of a configuration that the add-on in the cluster names
// itself into its status, of others into that of the ClusterManagementAddOn.
func (in Input) hashed(c addonv1alpha1.AddOnConfig,
	addon *addonv1beta1.ManagedClusterAddOn) *addonv1alpha1.ConfigSpecHash {
	h := &addonv1alpha1.ConfigSpecHash{Namespace: c.Namespace, Name: c.Name}
	if Templated(in.Addon) {
		switch c.ConfigGroupResource {
		case templates:
			if of := in.Templates[c.Name]; of != nil {
				h.SpecHash = hash(of.Spec)
			}
		case settings:
			if of := in.Settings[addonv1alpha1.ConfigReferent{Namespace: c.Namespace, Name: c.Name}]; of != nil {
				h.SpecHash = hash(of.Spec)
			}
		}
		return h
	}
	if addon != nil && slices.Contains(addon.Spec.Configs, c) {
		if of := find(addon.Status.ConfigReferences, c); of != nil {
			h.SpecHash = of.DesiredConfig.SpecHash
		}
		return h
	}
	known := func(gr addonv1alpha1.ConfigGroupResource, of *addonv1alpha1.ConfigSpecHash) {
		if h.SpecHash == "" && gr == c.ConfigGroupResource && of != nil && of.Name == c.Name && of.Namespace == c.Namespace {
			h.SpecHash = of.SpecHash
		}
	}
	for _, p := range in.Addon.Status.InstallProgressions {
		for _, r := range p.ConfigReferences {
			known(r.ConfigGroupResource, r.DesiredConfig)
		}
	}
	for _, r := range in.Addon.Status.DefaultConfigReferences {
		known(r.ConfigGroupResource, r.DesiredConfig)
	}
	return h
}

// hash returns the hash of a configuration: of all fields but the metadata, as hex.
func hash(spec any) string {
	data, _ := json.Marshal(map[string]any{"spec": spec}) // it was JSON before
	return fmt.Sprintf("%x", sha256.Sum256(data))
}

// progression returns the progress of the rollout to the clusters of a Placement.
func (in Input) progression(p *place) addonv1alpha1.InstallProgression {
	is := addonv1alpha1.InstallProgression{PlacementRef: p.PlacementRef}
	for _, was := range in.Addon.Status.InstallProgressions {
		if was.PlacementRef == p.PlacementRef {
			is = *was.DeepCopy()
		}
	}
	before := is.ConfigReferences
	is.ConfigReferences = nil
	for _, c := range p.configs {
		of := addonv1alpha1.InstallConfigReference{ConfigGroupResource: c.ConfigGroupResource, DesiredConfig: in.hashed(c,
			nil)}
		for _, was := range before {
			if was.ConfigGroupResource == c.ConfigGroupResource && was.DesiredConfig != nil &&
				was.DesiredConfig.Name == c.Name && was.DesiredConfig.Namespace == c.Namespace {
				of.LastAppliedConfig, of.LastKnownGoodConfig = was.LastAppliedConfig, was.LastKnownGoodConfig
			}
		}
		is.ConfigReferences = append(is.ConfigReferences, of)
	}
	progressing, done, failed, late := len(p.Next)+len(p.Awaited), 0, 0, 0
	for cluster, m := range p.members {
		switch {
		case slices.Contains(p.Awaited, cluster), !m.sent():
		case m.state.State == rollout.Succeeded:
			done++
		default:
			late++
			if m.state.State == rollout.Failed {
				failed++
			}
		}
	}
	condition := metav1.Condition{Type: addonv1alpha1.Progressing, Status: metav1.ConditionTrue,
		Reason: addonv1alpha1.ReasonProgressing, LastTransitionTime: metav1.NewTime(in.Now)}
	if done == len(p.own) && done > 0 {
		for i := range is.ConfigReferences {
			of := &is.ConfigReferences[i]
			of.LastAppliedConfig, of.LastKnownGoodConfig = of.DesiredConfig.DeepCopy(), of.DesiredConfig.DeepCopy()
		}
		condition.Status, condition.Reason = metav1.ConditionFalse, addonv1alpha1.ReasonCompleted
		condition.Message = fmt.Sprintf(
			"selected clusters %d. configured addons %d/%d completed with no errors, %d failed %d timeout.", len(p.all), done,
			len(p.own), failed, late)
	} else {
		condition.Message = fmt.Sprintf(
			"selected clusters %d. configured addons %d/%d progressing..., %d failed %d timeout.", len(p.all), progressing+done,
			len(p.own), failed, late)
		if p.Held != "" {
			condition.Message += " " + p.Held
		}
	}
	meta.SetStatusCondition(&is.Conditions, condition)
	return is
}

// member decides about the add-on in one cluster.
func (in Input) member(d *Decision, p *place, m *member) {
	want := m.DeepCopy()
	if !slices.ContainsFunc(want.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == in.Addon.UID }) {
		want.OwnerReferences = append(want.OwnerReferences, *in.owner(false))
	}
	if mc := in.Clusters[m.Namespace]; mc != nil && metav1.IsControlledBy(m, in.Addon) {
		configure(want, mc)
	}
	set := func(kind string, status metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&want.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason,
			Message: message, LastTransitionTime: metav1.NewTime(in.Now)})
	}
	if p.admits(m) {
		if !m.sent() { // deadlines count from this change
			meta.RemoveStatusCondition(&want.Status.Conditions, addonv1alpha1.Progressing)
		}
		want.Status.ConfigReferences = m.wanted
		set(addonv1alpha1.Configured, metav1.ConditionTrue, addonv1alpha1.ReasonConfigured, "Configurations configured")
	} else {
		message := "Configurations updated and not configured yet"
		if p.Held != "" {
			message += ": " + p.Held
		}
		set(addonv1alpha1.Configured, metav1.ConditionFalse, addonv1alpha1.ReasonNotConfigured, message)
	}
	// A ManifestWork of another cluster counts only if that hosts the agent of the add-on.
	works := slices.DeleteFunc(slices.Clone(in.Works[m.Namespace]), func(mw ocmv1.ManifestWork) bool {
		return mw.Namespace != m.Namespace && mw.Namespace != m.Annotations[addonv1alpha1.HostingClusterAnnotation]
	})
	if Templated(in.Addon) {
		if !slices.Contains(want.Finalizers, wellknown.AddonFinalizer) {
			want.Finalizers = append(want.Finalizers, wellknown.AddonFinalizer)
		}
		works = in.template(d, p, m, want, works, set)
	}
	in.progress(want, works, set)
	d.Changes = append(d.Changes, Change{m.ManagedClusterAddOn, want})
}

// condition sets a condition.
type condition func(kind string, status metav1.ConditionStatus, reason, message string)

// progress sets the condition Progressing, and what was applied last.
func (in Input) progress(addon *addonv1beta1.ManagedClusterAddOn, works []ocmv1.ManifestWork, set condition) {
	reason, isTrue, message := addonv1alpha1.ReasonProgressing, metav1.ConditionTrue, ""
	unsupported := slices.IndexFunc(addon.Spec.Configs, func(c addonv1alpha1.AddOnConfig) bool {
		return !slices.Contains(addon.Status.SupportedConfigs, c.ConfigGroupResource)
	})
	waits := func(kind string) bool { return meta.FindStatusCondition(addon.Status.Conditions, kind) == nil }
	switch pending := pendingWork(addon, works); {
	case unsupported >= 0:
		c := addon.Spec.Configs[unsupported]
		reason, isTrue = addonv1alpha1.ReasonConfigurationUnsupported, metav1.ConditionFalse
		message = fmt.Sprintf("Configuration with gvr %s/%s is not supported for this addon", c.Group, c.Resource)
	case waits(addonv1alpha1.ManifestApplied):
		reason, isTrue = addonv1alpha1.ReasonWaitingForManifestApplied, metav1.ConditionFalse
		message = "Waiting for ManagedClusterAddOn ManifestApplied condition"
	case !Templated(in.Addon) && addon.Annotations[addonv1alpha1.HostingClusterAnnotation] != "" &&
		waits(addonv1alpha1.HostingManifestApplied):
		reason, isTrue = addonv1alpha1.ReasonWaitingForHostingManifestApplied, metav1.ConditionFalse
		message = "Waiting for ManagedClusterAddOn HostingManifestApplied condition"
	case pending != "":
		message = "progressing... " + pending
	default:
		reason, isTrue, message = addonv1alpha1.ReasonCompleted, metav1.ConditionFalse, "completed with no errors."
		for i := range addon.Status.ConfigReferences {
			of := &addon.Status.ConfigReferences[i]
			of.LastAppliedConfig = ptr.To(*of.DesiredConfig)
		}
	}
	set(addonv1alpha1.Progressing, isTrue, reason, message)
}

// pendingWork returns what the ManifestWorks of an add-on wait for; empty if they have its configuration and are ready.
func pendingWork(addon *addonv1beta1.ManagedClusterAddOn, works []ocmv1.ManifestWork) string {
	if len(works) == 0 {
		return "no addon works"
	}
	hashes := map[string]string{}
	for _, of := range addon.Status.ConfigReferences {
		if of.DesiredConfig == nil || of.DesiredConfig.SpecHash == "" {
			return "mca and work configs mismatch"
		}
		hashes[hashKey(of)] = of.DesiredConfig.SpecHash
	}
	for _, mw := range works {
		if strings.HasPrefix(mw.Name, "addon-"+addon.Name+"-pre-delete") {
			continue
		}
		has := map[string]string{}
		if text := mw.Annotations[addonv1alpha1.ConfigSpecHashAnnotation]; text != "" &&
			json.Unmarshal([]byte(text), &has) != nil || !maps.Equal(has, hashes) {
			return "mca and work configs mismatch"
		}
		for _, kind := range []string{ocmv1.Available, ocmv1.Applied} {
			if c := meta.FindStatusCondition(mw.Status.Conditions, kind); c == nil || c.Status != metav1.ConditionTrue ||
				c.ObservedGeneration != mw.Generation {
				return "work is not ready"
			}
		}
	}
	return ""
}

// hashKey is the key of a configuration in the annotation of a ManifestWork.
func hashKey(c addonv1alpha1.ConfigState) string {
	resource := c.Resource
	if c.Group != "" {
		resource += "." + c.Group
	}
	return resource + "/" + c.DesiredConfig.Namespace + "/" + c.DesiredConfig.Name
}
