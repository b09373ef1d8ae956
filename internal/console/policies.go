package console

import (
	"cmp"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

const (
	policiesPath = apiPrefix + "policies"
	// maxPolicies bounds the policies of each kind in an answer.
	maxPolicies = 500
)

type policyRow struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Selects has the kind of each selector, with the name of the template if it names one; empty for all templates.
	Selects []string `json:"selects"`
	// Clusters are named by the placement, Except are excluded from it. ByLabel is true if it selects clusters by labels
	// or fields.
	Clusters []string `json:"clusters,omitempty"`
	Except   []string `json:"except,omitempty"`
	ByLabel  bool     `json:"byLabel,omitempty"`
	Priority int32    `json:"priority,omitempty"`
}

type policiesAnswer struct {
	Policies []policyRow `json:"policies"`
	// Missing has the right to list each kind of which the user sees none.
	Missing []*Missing `json:"missing,omitempty"`
	// More is true if there are more than maxPolicies of a kind.
	More bool `json:"more,omitempty"`
}

// policies lists the policies that a user may list, in all namespaces or in some.
func (a *API) policies(r *http.Request, u user.Info) (any, error) {
	stored, err := a.rows.policies(r.Context())
	if err != nil {
		return nil, apierrors.NewServiceUnavailable(err.Error())
	}
	all := map[string][]policyRow{}
	add := func(kind string, row policyRow) {
		if row.Kind = kind; row.Namespace == "" {
			row.Kind = "Cluster" + kind
		}
		all[row.Kind] = append(all[row.Kind], row)
	}
	for _, p := range stored.propagations {
		row := policyRow{Namespace: p.GetNamespace(), Name: p.GetName(),
			Selects: selects(p.PropagationSpec().ResourceSelectors)}
		if p.PropagationSpec().Priority != nil {
			row.Priority = *p.PropagationSpec().Priority
		}
		row.place(p.PropagationSpec().Placement)
		add("PropagationPolicy", row)
	}
	for _, p := range stored.overrides {
		add("OverridePolicy", policyRow{Namespace: p.GetNamespace(), Name: p.GetName(),
			Selects: selects(p.OverrideSpec().ResourceSelectors)})
	}

	answer, lists := policiesAnswer{Policies: []policyRow{}}, a.lists(r.Context(), u)
	for _, kind := range []string{"PropagationPolicy", "ClusterPropagationPolicy", "OverridePolicy",
		"ClusterOverridePolicy"} {
		want := listPolicies(kind)
		seen := slices.DeleteFunc(all[kind], func(row policyRow) bool {
			in := want
			in.namespace = row.Namespace
			return !lists(in)
		})
		if len(seen) == 0 && !lists(want) {
			answer.Missing = append(answer.Missing, want.missing())
		}
		slices.SortFunc(seen, func(a, b policyRow) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
		if len(seen) > maxPolicies {
			seen, answer.More = seen[:maxPolicies], true
		}
		answer.Policies = append(answer.Policies, seen...)
	}
	return answer, nil
}

func selects(selectors []policyv1alpha1.ResourceSelector) []string {
	all := []string{}
	for _, s := range selectors {
		if s.Name != "" {
			s.Kind += " " + s.Name
		}
		all = append(all, s.Kind)
	}
	return all
}

// place sets the clusters of a placement. It has one affinity, or several of which one applies.
func (r *policyRow) place(p policyv1alpha1.Placement) {
	affinities := []*policyv1alpha1.ClusterAffinity{}
	if p.ClusterAffinity != nil {
		affinities = append(affinities, p.ClusterAffinity)
	} else {
		for i := range p.ClusterAffinities {
			affinities = append(affinities, &p.ClusterAffinities[i].ClusterAffinity)
		}
	}
	for _, a := range affinities {
		r.Clusters, r.Except = append(r.Clusters, a.ClusterNames...), append(r.Except, a.ExcludeClusters...)
		r.ByLabel = r.ByLabel || a.LabelSelector != nil || a.FieldSelector != nil
	}
}

const (
	unclaimedPath = apiPrefix + "unclaimed"
	// maxUnclaimed bounds the objects of an answer.
	maxUnclaimed = 200
	// unclaimedLabels selects the objects without the label of the policy that claims them.
	unclaimedLabels = "!" + policyv1alpha1.PropagationPolicyPermanentIDLabel + ",!" +
		policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel
)

// unclaimedAnswer is the answer at unclaimedPath. More is true if there are more than maxUnclaimed.
type unclaimedAnswer struct {
	Objects []unclaimedObject `json:"objects"`
	More    bool              `json:"more,omitempty"`
	Command string            `json:"command"`
}

type unclaimedObject struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// unclaimed lists the objects of a kind that no policy has claimed, as the user: kind, and optionally namespace.
func (a *API) unclaimed(r *http.Request, u user.Info) (any, error) {
	c, mapper, err := a.clientFor(u)
	if err != nil {
		return nil, err
	}
	namespace := r.URL.Query().Get("namespace")
	if !validNamespace(namespace) {
		return nil, badRequest("give no more than one namespace")
	}
	m, err := mappingOf(mapper, r.URL.Query().Get("kind"))
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(m.GroupVersionKind.GroupVersion().WithKind(m.GroupVersionKind.Kind + "List"))
	selector, err := labels.Parse(unclaimedLabels)
	if err == nil {
		err = c.List(r.Context(), list, &client.ListOptions{Namespace: namespace, Limit: maxUnclaimed,
			LabelSelector: selector})
	}
	if err != nil {
		return nil, err
	}
	where := " -A"
	if namespace != "" {
		where = " -n " + namespace
	}
	answer := unclaimedAnswer{Objects: []unclaimedObject{}, More: list.Continue != "",
		Command: "kubectl get " + m.Resource.GroupResource().String() + where + " -l '" + unclaimedLabels + "'"}
	for i := range list.Items {
		answer.Objects = append(answer.Objects, unclaimedObject{list.Items[i].Namespace, list.Items[i].Name})
	}
	return answer, nil
}
