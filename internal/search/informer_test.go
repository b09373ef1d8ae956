package search_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"

	searchv1alpha1 "github.com/argosy-io/argosy/api/search/v1alpha1"
	"github.com/argosy-io/argosy/internal/search"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// as is a transport that sends requests of a user.
type as struct {
	name string
	next http.RoundTripper
}

func (a as) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Test-User", a.name)
	return a.next.RoundTrip(r)
}

// An informer of Kubernetes, which knows nothing of clusters, follows all members through the global proxy.
func TestInformersWorkThroughTheGlobalProxy(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		f := newFleet(t, 0, "eu", "us")
		f.permit("alice", "eu", "us", "new")
		f.members["eu"].Put(pod("shop", "a"))
		f.registry(searchv1alpha1.ResourceRegistrySpec{})
		c, err := dynamic.NewForConfig(&rest.Config{Host: f.url + search.ProxyPath, Dial: membertest.Dial, QPS: -1,
			WrapTransport: func(rt http.RoundTripper) http.RoundTripper { return as{"alice", rt} }})
		if err != nil {
			t.Fatal(err)
		}
		informer := dynamicinformer.NewDynamicSharedInformerFactory(c, 0).ForResource(
			corev1.SchemeGroupVersion.WithResource("pods")).Informer()
		stop := make(chan struct{})
		t.Cleanup(func() { close(stop) })
		go informer.Run(stop)
		wants := func(when string, want ...string) {
			t.Helper()
			got := []string{}
			if !membertest.Becomes(func() bool {
				got = got[:0]
				for _, o := range informer.GetStore().List() {
					u := o.(*unstructured.Unstructured)
					got = append(got, u.GetAnnotations()[searchv1alpha1.CachedFromAnnotation]+":"+u.GetName()+u.GetLabels()["new"])
				}
				slices.Sort(got)
				return slices.Equal(got, want)
			}) {
				t.Errorf("%s, the informer has %q, want %q", when, got, want)
			}
		}
		wants("at first", "eu:a")
		f.members["us"].Put(pod("shop", "b"))
		f.members["eu"].Put(pod("shop", "a", "new=label"))
		wants("after changes", "eu:alabel", "us:b")
		f.members["us"].Remove(membertest.Pod, "shop", "b")
		wants("after a deletion", "eu:alabel")
		f.join("new")
		f.members["new"].Put(pod("shop", "c"))
		wants("after a cluster joined", "eu:alabel", "new:c")
		// The watch ends and resumes, or lists again, without a loop.
		asked := func() int {
			f.mu.Lock()
			defer f.mu.Unlock()
			return len(f.asked)
		}
		before := asked()
		membertest.Advance(40 * time.Minute)
		f.members["new"].Remove(membertest.Pod, "shop", "c")
		wants("after 40 minutes", "eu:alabel")
		if rate := float64(asked()-before) / 40; rate > 3*6*3 { // 3 clusters, a question at most every 10 s, 3 verbs
			t.Errorf("the informer causes %.0f questions a minute", rate)
		}
	})
}
