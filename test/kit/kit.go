// Package kit is the vocabulary of the tests on real API servers: a fleet to test on, objects to apply, and waiting for
// what should become true.
package kit

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	appsv1alpha1 "github.com/argosy-io/argosy/api/apps/v1alpha1"
	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/lab"
	"github.com/argosy-io/argosy/internal/sim"
)

// Timeout is how long a test waits for a condition. It is long, because machines that run tests are slow and shared.
const Timeout = 3 * time.Minute

// pollPeriod is the time between two looks at a condition.
const pollPeriod = 50 * time.Millisecond

// Fleet is a hub and its members, with a client for each.
type Fleet struct {
	*lab.Lab
	Hub     Cluster
	Members map[string]Cluster
}

// Cluster is an API server to test on.
type Cluster struct {
	client.Client
	Name   string
	Config *rest.Config
}

// Binary is the argosy executable that tests run: ARGOSY_BINARY, or one built for this run.
func Binary() (string, error) {
	if path := os.Getenv("ARGOSY_BINARY"); path != "" {
		return path, nil
	}
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the root of the module: %w", err)
	}
	root := strings.TrimSpace(string(module))
	out := filepath.Join(root, "bin", "argosy")
	build := exec.Command("make", "-s", "build")
	build.Dir, build.Stderr = root, os.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("build argosy: %w", err)
	}
	return out, nil
}

// Start runs a hub and members of these names. The caller removes the folder. The tests of a package share one fleet
// through TestMain, because a start takes seconds.
func Start(dir string, members ...string) (*Fleet, error) {
	// With the defaults (30 s, 30 s, 10 s and 15 s), some tests would do little else than wait.
	o := lab.Options{Dir: dir, HubArgs: []string{"--cluster-failure-threshold=10s", "--cluster-success-threshold=10s",
		"--cluster-status-update-frequency=2s",
		"--horizontal-pod-autoscaler-sync-period=1s"}}
	for i, name := range members {
		o.Members = append(o.Members, sim.Member{Name: name, Nodes: 3, Provider: "lab",
			Region: []string{"eu-west", "us-east", "ap-south"}[i%3], Zone: "z1"})
	}
	return StartWith(o)
}

// StartWith is Start for other members or arguments of the hub; the binary is Binary's.
func StartWith(o lab.Options) (_ *Fleet, err error) {
	if o.Binary, err = Binary(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	l, err := lab.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	f := &Fleet{Lab: l, Members: map[string]Cluster{}}
	if err := f.connect(); err != nil {
		_ = l.Stop()
		return nil, err
	}
	return f, nil
}

// Long skips a test in the gate, which runs with -short. The long suite (make test-long) runs it.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("in the long suite: make test-long")
	}
}

// MainLong is Main for a package in which every test calls Long: with -short no fleet is started.
func MainLong(name string, start func(dir string) (*Fleet, error), run func() int) {
	flag.Parse()
	if testing.Short() {
		os.Exit(run())
	}
	Main(name, start, run)
}

// Main runs a package's tests on the fleet that start makes in a temporary folder, and ends the process with the exit
// code of run (m.Run or a function that calls it). If a test failed, the folder with the logs stays.
func Main(name string, start func(dir string) (*Fleet, error), run func() int) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "argosy-"+name+"-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		code := 1
		if fleet, err := start(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		} else {
			code = run()
			if err := fleet.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, "stop the fleet:", err)
				code = 1
			}
		}
		if code != 0 {
			fmt.Fprintln(os.Stderr, "the logs are in", dir)
			return code
		}
		_ = os.RemoveAll(dir) // a temporary folder; leftovers are harmless
		return 0
	}())
}

func (f *Fleet) connect() error {
	config, err := f.Lab.Hub.Config()
	if err != nil {
		return err
	}
	if f.Hub, err = Connect("hub", config); err != nil {
		return err
	}
	for _, m := range f.Lab.Fleet.Members() {
		config, err := m.RESTConfig()
		if err != nil {
			return err
		}
		if f.Members[m.Name], err = Connect(m.Name, config); err != nil {
			return err
		}
	}
	return nil
}

// Connect is a client for a cluster, for the kinds of Kubernetes and Argosy and any as unstructured.
func Connect(name string, config *rest.Config) (Cluster, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.WarningHandlerWithContext = rest.NoWarnings{} // a test that wants them listens itself
	c, err := client.New(config, client.Options{Scheme: Scheme()})
	if err != nil {
		return Cluster{}, fmt.Errorf("connect to %s: %w", name, err)
	}
	return Cluster{Client: c, Name: name, Config: config}, nil
}

// Scheme has the kinds of Kubernetes and of Argosy.
func Scheme() *k8sruntime.Scheme {
	s := k8sruntime.NewScheme()
	for _, add := range []func(*k8sruntime.Scheme) error{clientgoscheme.AddToScheme, policyv1alpha1.AddToScheme,
		workv1alpha1.AddToScheme, workv1alpha2.AddToScheme, clusterv1alpha1.AddToScheme, ocmv1.AddToScheme,
		configv1alpha1.AddToScheme, appsv1alpha1.AddToScheme, autoscalingv1alpha1.AddToScheme,
		releasev1alpha1.AddToScheme, multiclusterv1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

// Object reads one object from YAML.
func Object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatalf("read %q: %v", text, err)
	}
	return u
}

// Apply creates the objects of a YAML stream, or updates those that are there, and removes them when the test ends. It
// waits for kinds that the cluster does not serve yet: a new hub installs those of its members.
func (c Cluster) Apply(t testing.TB, stream string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for doc := range strings.SplitSeq(stream, "\n---") {
		if strings.TrimSpace(doc) == "" {
			continue
		}
		u := Object(t, doc)
		Eventually(t, "the kind is served", func() string {
			err := c.apply(t.Context(), u)
			if meta.IsNoMatchError(err) {
				return err.Error()
			}
			if err != nil {
				t.Fatalf("apply %s %s to %s: %v", u.GetKind(), u.GetName(), c.Name, err)
			}
			return ""
		})
		c.RemoveAtEnd(t, u)
		out = append(out, u)
	}
	return out
}

func (c Cluster) apply(ctx context.Context, u *unstructured.Unstructured) error {
	want := u.DeepCopy()
	err := c.Create(ctx, u, client.FieldValidation(metav1.FieldValidationStrict))
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	for {
		if err := c.Get(ctx, client.ObjectKeyFromObject(want), u); err != nil {
			return err
		}
		again := want.DeepCopy()
		again.SetResourceVersion(u.GetResourceVersion())
		again.SetLabels(over(u.GetLabels(), want.GetLabels()))
		again.SetAnnotations(over(u.GetAnnotations(), want.GetAnnotations()))
		again.SetFinalizers(u.GetFinalizers())
		if err = c.Update(ctx, again, client.FieldValidation(metav1.FieldValidationStrict)); !apierrors.IsConflict(err) {
			*u = *again
			return err
		}
	}
}

func over(base, top map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range []map[string]string{base, top} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// RemoveAtEnd deletes the object when the test ends, and waits until it is gone.
func (c Cluster) RemoveAtEnd(t testing.TB, obj client.Object) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Timeout)
		defer cancel()
		for {
			err := c.Delete(ctx, obj)
			if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
				return
			}
			if ctx.Err() != nil {
				t.Errorf("%s %s is still in %s: %v", obj.GetObjectKind().GroupVersionKind().Kind, obj.GetName(), c.Name, err)
				return
			}
			time.Sleep(pollPeriod)
		}
	})
}

// Find reads an object; nil if there is none.
func (c Cluster) Find(t testing.TB, apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, u)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatalf("get %s %s/%s from %s: %v", kind, namespace, name, c.Name, err)
	}
	return u
}

// Change edits an object as a user would with an editor: read, change, write, and again if somebody else wrote in
// between. It may be called in a cleanup too.
func (c Cluster) Change(t testing.TB, apiVersion, kind, namespace, name string,
	change func(*unstructured.Unstructured)) *unstructured.Unstructured {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	for {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, u)
		if err == nil {
			change(u)
			err = c.Update(ctx, u)
		}
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			t.Fatalf("change %s %s/%s in %s: %v", kind, namespace, name, c.Name, err)
		}
		return u
	}
}

// Remove asks for the deletion of an object and does not wait for it.
func (c Cluster) Remove(t testing.TB, apiVersion, kind, namespace, name string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	u.SetNamespace(namespace)
	u.SetName(name)
	if err := c.Delete(t.Context(), u); err != nil {
		t.Fatalf("delete %s %s/%s in %s: %v", kind, namespace, name, c.Name, err)
	}
}

// Messages returns the messages of an object's events with a reason.
func (c Cluster) Messages(t testing.TB, kind, namespace, name, reason string) []string {
	t.Helper()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	var all corev1.EventList
	if err := c.List(t.Context(), &all, client.InNamespace(namespace)); err != nil {
		t.Fatalf("list events in %s: %v", c.Name, err)
	}
	var messages []string
	for _, e := range all.Items {
		if e.InvolvedObject.Kind == kind && e.InvolvedObject.Name == name && e.Reason == reason {
			messages = append(messages, e.Message)
		}
	}
	return messages
}

// Eventually waits until what holds. then returns "" when it does, else what is still wrong.
func Eventually(t testing.TB, what string, then func() string) {
	t.Helper()
	if wrong := Poll(then); wrong != "" {
		t.Fatalf("%s: not within %s: %s", what, Timeout, wrong)
	}
}

// Poll calls then until it returns "", but no longer than Timeout. It returns the last answer.
func Poll(then func() string) (wrong string) {
	for end := time.Now().Add(Timeout); time.Now().Before(end); time.Sleep(pollPeriod) {
		if wrong = then(); wrong == "" {
			return ""
		}
	}
	return wrong
}

// Stays checks that what holds, again and again for a while: for what must not happen.
func Stays(t testing.TB, what string, d time.Duration, then func() string) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(pollPeriod) {
		if wrong := then(); wrong != "" {
			t.Fatalf("%s: %s", what, wrong)
		}
	}
}

// Field is a value inside an object; nil if there is none.
func Field(u *unstructured.Unstructured, path ...string) any {
	if u == nil {
		return nil
	}
	v, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	return v
}

// namespaces counts those made, so that tests that run side by side have different ones.
var namespaces atomic.Int64

// Namespace makes a namespace of the test's own on the hub. At the test's end its policies are deleted, and what was
// propagated; this is not awaited. The namespace stays: to look for all kinds of objects in each that is deleted was a
// good part of what the API servers of a fleet had to do in a run.
func (f *Fleet) Namespace(t testing.TB) string {
	t.Helper()
	ns := fmt.Sprintf("t-%d", namespaces.Add(1))
	if err := f.Hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); err != nil {
		t.Fatalf("create namespace %s: %v", ns, err)
	}
	t.Cleanup(func() {
		if err := f.empty(context.WithoutCancel(t.Context()), ns); err != nil {
			t.Errorf("empty namespace %s: %v", ns, err)
		}
	})
	return ns
}

// empty deletes the policies of a namespace, and all templates that have a binding.
func (f *Fleet) empty(ctx context.Context, ns string) error {
	for _, policy := range []client.Object{&policyv1alpha1.PropagationPolicy{}, &policyv1alpha1.OverridePolicy{}} {
		if err := f.Hub.DeleteAllOf(ctx, policy, client.InNamespace(ns)); err != nil {
			return err
		}
	}
	var bindings workv1alpha2.ResourceBindingList
	if err := f.Hub.List(ctx, &bindings, client.InNamespace(ns)); err != nil {
		return err
	}
	for _, b := range bindings.Items {
		template := &unstructured.Unstructured{}
		template.SetAPIVersion(b.Spec.Resource.APIVersion)
		template.SetKind(b.Spec.Resource.Kind)
		template.SetNamespace(ns)
		template.SetName(b.Spec.Resource.Name)
		// A kind that a test defined may be gone with its objects.
		if err := f.Hub.Delete(ctx, template); client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
			return err
		}
	}
	return nil
}
