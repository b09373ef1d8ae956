package dispatch

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/override"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

const (
	// pullShare and pullTimeout are the default share of nodes and the default timeout.
	pullShare   = "95%"
	pullTimeout = 10 * time.Minute
	// pullsAtOnce is the number of nodes of a cluster that pull at the same time.
	pullsAtOnce = 10
)

// prePull are a template's settings for pulling new images before they run.
type prePull struct {
	share   string
	timeout time.Duration
}

// prePullOf returns nil for a template without these settings.
func prePullOf(template *unstructured.Unstructured) (*prePull, error) {
	share, asked := template.GetAnnotations()[wellknown.PrePullAnnotation]
	if !asked {
		return nil, nil
	}
	p := &prePull{share, pullTimeout}
	if share == "true" {
		p.share = pullShare
	}
	if n, err := fleet.Resolve(p.share, 1000, fleet.Up); err != nil || n > 1000 || n == 0 {
		return nil, fmt.Errorf(`annotation %s: %q is neither a percentage of nodes up to 100%% nor "true"`,
			wellknown.PrePullAnnotation, share)
	}
	if text, set := template.GetAnnotations()[wellknown.PrePullTimeoutAnnotation]; set {
		var err error
		if p.timeout, err = time.ParseDuration(text); err != nil || p.timeout <= 0 {
			return nil, fmt.Errorf("annotation %s: %q is not a duration, such as 10m", wellknown.PrePullTimeoutAnnotation, text)
		}
	}
	return p, nil
}

// gate is why the new pods of a cluster wait.
type gate struct {
	pulls []*workv1alpha1.Work
	// shut is true if the new pods may not start yet, for at most left; awaited is the condition's message.
	shut    bool
	left    time.Duration
	awaited string
}

// gates returns the gates of the clusters that get other images than they run now and serve ImagePullJobs.
func (in Input) gates(parts []part) (map[string]gate, error) {
	asked, err := prePullOf(in.Template)
	if asked == nil || err != nil || in.Template.GetNamespace() == "" {
		return nil, err
	}
	gates := map[string]gate{}
	for _, p := range parts {
		c, w := in.Clusters[p.Name], in.Existing[p.Name]
		if p.manifest == nil || c == nil || w == nil || leaving(w) || Suspended(in.Binding, p.Name) {
			continue
		}
		version := servedPull(c)
		before, err := execute.Manifest(w)
		if version == "" || err != nil {
			continue
		}
		local, _, err := override.Apply(p.manifest, c, in.overridesFor(p.Name))
		if err != nil {
			continue // the override reports it
		}
		var g gate
		runs := images(before)
		for _, image := range images(local) {
			if !slices.Contains(runs, image) {
				in.pull(&g, asked, p.Name, image, version, local)
			}
		}
		gates[p.Name] = g
	}
	return gates, nil
}

// servedPull returns the newest group version of ImagePullJob that a cluster serves; empty for none.
func servedPull(c *clusterv1alpha1.Cluster) string {
	for _, gv := range []string{"apps.kruise.io/v1beta1", "apps.kruise.io/v1alpha1"} {
		if c.Status.Serves(gv, "ImagePullJob") {
			return gv
		}
	}
	return ""
}

// images returns the images of the pods of m, each once, sorted.
func images(m *unstructured.Unstructured) []string {
	var all []string
	for _, path := range interpret.PodTemplates(m) {
		for _, list := range []string{"initContainers", "containers"} {
			for _, c := range fields.Objects(m.Object, append(slices.Clone(path), "spec", list)...) {
				if image := fields.Text(c, "image"); image != "" {
					all = append(all, image)
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (in Input) pull(g *gate, asked *prePull, cluster, image, apiVersion string, local *unstructured.Unstructured) {
	wanted := in.pullWork(asked, cluster, image, apiVersion, local)
	g.pulls = append(g.pulls, wanted)
	i := slices.IndexFunc(in.Pulls[cluster], func(w *workv1alpha1.Work) bool { return w.Name == wanted.Name })
	if i < 0 || in.Pulls[cluster][i].CreationTimestamp.IsZero() {
		g.shut, g.left = true, max(g.left, asked.timeout)
		return // it has not started
	}
	until := in.Pulls[cluster][i].CreationTimestamp.Add(asked.timeout)
	left := until.Sub(in.Now)
	if left <= 0 || pulled(in.Pulls[cluster][i], asked.share) {
		return
	}
	g.shut, g.left = true, max(g.left, left)
	if g.awaited == "" {
		g.awaited = fmt.Sprintf("cluster %q: ", cluster)
	} else {
		g.awaited += "; "
	}
	g.awaited += fmt.Sprintf("it is pulling %s; new pods are created when %s of its nodes have it, or at %s", image,
		asked.share, until.UTC().Format(time.RFC3339))
}

// pulled reports whether an image is on enough nodes of its cluster, or the cluster has refused to pull it.
func pulled(w *workv1alpha1.Work, share string) bool {
	if meta.IsStatusConditionFalse(w.Status.Conditions, workv1alpha1.WorkApplied) {
		return true
	}
	if len(w.Status.ManifestStatuses) == 0 || w.Status.ManifestStatuses[0].Status == nil {
		return false
	}
	var status map[string]any
	if json.Unmarshal(w.Status.ManifestStatuses[0].Status.Raw, &status) != nil {
		return false
	}
	nodes := fields.Number(status, "desired")
	if nodes == 0 { // none to pull on, or not counted yet
		return fields.Text(status, "completionTime") != ""
	}
	enough, err := fleet.Resolve(share, nodes, fleet.Up)
	return err == nil && fields.Number(status, "succeeded") >= enough
}

// pullWork returns the Work that pulls an image on the nodes that the pods of local may use.
func (in Input) pullWork(asked *prePull, cluster, image, apiVersion string,
	local *unstructured.Unstructured) *workv1alpha1.Work {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s/%s/%s", local.GetKind(), in.Template.GetName(), image) // never fails
	name := "pre-pull-" + strconv.FormatUint(h.Sum64(), 36)
	spec := map[string]any{
		"image": image, "parallelism": int64(pullsAtOnce),
		"completionPolicy": map[string]any{"type": "Always",
			"activeDeadlineSeconds": max(1, int64(asked.timeout/time.Second))},
	}
	var secrets []any
	for _, path := range interpret.PodTemplates(local) {
		pod := fields.Object(local.Object, append(slices.Clone(path), "spec")...)
		for _, s := range fields.Objects(pod, "imagePullSecrets") {
			if name := fields.Text(s, "name"); name != "" && !slices.Contains(secrets, any(name)) {
				secrets = append(secrets, name)
			}
		}
		if nodes := fields.Object(pod, "nodeSelector"); len(nodes) > 0 {
			spec["selector"] = map[string]any{"matchLabels": runtime.DeepCopyJSON(nodes)}
		}
	}
	if len(secrets) > 0 {
		spec["pullSecrets"] = secrets
	}
	m := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": "ImagePullJob", "metadata": map[string]any{"namespace": in.Template.GetNamespace(),
			"name": name}, "spec": spec,
	}}
	either := names.Either(names.Work(m.GetKind(), name, m.GetNamespace()), m.GroupVersionKind().GroupKind(), name,
		m.GetNamespace())
	if slices.ContainsFunc(in.Pulls[cluster], func(w *workv1alpha1.Work) bool { return w.Name == either[1] }) {
		either = either[1:]
	}
	w := execute.NewWork(cluster, either[0], execute.PermanentID(nil, in.NewID))
	w.Annotations[wellknown.PrePullOfAnnotation] = in.Binding.GetNamespace() + "/" + in.Binding.GetName()
	if err := execute.Seal(w, m); err != nil {
		panic(err) // texts and numbers
	}
	return w
}

// keepPods copies the pod templates of the existing Work into the wanted one; they keep the template generation that
// they are from. False if the pod templates are not at the same paths: then the existing Work must stay.
func (in Input) keepPods(wanted, standing *workv1alpha1.Work) bool {
	is, err := execute.Manifest(standing)
	m, failed := execute.Manifest(wanted)
	if err != nil || failed != nil || is.GroupVersionKind() != m.GroupVersionKind() ||
		!reflect.DeepEqual(interpret.PodTemplates(is), interpret.PodTemplates(m)) {
		return false
	}
	for _, path := range interpret.PodTemplates(is) {
		if unstructured.SetNestedField(m.Object, fields.Value(is.Object, path...), path...) != nil {
			return false
		}
	}
	annotations := m.GetAnnotations()
	delete(wanted.Annotations, fleet.EffectiveRevisionAnnotation)
	delete(annotations, wellknown.FormerRevisionAnnotation)
	if revision, ok := standing.Annotations[fleet.EffectiveRevisionAnnotation]; ok {
		wanted.Annotations[fleet.EffectiveRevisionAnnotation] = revision
		if in.pace.current != "" && revision != in.pace.current {
			annotations[wellknown.FormerRevisionAnnotation] = revision
		}
	}
	if made := is.GetAnnotations()[workv1alpha2.TemplateGenerationAnnotation]; made != "" {
		annotations[workv1alpha2.TemplateGenerationAnnotation] = made
	}
	m.SetAnnotations(annotations)
	return execute.Seal(wanted, m) == nil
}
