// Package usage reads, with the rights of a user, what the workloads of the fleet request and use.
package usage

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/explain/overview"
	"github.com/argosy-io/argosy/internal/core/explain/usage"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/history"
	"github.com/argosy-io/argosy/internal/member/fleetmetrics"
	"github.com/argosy-io/argosy/internal/why"
)

// Query is a question.
type Query struct {
	usage.Grouping
	// Namespace is empty for all.
	Namespace string
	// Since is the earlier time with which requests are compared; zero for none.
	Since time.Time
}

// SinceDefault is the age of the requests that others are compared with, unless a user gives another.
const SinceDefault = "7d"

// ParseQuery reads a question as users write it: the groups, an age such as 7d, or 0 for no comparison, and prices by
// resource. The error begins with the name of the flag that is wrong: by, since or price.
func ParseQuery(by, since string, prices map[string]string, now time.Time) (q Query, err error) {
	if q.Grouping, err = usage.ParseGrouping(by); err != nil {
		return q, fmt.Errorf("by: %w", err)
	}
	ago, err := text.Age(since)
	if err != nil {
		return q, fmt.Errorf("since must be a duration such as 12h or 7d, not %q", since)
	}
	if ago > 0 {
		q.Since = now.Add(-ago)
	}
	for name, value := range prices {
		price, err := strconv.ParseFloat(value, 64)
		if err != nil || !(price >= 0 && price < 1e9) || len(validation.IsQualifiedName(name)) > 0 {
			return q, fmt.Errorf("price must be such as cpu=0.03,memory=0.004, not %s=%s", name, value)
		}
		if q.Prices == nil {
			q.Prices = map[corev1.ResourceName]float64{}
		}
		q.Prices[corev1.ResourceName(name)] = price
	}
	return q, nil
}

// Read answers a query with the rights of the user of r and config. The right to list ResourceBindings, and to read
// labels if they are the groups, is required; without others, parts of the report are unknown.
func Read(ctx context.Context, r client.Reader, config *rest.Config, q Query) (usage.Report, error) {
	var bindings workv1alpha2.ResourceBindingList
	if err := r.List(ctx, &bindings, client.InNamespace(q.Namespace)); err != nil {
		return usage.Report{}, fmt.Errorf("list ResourceBindings: %w", err)
	}
	var f usage.Facts
	for i := range bindings.Items {
		f.Bindings = append(f.Bindings, &bindings.Items[i])
	}
	if q.By == usage.Label {
		var err error
		if f.Labels, err = labelsOf(ctx, r, q.Namespace, f.Bindings); err != nil {
			return usage.Report{}, err
		}
	}
	var unknown usage.Report
	note := func(what, verb string, err error) {
		switch lacks := why.MissingOf(err, verb, q.Namespace); {
		case lacks != nil:
			unknown.Missing = append(unknown.Missing, *lacks)
		case err != nil:
			unknown.Notes = append(unknown.Notes, what+": "+err.Error())
		}
	}
	var err error
	f.Pods, err = podsOf(ctx, config, q.Namespace)
	note("the amounts used are unknown", "list", err)
	var quotas policyv1alpha1.FederatedResourceQuotaList
	if q.By == usage.Namespace {
		err := r.List(ctx, &quotas, client.InNamespace(q.Namespace))
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			err = nil
		}
		note("quotas are unknown", "list", err)
		f.Quotas = quotas.Items
	}
	if !q.Since.IsZero() && q.By != usage.Label {
		err := why.AskHub(ctx, config, history.UsagePath, map[string]string{"namespace": q.Namespace,
			"at": q.Since.UTC().Format(time.RFC3339)}, &f.Before)
		note("the change is unknown", "list", err)
	}
	report := usage.ReportOf(q.Grouping, f)
	report.Missing, report.Notes = unknown.Missing, unknown.Notes
	return report, nil
}

// podsOf returns what the pods of all members use, as far as they answer.
func podsOf(ctx context.Context, config *rest.Config, namespace string) ([]usage.Pod, error) {
	path := "/apis/" + metricsv1beta1.SchemeGroupVersion.String()
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	var list metricsv1beta1.PodMetricsList
	if err := why.AskHub(ctx, config, path+"/pods", nil, &list); err != nil {
		return nil, err
	}
	pods := make([]usage.Pod, 0, len(list.Items))
	for _, item := range list.Items {
		// A member may answer with anything.
		maps.DeleteFunc(item.Labels, func(_, value string) bool { return len(validation.IsValidLabelValue(value)) > 0 })
		for _, c := range item.Containers {
			maps.DeleteFunc(c.Usage, func(name corev1.ResourceName, _ resource.Quantity) bool {
				return len(validation.IsQualifiedName(string(name))) > 0
			})
			pods = append(pods, usage.Pod{Cluster: item.Annotations[fleetmetrics.QueryFromCluster], Namespace: item.Namespace,
				Labels: item.Labels, Usage: c.Usage})
		}
	}
	return pods, nil
}

// labelsOf returns the labels of the templates of bindings, and of their namespaces.
func labelsOf(ctx context.Context, r client.Reader, namespace string,
	bindings []workv1alpha2.Binding) (map[overview.Object]map[string]string, error) {
	all := map[overview.Object]map[string]string{}
	read := map[schema.GroupVersionKind]bool{}
	for _, b := range bindings {
		gvk := schema.FromAPIVersionAndKind(b.BindingSpec().Resource.APIVersion, b.BindingSpec().Resource.Kind)
		if read[gvk] || !slices.ContainsFunc(usage.PartsOf(b), usage.Part.Counts) {
			continue // such as a ConfigMap
		}
		read[gvk] = true
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		err := r.List(ctx, list, client.InNamespace(namespace))
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue // its definition was deleted
		}
		if err != nil {
			return nil, fmt.Errorf("list the labels of %s: %w", gvk.GroupKind(), err)
		}
		for _, o := range list.Items {
			all[overview.Object{Group: gvk.Group, Kind: gvk.Kind, Namespace: o.Namespace, Name: o.Name}] = o.Labels
		}
	}
	var err error
	var namespaces corev1.NamespaceList
	if namespace == "" {
		err = r.List(ctx, &namespaces)
	} else {
		namespaces.Items = make([]corev1.Namespace, 1)
		err = r.Get(ctx, client.ObjectKey{Name: namespace}, &namespaces.Items[0])
	}
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read the labels of namespaces: %w", err)
	}
	for _, n := range namespaces.Items {
		all[overview.Object{Name: cmp.Or(n.Name, namespace)}] = n.Labels
	}
	return all, nil
}
