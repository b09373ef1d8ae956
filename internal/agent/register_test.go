package agent

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// configOf returns a client configuration of a server in memory.
func configOf(s *membertest.Server) *rest.Config {
	return &rest.Config{Host: s.URL, BearerToken: membertest.Token, Dial: membertest.Dial}
}

// registeredAs returns the Cluster eu of a member with an ID.
func registeredAs(id string, mode clusterv1alpha1.ClusterSyncMode) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{TypeMeta: metav1.TypeMeta{APIVersion: "cluster.karmada.io/v1alpha1", Kind: "Cluster"},
		ObjectMeta: metav1.ObjectMeta{Name: "eu"}, Spec: clusterv1alpha1.ClusterSpec{ID: id, SyncMode: mode}}
}

func TestRegisteredClustersAreRefusedUnlessTheHubJudgesThat(t *testing.T) {
	clusters := membertest.Kind{GroupVersionKind: clusterv1alpha1.GroupVersion.WithKind("Cluster"), Plural: "clusters"}
	// Only a hub of Argosy serves it.
	releases := membertest.Kind{GroupVersionKind: releasev1alpha1.GroupVersion.WithKind("Release"), Plural: "releases",
		Namespaced: true}
	for story, tc := range map[string]struct {
		serves []membertest.Kind
		id     string // of the registered cluster; empty for none
		exists bool
		want   string // in the error; empty for none
	}{
		"a new cluster, to a hub of Karmada":   {[]membertest.Kind{clusters}, "", false, ""},
		"a known cluster, to a hub of Karmada": {[]membertest.Kind{clusters}, "this", false, `"eu" is registered already`},
		"a new cluster":                        {[]membertest.Kind{clusters, releases}, "", false, ""},
		"a known cluster":                      {[]membertest.Kind{clusters, releases}, "this", true, ""},
		"the name of another cluster": {[]membertest.Kind{clusters, releases}, "other", false,
			"another cluster (id other"},
	} {
		hub := membertest.NewInMemory(t, tc.serves...)
		if tc.id != "" {
			hub.Put(registeredAs(tc.id, clusterv1alpha1.Pull))
		}
		r := &Registration{Cluster: "eu", Spec: clusterv1alpha1.ClusterSpec{ID: "this"}}
		exists, err := r.isRegistered(t.Context(), configOf(hub))
		if exists != tc.exists || (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: exists=%t (%v), want %t and an error with %q", story, exists, err, tc.exists, tc.want)
		}
	}
}

func TestAgentEndsIfItsClusterIsNotOnTheHub(t *testing.T) {
	s, err := scheme()
	if err != nil {
		t.Fatal(err)
	}
	member := membertest.NewInMemory(t)
	id := string(member.Put(&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}).GetUID())
	forbidden := apierrors.NewForbidden(clusterv1alpha1.Resource("clusters"), "eu", errors.New("no"))
	managed := registeredAs("", clusterv1alpha1.Pull)
	managed.Annotations = map[string]string{wellknown.DerivedFromAnnotation: "ManagedCluster"}
	for story, tc := range map[string]struct {
		cluster *clusterv1alpha1.Cluster // on the hub
		refusal error                    // of the hub
		want    string                   // in the error; empty for none
	}{
		"its cluster":                   {registeredAs(id, clusterv1alpha1.Pull), nil, ""},
		"a klusterlet acts in it":       {managed, nil, ""},
		"no cluster":                    {nil, nil, "register it with `argosy register`"},
		"no permission":                 {nil, forbidden, "register it with `argosy register`"},
		"a certificate of another hub":  {nil, apierrors.NewUnauthorized("who"), "rejects the certificate of the agent"},
		"a cluster in Push mode":        {registeredAs(id, clusterv1alpha1.Push), nil, "is in Push mode on the hub"},
		"another cluster with its name": {registeredAs("other", clusterv1alpha1.Pull), nil, "is another cluster (id other"},
	} {
		builder := fake.NewClientBuilder().WithScheme(s).WithObjects(&corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "hub"}})
		if tc.cluster != nil {
			builder.WithObjects(tc.cluster)
		}
		hub := builder.WithInterceptorFuncs(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch,
			key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
			if tc.refusal != nil {
				return tc.refusal
			}
			return c.Get(ctx, key, obj, o...)
		}}).Build()
		self, beside, err := waitForHub(t.Context(), hub, Options{Cluster: "eu", Member: configOf(member)})
		switch {
		case tc.want == "" && (err != nil || self.Hub != "hub" || beside != (story == "a klusterlet acts in it")):
			t.Errorf("%s: the hub is %q, a klusterlet acts: %t (%v)", story, self.Hub, beside, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: error %v, want %q", story, err, tc.want)
		}
	}
}
