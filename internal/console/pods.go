package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/member/proxy"
)

const podsPath = apiPrefix + "pods"

const (
	// maxPodClusters bounds the members of a request, and maxPods the pods of each.
	maxPodClusters = 8
	maxPods        = 500
	// freshPodRows is the time for which the pages of a user share what was read in a member.
	freshPodRows = 2 * time.Second
	// podsWait is how long an answer waits for members. A later answer has the pods of slower ones.
	podsWait = 3 * time.Second
	// memberTimeout bounds a read in a member.
	memberTimeout = 10 * time.Second
)

// podRow is a pod of a workload in a member.
type podRow struct {
	Cluster    string   `json:"cluster"`
	Name       string   `json:"name"`
	Containers []string `json:"containers"`
	Phase      string   `json:"phase"`
	// Reason explains why a container does not run; empty if all do.
	Reason   string `json:"reason,omitempty"`
	Ready    int    `json:"ready"`
	Restarts int32  `json:"restarts"`
	// Since is when the pod was created, in seconds since 1970.
	Since int64  `json:"since"`
	Node  string `json:"node,omitempty"`
}

// podsAnswer is the answer at podsPath.
type podsAnswer struct {
	Pods   []podRow    `json:"pods"`
	Errors []podsError `json:"errors"`
	// None is true if objects of the kind have no pods that a label selector finds.
	None bool `json:"none,omitempty"`
}

// podsError is the reason why the pods of a cluster are not known.
type podsError struct {
	Cluster string   `json:"cluster"`
	Message string   `json:"message"`
	Missing *Missing `json:"missing,omitempty"`
}

// servePods lists the pods of a workload in members: kind, namespace and name, and clusters, separated by commas. It
// reads the template on the hub and the pods in the members as the user.
func (a *API) servePods(w http.ResponseWriter, r *http.Request, u user.Info) {
	clusters := strings.FieldsFunc(r.URL.Query().Get("clusters"), func(c rune) bool { return c == ',' })
	if len(clusters) > maxPodClusters || slices.ContainsFunc(clusters, func(name string) bool {
		return len(validation.IsDNS1123Subdomain(name)) > 0
	}) {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "give up to 8 names of clusters")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), whyTimeout)
	defer cancel()
	obj, _ := a.read(ctx, w, r, u)
	if obj == nil {
		return
	}
	selector := podSelector(obj)
	if selector == nil || obj.GetNamespace() == "" {
		respond(w, podsAnswer{Pods: []podRow{}, Errors: []podsError{}, None: true})
		return
	}
	respond(w, a.podsOf(ctx, u, obj.GetNamespace(), selector, clusters))
}

// podSelector returns the label selector of a workload's pods; nil if its kind has none.
func podSelector(obj *unstructured.Unstructured) labels.Selector {
	if field, found, _ := unstructured.NestedMap(obj.Object, "spec", "selector"); found {
		var s metav1.LabelSelector
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(field, &s); err != nil {
			return nil
		}
		if selector, err := metav1.LabelSelectorAsSelector(&s); err == nil && !selector.Empty() {
			return selector
		}
		return nil
	}
	if obj.GroupVersionKind().GroupKind() == match.GroupKind("batch/v1", "Job") {
		return labels.SelectorFromSet(labels.Set{"job-name": obj.GetName()})
	}
	return nil
}

// podsOf returns the pods that the members have now. It waits podsWait for them.
func (a *API) podsOf(ctx context.Context, u user.Info, namespace string, selector labels.Selector,
	clusters []string) podsAnswer {
	ctx, cancel := context.WithTimeout(ctx, podsWait)
	defer cancel()
	reads := make([]*podRead, len(clusters))
	for i, cluster := range clusters {
		key := strings.Join([]string{identity(u), cluster, namespace, selector.String()}, "\x00")
		reads[i] = a.pods.start(ctx, key, func(ctx context.Context) ([]podRow, error) {
			return a.readPods(ctx, u, cluster, namespace, selector)
		})
	}
	answer := podsAnswer{Pods: []podRow{}, Errors: []podsError{}}
	for i, cluster := range clusters {
		pods, err := reads[i].wait(ctx)
		answer.Pods = append(answer.Pods, pods...)
		if err != nil {
			e := podsError{Cluster: cluster, Message: err.Error()}
			_ = errors.As(err, &e.Missing) // otherwise, no right is missing
			answer.Errors = append(answer.Errors, e)
		}
	}
	return answer
}

// readPods lists pods in a member as the user.
func (a *API) readPods(ctx context.Context, u user.Info, cluster, namespace string, selector labels.Selector) ([]podRow,
	error) {
	c, err := a.connect(proxy.Config(a.configOf(u), cluster), podMapper)
	if err != nil {
		return nil, err
	}
	var list corev1.PodList
	// Version 0 lets the member answer from its cache.
	err = c.List(ctx, &list, &client.ListOptions{Namespace: namespace, LabelSelector: selector, Limit: maxPods,
		Raw: &metav1.ListOptions{ResourceVersion: "0"}})
	var status apierrors.APIStatus
	if apierrors.IsForbidden(err) && errors.As(err, &status) && status.Status().Details != nil &&
		status.Status().Details.Group == clusterv1alpha1.GroupVersion.Group {
		return nil, right{verb: "get", group: clusterv1alpha1.GroupVersion.Group, resource: "clusters",
			subresource: "proxy"}.missing()
	}
	if err != nil {
		return nil, missingOf(err, "list", namespace)
	}
	items := list.Items[:min(len(list.Items), maxPods)]
	rows := make([]podRow, 0, len(items))
	for i := range items {
		rows = append(rows, rowOfPod(cluster, &items[i]))
	}
	slices.SortFunc(rows, func(a, b podRow) int { return cmp.Compare(a.Name, b.Name) })
	return rows, nil
}

// podMapper knows pods, so that members are not asked for their kinds.
var podMapper = func() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	return m
}()

func rowOfPod(cluster string, p *corev1.Pod) podRow {
	row := podRow{Cluster: cluster, Name: p.Name, Containers: []string{}, Phase: string(p.Status.Phase),
		Since: p.CreationTimestamp.Unix(), Node: p.Spec.NodeName}
	for _, c := range p.Spec.Containers {
		row.Containers = append(row.Containers, c.Name)
	}
	for _, s := range p.Status.ContainerStatuses {
		row.Restarts += s.RestartCount
		if s.Ready {
			row.Ready++
		}
		if s.State.Waiting != nil {
			row.Reason = cmp.Or(row.Reason, s.State.Waiting.Reason)
		}
	}
	for _, s := range p.Status.ContainerStatuses {
		if s.State.Terminated != nil && p.Status.Phase != corev1.PodSucceeded {
			row.Reason = cmp.Or(row.Reason, s.State.Terminated.Reason)
		}
	}
	if p.DeletionTimestamp != nil {
		row.Reason = "Terminating"
	}
	return row
}

// podReads shares reads in members: pages of one user that ask for the same pods cause one read every freshPodRows, and
// no watch.
type podReads struct {
	now func() time.Time

	mu    sync.Mutex
	known map[string]*podRead
}

// podRead is a read that has begun. pods and err are set when done is closed.
type podRead struct {
	began time.Time
	done  chan struct{}
	pods  []podRow
	err   error
}

// start returns a read for a key that is not older than freshPodRows, or has not ended yet.
func (p *podReads) start(ctx context.Context, key string, read func(context.Context) ([]podRow, error)) *podRead {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if one := p.known[key]; one != nil && (now.Sub(one.began) < freshPodRows || !one.over()) {
		return one
	}
	for k, old := range p.known {
		if now.Sub(old.began) >= freshPodRows && old.over() {
			delete(p.known, k)
		}
	}
	one := &podRead{began: now, done: make(chan struct{})}
	p.known[key] = one
	go func() {
		// Others wait for this read, too: it does not end with its first request.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), memberTimeout)
		defer cancel()
		one.pods, one.err = read(ctx)
		close(one.done)
	}()
	return one
}

func (r *podRead) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

var errSlowMember = errors.New("the cluster has not answered yet")

// wait returns the pods, or errSlowMember when ctx ends before.
func (r *podRead) wait(ctx context.Context) ([]podRow, error) {
	if r.over() {
		return r.pods, r.err
	}
	select {
	case <-r.done:
		return r.pods, r.err
	case <-ctx.Done():
		return nil, errSlowMember
	}
}
