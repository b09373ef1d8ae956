package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/argosy-io/argosy/internal/core/explain/state"
	"github.com/argosy-io/argosy/internal/member/proxy"
	"github.com/argosy-io/argosy/internal/why"
)

// members plays the members behind the hub's proxy.
type members struct {
	mu sync.Mutex
	// reads has "USER CLUSTER" of each list of pods.
	reads []string
	// refuse returns the error of a list of pods in a cluster; nil if it succeeds.
	refuse func(ctx context.Context, cluster string) error
	// limits has "LIMIT VERSION" of each list of pods, and more its continue token.
	limits []string
	more   string
}

func (m *members) lists() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(slices.Values(m.reads))
}

// withMembers returns an API whose hub has the Deployment shop/web. Its members have a pod of it, and another pod.
func withMembers(t *testing.T) (*API, *members) {
	t.Helper()
	m := &members{refuse: func(context.Context, string) error { return nil }}
	web := deployment()
	labels := map[string]any{"matchExpressions": []any{map[string]any{"key": "app", "operator": "In",
		"values": []any{"web"}}}}
	if err := unstructured.SetNestedMap(web.Object, labels, "spec", "selector"); err != nil {
		t.Fatal(err)
	}
	hub := fake.NewClientBuilder().WithScheme(why.Scheme()).WithObjects(web).Build()
	there := fake.NewClientBuilder().WithScheme(why.Scheme()).WithObjects(
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: map[string]string{"app": "web"}},
			Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "web"}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
				RestartCount: 3, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
					Reason: "CrashLoopBackOff"}}}}}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api-1", Labels: map[string]string{"app": "api"}}},
	).Build()
	a := newTestAPI(t, grants{})
	a.connect = func(config *rest.Config, _ meta.RESTMapper) (client.Client, error) {
		_, cluster, found := strings.Cut(config.Host, strings.TrimSuffix(proxy.Path(""), "/proxy"))
		if !found {
			return hub, nil
		}
		cluster = strings.TrimSuffix(cluster, "/proxy")
		return interceptor.NewClient(there, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch,
			list client.ObjectList, opts ...client.ListOption) error {
			m.mu.Lock()
			m.reads = append(m.reads, config.Impersonate.UserName+" "+cluster)
			asked := (&client.ListOptions{}).ApplyOptions(opts).AsListOptions()
			m.limits = append(m.limits, fmt.Sprintf("%d %s", asked.Limit, asked.ResourceVersion))
			more := m.more
			m.mu.Unlock()
			if err := m.refuse(ctx, cluster); err != nil {
				return err
			}
			err := c.List(ctx, list, opts...)
			list.SetContinue(more)
			return err
		}}), nil
	}
	return a, m
}

func (a *API) askPods(t *testing.T, u user.Info, clusters string) podsAnswer {
	t.Helper()
	w := a.request(t, u, "GET", podsPath+"?kind=Deployment.apps&namespace=shop&name=web&clusters="+clusters, "")
	var answer podsAnswer
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return answer
}

func TestPodsAreThoseOfTheSelectorInEachCluster(t *testing.T) {
	a, _ := withMembers(t)
	answer := a.askPods(t, alice, "eu,us")
	if len(answer.Pods) != 2 || len(answer.Errors) != 0 {
		t.Fatalf("the answer is %+v", answer)
	}
	for i, cluster := range []string{"eu", "us"} {
		p := answer.Pods[i]
		if p.Cluster != cluster || p.Name != "web-1" || p.Reason != "CrashLoopBackOff" || p.Restarts != 3 || p.Ready != 0 ||
			p.Node != "n1" || !slices.Equal(p.Containers, []string{"web"}) {
			t.Errorf("the pod is %+v", p)
		}
	}
	for _, clusters := range []string{"a,b,c,d,e,f,g,h,i", "eu/../us", "eu?x"} {
		w := a.request(t, alice, "GET", podsPath+"?kind=Deployment.apps&namespace=shop&name=web&clusters="+clusters, "")
		if w.Code != http.StatusBadRequest {
			t.Errorf("%q gave %d", clusters, w.Code)
		}
	}
}

func TestPodsNameTheirController(t *testing.T) {
	controller := true
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: "c"},
		{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web", Controller: &controller}}}}
	if owner := rowOfPod("eu", &p).Owner; owner != "CloneSet.apps.kruise.io/web" {
		t.Errorf("the controller is %q", owner)
	}
	p.DeletionTimestamp = &metav1.Time{}
	if owner := rowOfPod("eu", &p).Owner; owner != "" {
		t.Errorf("a pod that is being deleted has the controller %q", owner)
	}
}

// A member may have thousands of pods of a workload. The hub does not decode them again and again.
func TestPodsOfAClusterAreLimited(t *testing.T) {
	a, m := withMembers(t)
	m.more = "next"
	if answer := a.askPods(t, alice, "eu"); !slices.Equal(answer.More, []string{"eu"}) {
		t.Errorf("the answer is %+v", answer)
	}
	// With version 0, the API server ignores the limit.
	if want := []string{"500 "}; !slices.Equal(m.limits, want) {
		t.Errorf("the limits and versions are %q, want %q", m.limits, want)
	}
}

// Ten tabs of one user cost one list in each member, and no watch.
func TestPagesOfAUserShareReadsOfPods(t *testing.T) {
	a, m := withMembers(t)
	var tabs sync.WaitGroup
	for range 10 {
		tabs.Go(func() { a.askPods(t, alice, "eu,us") })
	}
	tabs.Wait()
	if got := m.lists(); !slices.Equal(got, []string{"alice eu", "alice us"}) {
		t.Errorf("the reads are %q", got)
	}
	a.askPods(t, &user.DefaultInfo{Name: "bob"}, "eu") // with rights of its own
	if got := m.lists(); !slices.Equal(got, []string{"alice eu", "alice us", "bob eu"}) {
		t.Errorf("the reads are %q", got)
	}
}

// podsAfter returns a read of one pod that takes some time.
func podsAfter(took time.Duration, reads *int) func(context.Context) (podList, error) {
	return func(context.Context) (podList, error) {
		*reads++
		<-time.After(took)
		return podList{rows: []podRow{{Name: "web-1"}}}, nil
	}
}

// A page asks again 2.5 s after each answer (refreshEvery in pods.tsx), and an answer waits up to 3 s.
func TestSlowMemberShowsItsPodsInTheNextAnswer(t *testing.T) {
	const refreshEvery = 2500 * time.Millisecond
	for took := 500 * time.Millisecond; took <= 8*time.Second; took += 500 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			p, reads := &podReads{known: map[string]*podRead{}}, 0
			for answers := 1; ; answers++ {
				ctx, cancel := context.WithTimeout(t.Context(), podsWait)
				list, err := p.start(ctx, "eu", podsAfter(took, &reads)).wait(ctx)
				cancel()
				if err == nil && len(list.rows) == 1 && reads == 1 {
					return
				}
				if answers == 3 {
					t.Fatalf("after %s: %v, %v, %d reads", took, list, err, reads)
				}
				<-time.After(refreshEvery)
			}
		})
	}
}

func TestReadsOfPodsAreDeleted(t *testing.T) {
	for took, kept := range map[time.Duration]time.Duration{0: freshPodRows, podsWait: freshSlowRows} {
		synctest.Test(t, func(t *testing.T) {
			p, reads := &podReads{known: map[string]*podRead{}}, 0
			_, err := p.start(t.Context(), "eu", podsAfter(took, &reads)).wait(t.Context())
			<-time.After(kept - time.Millisecond)
			synctest.Wait()
			if err != nil || len(p.known) != 1 {
				t.Errorf("%v: %d reads are kept, want 1", err, len(p.known))
			}
			<-time.After(time.Millisecond)
			synctest.Wait()
			if len(p.known) != 0 {
				t.Errorf("%d reads are kept", len(p.known))
			}
		})
	}
}

func TestPanicOfAReadOfPodsIsItsError(t *testing.T) {
	p := &podReads{known: map[string]*podRead{}}
	_, err := p.start(t.Context(), "eu", func(context.Context) (podList, error) { panic("no map") }).wait(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no map") {
		t.Errorf("the error is %v", err)
	}
}

// The hub decides who may look into a member, and the member who may list pods. Each refusal names its right.
func TestPodsNameTheRightThatIsMissing(t *testing.T) {
	a, m := withMembers(t)
	m.refuse = func(_ context.Context, cluster string) error {
		switch cluster {
		case "eu":
			return apierrors.NewForbidden(schema.GroupResource{Group: "cluster.karmada.io", Resource: "clusters"}, "eu",
				errors.New("no"))
		case "us":
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no"))
		}
		return nil
	}
	answer := a.askPods(t, alice, "asia,eu,us")
	if len(answer.Pods) != 1 || answer.Pods[0].Cluster != "asia" || len(answer.Errors) != 2 {
		t.Fatalf("the answer is %+v", answer)
	}
	for i, want := range []string{"you may not get clusters.cluster.karmada.io/proxy",
		"you may not list pods in namespace shop of cluster us"} {
		if got := answer.Errors[i]; got.Missing == nil || got.Message != want {
			t.Errorf("%s: %+v, want %s", got.Cluster, got, want)
		}
	}
}

// A member that does not answer hides nothing of the others.
func TestSlowMemberDoesNotHideOthers(t *testing.T) {
	a, m := withMembers(t)
	a.askPods(t, alice, "us")
	m.refuse = func(ctx context.Context, cluster string) error {
		if cluster == "eu" {
			<-t.Context().Done()
		}
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the answer does not wait longer
	answer := a.podsOf(ctx, alice, "shop", podSelector(selecting("web")), []string{"eu", "us"})
	if len(answer.Pods) != 1 || answer.Pods[0].Cluster != "us" || len(answer.Errors) != 1 ||
		answer.Errors[0] != (podsError{Cluster: "eu", Message: "the cluster has not answered yet"}) {
		t.Errorf("the answer is %+v", answer)
	}
}

// selecting returns an object whose pods have the label app. Its selector is the one of withMembers.
func selecting(app string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
		"spec": map[string]any{"selector": map[string]any{"matchExpressions": []any{map[string]any{"key": "app",
			"operator": "In", "values": []any{app}}}}}}}
}

func TestPodSelectorOfKinds(t *testing.T) {
	object := func(apiVersion, kind string, spec map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "spec": spec}}
		u.SetName("web")
		return u
	}
	labels := map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}}
	for _, c := range []struct {
		obj  *unstructured.Unstructured
		want string
	}{
		{object("apps.kruise.io/v1alpha1", "CloneSet", labels), "app=web"},
		{selecting("web"), "app in (web)"},
		{object("batch/v1", "Job", nil), "job-name=web"},
		{object("v1", "Service", map[string]any{"selector": map[string]any{"app": "web"}}), ""},
		{object("v1", "ConfigMap", nil), ""},
		{object("apps/v1", "Deployment", map[string]any{"selector": map[string]any{}}), ""}, // it would select all pods
	} {
		got := ""
		if s := podSelector(c.obj); s != nil {
			got = s.String()
		}
		if got != c.want {
			t.Errorf("the selector of the %s is %q, want %q", c.obj.GetKind(), got, c.want)
		}
	}
}

// The page shows the state by its shape and colour.
func TestStateOfAPod(t *testing.T) {
	waiting := corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
		Reason: "ImagePullBackOff"}}}
	for name, c := range map[string]struct {
		phase    corev1.PodPhase
		statuses []corev1.ContainerStatus
		want     state.State
	}{
		"all run":             {corev1.PodRunning, []corev1.ContainerStatus{{Ready: true}}, state.Healthy},
		"one is not ready":    {corev1.PodRunning, []corev1.ContainerStatus{{}}, state.Unhealthy},
		"it has ended":        {corev1.PodSucceeded, []corev1.ContainerStatus{{}}, state.Healthy},
		"it failed":           {corev1.PodFailed, nil, state.Unhealthy},
		"it starts":           {corev1.PodPending, nil, state.Progressing},
		"it cannot start":     {corev1.PodPending, []corev1.ContainerStatus{waiting}, state.Unhealthy},
		"its node is unknown": {corev1.PodUnknown, nil, state.Unhealthy},
	} {
		row := rowOfPod("eu", &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web"}}},
			Status: corev1.PodStatus{Phase: c.phase, ContainerStatuses: c.statuses}})
		if row.State != c.want {
			t.Errorf("%s: it is %s", name, row.State)
		}
	}
}
