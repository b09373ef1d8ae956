// Package grant decides how a group gets a role in members without a right on the hub: the binding is enclosed in a
// template, and a policy sends it to the clusters. Callers read and write.
package grant

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/access"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// Grant gives a group a role in members.
type Grant struct {
	Group string `json:"group"`
	// Role is the name of a ClusterRole in the members.
	Role string `json:"role"`
	// Namespace of the members; empty for all, and for cluster-scoped objects.
	Namespace string `json:"namespace,omitempty"`
	// Selector selects clusters by label; Clusters names them, sorted. At most one of the two is set.
	Selector string   `json:"clusterSelector,omitempty"`
	Clusters []string `json:"clusterNames,omitempty"`
}

// New returns a grant with the clusters in their canonical form, or why there can be none.
func New(group, role, namespace, selector string, clusters []string) (Grant, error) {
	g := Grant{Group: group, Role: role, Namespace: namespace,
		Clusters: slices.Compact(slices.Sorted(slices.Values(clusters)))}
	switch {
	case role == "":
		return g, errors.New("--role is missing: view, edit, admin or the name of another ClusterRole")
	case len(content.IsPathSegmentName(role)) > 0:
		return g, fmt.Errorf("--role %q cannot be the name of a ClusterRole: it %s", role,
			strings.Join(content.IsPathSegmentName(role), ", "))
	case namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0:
		return g, fmt.Errorf("--namespace %q: %s", namespace, strings.Join(validation.IsDNS1123Label(namespace), "; "))
	case selector != "" && len(clusters) > 0:
		return g, errors.New("--clusters selects clusters by label, and --cluster names them: use one of the two")
	case selector != "":
		parsed, err := parse(selector)
		if err != nil {
			return g, fmt.Errorf("--clusters %q is not a selector such as env=prod: %w", selector, err)
		}
		g.Selector = metav1.FormatLabelSelector(parsed)
	}
	return g, checkGroup(group)
}

// parse returns a selector, in the same form for "a in (b)" as for "a=b". One that selects all clusters is an error.
func parse(selector string) (*metav1.LabelSelector, error) {
	s, err := metav1.ParseToLabelSelector(selector)
	if err != nil {
		return nil, err
	}
	s.MatchExpressions = slices.DeleteFunc(s.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
		_, known := s.MatchLabels[r.Key]
		one := r.Operator == metav1.LabelSelectorOpIn && len(r.Values) == 1 && !known
		if one {
			metav1.AddLabelToSelector(s, r.Key, r.Values[0])
		}
		return one
	})
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return nil, errors.New("it names no label")
	}
	return s, nil
}

// checkGroup returns why no role is granted to a group; nil if one may be.
func checkGroup(group string) error {
	switch {
	case strings.HasPrefix(group, "system:"):
		return fmt.Errorf("a role cannot be granted to %q: the hub acts for nobody in the groups of Kubernetes itself, which "+
			"have administrators, or everybody, as members; name a group of your identity provider", group)
	case group == "", strings.TrimSpace(group) != group, strings.ContainsFunc(group, unicode.IsControl):
		return fmt.Errorf("the name of the group %q is empty, begins or ends with a space, or has a control character", group)
	}
	return nil
}

// Name is the name of the objects of the grant, on the hub and in members. Another grant has another one.
func (g Grant) Name() string {
	sum := sha256.Sum256([]byte(text.JSON(g)))
	return "argosy-access-" + hex.EncodeToString(sum[:6])
}

// Everywhere reports whether the grant names no clusters.
func (g Grant) Everywhere() bool { return g.Selector == "" && len(g.Clusters) == 0 }

// Scope returns the namespace for people.
func (g Grant) Scope() string {
	if g.Namespace == "" {
		return "all namespaces"
	}
	return "namespace " + g.Namespace
}

// affinity selects the clusters: none for a grant that New would refuse.
func (g Grant) affinity() *policyv1alpha1.ClusterAffinity {
	a := &policyv1alpha1.ClusterAffinity{ClusterNames: g.Clusters}
	var err error
	if g.Selector != "" {
		a.LabelSelector, err = parse(g.Selector)
	}
	if err != nil || g.Everywhere() {
		a.ClusterNames = []string{""} // no names would be all clusters
	}
	return a
}

// Selects reports whether the grant is for a cluster.
func (g Grant) Selects(c *clusterv1alpha1.Cluster) bool { return match.Affinity(g.affinity(), c) }

// Template returns the binding for members, enclosed. On the hub it is no binding, and grants nothing.
func (g Grant) Template() *releasev1alpha1.EnclosedManifest {
	kind, metadata := "ClusterRoleBinding", map[string]any{"name": g.Name()}
	if g.Namespace != "" {
		kind, metadata["namespace"] = "RoleBinding", g.Namespace
	}
	t := &releasev1alpha1.EnclosedManifest{ObjectMeta: g.meta()}
	t.Spec.Manifest.Raw = []byte(text.JSON(map[string]any{
		"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": kind, "metadata": metadata,
		"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": g.Role},
		"subjects": []any{map[string]any{"apiGroup": rbacv1.GroupName, "kind": rbacv1.GroupKind, "name": g.Group}}}))
	t.Annotations = map[string]string{wellknown.AccessLabel: text.JSON(g)}
	return t
}

// Read returns the grant of a template; ok is false if someone has changed it, so that it grants something else.
func Read(t *releasev1alpha1.EnclosedManifest) (g Grant, ok bool) {
	err := json.Unmarshal([]byte(t.Annotations[wellknown.AccessLabel]), &g)
	_, bad := New(g.Group, g.Role, g.Namespace, g.Selector, g.Clusters)
	var is, want rbacv1.RoleBinding // a ClusterRoleBinding has the same fields
	err = errors.Join(err, bad, json.Unmarshal(t.Spec.Manifest.Raw, &is),
		json.Unmarshal(g.Template().Spec.Manifest.Raw, &want))
	return g, err == nil && !g.Everywhere() && t.Name == want.Name && is.Name == want.Name &&
		is.Namespace == want.Namespace && is.Kind == want.Kind && is.RoleRef == want.RoleRef &&
		slices.Equal(is.Subjects, want.Subjects)
}

func (g Grant) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: g.Name(), Labels: map[string]string{wellknown.AccessLabel: "true"}}
}

// Policy sends the template. A cordoned or failing cluster keeps the grant.
func (g Grant) Policy() *policyv1alpha1.ClusterPropagationPolicy {
	p := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: g.meta()}
	p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: releasev1alpha1.GroupVersion.String(),
		Kind: releasev1alpha1.EnclosedManifestKind.Kind, Name: g.Name()}}
	p.Spec.Placement.ClusterAffinity = g.affinity()
	p.Spec.Placement.ClusterTolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	return p
}

// Proxy returns the role on the hub that lets the group send requests to these clusters through it, and its binding.
func (g Grant) Proxy(clusters []clusterv1alpha1.Cluster) (*rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding) {
	rule := rbacv1.PolicyRule{APIGroups: []string{clusterv1alpha1.GroupVersion.Group},
		Resources: []string{"clusters/proxy"}, Verbs: []string{"get"}}
	if g.Role != "view" {
		rule.Verbs = []string{"create", "delete", "get", "patch", "update"}
	}
	for i := range clusters {
		rule.ResourceNames = append(rule.ResourceNames, clusters[i].Name)
	}
	return &rbacv1.ClusterRole{ObjectMeta: g.meta(), Rules: []rbacv1.PolicyRule{rule}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: g.meta(),
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: g.Name()},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: g.Group}}}
}

// State is a grant in one cluster.
type State struct {
	Cluster string `json:"cluster"`
	// Applied is true if the cluster has the binding.
	Applied bool `json:"applied"`
	// Missing are why the binding is not applied, and what the group needs besides.
	Missing []string `json:"missing,omitempty"`
}

// States returns the grant in each cluster that it selects or that has it. b is the binding of its template, nil if
// there is none; proxied are the clusters that its role on the hub names, by Proxy; for lets and roles see Lacks.
func (g Grant) States(clusters []clusterv1alpha1.Cluster, b workv1alpha2.Binding, proxied []string, lets access.Grants,
	roles map[string]string) (all []State) {
	proxied = slices.Clone(proxied)
	said := map[string]workv1alpha2.AggregatedStatusItem{}
	if b != nil {
		for _, item := range b.BindingStatus().AggregatedStatus {
			said[item.ClusterName] = item
		}
	}
	for i := range clusters {
		c := &clusters[i]
		s := State{Cluster: c.Name, Applied: said[c.Name].Applied}
		switch selected := g.Selects(c); {
		case !selected && !s.Applied:
			continue
		case !selected:
			s.Missing = []string{"it is no longer selected"}
			if i := slices.Index(proxied, c.Name); i >= 0 {
				s.Missing, proxied = append(s.Missing, StillProxied), slices.Delete(proxied, i, i+1)
			}
		case !s.Applied:
			s.Missing = []string{cmp.Or(said[c.Name].AppliedMessage, "it is not applied yet")}
		}
		s.Missing = append(s.Missing, g.Lacks(c, lets, roles)...)
		all = append(all, s)
	}
	for _, name := range proxied {
		if !slices.ContainsFunc(all, func(s State) bool { return s.Cluster == name }) {
			all = append(all, State{Cluster: name, Missing: []string{StillProxied}})
		}
	}
	return all
}

// StillProxied is said of a cluster that the role of the hub names, and the grant does not select.
const StillProxied = "the group may still use clusters/proxy of it: grant again with --proxy, which ends that"

// What is said of the role in a cluster.
const (
	NoRole      = "it has no ClusterRole %s, so the grant permits nothing there"
	UnknownRole = "it is not known whether it has a ClusterRole %s, because you may not read that there"
)

// NoProxy is what a group lacks on the hub to reach a cluster, and how it gets it.
const NoProxy = "no ClusterRole of the hub lets the group use clusters/proxy of it: " +
	"grant it with --proxy, or see docs/access.md#access-to-a-cluster"

// Lacks returns what the group needs in a cluster besides the binding. lets are those who may use the proxy of
// clusters; roles have NoRole or UnknownRole for clusters that are not known to have the role.
func (g Grant) Lacks(c *clusterv1alpha1.Cluster, lets access.Grants, roles map[string]string) (missing []string) {
	if said := roles[c.Name]; said != "" {
		missing = append(missing, fmt.Sprintf(said, g.Role))
	}
	if !slices.Contains(lets.ForCluster(c.Name, c.Annotations).Groups, g.Group) {
		missing = append(missing, NoProxy)
	}
	return missing
}
