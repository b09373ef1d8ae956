package addons

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	addonv1alpha1 "github.com/argosy-io/argosy/api/ocm/addon/v1alpha1"
	addonv1beta1 "github.com/argosy-io/argosy/api/ocm/addon/v1beta1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	scorev1alpha1 "github.com/argosy-io/argosy/api/ocm/cluster/v1alpha1"
	placementv1beta1 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/internal/core/source/ocm/rollout"
)

var now = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

const manifest = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"web-system"},` +
	`"spec":{"template":{"spec":{"containers":[{"name":"web","image":"{{IMAGE}}"}]}}}}`

// fleet is the input of a decision about the add-on web.
type fleet struct {
	Input
}

// newFleet returns clusters, "!NAME" for one that is not accepted, and the add-on web with the AddOnTemplate v1 for
// Placements: "NAME: CLUSTER CLUSTER" chooses these, "NAME?" has not decided, and "NAME-" does not exist.
func newFleet(clusters string, placements ...string) *fleet {
	f := &fleet{Input{Now: now, Placements: map[addonv1alpha1.PlacementRef]rollout.Placement{},
		Clusters: map[string]*clusterv1.ManagedCluster{}, Works: map[string][]ocmv1.ManifestWork{},
		Templates: map[string]*addonv1alpha1.AddOnTemplate{},
		Settings:  map[addonv1alpha1.ConfigReferent]*addonv1alpha1.AddOnDeploymentConfig{},
		Addon: &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "web"},
			Spec: addonv1beta1.ClusterManagementAddOnSpec{DefaultConfigs: []addonv1alpha1.AddOnConfig{template("v1")}}}}}
	for name := range strings.FieldsSeq(clusters) {
		mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: strings.TrimLeft(name, "!")}}
		mc.Spec.HubAcceptsClient = !strings.HasPrefix(name, "!")
		f.Clusters[mc.Name] = mc
	}
	for _, name := range []string{"v1", "v2", "other"} {
		t := &addonv1alpha1.AddOnTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}}
		t.Spec.AddonName = "web"
		t.Spec.AgentSpec.Workload.Manifests = []ocmv1.Manifest{{}}
		t.Spec.AgentSpec.Workload.Manifests[0].Raw = []byte(strings.ReplaceAll(manifest, "{{IMAGE}}", "web:"+name))
		f.Templates[name] = t
	}
	f.Templates["other"].Spec.AddonName = "db"
	install := &f.Addon.Spec.InstallStrategy
	for _, text := range placements {
		name, chosen, decided := strings.Cut(text, ":")
		ref := addonv1alpha1.PlacementRef{Namespace: "ns", Name: strings.TrimRight(name, "?-")}
		install.Type = addonv1alpha1.InstallPlacements
		install.Placements = append(install.Placements, addonv1alpha1.PlacementStrategy{PlacementRef: ref})
		if strings.HasSuffix(name, "-") {
			continue
		}
		p := rollout.Placement{Placement: &placementv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Name: ref.Name,
			UID: types.UID(ref.Name)}}}
		if decided {
			d := placementv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(p, placementv1beta1.GroupVersion.WithKind("Placement"))}}}
			for cluster := range strings.FieldsSeq(chosen) {
				d.Status.Decisions = append(d.Status.Decisions, placementv1beta1.ClusterDecision{ClusterName: cluster})
			}
			p.Status.NumberOfSelectedClusters = int32(len(d.Status.Decisions))
			p.Status.DecisionGroups = []placementv1beta1.DecisionGroupStatus{{}}
			p.Decisions = []placementv1beta1.PlacementDecision{d}
		}
		f.Placements[ref] = p
	}
	return f
}

func template(name string) addonv1alpha1.AddOnConfig {
	return addonv1alpha1.AddOnConfig{ConfigGroupResource: templates, Name: name}
}

// run decides and carries out until nothing changes. Clusters in ready then report that all is applied and available.
func (f *fleet) run(t *testing.T, ready ...string) Decision {
	t.Helper()
	for range 20 {
		d := Decide(f.Input)
		changed := len(d.Creates)+len(d.Deletes)+len(d.Works) > 0
		for _, addon := range d.Creates {
			f.Installed = append(f.Installed, *addon)
		}
		for _, addon := range d.Deletes {
			f.Installed = slices.DeleteFunc(f.Installed, func(a addonv1beta1.ManagedClusterAddOn) bool {
				return a.Namespace == addon.Namespace
			})
		}
		for _, c := range d.Changes {
			for i := range f.Installed {
				if f.Installed[i].Namespace == c.Want.Namespace &&
					!equality.Semantic.DeepEqual(f.Installed[i], *c.Want) {
					f.Installed[i], changed = *c.Want, true
				}
			}
		}
		for _, w := range d.Works {
			w.Want.Generation++
			f.Works[w.Want.Namespace] = []ocmv1.ManifestWork{*w.Want}
		}
		for _, cluster := range ready {
			for i := range f.Works[cluster] {
				mw := &f.Works[cluster][i]
				for _, kind := range []string{ocmv1.Applied, ocmv1.Available} {
					changed = meta.SetStatusCondition(&mw.Status.Conditions, metav1.Condition{Type: kind,
						Status: metav1.ConditionTrue, ObservedGeneration: mw.Generation}) || changed
				}
			}
		}
		if !equality.Semantic.DeepEqual(f.Addon.Status, d.Status) {
			f.Addon.Status, changed = d.Status, true
		}
		if !changed {
			return d
		}
	}
	t.Fatal("it changes for ever")
	return Decision{}
}

// states returns the state of the add-on in each cluster: its AddOnTemplate in the ManifestWork, and the reasons of its
// conditions.
func (f *fleet) states() string {
	var all []string
	for _, addon := range f.Installed {
		image := "-"
		for _, mw := range f.Works[addon.Namespace] {
			_, rest, _ := strings.Cut(string(mw.Spec.Workload.Manifests[0].Raw), "web:")
			image, _, _ = strings.Cut(rest, `"`)
		}
		all = append(all, fmt.Sprintf("%s %s %s %s", addon.Namespace, image, reason(addon.Status.Conditions, "Configured"),
			reason(addon.Status.Conditions, "Progressing")))
	}
	slices.Sort(all)
	return strings.NewReplacer("ConfigurationsConfigured", "yes", "ConfigurationsNotConfigured", "no").Replace(
		strings.Join(all, ", "))
}

func reason(conditions []metav1.Condition, kind string) string {
	if c := meta.FindStatusCondition(conditions, kind); c != nil {
		return c.Reason
	}
	return "none"
}

func TestPlacementsInstallAddons(t *testing.T) {
	for story, tc := range map[string]struct {
		clusters   string
		placements []string
		// by are the clusters of existing add-ons: "CLUSTER" of the hub, "CLUSTER*" made by hand.
		by   string
		want string
		self bool
	}{
		"nothing by default":              {clusters: "a b", by: "a*", want: "a*"},
		"where the Placement chooses":     {clusters: "a b c", placements: []string{"p: a b"}, want: "a b"},
		"where several choose":            {clusters: "a b c", placements: []string{"p: a b", "q: b c"}, want: "a b c"},
		"not where it is not accepted":    {clusters: "a !b", placements: []string{"p: a b"}, want: "a"},
		"not where no cluster is":         {clusters: "a", placements: []string{"p: a b"}, want: "a"},
		"a cluster that left":             {clusters: "a b", placements: []string{"p: a"}, by: "a b", want: "a"},
		"no cluster at all":               {clusters: "a b", placements: []string{"p:"}, by: "a b", want: ""},
		"one made by hand stays":          {clusters: "a b", placements: []string{"p: a"}, by: "b*", want: "a b*"},
		"a Placement that does not exist": {clusters: "a b", placements: []string{"p: a", "q-"}, by: "b", want: "a b"},
		"a Placement without decision":    {clusters: "a b", placements: []string{"p?"}, by: "b", want: "b"},
		"it manages itself":               {clusters: "a b", placements: []string{"p: a"}, by: "b", want: "b", self: true},
	} {
		t.Run(story, func(t *testing.T) {
			f := newFleet(tc.clusters, tc.placements...)
			if tc.self {
				f.Addon.Annotations = map[string]string{addonv1alpha1.LifecycleAnnotation: addonv1alpha1.LifecycleSelf}
			}
			for cluster := range strings.FieldsSeq(tc.by) {
				addon := addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: strings.TrimRight(cluster, "*"),
					Name: "web"}}
				if !strings.HasSuffix(cluster, "*") {
					addon.OwnerReferences = []metav1.OwnerReference{*f.owner(true)}
				}
				f.Installed = append(f.Installed, addon)
			}
			f.run(t)
			var got []string
			for _, addon := range f.Installed {
				if !tc.self && !slices.ContainsFunc(addon.OwnerReferences, func(o metav1.OwnerReference) bool {
					return o.UID == f.Addon.UID
				}) {
					t.Errorf("%s has no owner", addon.Namespace)
				}
				if metav1.IsControlledBy(&addon, f.Addon) {
					got = append(got, addon.Namespace)
				} else {
					got = append(got, addon.Namespace+"*")
				}
			}
			if slices.Sort(got); strings.Join(got, " ") != tc.want {
				t.Errorf("installed in %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAnnotationsOfAClusterReachItsAddons(t *testing.T) {
	f := newFleet("a", "p: a")
	f.Clusters["a"].Annotations = map[string]string{"addon.open-cluster-management.io/values": "{}", "team": "x"}
	f.run(t)
	f.Clusters["a"].Annotations["addon.open-cluster-management.io/x"] = "later"
	f.run(t)
	if got := f.Installed[0].Annotations; len(got) != 2 || got["addon.open-cluster-management.io/values"] != "{}" ||
		got["addon.open-cluster-management.io/x"] != "later" {
		t.Errorf("got %v", got)
	}
}

// Each row installs v1 everywhere first, then changes something, then lets clusters report.
func TestConfigurationsRollOut(t *testing.T) {
	one := scorev1alpha1.RolloutStrategy{Type: scorev1alpha1.RolloutProgressive,
		Progressive: &scorev1alpha1.RolloutProgressiveConfig{MaxConcurrency: intstr.FromInt32(1)}}
	v2 := func(f *fleet) { f.Addon.Spec.DefaultConfigs = []addonv1alpha1.AddOnConfig{template("v2")} }
	for story, tc := range map[string]struct {
		placements []string
		change     func(*fleet)
		ready      []string
		want       string
		// progress is the reason and the start of the message of each Placement.
		progress string
	}{
		"at first": {placements: []string{"p: a b"}, change: func(*fleet) {}, ready: []string{"a", "b"},
			want:     "a v1 yes Completed, b v1 yes Completed",
			progress: "p Completed selected clusters 2. configured addons 2/2 completed with no errors, 0 failed 0 timeout."},
		"all at once": {placements: []string{"p: a b"}, change: v2,
			want:     "a v2 yes Progressing, b v2 yes Progressing",
			progress: "p Progressing selected clusters 2. configured addons 2/2 progressing..., 0 failed 0 timeout."},
		"one after the other": {placements: []string{"p: a b"}, change: func(f *fleet) {
			v2(f)
			f.Addon.Spec.InstallStrategy.Placements[0].RolloutStrategy = one
		}, want: "a v2 yes Progressing, b v1 no Completed",
			progress: "p Progressing selected clusters 2. configured addons 1/2 progressing..., 0 failed 0 timeout. " +
				"maxConcurrency is reached: awaiting a"},
		"the next follows": {placements: []string{"p: a b"}, change: func(f *fleet) {
			v2(f)
			f.Addon.Spec.InstallStrategy.Placements[0].RolloutStrategy = one
		}, ready: []string{"a"}, want: "a v2 yes Completed, b v2 yes Progressing",
			progress: "p Progressing selected clusters 2. configured addons 2/2 progressing..., 0 failed 0 timeout."},
		"by the size of the groups": {placements: []string{"p: a b"}, change: func(f *fleet) {
			v2(f)
			f.Addon.Spec.InstallStrategy.Placements[0].RolloutStrategy.Type = scorev1alpha1.RolloutProgressive
			f.Placements[addonv1alpha1.PlacementRef{Namespace: "ns", Name: "p"}].Spec.DecisionStrategy.GroupStrategy.
				ClustersPerDecisionGroup = intstr.FromInt32(1)
		}, want: "a v2 yes Progressing, b v1 no Completed",
			progress: "p Progressing selected clusters 2. configured addons 1/2 progressing..., 0 failed 0 timeout. " +
				"maxConcurrency is reached: awaiting a"},
		"an invalid strategy holds": {placements: []string{"p: a"}, change: func(f *fleet) {
			v2(f)
			f.Addon.Spec.InstallStrategy.Placements[0].RolloutStrategy = scorev1alpha1.RolloutStrategy{
				Type: scorev1alpha1.RolloutProgressive, Progressive: &scorev1alpha1.RolloutProgressiveConfig{
					RolloutConfig: scorev1alpha1.RolloutConfig{MinSuccessTime: "x"}}}
		}, want: "a v1 no Completed", progress: "p Progressing selected clusters 1. configured addons 0/1 progressing..., " +
			`0 failed 0 timeout. progressive.minSuccessTime: "x" is not a duration such as 5m`},
		"the content of the template": {placements: []string{"p: a b"}, change: func(f *fleet) {
			f.Templates["v1"] = f.Templates["v2"]
		}, want: "a v2 yes Progressing, b v2 yes Progressing",
			progress: "p Progressing selected clusters 2. configured addons 2/2 progressing..., 0 failed 0 timeout."},
		"of a Placement": {placements: []string{"p: a", "q: b"}, change: func(f *fleet) {
			f.Addon.Spec.InstallStrategy.Placements[1].Configs = []addonv1alpha1.AddOnConfig{template("v2")}
		}, want: "a v1 yes Completed, b v2 yes Progressing",
			progress: "p Completed selected clusters 1. configured addons 1/1 completed with no errors, 0 failed 0 timeout.; " +
				"q Progressing selected clusters 1. configured addons 1/1 progressing..., 0 failed 0 timeout."},
		"the last Placement counts": {placements: []string{"p: a", "q: a"}, change: func(f *fleet) {
			f.Addon.Spec.InstallStrategy.Placements[0].Configs = []addonv1alpha1.AddOnConfig{template("other")}
			f.Addon.Spec.InstallStrategy.Placements[1].Configs = []addonv1alpha1.AddOnConfig{template("v2")}
		}, ready: []string{"a"}, want: "a v2 yes Completed",
			progress: "p Progressing selected clusters 1. configured addons 0/0 progressing..., 0 failed 0 timeout.; " +
				"q Completed selected clusters 1. configured addons 1/1 completed with no errors, 0 failed 0 timeout."},
		"of the add-on in a cluster": {placements: []string{"p: a b"}, change: func(f *fleet) {
			f.Installed[1].Spec.Configs = []addonv1alpha1.AddOnConfig{template("v2")}
		}, ready: []string{"a", "b"}, want: "a v1 yes Completed, b v2 yes Completed",
			progress: "p Completed selected clusters 2. configured addons 2/2 completed with no errors, 0 failed 0 timeout."},
		"of a kind that it does not support": {placements: []string{"p: a"}, change: func(f *fleet) {
			f.Installed[0].Spec.Configs = []addonv1alpha1.AddOnConfig{{Name: "x",
				ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: "g", Resource: "rs"}}}
		}, want: "a v1 yes ConfigurationUnsupported",
			progress: "p Progressing selected clusters 1. configured addons 1/1 progressing..., 0 failed 0 timeout."},
		"a template that does not exist": {placements: []string{"p: a"}, change: func(f *fleet) {
			f.Addon.Spec.DefaultConfigs = []addonv1alpha1.AddOnConfig{template("v3")}
		}, want: "a v1 yes Progressing",
			progress: "p Progressing selected clusters 1. configured addons 1/1 progressing..., 0 failed 0 timeout."},
		"the template of another add-on": {placements: []string{"p: a"}, change: func(f *fleet) {
			f.Addon.Spec.DefaultConfigs = []addonv1alpha1.AddOnConfig{template("other")}
		}, want: "a v1 yes Progressing",
			progress: "p Progressing selected clusters 1. configured addons 1/1 progressing..., 0 failed 0 timeout."},
		"a Placement that is gone holds all": {placements: []string{"p: a", "q: b"}, change: func(f *fleet) {
			v2(f)
			delete(f.Placements, addonv1alpha1.PlacementRef{Namespace: "ns", Name: "q"})
		}, want: "a v1 no Completed, b v1 no Completed",
			progress: "p Progressing selected clusters 1. configured addons 0/1 progressing..., 0 failed 0 timeout. " +
				"Placement ns/q does not exist; " +
				"q Progressing selected clusters 0. configured addons 0/0 progressing..., 0 failed 0 timeout. " +
				"Placement ns/q does not exist"},
		"a cluster that cannot get it does not hold the rest": {placements: []string{"p: a b"}, change: func(f *fleet) {
			f.Clusters["b"].Spec.HubAcceptsClient = false
		}, want: "a v1 yes Completed, b v1 yes Completed",
			progress: "p Completed selected clusters 2. configured addons 2/2 completed with no errors, 0 failed 0 timeout."},
		"hosted by another cluster": {placements: []string{"p: a"}, change: func(f *fleet) {
			v2(f)
			f.Installed[0].Annotations = map[string]string{addonv1alpha1.HostingClusterAnnotation: "b"}
		}, want: "a v1 yes Progressing",
			progress: "p Progressing selected clusters 1. configured addons 1/1 progressing..., 0 failed 0 timeout."},
		"a cluster that is denied keeps what it has": {placements: []string{"p: a"}, change: func(f *fleet) {
			v2(f)
			f.Clusters["a"].Spec.HubAcceptsClient = false
		}, want: "a v1 yes Progressing",
			progress: "p Progressing selected clusters 1. configured addons 1/1 progressing..., 0 failed 0 timeout."},
	} {
		t.Run(story, func(t *testing.T) {
			f := newFleet("a b", tc.placements...)
			f.run(t, "a", "b")
			tc.change(f)
			f.run(t, tc.ready...)
			if got := f.states(); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			var got []string
			for _, p := range f.Addon.Status.InstallProgressions {
				c := p.Conditions[0]
				got = append(got, p.Name+" "+c.Reason+" "+c.Message)
			}
			if strings.Join(got, "; ") != tc.progress {
				t.Errorf("got  %s\nwant %s", strings.Join(got, "; "), tc.progress)
			}
		})
	}
}

func TestAClusterThatCannotHaveAnAddonIsNotAwaited(t *testing.T) {
	f := newFleet("a !b", "p: a b c")
	f.run(t, "a")
	const want = "selected clusters 3. configured addons 1/1 completed with no errors, 0 failed 0 timeout."
	if got := f.Addon.Status.InstallProgressions[0].Conditions[0].Message; got != want {
		t.Error(got)
	}
}

// Deadlines count from the last change, not from one before.
func TestANewConfigurationStartsItsDeadline(t *testing.T) {
	f := newFleet("a", "p: a")
	f.run(t, "a")
	f.Addon.Spec.DefaultConfigs = []addonv1alpha1.AddOnConfig{template("v2")}
	f.run(t)
	f.Now = f.Now.Add(time.Hour)
	f.Addon.Spec.DefaultConfigs = []addonv1alpha1.AddOnConfig{template("v1")}
	f.run(t)
	c := meta.FindStatusCondition(f.Installed[0].Status.Conditions, addonv1alpha1.Progressing)
	if c.Reason != addonv1alpha1.ReasonProgressing || !c.LastTransitionTime.Time.Equal(f.Now) {
		t.Errorf("got %+v", c)
	}
}

// A cluster that waits for its turn reports as before.
func TestWaitingClustersReport(t *testing.T) {
	f := newFleet("a", "p: a")
	f.run(t, "a")
	delete(f.Placements, addonv1alpha1.PlacementRef{Namespace: "ns", Name: "p"})
	f.Addon.Spec.DefaultConfigs = []addonv1alpha1.AddOnConfig{template("v2")}
	meta.SetStatusCondition(&f.Works["a"][0].Status.Conditions, metav1.Condition{Type: ocmv1.Available,
		Status: metav1.ConditionFalse, Message: "gone"})
	f.run(t)
	c := meta.FindStatusCondition(f.Installed[0].Status.Conditions, addonv1alpha1.Available)
	if c == nil || c.Status != metav1.ConditionFalse || c.Message != "gone" {
		t.Errorf("got %+v", c)
	}
}

// A klusterlet can label its own ManifestWork as that of another cluster.
func TestAWorkOfAnotherClusterIsNotChanged(t *testing.T) {
	f := newFleet("a b", "p: a")
	f.run(t)
	theirs := *f.Works["a"][0].DeepCopy()
	theirs.Namespace, theirs.UID = "b", "theirs"
	f.Works["a"] = []ocmv1.ManifestWork{theirs}
	f.Installed[0].Annotations = map[string]string{addonv1alpha1.HostingClusterAnnotation: "b"}
	for _, w := range Decide(f.Input).Works {
		if w.Want.Namespace != "a" || w.Want.UID == "theirs" {
			t.Errorf("%s/%s is written", w.Want.Namespace, w.Want.Name)
		}
	}
	f.Installed[0].Annotations = nil
	if works := Decide(f.Input).Works; len(works) != 1 || works[0].Want.Namespace != "a" || works[0].Was != nil {
		t.Errorf("got %+v", works)
	}
}

func TestAWorkThatCannotBeWrittenIsSaid(t *testing.T) {
	f := newFleet("a", "p: a")
	f.run(t)
	d := Decide(f.Input)
	d.Fail("a", false, errors.New("too large"), now)
	c := meta.FindStatusCondition(d.Changes[0].Want.Status.Conditions, addonv1alpha1.ManifestApplied)
	if c == nil || c.Status != metav1.ConditionFalse || c.Message != "failed to apply manifestWork: too large" {
		t.Errorf("got %+v", c)
	}
}

// An add-on with a manager of its own: the manager writes hashes, ManifestWorks and conditions.
func TestAddonsOfManagersAreConfigured(t *testing.T) {
	f := newFleet("a", "p: a")
	config := addonv1alpha1.AddOnConfig{ConfigGroupResource: settings, Namespace: "ns", Name: "s"}
	f.Addon.Spec.DefaultConfigs = []addonv1alpha1.AddOnConfig{config}
	f.run(t)
	is := func(want string) {
		t.Helper()
		if got := f.states(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	is("a - yes WaitingForManifestApplied")
	if len(f.Installed[0].Finalizers) > 0 {
		t.Error("the hub has a finalizer on it")
	}
	f.Addon.Status.InstallProgressions[0].ConfigReferences[0].DesiredConfig.SpecHash = "1"
	f.run(t)
	if got := f.Installed[0].Status.ConfigReferences[0].DesiredConfig.SpecHash; got != "1" {
		t.Errorf("the hash is %q", got)
	}
	meta.SetStatusCondition(&f.Installed[0].Status.Conditions, metav1.Condition{Type: addonv1alpha1.ManifestApplied,
		Status: metav1.ConditionTrue})
	f.run(t)
	is("a - yes Progressing")
	f.Works["a"] = []ocmv1.ManifestWork{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "addon-web-deploy-0",
		Annotations: map[string]string{addonv1alpha1.ConfigSpecHashAnnotation: `{"addondeploymentconfigs.` +
			addonv1alpha1.GroupVersion.Group + `/ns/s":"1"}`}},
		Spec: ocmv1.ManifestWorkSpec{Workload: ocmv1.ManifestsTemplate{Manifests: []ocmv1.Manifest{{}}}}}}
	f.run(t, "a")
	is("a  yes Completed")
	// A ManifestWork of another cluster does not count, unless that hosts the agent.
	other := *f.Works["a"][0].DeepCopy()
	other.Namespace, other.Status.Conditions = "b", nil
	f.Works["a"] = append(f.Works["a"], other)
	f.run(t)
	is("a  yes Completed")
	f.Installed[0].Annotations = map[string]string{addonv1alpha1.HostingClusterAnnotation: "b"}
	meta.SetStatusCondition(&f.Installed[0].Status.Conditions, metav1.Condition{Type: addonv1alpha1.HostingManifestApplied,
		Status: metav1.ConditionTrue})
	f.run(t)
	is("a  yes Progressing")
}
