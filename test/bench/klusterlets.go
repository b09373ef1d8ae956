package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "github.com/argosy-io/argosy/api/ocm/addon/v1beta1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
)

// leaseInterval is how often a klusterlet renews its Lease, the default of Open Cluster Management.
const leaseInterval = time.Minute

// klusterlets measures a hub with many simulated klusterlets. Each reads, watches and writes as the two agents of Open
// Cluster Management do by ocm-hub.md, sections 2 and 10, over two connections. They have no members.
func klusterlets(ctx context.Context, o Options) ([]Row, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	o.Say("%d klusterlets: starting a hub", o.Klusterlets)
	h, err := startHub(ctx, o, "klusterlets")
	if err != nil {
		return nil, err
	}
	defer func() { _ = h.Stop() }() // the figures are taken
	config, c, err := pullClient(h)
	if err != nil {
		return nil, err
	}
	signer, err := newAgentSigner(h)
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(ctx)
	var agents sync.WaitGroup
	defer func() { stop(); agents.Wait() }()
	all := make([]*agentOfOCM, o.Klusterlets)
	for i := range all {
		k := &agentOfOCM{cluster: clusterName(i)}
		if err := k.connect(signer); err != nil {
			return nil, err
		}
		mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: k.cluster}}
		mc.Spec.HubAcceptsClient, mc.Spec.LeaseDurationSeconds = true, int32(leaseInterval.Seconds())
		if err := c.Create(ctx, mc); err != nil {
			return nil, err
		}
		agents.Go(func() { k.run(running) })
		all[i] = k
		if err := pause(ctx, time.Second/agentStarts); err != nil {
			return nil, err
		}
	}
	if err := readyClusters(ctx, c, o.Klusterlets); err != nil {
		return nil, err
	}

	o.Say("%d klusterlets: idle", o.Klusterlets)
	before, idle, err := idleUse(ctx, h.PID(), leaseInterval)
	if err != nil {
		return nil, err
	}

	o.Say("%d klusterlets: a ConfigMap for all", o.Klusterlets)
	const name = "everywhere"
	at := metav1.ObjectMeta{Namespace: "default", Name: name}
	policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: at, Spec: policyv1alpha1.PropagationSpec{
		ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap", Name: name}}}}
	if err := c.Create(ctx, policy); err != nil {
		return nil, err
	}
	// written returns the writes of the hub alone.
	written := func() (float64, error) {
		sum, err := sumMetric(ctx, config, "apiserver_request_total", isPropagationWrite)
		for _, k := range all {
			sum -= float64(k.writes.Load())
		}
		return sum, err
	}
	was, err := written()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := c.Create(ctx, &corev1.ConfigMap{ObjectMeta: at, Data: map[string]string{"key": "value"}}); err != nil {
		return nil, err
	}
	if err := poll(ctx, "the ConfigMap does not reach all klusterlets", func() (bool, error) {
		var b workv1alpha2.ResourceBinding
		err := c.Get(ctx, client.ObjectKey{Namespace: at.Namespace, Name: name + "-configmap"}, &b)
		return len(b.Status.AggregatedStatus) == len(all) && meta.IsStatusConditionTrue(b.Status.Conditions,
			workv1alpha2.FullyApplied), client.IgnoreNotFound(err)
	}); err != nil {
		return nil, err
	}
	reported := time.Since(began)
	if err := pause(ctx, 5*time.Second); err != nil { // the template gets the status last
		return nil, err
	}
	is, err := written()
	if err != nil {
		return nil, err
	}
	return []Row{
		{Work: fmt.Sprintf("%d klusterlets on one hub, idle: hub memory", o.Klusterlets), Unit: "MiB",
			Value: mib(idle.Memory), Must: 4096},
		{Work: "… hub CPU", Unit: "cores", Value: (idle.CPU - before.CPU).Seconds() / leaseInterval.Seconds()},
		{Work: "… a new ConfigMap: until the binding has the result of all", Unit: "s", Value: reported.Seconds()},
		{Work: "… hub writes for it", Unit: "writes", Value: is - was, Must: 4 + 2*float64(o.Klusterlets)},
	}, nil
}

// agentOfOCM is a simulated klusterlet.
type agentOfOCM struct {
	cluster            string
	registration, work dynamic.Interface
	leases             kubernetes.Interface
	writes             atomic.Int64 // of ManifestWorks that succeeded
}

// connect opens the connections of the two agents. They share the certificate.
func (k *agentOfOCM) connect(signer *agentSigner) error {
	kubeconfig, err := signer.kubeconfig(klusterlet.GroupOf(k.cluster)+":agent", klusterlet.GroupOf(k.cluster),
		klusterlet.Group)
	if err != nil {
		return err
	}
	for _, to := range []*dynamic.Interface{&k.registration, &k.work} {
		config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
		if err != nil {
			return err
		}
		config.QPS = -1
		config.Dial = (&net.Dialer{}).DialContext // a dial function of its own makes a connection of its own
		if *to, err = dynamic.NewForConfig(config); err != nil {
			return err
		}
		k.leases, err = kubernetes.NewForConfig(rest.CopyConfig(config))
		if err != nil {
			return err
		}
	}
	return nil
}

// run acts as the two agents until the context ends.
func (k *agentOfOCM) run(ctx context.Context) {
	watch := func(from dynamic.ResourceInterface, options metav1.ListOptions, changed func(*unstructured.Unstructured)) {
		tweak := func(o *metav1.ListOptions) {
			o.LabelSelector, o.FieldSelector = options.LabelSelector, options.FieldSelector
		}
		lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				tweak(&o)
				return from.List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
				tweak(&o)
				return from.Watch(ctx, o)
			},
		}, k.registration)
		_, informer := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: lw,
			ObjectType: &unstructured.Unstructured{}, Handler: cache.ResourceEventHandlerFuncs{
				AddFunc:    func(obj any) { changed(obj.(*unstructured.Unstructured)) },
				UpdateFunc: func(_, obj any) { changed(obj.(*unstructured.Unstructured)) },
			}})
		go informer.RunWithContext(ctx)
	}
	none := func(*unstructured.Unstructured) {}
	clusters := k.registration.Resource(clusterv1.GroupVersion.WithResource("managedclusters"))
	watch(clusters, metav1.ListOptions{FieldSelector: "metadata.name=" + k.cluster}, none)
	watch(k.registration.Resource(schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1",
		Resource: "certificatesigningrequests"}), metav1.ListOptions{LabelSelector: clusterv1.ClusterNameLabel + "=" +
		k.cluster}, none)
	watch(k.registration.Resource(addonv1beta1.GroupVersion.WithResource("managedclusteraddons")).Namespace(k.cluster),
		metav1.ListOptions{}, none)
	works := k.work.Resource(ocmv1.GroupVersion.WithResource("manifestworks")).Namespace(k.cluster)
	watch(works, metav1.ListOptions{}, func(u *unstructured.Unstructured) { k.apply(ctx, works, u) })
	joined := false
	for {
		if !joined { // until the hub has granted the permissions
			joined = k.join(ctx, clusters) == nil
		}
		wait := leaseInterval
		if !joined || k.renew(ctx) != nil {
			wait = time.Second
		}
		if pause(ctx, wait) != nil {
			return
		}
	}
}

// join reports the cluster, as the registration agent does at its start.
func (k *agentOfOCM) join(ctx context.Context, clusters dynamic.ResourceInterface) error {
	condition := func(kind string) map[string]any {
		return map[string]any{"type": kind, "status": "True", "reason": kind, "message": "",
			"lastTransitionTime": metav1.Now().Format(time.RFC3339)}
	}
	u, err := clusters.Get(ctx, k.cluster, metav1.GetOptions{})
	if err != nil {
		return err
	}
	was, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	if err != nil {
		return err
	}
	status := map[string]any{"conditions": append(was, condition(clusterv1.Joined), condition(clusterv1.ClusterAvailable)),
		"version":     map[string]any{"kubernetes": "v1.34.0"},
		"capacity":    map[string]any{"cpu": "8", "memory": "32Gi"},
		"allocatable": map[string]any{"cpu": "8", "memory": "32Gi"}}
	return k.patch(ctx, clusters, u, map[string]any{"status": status}, "status")
}

// renew renews the Lease.
func (k *agentOfOCM) renew(ctx context.Context) error {
	leases := k.leases.CoordinationV1().Leases(k.cluster)
	lease, err := leases.Get(ctx, clusterv1.LeaseName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	now := metav1.NowMicro()
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &k.cluster, RenewTime: &now,
		LeaseDurationSeconds: lease.Spec.LeaseDurationSeconds}
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

// apply reports a ManifestWork as applied in an empty cluster, after its finalizer is stored.
func (k *agentOfOCM) apply(ctx context.Context, works dynamic.ResourceInterface, u *unstructured.Unstructured) {
	if u.GetDeletionTimestamp() != nil {
		return
	}
	if !slices.Contains(u.GetFinalizers(), ocmv1.ManifestWorkFinalizer) {
		if k.patch(ctx, works, u, map[string]any{"metadata": map[string]any{
			"finalizers": append(u.GetFinalizers(), ocmv1.ManifestWorkFinalizer)}}) == nil {
			k.writes.Add(1)
		}
		return // its event follows
	}
	// What is only looked at is not there: no other user creates objects.
	configs, _, _ := unstructured.NestedSlice(u.Object, "spec", "manifestConfigs")
	there := metav1.ConditionTrue
	if slices.ContainsFunc(configs, func(c any) bool {
		kind, _, _ := unstructured.NestedString(c.(map[string]any), "updateStrategy", "type")
		return kind == string(ocmv1.UpdateStrategyReadOnly)
	}) {
		there = metav1.ConditionFalse
	}
	conditions := func() []any {
		var all []any
		for kind, status := range map[string]metav1.ConditionStatus{ocmv1.Applied: metav1.ConditionTrue,
			ocmv1.Available: there} {
			all = append(all, map[string]any{"type": kind, "status": string(status), "reason": kind, "message": "",
				"observedGeneration": u.GetGeneration(), "lastTransitionTime": metav1.Now().Format(time.RFC3339)})
		}
		return all
	}
	was, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	if slices.ContainsFunc(was, func(c any) bool {
		return c.(map[string]any)["observedGeneration"] == u.GetGeneration()
	}) {
		return
	}
	manifests, _, _ := unstructured.NestedSlice(u.Object, "spec", "workload", "manifests")
	var reports []any
	for i, m := range manifests {
		m := unstructured.Unstructured{Object: m.(map[string]any)}
		plural, _ := meta.UnsafeGuessKindToResource(m.GroupVersionKind())
		reports = append(reports, map[string]any{"conditions": conditions(),
			"statusFeedback": map[string]any{"values": feedback(m, configs)},
			"resourceMeta": map[string]any{"ordinal": i, "group": plural.Group, "version": plural.Version,
				"kind": m.GetKind(), "resource": plural.Resource, "name": m.GetName(), "namespace": m.GetNamespace()}})
	}
	if k.patch(ctx, works, u, map[string]any{"status": map[string]any{"conditions": conditions(),
		"resourceStatus": map[string]any{"manifests": reports}}}, "status") == nil {
		k.writes.Add(1)
	}
}

// feedback returns the strings that the feedback rules of a ManifestWork with one manifest select, as they are in the
// cluster.
func feedback(m unstructured.Unstructured, configs []any) []any {
	m = *m.DeepCopy()
	m.SetUID("uid")
	var values []any
	for _, config := range configs {
		rules, _, _ := unstructured.NestedSlice(config.(map[string]any), "feedbackRules")
		for _, rule := range rules {
			paths, _, _ := unstructured.NestedSlice(rule.(map[string]any), "jsonPaths")
			for _, of := range paths {
				of := of.(map[string]any)
				find := jsonpath.New("feedback").AllowMissingKeys(true)
				if find.Parse(fmt.Sprintf("{%s}", of["path"])) != nil {
					continue
				}
				found, err := find.FindResults(m.Object)
				if err != nil || len(found) == 0 || len(found[0]) == 0 {
					continue
				}
				if text, is := found[0][0].Interface().(string); is {
					values = append(values, map[string]any{"name": of["name"],
						"fieldValue": map[string]any{"type": "String", "string": text}})
				}
			}
		}
	}
	return values
}

// patch writes one aspect of an object as the agents do: a merge patch with its uid and resourceVersion.
func (k *agentOfOCM) patch(ctx context.Context, to dynamic.ResourceInterface, u *unstructured.Unstructured,
	change map[string]any, subresources ...string) error {
	metadata, _ := change["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["uid"], metadata["resourceVersion"] = u.GetUID(), u.GetResourceVersion()
	change["metadata"] = metadata
	data, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = to.Patch(ctx, u.GetName(), types.MergePatchType, data, metav1.PatchOptions{}, subresources...)
	return err
}
