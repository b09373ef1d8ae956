package addons

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	addonv1alpha1 "github.com/argosy-io/argosy/api/ocm/addon/v1alpha1"
	addonv1beta1 "github.com/argosy-io/argosy/api/ocm/addon/v1beta1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
)

// WorkName returns the name of the ManifestWork of an add-on that the hub installs.
func WorkName(addon string) string { return "addon-" + addon + "-deploy-0" }

// Subject returns the subject of the certificates of an add-on in a cluster: of a signer of its own, or of the hub's.
func Subject(cluster, addon string, r *addonv1alpha1.CustomSignerRegistration) addonv1beta1.Subject {
	if r != nil && r.Subject != nil {
		return addonv1beta1.Subject{User: r.Subject.User,
			OrganizationUnits: r.Subject.OrganizationUnits}
	}
	return addonv1beta1.Subject{User: userOf(cluster, addon)}
}

// Registration returns what an AddOnTemplate says about a signer of its own; nil for nothing.
func Registration(t *addonv1alpha1.AddOnTemplate, signer string) *addonv1alpha1.RegistrationSpec {
	for i, r := range t.Spec.Registration {
		if r.CustomSigner != nil && r.CustomSigner.SignerName == signer {
			return &t.Spec.Registration[i]
		}
	}
	return nil
}

// HasKubeClient reports whether the hub lets the klusterlet request credentials for the API of the hub for an add-on.
func HasKubeClient(addon *addonv1beta1.ManagedClusterAddOn) bool {
	return slices.ContainsFunc(addon.Status.Registrations, func(r addonv1beta1.RegistrationConfig) bool {
		return r.Type == addonv1beta1.KubeClient
	})
}

// Authority returns the Secret with the authority of a signer.
func Authority(of *addonv1alpha1.CustomSignerRegistration) types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(of.SigningCA.Namespace, hubNamespace), Name: of.SigningCA.Name}
}

// hubNamespace is the default namespace of the Secrets of signers, as in Open Cluster Management.
const hubNamespace = "open-cluster-management-hub"

// TemplateOf returns the name of the AddOnTemplate that an add-on has in its cluster; empty for none.
func TemplateOf(addon *addonv1beta1.ManagedClusterAddOn) (name string) {
	for _, of := range addon.Status.ConfigReferences {
		if of.ConfigGroupResource == templates && of.DesiredConfig != nil {
			name = of.DesiredConfig.Name // the last one counts, as in configured
		}
	}
	return name
}

// userOf returns the user on the hub of the agent of an add-on in a cluster, and its groups.
func userOf(cluster, addon string) addonv1alpha1.User {
	of := klusterlet.GroupOf("cluster:" + cluster + ":addon:" + addon)
	return addonv1alpha1.User{Name: of + ":agent:" + addon + "-agent",
		Groups: []string{of, klusterlet.GroupOf("addon:" + addon)}}
}

// template decides what the AddOnTemplate of an add-on puts into the cluster of m, and sets the status of the add-on.
// It returns the ManifestWorks of the add-on. A cluster that waits for its turn, or whose configuration has a mistake,
// keeps what it has.
func (in Input) template(d *Decision, p *place, m *member, want *addonv1beta1.ManagedClusterAddOn,
	works []ocmv1.ManifestWork, set condition) []ocmv1.ManifestWork {
	want.Status.SupportedConfigs = []addonv1alpha1.ConfigGroupResource{settings, templates}
	want.Status.HealthCheck.Mode = addonv1alpha1.HealthCheckCustomized
	var was *ocmv1.ManifestWork
	for i := range works {
		if works[i].Namespace == m.Namespace && works[i].Name == WorkName(in.Addon.Name) {
			was = &works[i]
		}
	}
	mc := in.Clusters[m.Namespace]
	if !eligible(mc) || !p.admits(m) {
		d.Kept = append(d.Kept, m.Namespace)
		if was != nil && mc != nil {
			apply(was, set)
			available(in.Addon.Name, mc, was, was.Spec, set)
		}
		return works
	}
	t, s, err := in.configured(m.wanted)
	if host := m.Annotations[addonv1alpha1.HostingClusterAnnotation]; err == nil && host != "" {
		err = fmt.Errorf("AddOnTemplates cannot be hosted by another cluster: remove the annotation %s",
			addonv1alpha1.HostingClusterAnnotation)
	}
	if err == nil && len(t.Spec.Registration) > 0 && klusterlet.Derived(mc) {
		err = fmt.Errorf("AddOnTemplate %s has a registration, for which cluster %q needs a klusterlet", t.Name, mc.Name)
	}
	var spec ocmv1.ManifestWorkSpec
	if err == nil {
		spec, want.Status.Namespace, err = render(in.Addon.Name, mc.Name, t.Spec, s)
	}
	if err != nil {
		d.Kept = append(d.Kept, m.Namespace)
		set(addonv1alpha1.ManifestApplied, metav1.ConditionFalse, addonv1alpha1.ReasonManifestWorkApplyFailed,
			"failed to get manifest from agent interface: "+err.Error())
		if was != nil {
			available(in.Addon.Name, mc, was, was.Spec, set)
		}
		return works
	}
	want.Status.Registrations = registrations(in.Addon.Name, mc.Name, t.Spec.Registration, m.Status.Registrations)
	d.Bindings = append(d.Bindings, bindings(in.Addon.Name, mc.Name, t.Spec.Registration)...)
	set(addonv1alpha1.RegistrationApplied, metav1.ConditionTrue, addonv1alpha1.ReasonSetPermissionApplied,
		"Registration of the addon agent is configured")
	if slices.ContainsFunc(want.Status.Registrations, func(r addonv1beta1.RegistrationConfig) bool {
		return r.KubeClient != nil && r.KubeClient.Driver == driverToken
	}) {
		set(addonv1alpha1.RegistrationApplied, metav1.ConditionFalse, addonv1alpha1.ReasonSetPermissionFailed,
			"the klusterlet requests tokens for add-ons, which the hub does not support for AddOnTemplates: configure it to "+
				"request certificates")
	}
	mw := in.work(was, m, spec)
	if was == nil || !sameSpec(was.Spec, mw.Spec) || !maps.Equal(was.Labels, mw.Labels) ||
		!maps.Equal(was.Annotations, mw.Annotations) {
		if slices.Contains(m.Finalizers, wellknown.AddonFinalizer) { // without it, the ManifestWork could be left over
			d.Works = append(d.Works, Work{was, mw})
		}
		if c := meta.FindStatusCondition(want.Status.Conditions, addonv1alpha1.ManifestApplied); c != nil &&
			c.Status == metav1.ConditionFalse { // it was about what is replaced
			meta.RemoveStatusCondition(&want.Status.Conditions, addonv1alpha1.ManifestApplied)
		}
	} else {
		apply(was, set)
	}
	available(in.Addon.Name, mc, was, spec, set)
	return works
}

// sameSpec compares the manifests by their content, not by their spelling.
func sameSpec(a, b ocmv1.ManifestWorkSpec) bool {
	if len(a.Workload.Manifests) != len(b.Workload.Manifests) {
		return false
	}
	for i := range a.Workload.Manifests {
		var x, y any
		if json.Unmarshal(a.Workload.Manifests[i].Raw, &x) != nil || json.Unmarshal(b.Workload.Manifests[i].Raw, &y) != nil ||
			!equality.Semantic.DeepEqual(x, y) {
			return false
		}
	}
	a.Workload, b.Workload = ocmv1.ManifestsTemplate{}, ocmv1.ManifestsTemplate{}
	return equality.Semantic.DeepEqual(a, b)
}

// admits reports whether a member has its configuration, or gets it now.
func (p *place) admits(m *member) bool { return m.sent() || slices.Contains(p.Next, m.Namespace) }

// configured returns the AddOnTemplate and the merged settings of an add-on. It fails if one is missing.
func (in Input) configured(of []addonv1alpha1.ConfigState) (t *addonv1alpha1.AddOnTemplate,
	merged addonv1alpha1.AddOnDeploymentConfigSpec, err error) {
	for _, state := range of {
		c := configOf(state)
		switch c.ConfigGroupResource {
		case templates:
			if t = in.Templates[c.Name]; t == nil {
				return nil, merged, fmt.Errorf("AddOnTemplate %s does not exist", c.Name)
			}
			if t.Spec.AddonName != in.Addon.Name {
				return nil, merged, fmt.Errorf("AddOnTemplate %s is for add-on %q", c.Name, t.Spec.AddonName)
			}
		case settings:
			s := in.Settings[addonv1alpha1.ConfigReferent{Namespace: c.Namespace, Name: c.Name}]
			if s == nil {
				return nil, merged, fmt.Errorf("AddOnDeploymentConfig %s/%s does not exist", c.Namespace, c.Name)
			}
			merge(&merged, s.Spec)
		}
	}
	if t == nil {
		return nil, merged, fmt.Errorf("no AddOnTemplate is configured")
	}
	return t, merged, nil
}

// merge adds settings to those before, whose values they replace.
func merge(to *addonv1alpha1.AddOnDeploymentConfigSpec, s addonv1alpha1.AddOnDeploymentConfigSpec) {
	to.CustomizedVariables = append(to.CustomizedVariables, s.CustomizedVariables...) // the last one of a name counts
	if s.NodePlacement != nil {
		to.NodePlacement = s.NodePlacement
	}
	if s.Registries != nil {
		to.Registries = s.Registries
	}
	if !equality.Semantic.DeepEqual(s.ProxyConfig, addonv1alpha1.ProxyConfig{}) {
		to.ProxyConfig = s.ProxyConfig
	}
	if s.AgentInstallNamespace != "" {
		to.AgentInstallNamespace = s.AgentInstallNamespace
	}
	if s.ResourceRequirements != nil {
		to.ResourceRequirements = s.ResourceRequirements
	}
}

// work returns the ManifestWork of an add-on in a cluster.
func (in Input) work(was *ocmv1.ManifestWork, m *member, spec ocmv1.ManifestWorkSpec) *ocmv1.ManifestWork {
	mw := &ocmv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: WorkName(in.Addon.Name)}}
	if was != nil {
		mw = was.DeepCopy()
	}
	mw.Spec = spec
	hashes := map[string]string{}
	for _, of := range m.wanted {
		hashes[hashKey(of)] = of.DesiredConfig.SpecHash
	}
	data, _ := json.Marshal(hashes) // texts only
	metav1.SetMetaDataLabel(&mw.ObjectMeta, clusterv1.AddonNameLabel, in.Addon.Name)
	metav1.SetMetaDataAnnotation(&mw.ObjectMeta, addonv1alpha1.ConfigSpecHashAnnotation, string(data))
	return mw
}

// driverToken: the klusterlet uses the token of a service account instead of a certificate.
const driverToken = "token"

// registrations returns the credentials that the klusterlet requests for an add-on. The driver, which the klusterlet
// sets, stays.
func registrations(addon, cluster string, of []addonv1alpha1.RegistrationSpec,
	was []addonv1beta1.RegistrationConfig) (all []addonv1beta1.RegistrationConfig) {
	for _, r := range of {
		subject := Subject(cluster, addon, r.CustomSigner)
		switch {
		case r.Type == addonv1alpha1.RegistrationKubeClient:
			config := &addonv1beta1.KubeClientConfig{Subject: subject.User}
			for _, before := range was {
				if before.Type != addonv1beta1.KubeClient || before.KubeClient == nil {
					continue
				}
				if config.Driver = before.KubeClient.Driver; config.Driver == driverToken {
					config.Subject = before.KubeClient.Subject // the klusterlet would set it again
				}
			}
			all = append(all, addonv1beta1.RegistrationConfig{Type: addonv1beta1.KubeClient, KubeClient: config})
		case r.CustomSigner != nil:
			all = append(all, addonv1beta1.RegistrationConfig{Type: addonv1beta1.CustomSigner,
				CustomSigner: &addonv1beta1.CustomSignerConfig{SignerName: r.CustomSigner.SignerName, Subject: subject}})
		}
	}
	return all
}

// ClusterOfBinding returns the add-on and the cluster of a RoleBinding of an agent; false for others.
func ClusterOfBinding(b metav1.Object) (addon, cluster string, ok bool) {
	_, ok = b.GetLabels()[TemplateLabel]
	cluster = b.GetLabels()[clusterv1.ClusterNameLabel]
	return b.GetLabels()[clusterv1.AddonNameLabel], cluster, ok && cluster != ""
}

// TemplateLabel marks the RoleBindings that follow from AddOnTemplates, as in Open Cluster Management.
const TemplateLabel = "open-cluster-management.io/addon-template-name"

// bindings returns the RoleBindings on the hub of the agent of an add-on in a cluster.
func bindings(addon, cluster string, of []addonv1alpha1.RegistrationSpec) (all []*rbacv1.RoleBinding) {
	user := userOf(cluster, addon)
	for _, r := range of {
		if r.KubeClient == nil {
			continue
		}
		for _, permission := range r.KubeClient.HubPermissions {
			b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{TemplateLabel: "",
				clusterv1.AddonNameLabel: addon, clusterv1.ClusterNameLabel: cluster}},
				// The user and the group of this cluster, not that of the add-on in all clusters.
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user.Name},
					{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: user.Groups[0]}}}
			switch {
			case permission.CurrentCluster != nil:
				b.Namespace, b.RoleRef = cluster, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole",
					Name: permission.CurrentCluster.ClusterRoleName}
			case permission.SingleNamespace != nil:
				b.Namespace, b.RoleRef = permission.SingleNamespace.Namespace, permission.SingleNamespace.RoleRef
			default:
				continue
			}
			b.RoleRef.APIGroup = rbacv1.GroupName // the default of the server
			b.Name = fmt.Sprintf("open-cluster-management:%s:%s:agent:%s:%s", addon, strings.ToLower(b.RoleRef.Kind),
				b.RoleRef.Name, cluster)
			all = append(all, b)
		}
	}
	return all
}

// apply sets the condition ManifestApplied by the ManifestWork of an add-on.
func apply(mw *ocmv1.ManifestWork, set condition) {
	switch c := meta.FindStatusCondition(mw.Status.Conditions, ocmv1.Applied); {
	case c == nil: // it has not reported yet
	case c.Status == metav1.ConditionTrue:
		set(addonv1alpha1.ManifestApplied, metav1.ConditionTrue, addonv1alpha1.ReasonAddonManifestApplied,
			"manifests of addon are applied successfully")
	default:
		set(addonv1alpha1.ManifestApplied, metav1.ConditionFalse, addonv1alpha1.ReasonAddonManifestAppliedFailed,
			"failed to apply the manifests of addon: "+c.Message)
	}
}

// available sets the condition Available by the ManifestWork of an add-on: each Deployment has a ready pod, and each
// DaemonSet has all. While the cluster is silent, another condition is set, see Silent.
func available(addon string, mc *clusterv1.ManagedCluster, mw *ocmv1.ManifestWork, spec ocmv1.ManifestWorkSpec,
	set condition) {
	is := func(status metav1.ConditionStatus, reason, message string) {
		set(addonv1alpha1.Available, status, reason, message)
	}
	if Silent(mc) != nil {
		return
	}
	if mw == nil {
		is(metav1.ConditionUnknown, addonv1alpha1.ReasonWorkNotFound, "Addon manifestWork is not found")
		return
	}
	switch c := meta.FindStatusCondition(mw.Status.Conditions, ocmv1.Available); {
	case c == nil:
		is(metav1.ConditionUnknown, addonv1alpha1.ReasonWorkNotApplied, "Addon manifestWork is not applied yet")
		return
	case c.Status == metav1.ConditionFalse:
		is(metav1.ConditionFalse, addonv1alpha1.ReasonWorkNotApplied, c.Message)
		return
	}
	probed, answered := 0, 0
	for _, config := range spec.ManifestConfigs {
		id := config.ResourceIdentifier
		if id.Group != "apps" || id.Resource != "deployments" && id.Resource != "daemonsets" {
			continue
		}
		probed++
		for _, manifest := range mw.Status.ResourceStatus.Manifests {
			of := manifest.ResourceMeta
			if of.Group != id.Group || of.Resource != id.Resource || of.Name != id.Name || of.Namespace != id.Namespace ||
				len(manifest.StatusFeedbacks.Values) == 0 {
				continue
			}
			answered++
			ready, wanted := count(manifest, "ReadyReplicas", "NumberReady"),
				count(manifest, "Replicas", "DesiredNumberScheduled")
			if wanted < 0 || wanted > 0 && ready < 1 || id.Resource == "daemonsets" && ready != wanted {
				is(metav1.ConditionFalse, addonv1alpha1.ReasonProbeUnavailable, fmt.Sprintf(
					"Probe addon unavailable with err %d of %d pods of %s %s/%s are ready", max(ready, 0), max(wanted, 0),
					id.Resource, id.Namespace, id.Name))
				return
			}
		}
	}
	if probed > 0 && answered == 0 {
		is(metav1.ConditionUnknown, addonv1alpha1.ReasonNoProbeResult, "Probe results are not returned")
		return
	}
	is(metav1.ConditionTrue, addonv1alpha1.ReasonProbeAvailable, addon+" add-on is available.")
}

// count returns a number that feedback rules report under one of two names; -1 for none.
func count(manifest ocmv1.ManifestCondition, names ...string) int64 {
	for _, v := range manifest.StatusFeedbacks.Values {
		if slices.Contains(names, v.Name) && v.Value.Integer != nil {
			return *v.Value.Integer
		}
	}
	return -1
}

// Silent returns the condition of a cluster that does not report, which its add-ons have as well; nil if it reports.
func Silent(mc *clusterv1.ManagedCluster) *metav1.Condition {
	c := meta.FindStatusCondition(mc.Status.Conditions, clusterv1.ClusterAvailable)
	if c == nil || c.Status != metav1.ConditionUnknown {
		return nil
	}
	return c
}

// FeatureLabels returns the labels of a ManagedCluster for its add-ons: available, unhealthy or unreachable.
func FeatureLabels(installed []addonv1beta1.ManagedClusterAddOn) map[string]string {
	labels := map[string]string{}
	for _, addon := range installed {
		if addon.DeletionTimestamp != nil {
			continue
		}
		value := "unreachable"
		if c := meta.FindStatusCondition(addon.Status.Conditions, addonv1alpha1.Available); c != nil {
			switch c.Status {
			case metav1.ConditionTrue:
				value = "available"
			case metav1.ConditionFalse:
				value = "unhealthy"
			}
		}
		if key := clusterv1.AddonLabelPrefix + addon.Name; len(validation.IsQualifiedName(key)) == 0 {
			labels[key] = value
		}
	}
	return labels
}
