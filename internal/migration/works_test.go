package migration_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/source/migrate"
	"github.com/argosy-io/argosy/internal/migration"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// loseTemplate deletes a template as `kubectl delete --cascade=orphan` does: its binding and its Works stay.
func (w *world) loseTemplate(k membertest.Kind, name string) {
	w.t.Helper()
	b, _, err := scope.BindingFor(w.t.Context(), w.Hub, k.GroupKind(), "shop", name)
	if err != nil || b == nil {
		w.t.Fatal(b, err)
	}
	controllertest.Change(w.Hub, b, func(b workv1alpha2.Binding) { b.SetOwnerReferences(nil) })
	w.Gone(w.Find(k, name))
	w.Advance(time.Minute)
}

// losePolicies deletes all policies and override policies.
func (w *world) losePolicies() {
	w.t.Helper()
	var policies policyv1alpha1.PropagationPolicyList
	var overrides policyv1alpha1.OverridePolicyList
	if err := w.Hub.List(w.t.Context(), &policies); err != nil {
		w.t.Fatal(err)
	}
	if err := w.Hub.List(w.t.Context(), &overrides); err != nil {
		w.t.Fatal(err)
	}
	for i := range policies.Items {
		w.Gone(&policies.Items[i])
	}
	for i := range overrides.Items {
		w.Gone(&overrides.Items[i])
	}
	w.Advance(time.Minute)
	if err := w.Hub.List(w.t.Context(), &policies); err != nil || len(policies.Items) > 0 {
		w.t.Fatalf("%d policies remain, %v", len(policies.Items), err)
	}
}

// loseBinding removes the binding of a template and leaves its Works, as an administrator does who removes finalizers
// while the hub is stopped.
func (w *world) loseBinding(k membertest.Kind, name string) {
	w.t.Helper()
	b, _, err := scope.BindingFor(w.t.Context(), w.Hub, k.GroupKind(), "shop", name)
	if err != nil || b == nil {
		w.t.Fatal(b, err)
	}
	w.Server.Remove(controllertest.Bindings, "shop", b.GetName())
}

// works returns the Works of templates on the hub.
func (w *world) works() (all []workv1alpha1.Work) {
	w.t.Helper()
	var list workv1alpha1.WorkList
	if err := w.Hub.List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Items {
		if migrate.TemplateOf(&list.Items[i]) != nil {
			all = append(all, list.Items[i])
		}
	}
	return all
}

// takeOutAll is `argosy migrate out --all`.
func (w *world) takeOutAll() error {
	w.t.Helper()
	w.newRun()
	list, err := w.Migrated(w.t.Context(), "", true)
	if err != nil {
		return err
	}
	_, err = w.TakeOut(w.t.Context(), list, false)
	return err
}

// M10: workloads leave by their Works alone, whatever else of them the hub has lost. They are more than users may
// delete within a minute. Objects stay as they were before they came in.
func TestWorkloadsLeaveByTheirWorksAlone(t *testing.T) {
	for _, lost := range []string{"nothing", "the templates", "the templates and policies",
		"the templates, policies and bindings", "the templates, policies and the kind"} {
		t.Run(lost, func(t *testing.T) {
			controllertest.Run(t, func(t *testing.T) {
				w := newWorld(t)
				before := map[string]*unstructured.Unstructured{}
				var list []migration.Workload
				for i := range 7 {
					name := fmt.Sprintf("w%d", i)
					w.runsInBoth(controllertest.CloneSet, name, web(name, 1+i%2, "x:1"))
					list = append(list, item(controllertest.CloneSet, name))
					for m := range w.members {
						before[m+name] = w.members[m].Object(controllertest.CloneSet, "shop", name)
					}
				}
				w.bringIn(false, list...)
				if lost != "nothing" {
					for _, one := range list {
						w.loseTemplate(controllertest.CloneSet, one.Name)
					}
				}
				if strings.Contains(lost, "policies") {
					w.losePolicies()
				}
				if strings.Contains(lost, "bindings") {
					w.stop()
					for _, one := range list {
						w.loseBinding(controllertest.CloneSet, one.Name)
					}
					w.start()
					w.Advance(2 * time.Minute)
				}
				if strings.Contains(lost, "kind") {
					w.Server.Unserve(controllertest.CloneSet)
				}
				if n := len(w.works()); n != 14 {
					t.Fatalf("the hub has %d Works, want 14", n)
				}
				w.listsInOwn(list, strings.Contains(lost, "policies"))

				if err := w.takeOutAll(); err != nil {
					t.Fatalf("%v\n%s", err, strings.Join(w.shown, ""))
				}
				w.Advance(time.Minute)
				for _, one := range list {
					for name, m := range w.members {
						is, was := m.Object(controllertest.CloneSet, "shop", one.Name), before[name+one.Name]
						if is == nil || is.GetUID() != was.GetUID() || is.GetGeneration() != was.GetGeneration() ||
							marks(is) != marks(was) {
							t.Errorf("%s in %s is %v, and was %v", one.Name, name, is, was)
						}
					}
				}
				bindings, err := scope.Bindings.List(t.Context(), w.Hub)
				if err != nil || len(bindings)+len(w.works()) > 0 {
					t.Errorf("the hub still has %d bindings and %d Works, %v", len(bindings), len(w.works()), err)
				}
				w.check("states", w.states(), "")
			})
		})
	}
}

// listsInOwn fails the test unless `argosy migrate status` lists the workloads in Own in both members, those that have
// neither template nor policy with this reason.
func (w *world) listsInOwn(list []migration.Workload, onlyWorks bool) {
	w.t.Helper()
	w.newRun()
	all, err := w.Statuses(w.t.Context(), "shop")
	if err != nil || len(all) != len(list) {
		w.t.Fatalf("the status lists %+v, %v", all, err)
	}
	for i, s := range all {
		for _, m := range []string{"m1", "m2"} {
			c := s.Clusters[m]
			if s.Object != list[i].String() || len(s.Clusters) != 2 || c.State != migrate.Own ||
				strings.Contains(c.Reason, "no policy has its migration") != onlyWorks {
				w.t.Errorf("the status is %+v", s)
			}
		}
	}
	if others, err := w.Statuses(w.t.Context(), "other"); err != nil || len(others) > 0 {
		w.t.Errorf("in another namespace, the status lists %+v, %v", others, err)
	}
}

// Without the right to list Works, the status lists what has a policy, and names the right.
func TestStatusNamesTheMissingRightToListWorks(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.putOnBoth()
		w.bringIn(false, item(controllertest.CloneSet, "web"))
		w.stop() // the hub has all rights
		w.newRun()
		w.Server.Behave(func(rw http.ResponseWriter, r *http.Request) bool {
			return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/works") && forbid(rw)
		})
		w.check("states", w.states(), "CloneSet shop/web: m1=Own m2=Own")
		if got := strings.Join(w.shown, ""); !strings.Contains(got, "without a policy are not listed") ||
			!strings.Contains(got, "this user may not") {
			t.Errorf("it shows %q", got)
		}
	})
}

// Templates that own a binding exist. A hub may have thousands of them without a policy, and the status does not read
// each.
func TestStatusReadsNoTemplateThatOwnsABinding(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.putOnBoth()
		w.bringIn(false, item(controllertest.CloneSet, "web"))
		w.losePolicies()
		w.stop()
		w.newRun()
		var reads []string
		w.Server.Behave(func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/clonesets/") {
				reads = append(reads, r.URL.Path)
			}
			return false
		})
		w.check("states", w.states(), "")
		if len(reads) > 0 {
			t.Errorf("the status reads %q", reads)
		}
	})
}

// A template that the user may not read may exist, and is listed. Another error says nothing about the template.
func TestStatusFailsIfTemplatesCannotBeRead(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.putOnBoth()
		w.bringIn(false, item(controllertest.CloneSet, "web"))
		w.loseTemplate(controllertest.CloneSet, "web")
		w.losePolicies()
		w.stop()
		w.newRun()
		answer := forbid
		w.Server.Behave(func(rw http.ResponseWriter, r *http.Request) bool {
			return strings.Contains(r.URL.Path, "/clonesets/") && answer(rw)
		})
		all, err := w.Statuses(t.Context(), "")
		if err != nil || len(all) != 1 || !strings.Contains(all[0].Clusters["m1"].Reason, "this user may not") {
			t.Errorf("forbidden: the status is %+v, %v", all, err)
		}
		answer = func(rw http.ResponseWriter) bool {
			http.Error(rw, "the request timed out", http.StatusGatewayTimeout)
			return true
		}
		all, err = w.Statuses(t.Context(), "")
		if err == nil || !strings.Contains(err.Error(), "look for CloneSet shop/web") {
			t.Errorf("timeout: the status is %+v, %v", all, err)
		}
	})
}

// forbid answers that the user may not do this.
func forbid(rw http.ResponseWriter) bool {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(http.StatusForbidden)
	fmt.Fprint(rw, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
		"message": "this user may not"}`)
	return true
}

// A kind that the hub does not serve for a moment may have templates.
func TestNothingLeavesWhileADefinedKindIsNotServed(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.putOnBoth()
		w.bringIn(false, item(controllertest.CloneSet, "web"))
		w.losePolicies()
		crd := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"group": "apps.kruise.io",
			"names": map[string]any{"kind": "CloneSet", "plural": "clonesets"}}}}
		crd.SetGroupVersionKind(controllertest.Definition.GroupVersionKind)
		crd.SetName("clonesets.apps.kruise.io")
		w.Make(crd)
		w.Server.Unserve(controllertest.CloneSet)

		err := w.takeOutAll()
		if err == nil || !strings.Contains(err.Error(), "the hub does not serve CloneSet shop/web now") {
			t.Errorf("the error is %v", err)
		}
		all, err := w.Statuses(t.Context(), "")
		if err != nil || len(all) != 1 || !strings.Contains(all[0].Clusters["m1"].Reason, "the hub does not serve") {
			t.Errorf("the status is %+v, %v", all, err)
		}
		w.Advance(2 * time.Minute)
		for name, m := range w.members {
			if u := m.Object(controllertest.CloneSet, "shop", "web"); u == nil || !migrate.Marked(u) {
				t.Errorf("%s has %v", name, u)
			}
		}
	})
}

// A cluster is left alone, and its Work is the only one that goes.
func TestOneClusterLeavesByItsWork(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.putOnBoth()
		w.bringIn(false, item(controllertest.CloneSet, "web"))
		w.loseTemplate(controllertest.CloneSet, "web")

		w.newRun()
		_, err := w.TakeOut(t.Context(), []migration.Workload{item(controllertest.CloneSet, "web", "m2")}, false)
		if err == nil || !strings.Contains(err.Error(), "take it out of all clusters at once") {
			t.Errorf("while a policy could bring it back: %v", err)
		}
		w.losePolicies()
		w.newRun()
		_, err = w.TakeOut(t.Context(), []migration.Workload{item(controllertest.CloneSet, "web", "m2")}, true)
		if err == nil || !strings.Contains(err.Error(), "cannot go back to Shadow") {
			t.Errorf("without a policy: %v", err)
		}
		w.newRun()
		w.takeOut(false, item(controllertest.CloneSet, "web", "m2"))
		w.Advance(time.Minute)
		for m, want := range map[string]bool{"m1": true, "m2": false} {
			if u := w.members[m].Object(controllertest.CloneSet, "shop", "web"); u == nil || migrate.Marked(u) != want {
				t.Errorf("%s has %v", m, u)
			}
		}
		if works := w.works(); len(works) != 1 || works[0].Namespace != "karmada-es-m1" {
			t.Errorf("the Works are %v", works)
		}
	})
}

// M12: the second of three is disturbed while it leaves. The command stops, and the third is not touched.
func TestLeavingStopsAtTheFirstDisturbance(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		for _, name := range []string{"w1", "w2", "w3"} {
			w.runsInBoth(controllertest.CloneSet, name, web(name, 1, "x:1"))
			w.bringIn(false, item(controllertest.CloneSet, name))
			w.loseTemplate(controllertest.CloneSet, name)
		}
		w.losePolicies()
		w.Server.Behave(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/works/w2-") {
				w.pod("m1", "w2", "w2-0", 1)
			}
			return false
		})
		err := w.takeOutAll()
		if err == nil || !strings.Contains(err.Error(), `CloneSet shop/w2: cluster "m1" was released, but differs: 1 pods`) {
			t.Fatal(err)
		}
		for name, marked := range map[string]bool{"w1": true, "w2": false, "w3": false} {
			if u := w.members["m2"].Object(controllertest.CloneSet, "shop", name); u == nil || migrate.Marked(u) != marked {
				t.Errorf("%s is %v", name, u)
			}
		}
		for _, work := range w.works() {
			if !strings.HasPrefix(work.Name, "w1-") || work.Annotations[wellknown.LeavingAnnotation] != "" ||
				work.Spec.SuspendDispatching != nil {
				t.Errorf("the Work %s was changed: %v %v", work.Name, work.Annotations, work.Spec)
			}
		}
	})
}

// `argosy migrate out --all` takes Works only if they are of a template that is gone, and preserve their objects.
func TestAllLeavesOtherWorksAlone(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		for _, name := range []string{"web", "stays", "deletes"} {
			w.runsInBoth(controllertest.CloneSet, name, web(name, 1, "x:1"))
			w.bringIn(false, item(controllertest.CloneSet, name))
		}
		w.losePolicies()
		w.loseTemplate(controllertest.CloneSet, "web")
		w.loseTemplate(controllertest.CloneSet, "deletes")
		w.stop() // the controllers would change these Works
		for _, work := range w.works() {
			if strings.HasPrefix(work.Name, "deletes-") {
				controllertest.Change(w.Hub, &work, func(work *workv1alpha1.Work) {
					work.Spec.PreserveResourcesOnDeletion = nil
				})
			}
		}
		w.newRun()
		list, err := w.Migrated(t.Context(), "", true)
		if err != nil || len(list) != 1 || list[0].Name != "web" || !slices.Equal(list[0].Clusters, []string{"m1", "m2"}) {
			t.Errorf("it would take out %v, %v", list, err)
		}
		for _, in := range []struct {
			namespace string
			leftovers bool
		}{{"other", true}, {"shop", false}} {
			if list, err := w.Migrated(t.Context(), in.namespace, in.leftovers); err != nil || len(list) > 0 {
				t.Errorf("with %+v, it would take out %v, %v", in, list, err)
			}
		}
		w.newRun()
		_, err = w.TakeOut(t.Context(), []migration.Workload{item(controllertest.CloneSet, "stays")}, false)
		if err == nil || !strings.Contains(err.Error(), "template") {
			t.Errorf("a workload with a template leaves by its Works: %v", err)
		}
	})
}

// An object that another hub wrote last, or that has the marks of another Work, stays as it is, and so does what the
// hub has of it. The command says so before it writes anything.
func TestObjectOfAnotherHubStays(t *testing.T) {
	const anotherHub = "another hub (other) wrote the object last"
	for name, tc := range map[string]struct {
		annotation, value, want string
		// lost is true if only the Works are left.
		lost bool
	}{
		"hub":                 {wellknown.HubAnnotation, "other", anotherHub, true},
		"Work":                {"work.karmada.io/name", "other", "not those that this hub set", true},
		"hub, and a template": {wellknown.HubAnnotation, "other", anotherHub, false},
	} {
		t.Run(name, func(t *testing.T) {
			controllertest.Run(t, func(t *testing.T) {
				w := newWorld(t)
				w.putOnBoth()
				w.bringIn(false, item(controllertest.CloneSet, "web"))
				if tc.lost {
					w.loseTemplate(controllertest.CloneSet, "web")
					w.losePolicies()
				}
				w.stop()
				u := w.members["m2"].Object(controllertest.CloneSet, "shop", "web")
				annotations := u.GetAnnotations()
				annotations[tc.annotation] = tc.value
				u.SetAnnotations(annotations)
				w.members["m2"].Put(u)
				w.Quiet()
				err := w.takeOutAll()
				if err == nil || !strings.Contains(err.Error(), `cluster "m2": `) ||
					!strings.Contains(err.Error(), tc.want) {
					t.Error(err)
				}
				if writes := w.Quiet(); len(writes) > 0 {
					t.Errorf("the hub was written: %v", writes)
				}
			})
		})
	}
}

// noIdentity is a client of a user who may not read the namespace that identifies the hub.
type noIdentity struct{ client.Client }

func (c noIdentity) Get(ctx context.Context, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
	if key.Name == metav1.NamespaceSystem {
		return apierrors.NewForbidden(corev1.Resource("namespaces"), key.Name, errors.New("no"))
	}
	return c.Client.Get(ctx, key, obj, o...)
}

// The command cannot know before it writes that the object is another hub's. It says so when this hub has left it.
func TestUserWithoutIdentityOfTheHubIsToldOfAnotherHub(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.putOnBoth()
		w.bringIn(false, item(controllertest.CloneSet, "web"))
		w.newRun()
		w.takeOut(true, item(controllertest.CloneSet, "web"))
		u := w.members["m2"].Object(controllertest.CloneSet, "shop", "web")
		annotations := u.GetAnnotations()
		annotations[wellknown.HubAnnotation] = "other"
		u.SetAnnotations(annotations)
		w.members["m2"].Put(u)
		w.Advance(time.Second)
		w.newRun()
		w.Migration.Client = noIdentity{w.Hub.Client}
		_, err := w.TakeOut(t.Context(), []migration.Workload{item(controllertest.CloneSet, "web")}, false)
		if err == nil || !strings.Contains(err.Error(), `cluster "m2": this hub no longer manages the object`) ||
			!strings.Contains(err.Error(), "(other)") || strings.Contains(err.Error(), "after 2m0s") {
			t.Error(err)
		}
		if is := w.members["m2"].Object(controllertest.CloneSet, "shop", "web"); is == nil || !migrate.Marked(is) {
			t.Errorf("the object of the other hub is %v", is)
		}
	})
}

// A user needs the rights to list, change and delete Works, and to read the objects in the clusters. Objects stay as
// they are meanwhile, and another user continues.
func TestLeavingByWorksNeedsRights(t *testing.T) {
	for name, refused := range map[string]struct{ server, method, path string }{
		"list Works":       {"hub", http.MethodGet, "/works"},
		"change Works":     {"hub", http.MethodPatch, "/works/"},
		"delete Works":     {"hub", http.MethodDelete, "/works/"},
		"read the objects": {"m2", http.MethodGet, "/clonesets/"},
	} {
		t.Run(name, func(t *testing.T) {
			controllertest.Run(t, func(t *testing.T) {
				w := newWorld(t)
				generations := w.putOnBoth()
				before := generations()
				w.bringIn(false, item(controllertest.CloneSet, "web"))
				w.loseTemplate(controllertest.CloneSet, "web")
				w.losePolicies()
				w.stop() // the hub has all rights
				server := w.Server
				if refused.server != "hub" {
					server = w.members[refused.server]
				}
				server.Behave(func(rw http.ResponseWriter, r *http.Request) bool {
					return r.Method == refused.method && strings.Contains(r.URL.Path, refused.path) && forbid(rw)
				})
				if err := w.takeOutAll(); err == nil || !strings.Contains(err.Error(), "this user may not") {
					t.Errorf("the user is not refused: %v", err)
				}
				server.Behave(nil)
				for m, s := range w.members {
					if u := s.Object(controllertest.CloneSet, "shop", "web"); u == nil || !migrate.Marked(u) {
						t.Errorf("the object of %s was written: %v", m, u)
					}
				}
				if n := len(w.works()); n != 2 {
					t.Errorf("%d Works remain, want 2", n)
				}
				w.start()
				if err := w.takeOutAll(); err != nil {
					t.Error(err)
				}
				if now := generations(); now != before || len(w.works()) > 0 {
					t.Errorf("a spec changed %d times, %d Works remain", now-before, len(w.works()))
				}
			})
		})
	}
}
