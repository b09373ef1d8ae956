package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/lab"
)

// workload is a number of like objects that are propagated, and what their end is.
type workload struct {
	name, kind string
	gvr        schema.GroupVersionResource
	n          int
	// make is object i; replicas is what one cluster, or the whole fleet, gets.
	make      func(name string, replicas int64) *unstructured.Unstructured
	replicas  int64
	placement map[string]any
	// failover is spec.failover of the policy; nil for none.
	failover map[string]any
	// done says of an object on the hub, or of one in a member where hubDone is false, that it has arrived.
	done    func(u *unstructured.Unstructured) bool
	hubDone bool
	// targets: time as a multiple of the floor, writes and milliseconds of CPU for each object; 0 is no target.
	must, aim struct{ times, writes, cpu float64 }
	karmada   [3]string
	what      string
}

func configMaps(n int) workload {
	w := workload{name: "configmaps", kind: "ConfigMap",
		gvr: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, n: n,
		make: func(name string, _ int64) *unstructured.Unstructured {
			return object(schema.GroupVersionResource{Version: "v1"}, "ConfigMap", name,
				map[string]any{"data": map[string]any{"key": "value of " + name}})
		},
		done:    func(*unstructured.Unstructured) bool { return true },
		karmada: [3]string{"24.5 s", "32", "158 ms"},
		what:    fmt.Sprintf("%d ConfigMaps × 3 members: all there", n),
	}
	w.must.times, w.must.writes, w.must.cpu = 6, 12, 30
	w.aim.times, w.aim.writes, w.aim.cpu = 3, 10, 15
	return w
}

func deployments(n int) workload {
	w := workload{name: "deployments", kind: "Deployment", gvr: schema.GroupVersionResource{Group: "apps", Version: "v1",
		Resource: "deployments"}, n: n,
		make: func(name string, replicas int64) *unstructured.Unstructured {
			labels := map[string]any{"app": name}
			return object(schema.GroupVersionResource{Group: "apps", Version: "v1"}, "Deployment", name,
				map[string]any{"spec": map[string]any{
					"replicas": replicas,
					"selector": map[string]any{"matchLabels": labels},
					"template": map[string]any{"metadata": map[string]any{"labels": labels},
						"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "example.com/app:1",
							"resources": map[string]any{"requests": map[string]any{"cpu": "10m", "memory": "16Mi"}}}}}}}})
		},
		replicas: members,
		placement: map[string]any{"replicaScheduling": map[string]any{
			"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}},
		done: func(u *unstructured.Unstructured) bool {
			ready, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas")
			seen, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
			return ready == members && seen == u.GetGeneration()
		},
		hubDone: true,
		karmada: [3]string{"42.7 s", "51", ""},
		what:    fmt.Sprintf("%d Deployments, 3 replicas divided, × 3: template status all ready", n),
	}
	w.must.times, w.must.writes = 4, 20
	w.aim.times, w.aim.writes = 2.5, 14
	return w
}

// measure has the floor and the hub do the same work, one after the other, and compares.
func (f *fleet) measure(ctx context.Context, o Options, w workload) ([]Row, error) {
	if err := f.policy(ctx, w); err != nil {
		return nil, err
	}
	// One object goes ahead, so that neither side is measured opening its watches.
	if _, err := f.propagate(ctx, w, "first", 1, 1); err != nil {
		return nil, err
	}
	o.Say("%s: the floor", w.name)
	floor, rest, err := f.floor(ctx, w, o.Workers)
	if err != nil {
		return nil, err
	}
	o.Say("%s: through the hub", w.name)
	if err := f.quiet(ctx); err != nil {
		return nil, err
	}
	before, err := f.account(ctx)
	if err != nil {
		return nil, err
	}
	took, err := f.propagate(ctx, w, w.name, w.n, o.Workers)
	if err != nil {
		return nil, err
	}
	if err := f.quiet(ctx); err != nil {
		return nil, err
	}
	after, err := f.account(ctx)
	if err != nil {
		return nil, err
	}
	rows := []Row{
		{Work: w.what, Unit: "x", Value: took.Seconds() / floor.Seconds(), Floor: floor.Seconds(), Rest: rest.Seconds(),
			Must: w.must.times, Aim: w.aim.times, Karmada: w.karmada[0]},
		{Work: "… hub writes per object", Unit: "writes", Value: float64(after.revision-before.revision) / float64(w.n),
			Must: w.must.writes, Aim: w.aim.writes, Karmada: w.karmada[1]},
	}
	if w.must.cpu > 0 {
		rows = append(rows, Row{Work: "… hub CPU per object", Unit: "ms",
			Value: (after.cpu - before.cpu).Seconds() * 1000 / float64(w.n), Must: w.must.cpu, Aim: w.aim.cpu,
			Karmada: w.karmada[2]})
	}
	return rows, nil
}

// policy places all objects of the workload, as one policy for all.
func (f *fleet) policy(ctx context.Context, w workload) error {
	spec := map[string]any{
		"resourceSelectors": []any{map[string]any{"apiVersion": w.gvr.GroupVersion().String(), "kind": w.kind,
			"labelSelector": map[string]any{"matchLabels": map[string]any{"app": "bench"}}}},
		"placement": func() map[string]any {
			if w.placement == nil {
				return map[string]any{}
			}
			return w.placement
		}(),
	}
	if w.failover != nil {
		spec["failover"] = w.failover
	}
	policy := object(policyv1alpha1.GroupVersion.WithResource("propagationpolicies"), "PropagationPolicy", w.name,
		map[string]any{"spec": spec})
	_, err := f.hub.Resource(policyv1alpha1.GroupVersion.WithResource("propagationpolicies")).Namespace("default").Create(
		ctx, policy, metav1.CreateOptions{})
	return err
}

// floor is how long a plain client takes to create the same objects straight in the members, and how long until they
// are at rest.
func (f *fleet) floor(ctx context.Context, w workload, workers int) (took, rest time.Duration, err error) {
	began := time.Now()
	err = runParallel(w.n*members, workers, func(i int) error {
		obj := w.make(fmt.Sprintf("floor-%s-%d", w.name, i/members), 1)
		_, err := f.members[i%members].Resource(w.gvr).Namespace("default").Create(ctx, obj, metav1.CreateOptions{})
		return err
	})
	took = time.Since(began)
	if err != nil {
		return 0, 0, fmt.Errorf("create %s in the members: %w", w.name, err)
	}
	// What the floor left running must not slow the other side down.
	for _, m := range f.members {
		if err := settle(ctx, m, w); err != nil {
			return 0, 0, err
		}
	}
	return took, time.Since(began), nil
}

// propagate creates the objects on the hub and returns how long it took until all have arrived.
func (f *fleet) propagate(ctx context.Context, w workload, prefix string, n, workers int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	var waiting sync.WaitGroup
	watched := f.members
	if w.hubDone {
		watched = []dynamic.Interface{f.hub}
	}
	errs := make(chan error, len(watched)+1)
	for _, c := range watched {
		arrived, err := arrivals(ctx, c, w, prefix, n)
		if err != nil {
			return 0, err
		}
		waiting.Go(func() { errs <- arrived() })
	}
	began := time.Now()
	errs <- runParallel(n, workers, func(i int) error {
		_, err := f.hub.Resource(w.gvr).Namespace("default").Create(ctx, w.make(prefix+"-"+strconv.Itoa(i), w.replicas),
			metav1.CreateOptions{})
		return err
	})
	waiting.Wait()
	took := time.Since(began)
	close(errs)
	for err := range errs {
		if err != nil {
			return 0, fmt.Errorf("propagate %s: %w", w.name, err)
		}
	}
	return took, nil
}

// arrivals watches from now on; the function returned waits until n objects of the prefix have arrived.
func arrivals(ctx context.Context, c dynamic.Interface, w workload, prefix string, n int) (func() error, error) {
	there := map[string]bool{}
	arrived := func(u *unstructured.Unstructured) {
		if strings.HasPrefix(u.GetName(), prefix+"-") && w.done(u) {
			there[u.GetName()] = true
		}
	}
	objects := c.Resource(w.gvr).Namespace("default")
	follow := func() (watch.Interface, error) {
		list, err := objects.List(ctx, metav1.ListOptions{LabelSelector: "app=bench"})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			arrived(&list.Items[i])
		}
		return objects.Watch(ctx, metav1.ListOptions{LabelSelector: "app=bench", ResourceVersion: list.GetResourceVersion()})
	}
	watcher, err := follow()
	if err != nil {
		return nil, err
	}
	return func() error {
		for {
			for event := range watcher.ResultChan() {
				if u, ok := event.Object.(*unstructured.Unstructured); ok && event.Type != watch.Deleted {
					arrived(u)
				}
				if len(there) == n {
					watcher.Stop()
					return nil
				}
			}
			// A server ends a watch that cannot keep up.
			if ctx.Err() != nil {
				return fmt.Errorf("%d of %d %s arrived in time", len(there), n, w.gvr.Resource)
			}
			if watcher, err = follow(); err != nil {
				return err
			}
			if len(there) == n {
				watcher.Stop()
				return nil
			}
		}
	}, nil
}

// settle waits until the objects of the floor are at rest in a member; those without replicas are at once.
func settle(ctx context.Context, c dynamic.Interface, w workload) error {
	for w.hubDone {
		list, err := c.Resource(w.gvr).Namespace("default").List(ctx, metav1.ListOptions{LabelSelector: "app=bench"})
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(list.Items, func(u unstructured.Unstructured) bool {
			ready, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas")
			wanted, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
			return ready != wanted
		}) {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	return nil
}

// books is what the hub has written and used so far.
type books struct {
	revision int64
	cpu      time.Duration
}

// account reads etcd's revision, which every write moves by one, off a list, and the hub's CPU time.
func (f *fleet) account(ctx context.Context) (books, error) {
	list, err := f.hub.Resource(workv1alpha2.GroupVersion.WithResource("clusterresourcebindings")).List(ctx,
		metav1.ListOptions{})
	if err != nil {
		return books{}, err
	}
	return booksOf(list.GetResourceVersion(), f.lab.Hub)
}

func booksOf(resourceVersion string, h *lab.Hub) (books, error) {
	revision, err := strconv.ParseInt(resourceVersion, 10, 64)
	if err != nil {
		return books{}, err
	}
	spent, err := readUsage(h.PID())
	return books{revision: revision, cpu: spent.CPU}, err
}

// quiet waits until the hub has written nothing for two seconds.
func (f *fleet) quiet(ctx context.Context) error {
	still := 0
	last := int64(-1)
	for range 300 {
		b, err := f.account(ctx)
		if err != nil {
			return err
		}
		if b.revision == last {
			if still++; still == 10 {
				return nil
			}
		} else {
			still, last = 0, b.revision
		}
		time.Sleep(200 * time.Millisecond)
	}
	return fmt.Errorf("the hub still writes after a minute without work")
}
