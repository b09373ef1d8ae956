package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/internal/core/explain/state"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/member/proxy"
)

const podsPath = apiPrefix + "pods"

const (
	// maxPodClusters bounds the members of a request, and maxPods the pods of each: any user may ask again and again.
	maxPodClusters = 8
	maxPods        = 500
	// freshPodRows is the time for which the pages of a user share what was read in a member, from the end of the read.
	// After a slow read it is freshSlowRows: a page that did not get the pods asks again before they are deleted. That is
	// refreshEvery of the page after its last answer.
	freshPodRows  = 2 * time.Second
	freshSlowRows = 4 * time.Second
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
	// State is Healthy, Progressing or Unhealthy.
	State state.State `json:"state"`
	// Reason explains why a container does not run; empty if all do.
	Reason   string `json:"reason,omitempty"`
	Ready    int    `json:"ready"`
	Restarts int32  `json:"restarts"`
	// Since is when the pod was created, in seconds since 1970.
	Since int64  `json:"since"`
	Node  string `json:"node,omitempty"`
	// Owner is the controller of the pod, such as "CloneSet.apps.kruise.io/web"; empty if the pod has none or is being
	// deleted.
	Owner string `json:"owner,omitempty"`
}

type podsAnswer struct {
	Pods   []podRow    `json:"pods"`
	Errors []podsError `json:"errors"`
	// More has the clusters that have more than maxPods pods. Only maxPods of each are in Pods.
	More []string `json:"more,omitempty"`
	// None is true if objects of the kind have no pods that a label selector finds.
	None bool `json:"none,omitempty"`
}

// podsError is the reason why the pods of a cluster are not known.
type podsError struct {
	Cluster string   `json:"cluster"`
	Message string   `json:"message"`
	Missing *Missing `json:"missing,omitempty"`
}

// podsNow lists the pods of a workload in members: kind, namespace and name, and clusters, separated by commas. It
// reads the template on the hub and the pods in the members as the user.
func (a *API) podsNow(r *http.Request, u user.Info) (any, error) {
	clusters := strings.FieldsFunc(r.URL.Query().Get("clusters"), func(c rune) bool { return c == ',' })
	if len(clusters) > maxPodClusters || slices.ContainsFunc(clusters, func(name string) bool {
		return len(validation.IsDNS1123Subdomain(name)) > 0
	}) {
		return nil, badRequest("give up to %d names of clusters", maxPodClusters)
	}
	obj, _, err := a.read(r, u)
	if err != nil {
		return nil, err
	}
	selector := podSelector(obj)
	if selector == nil || obj.GetNamespace() == "" {
		return podsAnswer{Pods: []podRow{}, Errors: []podsError{}, None: true}, nil
	}
	return a.podsOf(r.Context(), u, obj.GetNamespace(), selector, clusters), nil
}

// podSelector returns the label selector of a workload's pods; nil if its kind has none.
func podSelector(obj *unstructured.Unstructured) labels.Selector {
	if field, found, _ := unstructured.NestedMap(obj.Object, "spec", "selector"); found {
		if selector, err := match.ParseSelector(field); err == nil && !selector.Empty() {
			return selector
		}
		return nil
	}
	if label := kind.Facts(obj).Pods.Label; label != "" {
		return labels.SelectorFromSet(labels.Set{label: obj.GetName()})
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
		reads[i] = a.pods.start(ctx, key, func(ctx context.Context) (podList, error) {
			return a.readPods(ctx, u, cluster, namespace, selector)
		})
	}
	answer := podsAnswer{Pods: []podRow{}, Errors: []podsError{}}
	for i, cluster := range clusters {
		list, err := reads[i].wait(ctx)
		answer.Pods = append(answer.Pods, list.rows...)
		if list.more {
			answer.More = append(answer.More, cluster)
		}
		if err != nil {
			e := podsError{Cluster: cluster, Message: err.Error()}
			_ = errors.As(err, &e.Missing) // otherwise, no right is missing
			answer.Errors = append(answer.Errors, e)
		}
	}
	return answer
}

// podList has the pods of a workload in a member. more is true if it has others.
type podList struct {
	rows []podRow
	more bool
}

// readPods lists up to maxPods pods in a member as the user.
func (a *API) readPods(ctx context.Context, u user.Info, cluster, namespace string,
	selector labels.Selector) (podList, error) {
	c, err := a.connect(proxy.Config(a.configOf(u), cluster), podMapper)
	if err != nil {
		return podList{}, err
	}
	var list corev1.PodList
	// With resource version 0, the member would ignore the limit.
	err = c.List(ctx, &list, &client.ListOptions{Namespace: namespace, LabelSelector: selector, Limit: maxPods})
	if err != nil {
		return podList{}, missingInMember(err, cluster, "list", namespace)
	}
	rows := make([]podRow, 0, len(list.Items))
	for i := range list.Items {
		rows = append(rows, rowOfPod(cluster, &list.Items[i]))
	}
	slices.SortFunc(rows, func(a, b podRow) int { return cmp.Compare(a.Name, b.Name) })
	return podList{rows, list.Continue != ""}, nil
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
	switch {
	case p.Status.Phase == corev1.PodSucceeded,
		p.Status.Phase == corev1.PodRunning && row.Ready == len(row.Containers):
		row.State = state.Healthy
	case p.Status.Phase == corev1.PodPending && row.Reason == "":
		row.State = state.Progressing
	default:
		row.State = state.Unhealthy
	}
	if p.DeletionTimestamp != nil {
		row.Reason = "Terminating"
	} else if owner := metav1.GetControllerOf(p); owner != nil {
		row.Owner = match.GroupKind(owner.APIVersion, owner.Kind).String() + "/" + owner.Name
	}
	return row
}

// podReads shares reads in members: pages of one user that ask for the same pods share one read until it is deleted,
// and cause no watch.
type podReads struct {
	mu    sync.Mutex
	known map[string]*podRead
}

// podRead is a read that has begun. list and err are set when done is closed.
type podRead struct {
	done chan struct{}
	list podList
	err  error
}

// start returns the read for a key that has not ended yet or ended a short time ago; otherwise a new one.
func (p *podReads) start(ctx context.Context, key string, read func(context.Context) (podList, error)) *podRead {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.known[key]; one != nil {
		return one
	}
	one, began := &podRead{done: make(chan struct{})}, time.Now()
	p.known[key] = one
	go func() {
		// Others wait for this read, too: it does not end with its first request.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), memberTimeout)
		defer cancel()
		one.list, one.err = readSafely(ctx, read)
		fresh := freshPodRows
		if time.Since(began) > podsWait/2 {
			fresh = freshSlowRows
		}
		close(one.done)
		time.AfterFunc(fresh, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.known, key) // it is this read: no other begins before
		})
	}()
	return one
}

// readSafely turns a panic of read into an error, so that the hub continues.
func readSafely(ctx context.Context, read func(context.Context) (podList, error)) (list podList, err error) {
	defer func() {
		if v := recover(); v != nil {
			list, err = podList{}, fmt.Errorf("the hub cannot read the pods: panic: %v", v)
			klog.ErrorS(err, "read pods in a member", "stack", string(debug.Stack()))
		}
	}()
	return read(ctx)
}

var errSlowMember = errors.New("the cluster has not answered yet")

// wait returns the pods, or errSlowMember when ctx ends before.
func (r *podRead) wait(ctx context.Context) (podList, error) {
	select {
	case <-r.done:
		return r.list, r.err
	default:
	}
	select {
	case <-r.done:
		return r.list, r.err
	case <-ctx.Done():
		return podList{}, errSlowMember
	}
}
