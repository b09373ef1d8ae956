package dispatch_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
	"github.com/argosy-io/argosy/internal/core/workload/kruise"
)

const podTemplate = `template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: "a:1"}]}}`

// annotated are templates of which annotations say something.
var annotated = []string{
	configMap, deployment,
	`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: web, namespace: shop, uid: u, generation: 2}, spec: {replicas: 6, updateStrategy: {partition: 2, maxUnavailable: 1}, scaleStrategy: {podsToDelete: [web-a]}, ` + podTemplate + `}}`,
	`{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {name: web, namespace: shop, uid: u, generation: 2}, spec: {replicas: 6, reserveOrdinals: [1], updateStrategy: {rollingUpdate: {partition: 1}}, ` + podTemplate + `}}`,
	`{apiVersion: apps.kruise.io/v1alpha1, kind: UnitedDeployment, metadata: {name: web, namespace: shop, uid: u, generation: 2}, spec: {replicas: 6, template: {cloneSetTemplate: {spec: {` + podTemplate + `}}}, topology: {subsets: [{name: a, replicas: 2}, {name: b}]}}}`,
	`{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet, metadata: {name: logs, uid: u, generation: 2}, spec: {containers: [{name: log, image: "l:1"}]}}`,
	`{apiVersion: batch/v1, kind: Job, metadata: {name: web, namespace: shop, uid: u}, spec: {completions: 6, parallelism: 6, ` + podTemplate + `}}`,
	`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: web, namespace: shop, uid: u}, spec: {entrypoint: main, suspend: true}}`,
}

// annotationKeys returns all labels and annotations of ours that the sources name, so that a new one is tried too,
// whoever may put it where.
func annotationKeys(t testing.TB) []string {
	t.Helper()
	named := regexp.MustCompile(`"((?:[a-z]+\.)*(?:argosy|karmada)\.io/[a-z0-9-]+)"`)
	found := map[string]bool{}
	for _, root := range []string{"../../../api", "../../../internal"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range named.FindAllSubmatch(text, -1) {
				found[string(m[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	keys := slices.Sorted(maps.Keys(found))
	for _, key := range []string{wellknown.RolloutStagesAnnotation, wellknown.PinnedScaleDownAnnotation,
		"work.karmada.io/conflict-resolution",
		"resourcetemplate.karmada.io/uid"} {
		if !found[key] {
			t.Fatalf("%s is not found: %q", key, keys)
		}
	}
	return keys
}

var annotationValues = []string{"", "true", "false", "x", "5", "-1", "95%", "1000000%", "9223372036854775807", "10m",
	"-3s", "a,b", "eu", "Fleet", "Ordered", "Stages", "GlobalHighest", "null", "[]", "{}",
	`[{"percent": 10, "pause": true}, {"clusters": ["eu"]}, {"percent": 100}]`, `[{"percent": -9223372036854775808}]`,
	`{"eu":"0-9223372036854775807"}`, `{"eu":"0-4,7","us":"5"}`, `{"from":6,"to":3,"clusters":{"eu":3}}`,
	`{"eu":3,"us":-2147483648}`, `{"subsets":[{"name":"a","replicas":2147483647,"clusterAffinity":{"clusterNames":["eu"]}}]}`, `["spec.replicas"]`, `[{"at":["metadata","name"],"is":"other"}]`,
	`[{"jsonPaths":[".metadata.name"]}]`, `{"paths":[".spec"]}`, `{"at":["kind"],"was":"CloneSet","is":"ClusterRole"}`,
	"overwrite"}

// annotatedSafely holds that whatever annotations say, Works are those of the template in clusters of its binding, or
// none, and that it takes no time.
func annotatedSafely(t testing.TB, template, key, value string, onTemplate, onBinding, onWorks bool) {
	t.Helper()
	in := input(t, annotated[0], divided)
	in.Template = object(t, template)
	in.Binding = binding(t, in.Template,
		"replicas: 6\nplacement: {replicaScheduling: {replicaSchedulingType: Divided}}\nclusters: [{name: eu, replicas: 4}, {name: us, replicas: 2}]")
	in.Now = time.Unix(1e9, 0)
	in.Convert = kruise.ForMember
	for _, c := range in.Clusters {
		c.Status = serving("apps.kruise.io/v1beta1", in.Template.GetKind())
	}
	i := interpret.New(builtin.Tier())
	in.Existing = map[string]*workv1alpha1.Work{}
	for _, r := range dispatch.Works(t.Context(), in, i) {
		if r.Work != nil {
			if onWorks {
				r.Work.Annotations[key] = value
			}
			in.Existing[r.Cluster] = r.Work
		}
	}
	if onTemplate {
		in.Template.SetAnnotations(map[string]string{key: value})
		labels := map[string]string{key: value}
		maps.Copy(labels, in.Template.GetLabels())
		in.Template.SetLabels(labels)
	}
	if onBinding {
		in.Binding.SetAnnotations(map[string]string{key: value})
	}
	d := dispatch.Decide(t.Context(), in, i)
	want := identity.FromManifest(in.Template)
	for _, r := range d.Results {
		if r.Work == nil {
			continue
		}
		m := manifest(t, r.Work)
		if r.Cluster != "eu" && r.Cluster != "us" || identityOf(m) != identityOf(in.Template) ||
			r.Work.Namespace != names.ExecutionSpace(r.Cluster) ||
			r.Work.Name != names.Work(want.Kind, want.Name, want.Namespace) || !execute.Owns(r.Work, m) {
			t.Fatalf("%s=%.100q of a %s sends %s to %s", key, value, in.Template.GetKind(), identity.FromManifest(m), r.Cluster)
		}
	}
	for _, w := range d.Pulls {
		m := manifest(t, w)
		if m.GetNamespace() != in.Template.GetNamespace() || m.GetKind() != "ImagePullJob" ||
			!slices.Contains([]string{"karmada-es-eu", "karmada-es-us"}, w.Namespace) {
			t.Fatalf("%s=%.100q of a %s pulls by %s in %s", key, value, in.Template.GetKind(), identity.FromManifest(m),
				w.Namespace)
		}
	}
	for text := range map[string]bool{d.Record: true, d.Progress: true} {
		if text != "" && text != value && !json.Valid([]byte(text)) {
			t.Fatalf("%s=%.100q has the binding say %q", key, value, text)
		}
	}
}

func TestAnnotationsReachNothingButTheirOwnTemplate(t *testing.T) {
	keys := annotationKeys(t)
	r := rand.New(rand.NewSource(3))
	for _, template := range annotated {
		for _, key := range keys {
			for _, value := range annotationValues {
				if r.Intn(6) > 0 || testing.Short() && r.Intn(10) > 0 {
					continue
				}
				where := r.Intn(8)
				annotatedSafely(t, template, key, value, where&1 > 0, where&2 > 0, where&4 > 0)
			}
		}
	}
}

func FuzzAnnotationsReachNothingButTheirOwnTemplate(f *testing.F) {
	keys := annotationKeys(f)
	for i, value := range annotationValues {
		f.Add(uint8(i), uint8(i), value, uint8(i))
		f.Add(uint8(i+3), uint8(3*i), value, uint8(7))
	}
	f.Fuzz(func(t *testing.T, template, key uint8, value string, where uint8) {
		annotatedSafely(t, annotated[int(template)%len(annotated)], keys[int(key)%len(keys)], value, where&1 > 0, where&2 > 0,
			where&4 > 0)
	})
}
