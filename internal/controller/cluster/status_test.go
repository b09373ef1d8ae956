package cluster

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	remedyv1alpha1 "github.com/argosy-io/argosy/api/remedy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

func hub(objs ...client.Object) client.WithWatch {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, clusterv1alpha1.AddToScheme, policyv1alpha1.AddToScheme, workv1alpha1.AddToScheme,
		workv1alpha2.AddToScheme, remedyv1alpha1.AddToScheme, rbacv1.AddToScheme, coordinationv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).
		WithStatusSubresource(&clusterv1alpha1.Cluster{}, &workv1alpha1.Work{}).Build()
}

// fleet is a collector with its hub and a fake clock.
type fleet struct {
	*collector
	t      *testing.T
	hub    client.Client
	clock  *clocktesting.FakeClock
	streak map[string]*membership.Streak
}

func newFleet(t *testing.T, objs ...client.Object) *fleet {
	c := hub(objs...)
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	members := member.New(member.Options{Clusters: c, Secrets: c, Dial: membertest.Dial, Timeout: 2 * time.Second,
		Limits: member.Limits{Answer: 1 << 20}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = members.Start(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	o := Options{Members: members, Clock: clock}.withDefaults()
	return &fleet{newCollector(c, commit.Events{EventRecorder: record.NewFakeRecorder(100)},
		commit.Events{EventRecorder: record.NewFakeRecorder(100)}, o), t, c, clock, map[string]*membership.Streak{}}
}

// look probes a member once and returns its Cluster and the delay until the next probe.
func (f *fleet) look(name string) (*clusterv1alpha1.Cluster, time.Duration) {
	f.t.Helper()
	if f.streak[name] == nil {
		f.streak[name] = &membership.Streak{}
	}
	wait, _, err := f.lookAt(f.t.Context(), name, f.streak[name])
	if err != nil {
		f.t.Fatal(err)
	}
	return f.cluster(name), wait
}

func (f *fleet) cluster(name string) *clusterv1alpha1.Cluster {
	f.t.Helper()
	c := &clusterv1alpha1.Cluster{}
	if err := f.hub.Get(f.t.Context(), types.NamespacedName{Name: name}, c); err != nil {
		f.t.Fatal(err)
	}
	return c
}

// expect checks status, reason and parts of the message of the condition Ready.
func expect(t *testing.T, c *clusterv1alpha1.Cluster, status metav1.ConditionStatus, reason string, texts ...string) {
	t.Helper()
	ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	if ready == nil {
		t.Fatalf("cluster %s has no condition Ready", c.Name)
	}
	if ready.Status != status || ready.Reason != reason {
		t.Fatalf("cluster %s is Ready=%s (%s: %s), want %s (%s)", c.Name, ready.Status, ready.Reason, ready.Message, status,
			reason)
	}
	for _, text := range texts {
		if !strings.Contains(ready.Message, text) {
			t.Errorf("message %q does not contain %q", ready.Message, text)
		}
	}
}

func healthyMember(t *testing.T) *membertest.Server {
	s := membertest.NewInMemory(t)
	s.Put(&corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"),
				corev1.ResourcePods: resource.MustParse("110")},
		},
	})
	return s
}

func TestFirstProbeSetsStatusAndSecondWritesNothing(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		s := healthyMember(t)
		f := newFleet(t, s.Cluster("m1"), s.Secret("m1"))
		c, wait := f.look("m1")
		expect(t, c, metav1.ConditionTrue, "ClusterReady")
		if wait != 10*time.Second {
			t.Errorf("the next look is due in %v, want 10s", wait)
		}
		if !meta.IsStatusConditionTrue(c.Status.Conditions, "CompleteAPIEnablements") {
			t.Errorf("conditions are %v, want CompleteAPIEnablements", c.Status.Conditions)
		}
		if c.Status.KubernetesVersion != "v1.36.3" || !c.Status.Serves("v1", "ConfigMap") {
			t.Errorf("version %q, kinds %v", c.Status.KubernetesVersion, c.Status.APIEnablements)
		}
		if n, r := c.Status.NodeSummary, c.Status.ResourceSummary; n == nil || n.ReadyNum != 1 || r == nil ||
			r.Allocatable.Cpu().String() != "4" {
			t.Fatalf("summaries are %v and %v", n, r)
		}
		for range 3 {
			f.clock.Step(10 * time.Second)
			if again, _ := f.look("m1"); again.ResourceVersion != c.ResourceVersion {
				t.Fatal("a look at an unchanged member wrote")
			}
		}
		// A hub that restarts knows nothing of the streak and nothing of the pods yet.
		second := newFleet(t)
		second.client, second.hub = f.hub, f.hub
		second.Members = member.New(member.Options{Clusters: f.hub, Secrets: f.hub, Dial: membertest.Dial})
		t.Cleanup(func() { second.Members.Forget("m1") })
		second.clock.Step(time.Hour)
		if again, _ := second.look("m1"); again.ResourceVersion != c.ResourceVersion {
			t.Error("a second start wrote the status of an unchanged member")
		}
	})
}

// Whoever may read Clusters sees a brake before it keeps the hub from a change.
func TestBrakesAreInTheStatus(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		s := healthyMember(t)
		f := newFleet(t, s.Cluster("m1"), s.Secret("m1"))
		set := func(name, value string) {
			ns := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
				ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{wellknown.HandsOffAnnotation: value}}}
			s.Put(ns)
		}
		expect := func(want ...string) {
			t.Helper()
			f.look("m1") // starts the watch
			synctest.Wait()
			if c, _ := f.look("m1"); !reflect.DeepEqual(c.Status.Brakes, want) {
				t.Errorf("the brakes are %q, want %q", c.Status.Brakes, want)
			}
		}
		expect()
		set("shop", "true")
		set("bank", "false")
		expect("shop")
		set("kube-system", "true")
		expect("kube-system")
		set("kube-system", "")
		set("shop", "")
		expect()
	})
}

func TestReadyChangesAfterThresholds(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		s := healthyMember(t)
		f := newFleet(t, s.Cluster("m1"), s.Secret("m1"))
		before, _ := f.look("m1")

		s.Down(true)
		f.clock.Step(10 * time.Second)
		c, wait := f.look("m1")
		expect(t, c, metav1.ConditionTrue, "ClusterReady")
		if wait > 2*time.Second {
			t.Errorf("a failing member is looked at again in %v; its recovery would go unnoticed", wait)
		}
		f.clock.Step(29 * time.Second)
		if c, wait = f.look("m1"); wait != time.Second {
			t.Errorf("one second before the threshold the next look is due in %v", wait)
		}
		expect(t, c, metav1.ConditionTrue, "ClusterReady")
		f.clock.Step(time.Second)
		c, _ = f.look("m1")
		expect(t, c, metav1.ConditionFalse, "ClusterNotReachable", "cluster is not reachable", "spec.apiEndpoint")
		if len(c.Status.APIEnablements) != len(before.Status.APIEnablements) || c.Status.ResourceSummary == nil {
			t.Error("what was known of the member is lost")
		}
		for range 5 {
			f.clock.Step(10 * time.Second)
			if again, _ := f.look("m1"); again.ResourceVersion != c.ResourceVersion {
				t.Error("a member that stays down costs writes")
			}
		}

		s.Down(false)
		c, _ = f.look("m1")
		expect(t, c, metav1.ConditionFalse, "ClusterNotReachable")
		f.clock.Step(30 * time.Second)
		c, _ = f.look("m1")
		expect(t, c, metav1.ConditionTrue, "ClusterReady")
	})
}

func TestReadyMessageExplainsTheProblem(t *testing.T) {
	for name, tc := range map[string]struct {
		trouble func(s *membertest.Server, cluster *clusterv1alpha1.Cluster, secret *corev1.Secret)
		reason  string
		texts   []string
	}{
		"refused credentials": {
			func(s *membertest.Server, _ *clusterv1alpha1.Cluster, _ *corev1.Secret) { s.Take("another") },
			"ClusterNotReady", []string{"401 Unauthorized", "join it again"},
		},
		"a secret without a token": {
			func(_ *membertest.Server, _ *clusterv1alpha1.Cluster, secret *corev1.Secret) { secret.Data = nil },
			"StatusCollectionFailed", []string{"secret karmada-cluster/m1: missing key token", "join the cluster again"},
		},
		"a secret that is not there": {
			func(_ *membertest.Server, c *clusterv1alpha1.Cluster, _ *corev1.Secret) {
				c.Spec.SecretRef.Name = "lost"
			},
			"StatusCollectionFailed", []string{"karmada-cluster/lost"},
		},
		"no secret at all": {
			func(_ *membertest.Server, c *clusterv1alpha1.Cluster, _ *corev1.Secret) { c.Spec.SecretRef = nil },
			"StatusCollectionFailed", []string{"spec.secretRef is empty"},
		},
		"connection refused": {
			func(_ *membertest.Server, c *clusterv1alpha1.Cluster, _ *corev1.Secret) {
				c.Spec.APIEndpoint = "http://127.0.0.1:1"
			},
			"ClusterNotReachable", []string{"127.0.0.1:1", "connection refused"},
		},
		"a sick API server": {
			func(s *membertest.Server, _ *clusterv1alpha1.Cluster, _ *corev1.Secret) {
				s.Behave(func(w http.ResponseWriter, r *http.Request) bool {
					if r.URL.Path != "/readyz" {
						return false
					}
					w.WriteHeader(500)
					fmt.Fprint(w, "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed")
					return true
				})
			},
			"ClusterNotReady", []string{"(500)", "etcd failed"},
		},
		"a healthy one that hides its version": {
			func(s *membertest.Server, _ *clusterv1alpha1.Cluster, _ *corev1.Secret) {
				s.Behave(func(w http.ResponseWriter, r *http.Request) bool {
					if r.URL.Path != "/version" {
						return false
					}
					w.WriteHeader(503)
					return true
				})
			},
			"StatusCollectionFailed", []string{`read the version of cluster "m1"`, "503"},
		},
		"one whose version is a book": {
			func(s *membertest.Server, _ *clusterv1alpha1.Cluster, _ *corev1.Secret) {
				s.Behave(func(w http.ResponseWriter, r *http.Request) bool {
					if r.URL.Path != "/version" {
						return false
					}
					fmt.Fprintf(w, `{"gitVersion":"v1%s"}`, strings.Repeat("0", 1000))
					return true
				})
			},
			"StatusCollectionFailed", []string{`read the version of cluster "m1"`, "1002 characters"},
		},
		"one that answers more than the hub reads": {
			func(s *membertest.Server, _ *clusterv1alpha1.Cluster, _ *corev1.Secret) {
				s.Behave(func(w http.ResponseWriter, r *http.Request) bool {
					if r.URL.Path != "/apis" {
						return false
					}
					w.Header().Set("Content-Type", discovery.AcceptV2)
					for spaces := []byte(strings.Repeat(" ", 1<<16)); ; {
						if _, err := w.Write(spaces); err != nil {
							return true
						}
					}
				})
			},
			"StatusCollectionFailed", []string{"its response to GET /apis is larger than 1Mi", "raise --member-answer-limit"},
		},
		"one whose nodes name thousands of resources": {
			func(s *membertest.Server, _ *clusterv1alpha1.Cluster, _ *corev1.Secret) {
				many := corev1.ResourceList{}
				for i := range 2000 {
					many[corev1.ResourceName(fmt.Sprint("example.com/r", i))] = resource.MustParse("1")
				}
				s.Put(&corev1.Node{
					TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: "odd"},
					Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady,
						Status: corev1.ConditionTrue}}, Allocatable: many},
				})
			},
			"StatusCollectionFailed", []string{"its nodes and pods have 2002 resource names", "check what adds"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			controllertest.Run(t, func(t *testing.T) {
				s := healthyMember(t)
				cluster, secret := s.Cluster("m1"), s.Secret("m1")
				tc.trouble(s, cluster, secret)
				f := newFleet(t, cluster, secret)
				c, _ := f.look("m1")
				expect(t, c, metav1.ConditionFalse, tc.reason, tc.texts...)
			})
		})
	}
}

func TestUntrustedCertificateIsRecordedOnTheCluster(t *testing.T) {
	api := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	api.Config.ErrorLog = log.New(io.Discard, "", 0)
	api.StartTLS()
	defer api.Close()
	cluster, secret := membertest.New(t).Cluster("m1"), membertest.New(t).Secret("m1")
	cluster.Spec.APIEndpoint = api.URL
	f := newFleet(t, cluster, secret)
	f.Members = member.New(member.Options{Clusters: f.hub, Secrets: f.hub}) // over the network
	t.Cleanup(func() { f.Members.Forget("m1") })

	c, _ := f.look("m1")
	expect(t, c, metav1.ConditionFalse, "ClusterNotReachable", "x509")
	if !membership.Untrusted(c) {
		t.Errorf("the conditions are %+v, want CertificateUntrusted", c.Status.Conditions)
	}
	f.clock.Step(time.Minute)
	if again, _ := f.look("m1"); again.ResourceVersion != c.ResourceVersion {
		t.Error("a certificate that stays untrusted costs writes")
	}

	secret.Data["caBundle"] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	if err := f.hub.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	f.clock.Step(time.Minute)
	c, _ = f.look("m1")
	expect(t, c, metav1.ConditionFalse, "ClusterNotReady", "401")
	if membership.Untrusted(c) {
		t.Errorf("the certificate is trusted, and the conditions are %+v", c.Status.Conditions)
	}
}

// A member that sends slowly is cut off and may be overloaded. It stays Ready, and its known kinds stay, as with an
// unavailable APIService.
func TestSlowDiscoveryKeepsKnownKinds(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		s := healthyMember(t)
		f := newFleet(t, s.Cluster("m1"), s.Secret("m1"))
		before, _ := f.look("m1")
		s.Behave(func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/apis" {
				return false
			}
			w.Header().Set("Content-Type", discovery.AcceptV2)
			fmt.Fprint(w, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[`)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return true
		})
		f.clock.Step(30 * time.Second)
		c, _ := f.look("m1")
		expect(t, c, metav1.ConditionTrue, "ClusterReady")
		complete := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionCompleteAPIEnablements)
		if complete == nil || complete.Status == metav1.ConditionTrue || !strings.Contains(complete.Message, "GET /apis") {
			t.Errorf("the condition CompleteAPIEnablements is %+v, want one that is not True and tells of GET /apis", complete)
		}
		if !reflect.DeepEqual(c.Status.APIEnablements, before.Status.APIEnablements) || len(c.Status.APIEnablements) == 0 {
			t.Errorf("the cluster serves %v, before it served %v", c.Status.APIEnablements, before.Status.APIEnablements)
		}
	})
}

func TestHealthzIsUsedWithoutReadyz(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		s := healthyMember(t)
		s.Behave(func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/readyz" {
				http.NotFound(w, r)
			}
			return r.URL.Path == "/readyz"
		})
		f := newFleet(t, s.Cluster("m1"), s.Secret("m1"))
		c, _ := f.look("m1")
		expect(t, c, metav1.ConditionTrue, "ClusterReady")
	})
}

func TestNewCredentialsAreUsedAtTheNextProbe(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		s := healthyMember(t)
		f := newFleet(t, s.Cluster("m1"), s.Secret("m1"))
		f.look("m1")
		bad := s.Secret("m1")
		bad.Data["token"] = []byte("stolen")
		if err := f.hub.Update(t.Context(), bad); err != nil {
			t.Fatal(err)
		}
		f.look("m1")
		f.clock.Step(30 * time.Second)
		c, _ := f.look("m1")
		expect(t, c, metav1.ConditionFalse, "ClusterNotReady", "401")
	})
}

func TestConnectionEndsWhenAClusterMovesToPullMode(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		s := healthyMember(t)
		f := newFleet(t, s.Cluster("m1"), s.Secret("m1"))
		f.look("m1")
		if f.Members.Known("m1") == nil {
			t.Fatal("the hub is not connected")
		}
		c := f.cluster("m1")
		c.Spec.SyncMode = clusterv1alpha1.Pull
		if err := f.hub.Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		close(f.started)
		if _, err := f.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(c)}); err != nil {
			t.Fatal(err)
		}
		if f.Members.Known("m1") != nil {
			t.Error("the hub is still connected to the member")
		}
	})
}

// TestSlowMemberDelaysOnlyItself runs the real loops: one member hangs while another must become ready.
func TestSlowMemberDelaysOnlyItself(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		good, slow := healthyMember(t), healthyMember(t)
		release := make(chan struct{})
		asked := make(chan struct{}, 100)
		var givenUp atomic.Bool
		slow.Behave(func(_ http.ResponseWriter, r *http.Request) bool {
			asked <- struct{}{}
			select {
			case <-release:
			case <-r.Context().Done():
				givenUp.Store(true)
			}
			return true
		})
		t.Cleanup(func() { close(release) })
		f := newFleet(t, slow.Cluster("slow"), slow.Secret("slow"), good.Cluster("good"), good.Secret("good"))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = f.Start(ctx) }()
		t.Cleanup(func() { cancel(); <-ended })

		reconcileNow := func(name string) {
			if _, err := f.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}); err != nil {
				t.Fatal(err)
			}
		}
		reconcileNow("slow")
		<-asked
		reconcileNow("good")
		synctest.Wait()
		if givenUp.Load() || !meta.IsStatusConditionTrue(f.cluster("good").Status.Conditions, "Ready") {
			t.Fatal("while a member hangs, another did not become ready")
		}
		// The clock stands still: only a cause of its own makes a member looked at again.
		probes := len(good.Requests("GET /readyz"))
		f.kick("good")
		synctest.Wait()
		if len(good.Requests("GET /readyz")) == probes {
			t.Fatal("a member that answers again was not looked at")
		}
		// A member that left is not looked at any more.
		if err := f.hub.Delete(ctx, f.cluster("good")); err != nil {
			t.Fatal(err)
		}
		reconcileNow("good")
		if _, known := f.looks["good"]; known {
			t.Error("a member that left is still looked at")
		}
	})
}
