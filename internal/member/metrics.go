package member

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	customv1beta2 "k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"

	"github.com/argosy-io/argosy/internal/core/adjust/autoscale"
)

const (
	resourceMetrics = "metrics.k8s.io"
	customMetrics   = "custom.metrics.k8s.io"
)

// ErrNoMetrics means that a member does not serve a metrics API. The wrapping error names the API and what to do.
var ErrNoMetrics = errors.New("the API is not served")

// Pods returns the pods that a selector selects. It requests them from the member, because callers need them seldom.
func (m *Member) Pods(ctx context.Context, namespace, selector string) ([]corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, m.o.Timeout)
	defer cancel()
	// Read from the API server's cache, which is as recent as the metrics.
	list, err := m.conn().core.Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", cause(err))
	}
	return list.Items, nil
}

// Warnings returns the warnings of a reason in a namespace, at most 500. It requests them from the member, because
// callers need them seldom.
func (m *Member) Warnings(ctx context.Context, namespace, reason string) ([]corev1.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, m.o.Timeout)
	defer cancel()
	list, err := m.conn().core.Events(namespace).List(ctx, metav1.ListOptions{Limit: 500,
		FieldSelector: fields.Set{"type": corev1.EventTypeWarning, "reason": reason}.String()})
	if err != nil {
		return nil, fmt.Errorf("list events: %w", cause(err))
	}
	return list.Items, nil
}

// Usage returns the resource usage of selected pods, from metrics.k8s.io.
func (m *Member) Usage(ctx context.Context, namespace, selector string) ([]autoscale.Usage, error) {
	var list struct {
		Items []struct {
			Metadata   metav1.ObjectMeta `json:"metadata"`
			Timestamp  metav1.Time       `json:"timestamp"`
			Window     metav1.Duration   `json:"window"`
			Containers []struct {
				Name  string              `json:"name"`
				Usage corev1.ResourceList `json:"usage"`
			} `json:"containers"`
		} `json:"items"`
	}
	address := "/apis/" + resourceMetrics + "/v1beta1/namespaces/" + namespace + "/pods"
	if err := m.metrics(ctx, resourceMetrics, address, selector, "", &list); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("%s: %w: install metrics-server there", resourceMetrics, ErrNoMetrics)
		}
		return nil, fmt.Errorf("read %s: %w", resourceMetrics, err)
	}
	out := make([]autoscale.Usage, len(list.Items))
	for i, item := range list.Items {
		out[i] = autoscale.Usage{Pod: item.Metadata.Name, At: item.Timestamp.Time, Window: item.Window.Duration,
			Containers: map[string]corev1.ResourceList{}}
		for _, c := range item.Containers {
			out[i].Containers[c.Name] = c.Usage
		}
	}
	return out, nil
}

// MetricValue is an item of a MetricValueList. Metric and WindowSeconds are of v1beta2; MetricName, Selector and Window
// of v1beta1.
type MetricValue struct {
	DescribedObject corev1.ObjectReference          `json:"describedObject"`
	Metric          *customv1beta2.MetricIdentifier `json:"metric,omitempty"`
	MetricName      string                          `json:"metricName,omitempty"`
	Selector        *metav1.LabelSelector           `json:"selector,omitempty"`
	Timestamp       metav1.Time                     `json:"timestamp"`
	WindowSeconds   *int64                          `json:"windowSeconds,omitempty"`
	Window          *int64                          `json:"window,omitempty"`
	Value           resource.Quantity               `json:"value"`
}

// InVersion moves the fields to those of a version of the API.
func (v *MetricValue) InVersion(version string) {
	id := customv1beta2.MetricIdentifier{Name: v.MetricName, Selector: v.Selector}
	if v.Metric != nil {
		id = *v.Metric
	}
	window := cmp.Or(v.WindowSeconds, v.Window)
	if version == "v1beta1" {
		v.Metric, v.MetricName, v.Selector, v.WindowSeconds, v.Window = nil, id.Name, id.Selector, nil, window
		return
	}
	v.Metric, v.MetricName, v.Selector, v.WindowSeconds, v.Window = &id, "", nil, window, nil
}

// metricValues is a MetricValueList, of any version.
type metricValues struct {
	Items []MetricValue `json:"items"`
	// An object's metric of the older version may come alone.
	Value *resource.Quantity `json:"value"`
}

// PodMetric returns a metric of custom.metrics.k8s.io of each pod that a selector selects.
func (m *Member) PodMetric(ctx context.Context, namespace, selector string,
	metric autoscalingv2.MetricIdentifier) (autoscale.Reading, error) {
	var list metricValues
	if err := m.customMetric(ctx, namespace, "pods/*", selector, metric, &list); err != nil {
		return autoscale.Reading{}, err
	}
	r := autoscale.Reading{Pods: map[string]autoscale.Value{}}
	for _, item := range list.Items {
		window := time.Minute
		if seconds := cmp.Or(item.WindowSeconds, item.Window); seconds != nil {
			window = time.Duration(*seconds) * time.Second
		}
		r.Pods[item.DescribedObject.Name] = autoscale.Value{Milli: autoscale.Milli(item.Value), At: item.Timestamp.Time,
			Window: window}
	}
	return r, nil
}

// ObjectMetric returns a metric of custom.metrics.k8s.io for one object in the namespace, and never for another
// namespace, because the user may not be allowed to read it. For kind Namespace it is the metric of the namespace
// itself; the name is ignored.
func (m *Member) ObjectMetric(ctx context.Context, namespace string, of autoscalingv2.CrossVersionObjectReference,
	metric autoscalingv2.MetricIdentifier) (autoscale.Reading, error) {
	object := "metrics"
	var mapping Mapping
	if gvk := schema.FromAPIVersionAndKind(of.APIVersion,
		of.Kind); gvk.GroupKind() != (schema.GroupKind{Kind: "Namespace"}) {
		var err error
		if mapping, err = m.Mapping(aside(ctx), gvk); err != nil {
			return autoscale.Reading{}, cause(err)
		}
		if err := segment("name", of.Name); err != nil {
			return autoscale.Reading{}, err
		}
		object = mapping.Resource.GroupResource().String() + "/" + of.Name
	}
	var list metricValues
	if err := m.customMetric(ctx, namespace, object, "", metric, &list); err != nil {
		if apierrors.IsNotFound(err) && mapping.Namespaced && m.lacks(ctx, mapping, namespace, of.Name) {
			return autoscale.Reading{Absent: fmt.Sprintf("there is no %s %s in namespace %s", of.Kind, of.Name, namespace)}, nil
		}
		return autoscale.Reading{}, err
	}
	switch {
	case len(list.Items) > 0:
		return autoscale.Reading{Object: autoscale.Milli(list.Items[0].Value)}, nil
	case list.Value != nil:
		return autoscale.Reading{Object: autoscale.Milli(*list.Value)}, nil
	}
	return autoscale.Reading{}, fmt.Errorf("metric %s of %s %s has no value", metric.Name, of.Kind, of.Name)
}

// lacks reports whether an object is known not to be there.
func (m *Member) lacks(ctx context.Context, mapping Mapping, namespace, name string) bool {
	_, err := m.Client().Resource(mapping.Resource).Namespace(namespace).Get(aside(ctx), name, metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

func (m *Member) customMetric(ctx context.Context, namespace, object, selector string,
	metric autoscalingv2.MetricIdentifier, list *metricValues) error {
	if err := segment("metric", metric.Name); err != nil {
		return err
	}
	version, served := m.customVersion()
	if !served {
		if _, err := m.Discover(aside(ctx)); err != nil {
			return cause(err)
		}
		if version, served = m.customVersion(); !served {
			return fmt.Errorf("%s: %w: install a metrics adapter there, such as prometheus-adapter", customMetrics, ErrNoMetrics)
		}
	}
	address := "/apis/" + customMetrics + "/" + version + "/namespaces/" + namespace + "/" + object + "/" + metric.Name
	of := ""
	if metric.Selector != nil {
		s, err := metav1.LabelSelectorAsSelector(metric.Selector)
		if err != nil {
			return fmt.Errorf("the selector of metric %s: %w", metric.Name, err)
		}
		of = s.String()
	}
	if err := m.metrics(ctx, customMetrics, address, selector, of, list); err != nil {
		return fmt.Errorf("read metric %s: %w", metric.Name, err)
	}
	return nil
}

// customVersion returns the newest version of custom.metrics.k8s.io that the member was last seen to serve.
func (m *Member) customVersion() (string, bool) {
	a := &m.conn().apis
	a.mu.RLock()
	defer a.mu.RUnlock()
	var all []string
	for _, list := range a.all.Lists {
		if group, version, _ := strings.Cut(list.GroupVersion, "/"); group == customMetrics {
			all = append(all, version)
		}
	}
	if len(all) == 0 {
		return "", false
	}
	return slices.Max(all), true
}

// segment returns an error if a name cannot be part of a URL.
func segment(what, name string) error {
	if why := content.IsPathSegmentName(name); name == "" || len(why) > 0 {
		return fmt.Errorf("the %s %q is not valid: %s", what, name, cmp.Or(strings.Join(why, ", "), "it is empty"))
	}
	return nil
}

// hungPeriod is the interval of attempts to reach a metrics API that does not respond.
const hungPeriod = 30 * time.Second

// metrics reads a list from a metrics API; such lists cannot be watched. An API that does not respond gets half of the
// usual time, once.
func (m *Member) metrics(ctx context.Context, group, address, selector, of string, into any) error {
	if next, is := m.hung.Load(group); is && (m.o.Clock.Now().Before(next.(time.Time)) ||
		!m.hung.CompareAndSwap(group, next, m.o.Clock.Now().Add(hungPeriod))) {
		return errNoAnswer
	}
	own, cancel := context.WithTimeout(aside(ctx), m.o.Timeout/2)
	defer cancel()
	req := m.conn().core.RESTClient().Get().AbsPath(address).SetHeader("Accept", "application/json")
	if selector != "" {
		req = req.Param("labelSelector", selector)
	}
	if of != "" {
		req = req.Param("metricLabelSelector", of)
	}
	raw, err := req.DoRaw(own)
	switch {
	case err == nil:
		m.hung.Delete(group)
	case own.Err() != nil && ctx.Err() == nil:
		m.hung.Store(group, m.o.Clock.Now().Add(hungPeriod))
		return errNoAnswer
	default:
		var status apierrors.APIStatus
		if errors.As(err, &status) {
			m.hung.Delete(group)
		}
		return cause(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("read the response: %w", err)
	}
	return nil
}
