package member

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// What pods use is what these annotations of theirs say, those that kwok has, or else a fifth of what they request.
const (
	usageAnnotation = "kwok.x-k8s.io/usage-"
	usageShare      = 5
)

// usageWindow is how long a value is said to be the average of. It is short, so that pods count soon.
var usageWindow = metav1.Duration{Duration: time.Second}

// usage serves metrics.k8s.io as metrics-server does. Nothing of it runs between requests.
type usage struct {
	client atomic.Pointer[kubernetes.Clientset]
}

// metricsGroup is how discovery lists it.
var metricsGroup = apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: "metrics.k8s.io"},
	Versions: []apidiscoveryv2.APIVersionDiscovery{{
		Version: "v1beta1", Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent,
		Resources: []apidiscoveryv2.APIResourceDiscovery{
			{Resource: "nodes", SingularResource: "node", Scope: apidiscoveryv2.ScopeCluster, Verbs: []string{"get", "list"},
				ResponseKind: &metav1.GroupVersionKind{Group: "metrics.k8s.io", Version: "v1beta1", Kind: "NodeMetrics"}},
			{Resource: "pods", SingularResource: "pod", Scope: apidiscoveryv2.ScopeNamespace, Verbs: []string{"get", "list"},
				ResponseKind: &metav1.GroupVersionKind{Group: "metrics.k8s.io", Version: "v1beta1", Kind: "PodMetrics"}},
		}}}}

// use is from when there are answers.
func (u *usage) use(loopback *rest.Config) error {
	client, err := kubernetes.NewForConfig(protobuf(loopback))
	if err != nil {
		return err
	}
	u.client.Store(client)
	return nil
}

// serve answers what is asked of metrics.k8s.io, and passes on the rest.
func (u *usage) serve(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok || !info.IsResourceRequest || info.APIGroup != metricsGroup.Name || info.Subresource != "" ||
			info.Verb != "get" && info.Verb != "list" {
			next.ServeHTTP(w, r)
			return
		}
		client := u.client.Load()
		if client == nil {
			http.Error(w, "the cluster is starting", http.StatusServiceUnavailable)
			return
		}
		namespace, selectors := info.Namespace, metav1.ListOptions{ResourceVersion: "0"}
		if info.Resource == "pods" {
			selectors.LabelSelector = r.URL.Query().Get("labelSelector")
		}
		pods, err := client.CoreV1().Pods(namespace).List(r.Context(), selectors)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		var list, one any
		if info.Resource == "pods" {
			all := podMetrics(pods.Items, metav1.Now())
			list = metricsv1beta1.PodMetricsList{TypeMeta: typed("PodMetricsList"), Items: all}
			one = named(all, info.Name, func(m metricsv1beta1.PodMetrics) string { return m.Name })
		} else {
			selectors.LabelSelector = r.URL.Query().Get("labelSelector")
			nodes, err := client.CoreV1().Nodes().List(r.Context(), selectors)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			all := nodeMetrics(nodes.Items, pods.Items, metav1.Now())
			list = metricsv1beta1.NodeMetricsList{TypeMeta: typed("NodeMetricsList"), Items: all}
			one = named(all, info.Name, func(m metricsv1beta1.NodeMetrics) string { return m.Name })
		}
		switch {
		case info.Name == "":
			writeJSON(w, http.StatusOK, list)
		case one == nil:
			missing := apierrors.NewNotFound(schema.GroupResource{Group: metricsGroup.Name, Resource: info.Resource}, info.Name)
			missing.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
			writeJSON(w, http.StatusNotFound, missing.ErrStatus)
		default:
			writeJSON(w, http.StatusOK, one)
		}
	})
}

// named returns the one of that name; nil if there is none.
func named[T any](all []T, name string, nameOf func(T) string) any {
	if i := slices.IndexFunc(all, func(m T) bool { return nameOf(m) == name }); i >= 0 {
		return all[i]
	}
	return nil
}

func typed(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: metricsv1beta1.SchemeGroupVersion.String(), Kind: kind}
}

func writeJSON(w http.ResponseWriter, code int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer) // who asked is gone, if this fails
}

// podMetrics are those of the pods that run. What an annotation says of a pod is shared by its containers alike.
func podMetrics(pods []corev1.Pod, now metav1.Time) []metricsv1beta1.PodMetrics {
	out := []metricsv1beta1.PodMetrics{}
	for i := range pods {
		pod := &pods[i]
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			continue
		}
		m := metricsv1beta1.PodMetrics{TypeMeta: typed("PodMetrics"), Timestamp: now, Window: usageWindow,
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, Labels: pod.Labels}}
		for _, c := range pod.Spec.Containers {
			used := corev1.ResourceList{}
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				request := c.Resources.Requests[name]
				n := request.MilliValue() / usageShare
				if q, err := resource.ParseQuantity(strings.TrimSpace(pod.Annotations[usageAnnotation+string(name)])); err == nil {
					n = q.MilliValue() / int64(len(pod.Spec.Containers))
				}
				used[name] = *resource.NewMilliQuantity(n, cmp.Or(request.Format, resource.DecimalSI))
			}
			m.Containers = append(m.Containers, metricsv1beta1.ContainerMetrics{Name: c.Name, Usage: used})
		}
		out = append(out, m)
	}
	return out
}

// nodeMetrics are what the pods of each node use together; every node has some, also one without pods.
func nodeMetrics(nodes []corev1.Node, pods []corev1.Pod, now metav1.Time) []metricsv1beta1.NodeMetrics {
	sums := map[string]corev1.ResourceList{}
	out := make([]metricsv1beta1.NodeMetrics, len(nodes))
	for i, n := range nodes {
		sums[n.Name] = corev1.ResourceList{corev1.ResourceCPU: {}, corev1.ResourceMemory: {}}
		out[i] = metricsv1beta1.NodeMetrics{TypeMeta: typed("NodeMetrics"), Timestamp: now, Window: usageWindow,
			ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}, Usage: sums[n.Name]}
	}
	for i := range pods {
		of := sums[pods[i].Spec.NodeName]
		for _, m := range podMetrics(pods[i:i+1], now) {
			for _, c := range m.Containers {
				for name, sum := range of {
					sum.Add(c.Usage[name])
					of[name] = sum
				}
			}
		}
	}
	return out
}
