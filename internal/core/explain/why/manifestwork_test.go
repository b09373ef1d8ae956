package why_test

import (
	"bytes"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/explain/why"
	"github.com/argosy-io/argosy/internal/core/source/ocm"
)

func TestAManifestWorkIsExplainedObjectByObject(t *testing.T) {
	mw := &ocmv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "eu", Name: "shop", Generation: 1}}
	parse(t, `{workload: {manifests: [{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}}, {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: nowhere}},
		{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop}}]}}`, &mw.Spec)
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}
	c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True"}}
	condition := func(kind string, status metav1.ConditionStatus, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Message: message, ObservedGeneration: 1}
	}
	items := ocm.Items(mw, c)
	mw.Status.ResourceStatus.Manifests = []ocmv1.ManifestCondition{
		{ResourceMeta: items[0].Meta, Conditions: []metav1.Condition{condition("Applied", "True", ""),
			condition("Available", "True", ""),
			condition("StatusFeedbackSynced", "False", "Sync status feedback failed with error no path")}},
		{ResourceMeta: items[1].Meta, Conditions: []metav1.Condition{condition("Applied", "False",
			ocmv1.MessageManifestNotApply+"no such namespace"), condition("Available", "False", "")}},
	}
	refused := workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Name: items[1].WorkName("shop", nil),
		Annotations: map[string]string{"argosy.io/manifest-work": "shop"}}}
	refused.Status.Conditions = []metav1.Condition{condition(workv1alpha1.WorkFailure, "True", "no such namespace")}
	work := workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Name: items[0].WorkName("shop", nil),
		Annotations: map[string]string{"argosy.io/manifest-work": "shop"}}}
	work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Health: workv1alpha1.ResourceHealthy}}
	written := func(clusters ...*clusterv1alpha1.Cluster) string {
		var b bytes.Buffer
		if err := why.ExplainManifestWork(why.ManifestWorkFacts{ManifestWork: mw, Clusters: clusters,
			Works: []workv1alpha1.Work{work, refused}}).Write(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if got, want := written(c), `ManifestWork eu/shop: 1 problem, 1 warning, 1 waiting, 1 of 3 objects applied in cluster eu

✗ ConfigMap nowhere/c is not applied: no such namespace
  → fix what the message names; the hub retries by itself

! Deployment shop/web: Sync status feedback failed with error no path
  → correct its feedbackRules

… 1 object on the way: the cluster has not answered yet

Objects
  OBJECT               APPLIED  AVAILABLE  HEALTH   WORK            WHY
  Deployment shop/web  True     True       Healthy  `+work.Name+`  -
  ConfigMap nowhere/c  False    False      -        `+refused.Name+`    no such namespace
  Secret shop/s        -        -          -        -               -
`; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "ClusterNotReachable"}}
	if got := written(c); !strings.Contains(got, "Deployment shop/web  True     True       Unknown") {
		t.Errorf("what a cluster said last that is not ready is said of now:\n%s", got)
	}
	mw.Namespace = "us"
	if got, want := written(c), `ManifestWork us/shop: 2 problems, 1 warning, 1 of 3 objects applied in cluster us

✗ no cluster "us" has joined, which the namespace names
  → the fleet has eu: if the namespace is misspelt, move it to eu, or `+"`argosy join us --cluster-kubeconfig FILE`\n"; len(got) < len(want) || got[:len(want)] != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAManifestThatIsNotAppliedHasARemedyForItsReason(t *testing.T) {
	c := cluster("eu")
	for reason, want := range map[string]string{
		workv1alpha1.ReasonRejected:      "change what the member refuses in spec.workload.manifests[0]",
		workv1alpha1.ReasonKindNotServed: "change what the member refuses in spec.workload.manifests[0]",
		workv1alpha1.ReasonForbidden:     "change what admission there denies",
		workv1alpha1.ReasonNamespaceMissing: "create it with a kubeconfig of cluster eu: `kubectl create namespace shop " +
			"--kubeconfig FILE`, or add the namespace to the manifests: `kubectl edit manifestworks shop -n eu`",
		workv1alpha1.ReasonUnauthorized:         "the credentials of the hub are not valid there: join cluster eu again",
		workv1alpha1.ReasonUnreachable:          "check that its API server is running and reachable",
		workv1alpha1.ReasonTimeout:              "check that the API server of cluster eu is running",
		workv1alpha1.ReasonCertificateUntrusted: "join the cluster again",
		workv1alpha1.ReasonServerError:          "check the API server of cluster eu and the webhook",
		workv1alpha1.ReasonObjectUnmanaged:      "remove the object from this ManifestWork, or from the owner",
		workv1alpha1.ReasonObjectOfAnother:      "remove the object from this ManifestWork, or from the owner",
		workv1alpha1.ReasonHandsOff:             "remove the annotation",
		workv1alpha1.ReasonRestored:             "`argosy restore status` shows",
		workv1alpha1.ReasonNotSent:              "fix what the message names",
		"invalid":                               "correct spec.workload.manifests[0]",
		"not served":                            "install the CustomResourceDefinition or API of Train.example.com in cluster eu",
	} {
		mw := &ocmv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "eu", Name: "shop", Generation: 1}}
		manifest := "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}}"
		switch reason {
		case "invalid":
			manifest = "{apiVersion: v1, kind: ConfigMap}"
		case "not served":
			manifest, reason = "{apiVersion: example.com/v1, kind: Train, metadata: {name: t}}", workv1alpha1.ReasonKindNotServed
		}
		parse(t, "{workload: {manifests: ["+manifest+"]}}", &mw.Spec)
		item := ocm.Items(mw, c)[0]
		mw.Status.ResourceStatus.Manifests = []ocmv1.ManifestCondition{{ResourceMeta: item.Meta,
			Conditions: []metav1.Condition{{Type: ocmv1.Applied, Status: metav1.ConditionFalse, ObservedGeneration: 1,
				Message: ocm.NotApplied(item, &metav1.Condition{Reason: reason, Message: "no"})}}}}
		work := workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Name: item.WorkName("shop", nil),
			Annotations: map[string]string{"argosy.io/manifest-work": "shop"}}}
		work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkFailure, Status: metav1.ConditionTrue,
			Reason: reason, Message: "no"}}
		a := why.ExplainManifestWork(why.ManifestWorkFacts{ManifestWork: mw, Clusters: []*clusterv1alpha1.Cluster{c},
			Works: []workv1alpha1.Work{work}})
		if len(a.Findings) != 1 || !strings.Contains(a.Findings[0].Next, want) {
			t.Errorf("%s: found %+v, want %q", reason, a.Findings, want)
		}
	}
}
