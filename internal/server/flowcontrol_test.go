package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/filters"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/member/acting"
	"github.com/argosy-io/argosy/internal/member/membertest"
	"github.com/argosy-io/argosy/internal/member/proxy"
)

func TestARequestIntoAMemberIsAsLongAsTheSameHere(t *testing.T) {
	infos := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	check := longRunning(filters.BasicLongRunningRequestCheck(sets.NewString("watch", "proxy"), sets.NewString("attach", "exec", "proxy", "log", "portforward")))
	for path, want := range map[string]bool{
		"/api/v1/pods":                                false,
		"/api/v1/pods?watch=true":                     true,
		"/api/v1/namespaces/a/pods/b":                 false,
		"/api/v1/namespaces/a/pods/b/log?follow=true": true,
		"/api/v1/namespaces/a/pods/b/exec?command=sh": true,
		"/api/v1/watch/pods":                          true,
		"/metrics":                                    false,
		"":                                            false,
		"?path=/api/v1/pods":                          false,
		"?path=api/v1/pods&watch=1":                   true,
		"?path=/api/v1/namespaces/a/pods/b/portforward": true,
	} {
		r, err := http.NewRequest(http.MethodGet, "https://hub"+proxy.Path("m1")+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		info, err := infos.NewRequestInfo(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := check(r, info); got != want {
			t.Errorf("%q: %v, want %v", path, got, want)
		}
	}
	r, _ := http.NewRequest(http.MethodGet, "https://hub"+proxy.Path("m1")+"/api/v1/pods", nil)
	r.Header.Set("Upgrade", "websocket")
	info, err := infos.NewRequestInfo(r)
	if err != nil {
		t.Fatal(err)
	}
	if !check(r, info) {
		t.Error("an upgraded connection is not long")
	}
}

// tenant is somebody with a connection of his own, who is told what the server answers as it is: clients try a refusal again by themselves.
type tenant struct {
	name, url string
	http      *http.Client
}

func newTenant(t *testing.T, config *rest.Config, name string) *tenant {
	t.Helper()
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return &tenant{name: name, url: config.Host, http: &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true,
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}, MaxIdleConnsPerHost: 1000}}}
}

// get is the code of the answer.
func (u *tenant) get(ctx context.Context, path string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.url+path, nil)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Impersonate-User", u.name)
	resp, err := u.http.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, nil
}

func p99(took []time.Duration) time.Duration {
	slices.Sort(took)
	return took[len(took)*99/100]
}

// One tenant floods a hub with few places; the other's requests are all served, and refusals are the flooder's alone.
func TestOneTenantsFloodIsNotTheOthers(t *testing.T) {
	c := testConfig(t)
	c.KubeAPIServer.Args = []string{"max-requests-inflight=20", "max-mutating-requests-inflight=10"}
	h, _ := start(t, c, Parts{Handler: proxied})
	admin, config := adminClient(t, AdminKubeconfig(c.DataDir))
	for _, name := range []string{"alice", "bob"} {
		if _, err := admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	alice, bob := newTenant(t, config, "alice"), newTenant(t, config, "bob")
	const path = "/api/v1/configmaps"
	for i := range 200 { // so that a list is some work
		if _, err := admin.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", i)},
			Data: map[string]string{"text": strings.Repeat("x", 1000)}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the tenants' rights", func() string {
		for _, u := range []*tenant{alice, bob} {
			if code, err := u.get(t.Context(), path); code != http.StatusOK {
				return fmt.Sprint(u.name, code, err)
			}
		}
		return ""
	})
	measure := func(what string) {
		t.Helper()
		var took []time.Duration
		for range 100 {
			begin := time.Now()
			code, err := bob.get(t.Context(), path)
			if code != http.StatusOK {
				t.Fatalf("%s bob gets %d, %v", what, code, err)
			}
			took = append(took, time.Since(begin))
		}
		t.Logf("%s bob's p99 is %v", what, p99(took).Round(time.Millisecond))
	}
	measure("alone")

	// 500 requests of alice at once, until bob has been served: her flow has some 300 places in queues.
	flood, calm := context.WithCancel(t.Context())
	defer calm()
	var served, refused, other atomic.Int64
	var flooding sync.WaitGroup
	for range 500 {
		flooding.Go(func() {
			for flood.Err() == nil {
				code, err := alice.get(flood, path)
				switch {
				case code == http.StatusOK:
					served.Add(1)
				case code == http.StatusTooManyRequests:
					refused.Add(1)
					select { // sooner than Retry-After says
					case <-time.After(500 * time.Millisecond):
					case <-flood.Done():
					}
				case flood.Err() == nil:
					other.Add(1)
					t.Logf("alice gets %d, %v", code, err)
				}
			}
		})
	}
	eventually(t, "alice's flood to be refused", func() string {
		if refused.Load() == 0 {
			return fmt.Sprintf("%d served, none refused", served.Load())
		}
		return ""
	})
	measure("in alice's flood")
	// The hub's administrator and its own loops are in no queue.
	for range 20 {
		if _, err := admin.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
			t.Errorf("the administrator gets %v", err)
		}
	}
	if _, err := kubernetes.NewForConfigOrDie(h.Config()).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Errorf("the hub itself gets %v", err)
	}
	calm()
	flooding.Wait()
	t.Logf("alice: %d served, %d refused, %d others", served.Load(), refused.Load(), other.Load())

	t.Run("a member that does not answer holds only requests into members", func(t *testing.T) {
		member := membertest.New(t)
		release := make(chan struct{})
		var waiting atomic.Int64
		member.Behave(func(_ http.ResponseWriter, r *http.Request) bool {
			waiting.Add(1)
			defer waiting.Add(-1)
			select {
			case <-release:
			case <-r.Context().Done():
			}
			return false
		})
		joinMember(t, config, member, "m1")
		codes := make(chan int, 60)
		for range 60 {
			go func() {
				code, _ := alice.get(t.Context(), proxy.Path("m1")+"/api/v1/nodes")
				codes <- code
			}()
		}
		eventually(t, "requests that wait for the member", func() string {
			if waiting.Load() == 0 {
				return "none"
			}
			return ""
		})
		if n := waiting.Load(); n >= 60 {
			t.Errorf("%d requests wait for the member at once: they are in no queue", n)
		}
		measure("while a member keeps 60 requests of alice waiting,")
		close(release)
		got := map[int]int{}
		for range 60 {
			got[<-codes]++
		}
		t.Logf("alice's requests into the member: %v", got)
	})
	t.Run("levels and schemas that somebody changed are his", func(t *testing.T) {
		levels := admin.FlowcontrolV1().PriorityLevelConfigurations()
		mine, err := levels.Get(t.Context(), membersLevel, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		*mine.Spec.Limited.NominalConcurrencyShares = 7
		if _, err := levels.Update(t.Context(), mine, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		schemas := admin.FlowcontrolV1().FlowSchemas()
		changed, err := schemas.Get(t.Context(), agentsLevel, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		changed.Spec.MatchingPrecedence = 5000
		if _, err := schemas.Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		// One that an older hub made, and nobody changed, is brought up to date.
		older, err := schemas.Get(t.Context(), membersLevel, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		older.Spec.MatchingPrecedence = 601
		older.Annotations[specGeneration] = fmt.Sprint(older.Generation + 1)
		if _, err := schemas.Update(t.Context(), older, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := h.startFlowControl(t.Context()); err != nil {
			t.Fatal(err)
		}
		if older, err = schemas.Get(t.Context(), membersLevel, metav1.GetOptions{}); err != nil || older.Spec.MatchingPrecedence != 600 {
			t.Errorf("the schema of an older hub has %v, %v", older.Spec, err)
		} else if older.Annotations[specGeneration] != fmt.Sprint(older.Generation) {
			t.Errorf("a schema of generation %d is taken for a user's: %v", older.Generation, older.Annotations)
		}
		if mine, err = levels.Get(t.Context(), membersLevel, metav1.GetOptions{}); err != nil || *mine.Spec.Limited.NominalConcurrencyShares != 7 {
			t.Errorf("the level that was changed has %v, %v", mine.Spec, err)
		}
		if changed, err = schemas.Get(t.Context(), agentsLevel, metav1.GetOptions{}); err != nil || changed.Spec.MatchingPrecedence != 5000 {
			t.Errorf("the schema that was changed has %v, %v", changed.Spec, err)
		}
		var dangling []string
		all, err := schemas.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all.Items {
			for _, c := range s.Status.Conditions {
				if c.Type == flowcontrolv1.FlowSchemaConditionDangling && c.Status == flowcontrolv1.ConditionTrue {
					dangling = append(dangling, s.Name)
				}
			}
		}
		if len(dangling) > 0 {
			t.Errorf("schemas without a level: %v", dangling)
		}
	})
}

// proxied serves members.
func proxied(d Deps, next http.Handler) http.Handler {
	return proxy.Handler(proxy.Options{Hub: reader(d.Config), Grants: acting.Follow(d.Config, d.Done)}, next)
}

// joinMember has the hub know a member.
func joinMember(t *testing.T, config *rest.Config, member *membertest.Server, name string) {
	t.Helper()
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	cluster := member.Cluster(name)
	cluster.TypeMeta = metav1.TypeMeta{APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: "Cluster"}
	cluster.UID = ""
	cluster.Spec.ImpersonatorSecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: clusterNamespace, Name: name + "-impersonator"}
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(cluster)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Resource(clusterv1alpha1.GroupVersion.WithResource("clusters")).Create(t.Context(), &unstructured.Unstructured{Object: u}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	secrets := d.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(clusterNamespace)
	for _, s := range []*corev1.Secret{member.Secret(name), {ObjectMeta: metav1.ObjectMeta{Name: name + "-impersonator"}, Data: map[string][]byte{"token": []byte(membertest.Token)}}} {
		s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := secrets.Create(t.Context(), &unstructured.Unstructured{Object: u}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
