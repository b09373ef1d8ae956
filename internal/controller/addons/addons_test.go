package addons

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/argosy-io/argosy/api/ocm/addon/v1alpha1"
	addonv1beta1 "github.com/argosy-io/argosy/api/ocm/addon/v1beta1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	placementv1beta1 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/internal/definition"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// world is a hub with the accepted clusters c1 and c2, the AddOnTemplate v1 of the add-on web, and a Placement p.
type world struct {
	*controllertest.Hub
	t *testing.T
}

func newWorld(t *testing.T) *world {
	w := &world{Hub: controllertest.New(t), t: t}
	w.Embed()
	w.Config.Transport = reviews{w.Config.Transport}
	stop := w.Run(func(ctx context.Context, mgr ctrl.Manager) error {
		own, err := definition.Names()
		if err != nil {
			return err
		}
		definitions, err := definition.New(ctx, mgr.GetCache(), mgr.GetAPIReader(), own)
		if err != nil {
			return err
		}
		return Setup(ctx, mgr, Options{Definitions: definitions, Gather: 100 * time.Millisecond})
	})
	t.Cleanup(func() { w.Disconnected(stop) })
	for _, name := range []string{"c1", "c2"} {
		mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		mc.Spec.HubAcceptsClient = true
		w.Make(mc)
		w.status(mc, func() { w.condition(&mc.Status.Conditions, clusterv1.ClusterAvailable, metav1.ConditionTrue) })
	}
	w.Make(newTemplate("v1"))
	w.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shared"}})
	p := &placementv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}}
	w.Make(p)
	return w
}

// reviews answers SubjectAccessReviews: klusterlets may renew their certificates. An approval is a write of the status.
type reviews struct{ http.RoundTripper }

func (r reviews) RoundTrip(req *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(req.URL.Path, "/subjectaccessreviews") {
		req.URL.Path = strings.Replace(req.URL.Path, "/approval", "/status", 1)
		return r.RoundTripper.RoundTrip(req)
	}
	review := &authorizationv1.SubjectAccessReview{}
	if err := json.NewDecoder(req.Body).Decode(review); err != nil {
		return nil, err
	}
	review.Status.Allowed = strings.HasPrefix(review.Spec.User, "system:open-cluster-management:") &&
		review.Spec.ResourceAttributes.Verb == "renew"
	data, err := json.Marshal(review)
	return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(data)), Request: req}, err
}

func newTemplate(image string) *addonv1alpha1.AddOnTemplate {
	t := &addonv1alpha1.AddOnTemplate{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	t.Spec.AddonName = "web"
	m := ocmv1.Manifest{}
	m.Raw = []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"sys"},` +
		`"spec":{"template":` +
		`{"spec":{"containers":[{"name":"web","image":"` + image + `"}]}}}}`)
	t.Spec.AgentSpec.Workload.Manifests = []ocmv1.Manifest{m}
	t.Spec.Registration = []addonv1alpha1.RegistrationSpec{{Type: addonv1alpha1.RegistrationKubeClient,
		KubeClient: &addonv1alpha1.KubeClientRegistration{HubPermissions: []addonv1alpha1.HubPermission{{
			Type:           addonv1alpha1.PermissionCurrentCluster,
			CurrentCluster: &addonv1alpha1.CurrentClusterPermission{ClusterRoleName: "reader"}}, {
			Type: addonv1alpha1.PermissionSingleNamespace, SingleNamespace: &addonv1alpha1.SingleNamespacePermission{
				Namespace: "shared", RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r"}}}}}},
		{Type: addonv1alpha1.RegistrationCustomSigner, CustomSigner: &addonv1alpha1.CustomSignerRegistration{
			SignerName: "example.com/web", SigningCA: addonv1alpha1.SigningCA{Namespace: "shop", Name: "ca"}}}}
	return t
}

func newAddon() *addonv1beta1.ClusterManagementAddOn {
	addon := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	addon.Spec.DefaultConfigs = []addonv1alpha1.AddOnConfig{{Name: "web",
		ConfigGroupResource: addonv1alpha1.ConfigGroupResource{
			Group: addonv1alpha1.GroupVersion.Group, Resource: "addontemplates"}}}
	addon.Spec.InstallStrategy = addonv1alpha1.InstallStrategy{Type: addonv1alpha1.InstallPlacements,
		Placements: []addonv1alpha1.PlacementStrategy{{PlacementRef: addonv1alpha1.PlacementRef{Namespace: "shop",
			Name: "p"}}}}
	return addon
}

func (w *world) condition(all *[]metav1.Condition, kind string, status metav1.ConditionStatus) {
	meta.SetStatusCondition(all, metav1.Condition{Type: kind, Status: status, Reason: "Reported",
		LastTransitionTime: metav1.Now()})
}

// status reads an object, changes it, and writes its status.
func (w *world) status(obj client.Object, change func()) {
	w.t.Helper()
	if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		w.t.Fatal(err)
	}
	change()
	if err := w.Status().Update(w.t.Context(), obj); err != nil {
		w.t.Fatal(err)
	}
}

// choose makes the Placement choose clusters.
func (w *world) choose(clusters string) {
	w.t.Helper()
	p := &placementv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}}
	w.HasObject(p)
	d := &placementv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p-decision-1",
		Labels: map[string]string{placementv1beta1.PlacementLabel: "p"}, OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(p, placementv1beta1.GroupVersion.WithKind("Placement"))}}}
	if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
		w.Make(d)
	}
	w.status(d, func() {
		d.Status.Decisions = nil
		for _, cluster := range strings.Fields(clusters) {
			d.Status.Decisions = append(d.Status.Decisions, placementv1beta1.ClusterDecision{ClusterName: cluster})
		}
	})
	w.status(p, func() {
		p.Status.NumberOfSelectedClusters = int32(len(d.Status.Decisions))
		p.Status.DecisionGroups = []placementv1beta1.DecisionGroupStatus{{}}
	})
}

// installed returns "CLUSTER IMAGE PROGRESSING AVAILABLE" of each add-on, with the RoleBindings of the agents.
func (w *world) installed() string {
	w.t.Helper()
	var list addonv1beta1.ManagedClusterAddOnList
	var works ocmv1.ManifestWorkList
	var bindings rbacv1.RoleBindingList
	for _, of := range []client.ObjectList{&list, &works, &bindings} {
		if err := w.List(w.t.Context(), of); err != nil {
			w.t.Fatal(err)
		}
	}
	var all []string
	for _, addon := range list.Items {
		text := addon.Namespace
		for _, kind := range []string{addonv1alpha1.Progressing, addonv1alpha1.Available} {
			if c := meta.FindStatusCondition(addon.Status.Conditions, kind); c != nil {
				text += " " + c.Reason
			}
		}
		all = append(all, text)
	}
	for _, mw := range works.Items {
		_, image, _ := strings.Cut(string(mw.Spec.Workload.Manifests[0].Raw), `"image":"`)
		image, _, _ = strings.Cut(image, `"`)
		all = append(all, "work "+mw.Namespace+" "+image)
	}
	for _, b := range bindings.Items {
		all = append(all, "binding "+b.Namespace+" "+b.RoleRef.Name+" "+b.Subjects[0].Name)
	}
	slices.Sort(all)
	return strings.ReplaceAll(strings.Join(all, ", "), "system:open-cluster-management:cluster:", "")
}

func (w *world) shows(want string) {
	w.t.Helper()
	w.Eventually(want, func() string {
		if got := w.installed(); got != want {
			return got
		}
		return ""
	})
}

// report writes that the ManifestWork of a cluster is applied, and how many pods are ready.
func (w *world) report(cluster string, ready int64) {
	w.t.Helper()
	mw := &ocmv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "addon-web-deploy-0"}}
	one := int64(1)
	w.status(mw, func() {
		for _, kind := range []string{ocmv1.Applied, ocmv1.Available} {
			meta.SetStatusCondition(&mw.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue,
				Reason: "Reported", ObservedGeneration: mw.Generation})
		}
		mw.Status.ResourceStatus.Manifests = []ocmv1.ManifestCondition{{Conditions: []metav1.Condition{},
			ResourceMeta: ocmv1.ManifestResourceMeta{Group: "apps", Resource: "deployments", Namespace: "sys", Name: "web"},
			StatusFeedbacks: ocmv1.StatusFeedbackResult{Values: []ocmv1.FeedbackValue{
				{Name: "ReadyReplicas", Value: ocmv1.FieldValue{Type: ocmv1.ValueInteger, Integer: &ready}},
				{Name: "Replicas", Value: ocmv1.FieldValue{Type: ocmv1.ValueInteger, Integer: &one}}}}}}
	})
}

const (
	bindings = "binding c1 reader c1:addon:web:agent:web-agent, binding c2 reader c2:addon:web:agent:web-agent, " +
		"binding shared r c1:addon:web:agent:web-agent, binding shared r c2:addon:web:agent:web-agent, "
	one      = "binding c1 reader c1:addon:web:agent:web-agent, binding shared r c1:addon:web:agent:web-agent, "
	complete = "c1 Completed ProbeAvailable, c2 Completed ProbeAvailable, "
)

func TestAddonLives(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.choose("c1 c2")
		w.Quiet()
		w.Make(newAddon())
		w.shows(bindings + "c1 WaitingForManifestApplied WorkNotApplied, c2 WaitingForManifestApplied WorkNotApplied, " +
			"work c1 v1, work c2 v1")
		w.Quiet()
		w.report("c1", 1)
		w.report("c2", 0)
		w.shows(bindings + "c1 Completed ProbeAvailable, c2 Completed ProbeUnavailable, work c1 v1, work c2 v1")
		w.Eventually("the clusters have labels", func() string {
			text := ""
			for _, name := range []string{"c1", "c2"} {
				mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
				w.HasObject(mc)
				text += mc.Labels[clusterv1.AddonLabelPrefix+"web"] + " "
			}
			if text == "available unhealthy " {
				return ""
			}
			return text
		})
		w.report("c2", 1)
		w.shows(bindings + complete + "work c1 v1, work c2 v1")
		w.Quiet()

		// A settled add-on costs no writes, whoever else writes.
		controllertest.Change(w.Hub, newAddon(), func(a *addonv1beta1.ClusterManagementAddOn) {
			a.Annotations = map[string]string{"a": "b"}
		})
		if writes := w.Quiet(); len(writes) != 1 {
			t.Errorf("an annotation costs %q", writes)
		}

		// A new version. What others change is set back.
		controllertest.Change(w.Hub, newTemplate(""),
			func(a *addonv1alpha1.AddOnTemplate) { a.Spec = newTemplate("v2").Spec })
		w.shows(bindings + "c1 Progressing ProbeAvailable, c2 Progressing ProbeAvailable, work c1 v2, work c2 v2")
		w.report("c1", 1)
		w.report("c2", 1)
		w.shows(bindings + complete + "work c1 v2, work c2 v2")
		controllertest.Change(w.Hub, &ocmv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c1",
			Name: "addon-web-deploy-0"}}, func(mw *ocmv1.ManifestWork) {
			mw.Spec.Workload.Manifests[0].Raw = []byte(`{"a":"b"}`)
		})
		w.Quiet()
		w.report("c1", 1)
		w.shows(bindings + complete + "work c1 v2, work c2 v2")

		// A silent cluster.
		mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c2"}}
		w.status(mc, func() {
			w.condition(&mc.Status.Conditions, clusterv1.ClusterAvailable, metav1.ConditionUnknown)
		})
		w.shows(bindings + "c1 Completed ProbeAvailable, c2 Completed Reported, work c1 v2, work c2 v2")
		w.Quiet()
		w.status(mc, func() {
			w.condition(&mc.Status.Conditions, clusterv1.ClusterAvailable, metav1.ConditionTrue)
		})
		w.shows(bindings + complete + "work c1 v2, work c2 v2")

		// A PlacementDecision that is missing for a moment takes nothing away, a cluster that is not chosen loses it.
		if err := w.Delete(t.Context(), &placementv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
			Name: "p-decision-1"}}); err != nil {
			t.Fatal(err)
		}
		w.Quiet()
		w.shows(bindings + complete + "work c1 v2, work c2 v2")
		w.choose("c1 c2")
		w.choose("c1")
		w.shows(one + "c1 Completed ProbeAvailable, work c1 v2")

		// The Placement is gone: what there is stays. The same for the AddOnTemplate.
		if err := w.Delete(t.Context(), &placementv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
			Name: "p"}}); err != nil {
			t.Fatal(err)
		}
		if err := w.Delete(t.Context(), newTemplate("")); err != nil {
			t.Fatal(err)
		}
		w.Quiet()
		w.Eventually("it stays", func() string {
			if got := w.installed(); !strings.HasPrefix(got, one+"c1") || !strings.HasSuffix(got, "work c1 v2") {
				return got
			}
			return ""
		})
	})
}

func TestAManifestWorkOfAnotherIsNotTouched(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "c1"}})
		theirs := &ocmv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "addon-web-deploy-0"}}
		theirs.Spec.Workload.Manifests = newTemplate("theirs").Spec.AgentSpec.Workload.Manifests
		w.Make(theirs)
		w.choose("c1")
		w.Make(newAddon())
		w.Eventually("it is said", func() string {
			addon := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "web"}}
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(addon), addon); err != nil {
				return err.Error()
			}
			c := meta.FindStatusCondition(addon.Status.Conditions, addonv1alpha1.ManifestApplied)
			if c == nil || !strings.Contains(c.Message, "it exists, and is not of this add-on") {
				return fmt.Sprint(c)
			}
			return ""
		})
		if got := w.installed(); !strings.Contains(got, "work c1 theirs") {
			t.Error(got)
		}
		addon := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "web"}}
		if err := w.Delete(t.Context(), newAddon()); err != nil {
			t.Fatal(err)
		}
		if err := w.Delete(t.Context(), addon); err != nil {
			t.Fatal(err)
		}
		w.Quiet()
		w.shows("work c1 theirs")
	})
}

// newRequest returns a certificate request as the klusterlet of c1 makes it for the add-on web.
func newRequest(t *testing.T, name, signer string, subject pkix.Name,
	hosts ...string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject, DNSNames: hosts},
		key)
	if err != nil {
		t.Fatal(err)
	}
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		clusterv1.ClusterNameLabel: "c1", clusterv1.AddonNameLabel: "web"}}}
	csr.Spec = certificatesv1.CertificateSigningRequestSpec{SignerName: signer,
		Username: "system:open-cluster-management:c1:agent", Groups: []string{"system:open-cluster-management:c1"},
		Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature,
			certificatesv1.UsageKeyEncipherment}}
	return csr
}

func TestCertificatesOfAddonsAreApproved(t *testing.T) {
	const kube, custom = certificatesv1.KubeAPIServerClientSignerName, "example.com/web"
	const group = "system:open-cluster-management:cluster:c1:addon:web"
	own := pkix.Name{CommonName: group + ":agent:web-agent", Organization: []string{group,
		"system:open-cluster-management:addon:web", "system:authenticated"}}
	as := func(change func(*pkix.Name)) pkix.Name {
		n := own
		n.Organization = slices.Clone(own.Organization)
		change(&n)
		return n
	}
	type row struct {
		signer  string
		subject pkix.Name
		hosts   []string
		change  func(*certificatesv1.CertificateSigningRequest)
		want    string // approved, signed, or nothing
	}
	none := func(*certificatesv1.CertificateSigningRequest) {}
	rows := map[string]row{
		"its own":        {kube, own, []string{"web.addon.open-cluster-management.io"}, none, "approved"},
		"two groups":     {kube, as(func(n *pkix.Name) { n.Organization = n.Organization[:2] }), nil, none, "approved"},
		"of its signer":  {custom, own, nil, none, "approved signed"},
		"another signer": {"example.com/other", own, nil, none, ""},
		"another user":   {kube, as(func(n *pkix.Name) { n.CommonName = "system:admin" }), nil, none, ""},
		"another cluster": {kube, as(func(n *pkix.Name) { n.CommonName = strings.Replace(n.CommonName, "c1", "c2", 1) }),
			nil, none, ""},
		"administrators": {kube, as(func(n *pkix.Name) { n.Organization = append(n.Organization, "system:masters") }), nil,
			none, ""},
		"not its own group": {kube, as(func(n *pkix.Name) { n.Organization = n.Organization[1:] }), nil, none, ""},
		"a unit":            {kube, as(func(n *pkix.Name) { n.OrganizationalUnit = []string{"x"} }), nil, none, ""},
		"another host":      {custom, own, []string{"kubernetes.default.svc"}, none, ""},
		"by another klusterlet": {kube, own, nil, func(c *certificatesv1.CertificateSigningRequest) {
			c.Spec.Username = "system:open-cluster-management:c2:agent"
		}, ""},
		"by a user": {custom, own, nil, func(c *certificatesv1.CertificateSigningRequest) { c.Spec.Username = "jane" }, ""},
		"of a server": {custom, own, nil, func(c *certificatesv1.CertificateSigningRequest) {
			c.Spec.Usages = append(c.Spec.Usages, certificatesv1.UsageServerAuth)
		}, ""},
		"of an add-on that is not there": {kube, own, nil, func(c *certificatesv1.CertificateSigningRequest) {
			c.Labels[clusterv1.AddonNameLabel] = "db"
		}, ""},
		"of another cluster's add-on": {kube, own, nil, func(c *certificatesv1.CertificateSigningRequest) {
			c.Labels[clusterv1.ClusterNameLabel] = "c2"
		}, ""},
		"denied": {custom, own, nil, func(c *certificatesv1.CertificateSigningRequest) {
			c.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied,
				Status: corev1.ConditionTrue, Reason: "x"}}
		}, "denied"},
	}
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		ca, key, err := cert.GenerateSelfSignedCertKeyWithFixtures("web-ca", nil, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		w.Make(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "ca"},
			Data: map[string][]byte{corev1.TLSCertKey: ca, corev1.TLSPrivateKeyKey: key}})
		w.choose("c1")
		w.Make(newAddon())
		w.shows(one + "c1 WaitingForManifestApplied WorkNotApplied, work c1 v1")
		for story, r := range rows {
			csr := newRequest(t, strings.NewReplacer(" ", "-", "'", "").Replace(story), r.signer, r.subject, r.hosts...)
			r.change(csr)
			csr.CreationTimestamp = metav1.Now()
			status, labels := csr.Status, csr.Labels
			if len(status.Conditions) > 0 {
				csr.Labels = nil // it must not be approved before
			}
			w.Make(csr)
			if len(status.Conditions) > 0 {
				w.status(csr, func() { csr.Status = status })
				controllertest.Change(w.Hub, csr, func(c *certificatesv1.CertificateSigningRequest) { c.Labels = labels })
			}
		}
		w.Advance(lookAgain + time.Second)
		w.Quiet()
		for story, r := range rows {
			csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{
				Name: strings.NewReplacer(" ", "-", "'", "").Replace(story)}}
			w.HasObject(csr)
			got := []string{}
			for _, c := range csr.Status.Conditions {
				got = append(got, strings.ToLower(string(c.Type)))
			}
			if block, _ := pem.Decode(csr.Status.Certificate); block != nil {
				c, err := x509.ParseCertificate(block.Bytes)
				if err != nil || c.Subject.CommonName != own.CommonName || c.IsCA || c.Issuer.CommonName == "" ||
					c.NotAfter.Sub(c.NotBefore) > 25*time.Hour {
					t.Errorf("%s: certificate %+v, %v", story, c, err)
				}
				got = append(got, "signed")
			}
			if strings.Join(got, " ") != r.want {
				t.Errorf("%s: %q, want %q", story, got, r.want)
			}
		}
	})
}

func TestAddonsStayWhenTheirDefinitionGoes(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.choose("c1")
		w.Make(newAddon())
		w.Quiet()
		for _, name := range []string{definition.ClusterManagementAddOns} {
			d := &metav1.PartialObjectMetadata{}
			d.SetGroupVersionKind(definition.GVK)
			d.Name = name
			w.HasObject(d)
			if err := w.Delete(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}
		w.Quiet()
		for _, obj := range []client.Object{newAddon(), &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
			Namespace: "c1", Name: "web"}}} {
			if err := w.Delete(t.Context(), obj); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
		}
		w.Quiet()
		w.shows(one + "work c1 v1")
	})
}
