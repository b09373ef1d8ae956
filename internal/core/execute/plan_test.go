package execute_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
)

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if u.UnmarshalJSON([]byte(text)) == nil {
		return u
	}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return u
}

// work returns a Work that holds the manifest and was applied at its generation.
func work(t testing.TB, manifest string, change ...func(*workv1alpha1.Work)) *workv1alpha1.Work {
	t.Helper()
	w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-eu", Name: "web-1", Generation: 3,
		Labels: map[string]string{"work.karmada.io/permanent-id": "id-1"},
	}}
	raw, err := json.Marshal(object(t, manifest).Object)
	if err != nil {
		t.Fatal(err)
	}
	w.Spec.Workload.Manifests = make([]workv1alpha1.Manifest, 1)
	w.Spec.Workload.Manifests[0].Raw = raw
	w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
		ObservedGeneration: 3}}
	for _, c := range change {
		c(w)
	}
	return w
}

func desired(t testing.TB, w *workv1alpha1.Work, observed *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	d, err := execute.Desired(w, observed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func deleting(w *workv1alpha1.Work) { w.DeletionTimestamp = &metav1.Time{} }
func preserving(w *workv1alpha1.Work) {
	w.Spec.PreserveResourcesOnDeletion = new(true)
}
func suspended(w *workv1alpha1.Work) { w.Spec.SuspendDispatching = new(true) }
func overwriting(w *workv1alpha1.Work) {
	w.Annotations = map[string]string{"work.karmada.io/conflict-resolution": "overwrite"}
}
func changed(w *workv1alpha1.Work)   { w.Generation++ }
func unapplied(w *workv1alpha1.Work) { w.Status = workv1alpha1.WorkStatus{} }

const service = `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {ports: [{port: 80}]}}`

func TestPlan(t *testing.T) {
	// marks are those of the object in the member.
	type marks struct{ managed, namespace, name, id string }
	mine := marks{"true", "karmada-es-eu", "web-1", "id-1"}

	// member is the service in the member with the marks.
	member := func(m marks, change ...func(*unstructured.Unstructured)) func() *unstructured.Unstructured {
		return func() *unstructured.Unstructured {
			u := desired(t, work(t, service), nil)
			labels, annotations := u.GetLabels(), u.GetAnnotations()
			for key, value := range map[string]string{"karmada.io/managed": m.managed, "work.karmada.io/permanent-id": m.id} {
				labels[key] = value
				if value == "" {
					delete(labels, key)
				}
			}
			for key, value := range map[string]string{"work.karmada.io/namespace": m.namespace, "work.karmada.io/name": m.name} {
				annotations[key] = value
				if value == "" {
					delete(annotations, key)
				}
			}
			u.SetLabels(labels)
			u.SetAnnotations(annotations)
			for _, c := range change {
				c(u)
			}
			return u
		}
	}
	absent := func() *unstructured.Unstructured { return nil }
	going := func(u *unstructured.Unstructured) { u.SetDeletionTimestamp(new(metav1.Unix(1, 0))) }
	drifted := func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{"port": int64(81)}}, "spec", "ports")
	}
	type changes []func(*workv1alpha1.Work)

	tests := []struct {
		name     string
		work     changes
		observed func() *unstructured.Unstructured
		want     execute.Kind
		reason   string
	}{
		{"an absent object is created", nil, absent, execute.Create, "does not exist"},
		{"an object as desired is left", nil, member(mine), execute.Nothing, "up to date"},
		{"drift the hub corrects it", nil, member(mine, drifted), execute.Apply, "spec.ports.0 differs"},
		{"a changed work is applied though nothing shows", changes{changed}, member(mine), execute.Apply,
			"generation 4 of the work is not applied yet"},
		{"a suspended work is not applied", changes{suspended}, member(mine, drifted), execute.Nothing, "suspended"},
		{"a suspended work does not create", changes{suspended}, absent, execute.Nothing, "suspended"},

		{"an object of nobody is not touched", nil, member(marks{}), execute.Conflict,
			"resource(kind=Service, shop/web) already exists in the cluster eu and the work.karmada.io/conflict-resolution strategy value is empty, Karmada will not manage this resource"},
		{"an object of nobody is adopted with overwrite", changes{overwriting}, member(marks{}), execute.Apply, "adopted"},
		{"the copied annotations of a parent make no object ours", nil, member(marks{"", "karmada-es-eu", "web-1", ""}),
			execute.Conflict, "already exists"},
		{"the label alone makes no object ours", nil, member(marks{"true", "", "", ""}), execute.Conflict, "already exists"},
		{"a lost label is put back", nil, member(marks{"", "karmada-es-eu", "web-1", "id-1"}), execute.Apply,
			"metadata.labels.karmada.io/managed differs"},
		{"lost annotations are put back", nil, member(marks{"true", "", "", "id-1"}), execute.Apply,
			"metadata.annotations.work.karmada.io/name differs"},
		{"a work that was made anew keeps its object", nil, member(marks{"true", "karmada-es-eu", "web-1", "id-0"}),
			execute.Apply, "permanent-id differs"},
		{"the object of another work is not touched, whatever the policy", changes{overwriting},
			member(marks{"true", "karmada-es-eu", "other-1", "id-9"}), execute.Conflict,
			"belongs to the work karmada-es-eu/other-1"},
		{"the object of another hub is not touched", nil, member(marks{"true", "karmada-es-old", "web-1", "id-9"}),
			execute.Conflict, "belongs to the work karmada-es-old/web-1"},
		{"the object of another hub is adopted with overwrite", changes{overwriting},
			member(marks{"true", "karmada-es-old", "web-1", "id-9"}), execute.Apply, "adopted"},
		{"an object that is going away is awaited", nil, member(mine, going), execute.Wait, "being deleted"},

		{"a deleted work takes its object along", changes{deleting}, member(mine), execute.Delete, ""},
		{"suspension does not stop deletion", changes{deleting, suspended}, member(mine), execute.Delete, ""},
		{"a deleted work of an absent object is done", changes{deleting}, absent, execute.Nothing, "does not exist"},
		{"a deleted work waits for what is being deleted", changes{deleting}, member(mine, going), execute.Wait, "already"},
		{"a deleted work leaves an object of nobody", changes{deleting, overwriting}, member(marks{}), execute.Nothing,
			"so it is kept"},
		{"a deleted work leaves an object of another", changes{deleting},
			member(marks{"true", "karmada-es-eu", "other-1", "id-9"}), execute.Nothing, "so it is kept"},
		{"a deleted work leaves the object of a later work of its name", changes{deleting},
			member(marks{"true", "karmada-es-eu", "web-1", "id-9"}), execute.Nothing, "an earlier work of the same name"},
		{"a deleted work takes the object of the work before it along, made again and never applied",
			changes{unapplied, deleting}, member(marks{"true", "karmada-es-eu", "web-1", "id-0"}), execute.Delete, ""},
		{"a preserving work lets the object of the work before it go", changes{unapplied, deleting, preserving},
			member(marks{"true", "karmada-es-eu", "web-1", "id-0"}), execute.Release, "preserved"},
		{"a preserving work leaves the object of a later work of its name as it is", changes{deleting, preserving},
			member(marks{"true", "karmada-es-eu", "web-1", "id-9"}), execute.Nothing, "so it is kept"},
		{"a deleted work takes an object along that lost the permanent ID", changes{deleting},
			member(marks{"true", "karmada-es-eu", "web-1", ""}), execute.Delete, ""},
		{"a deleted work leaves an object with half of its marks", changes{deleting},
			member(marks{"", "karmada-es-eu", "web-1", "id-1"}), execute.Nothing, "so it is kept"},
		{"a preserving work lets its object go", changes{deleting, preserving}, member(mine), execute.Release, "preserved"},
		{"a preserving work lets go of what is being deleted, too", changes{deleting, preserving}, member(mine, going),
			execute.Release, "preserved"},
		{"a preserving work leaves an object of nobody as it is", changes{deleting, preserving}, member(marks{}),
			execute.Nothing, "so it is kept"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, observed := work(t, service, tt.work...), tt.observed()
			d := desired(t, w, observed)
			got := execute.Plan(w, d, observed)
			if got.Kind != tt.want || !strings.Contains(got.Reason, tt.reason) {
				t.Fatalf("plan = %s (%s), want %s (%s)", got.Kind, got.Reason, tt.want, tt.reason)
			}
			if tt.want == execute.Conflict && strings.HasPrefix(tt.reason, "resource(") && got.Reason != tt.reason {
				t.Errorf("the message has to be %q", tt.reason)
			}
			if (got.Kind == execute.Create || got.Kind == execute.Apply) && got.Object != d {
				t.Error("what is desired has to be sent")
			}
			if got.Adopts != strings.Contains(tt.reason, "adopted") {
				t.Errorf("adopts = %v", got.Adopts)
			}
		})
	}
}

func TestAReleasedObjectHasNoMarksLeft(t *testing.T) {
	w := work(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop,
		labels: {app: web, propagationpolicy.karmada.io/permanent-id: p, resourcebinding.karmada.io/permanent-id: b, resourcetemplate.karmada.io/retain-replicas: "true"},
		annotations: {note: hi, resourcetemplate.karmada.io/uid: u, propagationpolicy.karmada.io/name: p}}, data: {a: b}}`, deleting, preserving)
	observed := desired(t, w, nil)
	got := execute.Plan(w, nil, observed)
	want := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop,
		labels: {app: web, resourcetemplate.karmada.io/retain-replicas: "true"}, annotations: {note: hi}}, data: {a: b}}`)
	if diff := cmp.Diff(want.Object, got.Object.Object); diff != "" {
		t.Error(diff)
	}
	if observed.GetLabels()["karmada.io/managed"] != "true" {
		t.Error("the observed object was changed")
	}
}

// The list of our keys on the object is one of them, so that a key fewer is a difference; the apply takes the key away.
func TestUnwantedKeyIsADifference(t *testing.T) {
	for _, gone := range []string{"labels", "annotations"} {
		metadata := "{name: c, labels: {keep: x}, annotations: {keep: x}}"
		before := desired(t, work(t, `{apiVersion: v1, kind: ConfigMap, metadata: `+
			strings.Replace(metadata, gone+": {", gone+": {old: x, ", 1)+`}`), nil)
		w := work(t, `{apiVersion: v1, kind: ConfigMap, metadata: `+metadata+`}`)
		got := execute.Plan(w, desired(t, w, before), before)
		if want := "metadata.annotations.resourcetemplate.karmada.io/managed-" + gone +
			" differs"; got.Kind != execute.Apply || got.Reason != want {
			t.Errorf("plan = %s (%s), want %s (%s)", got.Kind, got.Reason, execute.Apply, want)
		}
	}
}

func TestDesired(t *testing.T) {
	t.Run("a manifest written by hand gets the marks", func(t *testing.T) {
		got := desired(t, work(t, service), nil)
		wantLabels := map[string]string{"karmada.io/managed": "true", "work.karmada.io/permanent-id": "id-1"}
		wantAnnotations := map[string]string{
			"work.karmada.io/namespace":                       "karmada-es-eu",
			"work.karmada.io/name":                            "web-1",
			"resourcetemplate.karmada.io/managed-labels":      "karmada.io/managed,work.karmada.io/permanent-id",
			"resourcetemplate.karmada.io/managed-annotations": "resourcetemplate.karmada.io/managed-annotations,resourcetemplate.karmada.io/managed-labels,work.karmada.io/name,work.karmada.io/namespace",
		}
		if diff := cmp.Diff(wantLabels, got.GetLabels()) + cmp.Diff(wantAnnotations, got.GetAnnotations()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("status and what a server sets are never sent", func(t *testing.T) {
		got := desired(t, work(t, `{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: w, uid: u, finalizers: [f], resourceVersion: "1"}, spec: {}, status: {phase: Running}}`), nil)
		metadata := got.Object["metadata"].(map[string]any)
		if got.Object["status"] != nil || metadata["uid"] != nil || metadata["finalizers"] != nil ||
			metadata["resourceVersion"] != nil {
			t.Errorf("desired = %v", got.Object)
		}
	})
	observed := object(t, `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop, resourceVersion: "7", finalizers: [lb], annotations: {work.karmada.io/namespace: karmada-es-eu, work.karmada.io/name: web-1}, labels: {karmada.io/managed: "true"}}, spec: {clusterIP: 10.0.0.1}, status: {x: y}}`)
	t.Run("what is retained is right for one version only", func(t *testing.T) {
		got, err := execute.Desired(work(t, service), observed,
			func(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
				out := desired.DeepCopy()
				out.Object["spec"].(map[string]any)["clusterIP"] = observed.Object["spec"].(map[string]any)["clusterIP"]
				out.Object["status"] = observed.Object["status"]
				out.SetFinalizers(observed.GetFinalizers())
				return out, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		if ip, _, _ := unstructured.NestedString(got.Object, "spec", "clusterIP"); ip != "10.0.0.1" ||
			got.GetResourceVersion() != "7" {
			t.Errorf("desired = %v", got.Object)
		}
		if got.Object["status"] != nil || got.GetFinalizers() != nil {
			t.Errorf("status or finalizers of the member are sent: %v", got.Object)
		}
	})
	t.Run("without anything retained no version is asked for", func(t *testing.T) {
		got, err := execute.Desired(work(t, service), observed,
			func(desired, _ *unstructured.Unstructured) (*unstructured.Unstructured, error) {
				return desired.DeepCopy(), nil
			})
		if err != nil || got.GetResourceVersion() != "" {
			t.Errorf("resourceVersion = %q, err = %v", got.GetResourceVersion(), err)
		}
	})
	for name, change := range map[string]func(*workv1alpha1.Work){
		"a work without manifests is refused": func(w *workv1alpha1.Work) { w.Spec.Workload.Manifests = nil },
		"a work with two manifests is refused": func(w *workv1alpha1.Work) {
			w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, w.Spec.Workload.Manifests[0])
		},
		"a manifest that is no JSON is refused": func(w *workv1alpha1.Work) {
			w.Spec.Workload.Manifests[0].Raw = []byte(
				"{")
		},
		"a manifest without a kind is refused": func(w *workv1alpha1.Work) {
			w.Spec.Workload.Manifests[0].Raw = []byte(
				`{"metadata":{"name":"x"}}`)
		},
		"a manifest without a name is refused": func(w *workv1alpha1.Work) {
			w.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"Pod"}`)
		},
		"a list is refused": func(w *workv1alpha1.Work) {
			w.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"List","items":[]}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := execute.Desired(work(t, service, change), nil, nil); err == nil ||
				!strings.Contains(err.Error(), "karmada-es-eu/web-1") {
				t.Errorf("err = %v", err)
			}
		})
	}
}

func TestFieldsAddedByAMemberAreNoDrift(t *testing.T) {
	podSpec := func(s string) string { return "spec: {template: {spec: " + s + "}}" }
	tests := []struct {
		name              string
		kind              string
		desired, observed string
		differs           string
	}{
		{"defaults", "", podSpec("{containers: [{name: a, image: x}]}"),
			podSpec("{dnsPolicy: ClusterFirst, containers: [{name: a, image: x, imagePullPolicy: Always, resources: {}}]}"), ""},
		{"an injected container", "", podSpec("{containers: [{name: a}]}"),
			podSpec("{containers: [{name: proxy}, {name: a}]}"), ""},
		{"a changed image", "", podSpec("{containers: [{name: b}, {name: a, image: x}]}"),
			podSpec("{containers: [{name: a, image: y}, {name: b}]}"), "spec.template.spec.containers.1.image"},
		{"a container taken away", "", podSpec("{containers: [{name: a}, {name: b}]}"), podSpec("{containers: [{name: a}]}"),
			"spec.template.spec.containers.1"},
		{"containers with the same name fall back to their order", "",
			podSpec("{containers: [{name: a, image: x}, {name: a, image: y}]}"),
			podSpec("{containers: [{name: a, image: x}, {name: a, image: y}]}"), ""},
		{"a port's default protocol", "", podSpec("{containers: [{name: a, ports: [{containerPort: 80}]}]}"),
			podSpec("{containers: [{name: a, ports: [{containerPort: 80, protocol: UDP}, {containerPort: 80, protocol: TCP}]}]}"), ""},
		{"an injected mount", "", podSpec("{containers: [{name: a, volumeMounts: [{name: v, mountPath: /v}]}]}"),
			podSpec("{containers: [{name: a, volumeMounts: [{name: token, mountPath: /t}, {name: v, mountPath: /v}]}]}"), ""},
		{"one more argument", "", podSpec("{containers: [{name: a, args: [x]}]}"),
			podSpec("{containers: [{name: a, args: [x, y]}]}"), "spec.template.spec.containers.0.args"},
		{"arguments in another order", "", podSpec("{containers: [{name: a, args: [x, y]}]}"),
			podSpec("{containers: [{name: a, args: [y, x]}]}"), "spec.template.spec.containers.0.args.0"},
		{"an empty value that the server leaves out", "",
			podSpec("{hostNetwork: false, securityContext: {}, volumes: [], nodeName: '', containers: [{name: a, env: [{name: E, value: ''}]}]}"), podSpec("{containers: [{name: a, env: [{name: E}]}]}"), ""},
		{"null is nothing", "", "spec: {template: {metadata: {creationTimestamp: null}}, x: {y: null}}",
			"spec: {template: {metadata: {}}}", ""},
		{"an empty map sets nothing", "", "spec: {strategy: {}}", "spec: {strategy: {type: RollingUpdate}}", ""},
		{"no replicas are not one", "", "spec: {replicas: 0}", "spec: {replicas: 1}", "spec.replicas"},
		{"an empty list is not a full one", "", "subjects: []", "subjects: [{kind: User, name: eve}]", "subjects"},
		{"one more subject is a difference", "", "subjects: [{kind: User, name: a}]",
			"subjects: [{kind: User, name: a}, {kind: User, name: eve}]", "subjects"},
		{"a firewall port is a difference", "", "spec: {ingress: [{ports: [{port: 80}]}]}",
			"spec: {ingress: [{ports: [{port: 80}, {port: 22}]}]}", "spec.ingress.0.ports"},
		{"numbers go by value", "", "spec: {weight: 1.0, big: 3}", "spec: {weight: 1, big: 3.0}", ""},
		{"a number is no string", "", "spec: {port: 80}", "spec: {port: '80'}", "spec.port"},
		{"quantities go by value", "", podSpec(
			"{containers: [{name: a, resources: {limits: {cpu: 0.5, memory: 1024Mi}, requests: {cpu: 1}}}], volumes: [{name: v, emptyDir: {sizeLimit: 1024Mi}}]}"), podSpec("{containers: [{name: a, resources: {limits: {cpu: 500m, memory: 1Gi}, requests: {cpu: '1'}}}], volumes: [{name: v, emptyDir: {sizeLimit: 1Gi}}]}"), ""},
		{"another quantity is a difference", "", podSpec("{containers: [{name: a, resources: {limits: {cpu: 1}}}]}"),
			podSpec("{containers: [{name: a, resources: {limits: {cpu: 500m}}}]}"),
			"spec.template.spec.containers.0.resources.limits.cpu"},
		{"a missing limit is a difference, even of zero", "",
			podSpec("{containers: [{name: a, resources: {limits: {gpu: 0}}}]}"),
			podSpec("{containers: [{name: a, resources: {limits: {cpu: 1}}}]}"),
			"spec.template.spec.containers.0.resources.limits.gpu"},
		{"an environment variable is no quantity", "", podSpec("{containers: [{name: a, env: [{name: E, value: '0.5'}]}]}"),
			podSpec("{containers: [{name: a, env: [{name: E, value: 500m}]}]}"), "spec.template.spec.containers.0.env.0.value"},
		{"empty data is data", "ConfigMap", "data: {empty: ''}", "data: {other: x}", "data.empty"},
		{"an empty label is a label", "", "metadata: {name: x, labels: {l: ''}}", "metadata: {name: x}", "metadata.labels"},
		{"labels of the member stay", "", "metadata: {name: x, labels: {l: a}}",
			"metadata: {name: x, labels: {l: a, m: b}, annotations: {c: d}, finalizers: [f]}", ""},
		{"a changed annotation", "", "metadata: {name: x, annotations: {l: a}}", "metadata: {name: x, annotations: {l: b}}",
			"metadata.annotations.l"},
		{"plain strings of a Secret lie in its data", "Secret", "stringData: {a: b}\ndata: {c: ZA==}",
			"data: {a: Yg==, c: ZA==}", ""},
		{"plain strings of a Secret outrank its data", "Secret", "stringData: {a: b}\ndata: {a: ZA==}", "data: {a: Yg==}",
			""},
		{"a changed plain string of a Secret", "Secret", "stringData: {a: b}", "data: {a: ZA==}", "data.a"},
		{"tolerations that admission adds to a Pod", "Pod", "spec: {tolerations: [{key: a}]}",
			"spec: {tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists}, {key: a, operator: Equal}]}", ""},
		{"tolerations added to a template", "", podSpec("{tolerations: [{key: a}]}"),
			podSpec("{tolerations: [{key: a}, {key: b}]}"), "spec.template.spec.tolerations"},
		{"the first difference by name, always", "", "spec: {b: 1, a: 1, c: 1}", "spec: {b: 2, a: 2, c: 2}", "spec.a"},
		{"a value of another type", "", "spec: {a: {b: c}, d: [e]}", "spec: {a: text, d: [e]}", "spec.a"},
		{"status is the member's", "", "status: {a: b}", "status: {a: c}", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			kind := tt.kind
			if kind == "" {
				kind = "apiVersion: apps/v1\nkind: Deployment\n"
			} else {
				kind = "apiVersion: v1\nkind: " + kind + "\n"
			}
			head := func(s string) string {
				if strings.Contains(s, "metadata: {name") {
					return kind + s
				}
				return kind + "metadata: {name: x}\n" + s
			}
			w := work(t, head(tt.desired))
			d := desired(t, w, nil)
			// The member's object has the same marks, so that only the rest can differ.
			o := object(t, head(tt.observed))
			labels, annotations := o.GetLabels(), o.GetAnnotations()
			o = o.DeepCopy()
			merge := func(own, marks map[string]string) map[string]string {
				out := map[string]string{}
				for k, v := range marks {
					if strings.Contains(k, "karmada.io/") {
						out[k] = v
					}
				}
				for k, v := range own {
					out[k] = v
				}
				return out
			}
			o.SetLabels(merge(labels, d.GetLabels()))
			o.SetAnnotations(merge(annotations, d.GetAnnotations()))

			got := execute.Plan(w, d, o)
			if tt.differs == "" && got.Kind != execute.Nothing {
				t.Errorf("plan = %s (%s), want Nothing", got.Kind, got.Reason)
			}
			if tt.differs != "" && (got.Kind != execute.Apply || !strings.HasPrefix(got.Reason, tt.differs)) {
				t.Errorf("plan = %s (%s), want Apply, because %s differs", got.Kind, got.Reason, tt.differs)
			}
		})
	}
}
