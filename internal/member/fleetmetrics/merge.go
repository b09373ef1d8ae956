package fleetmetrics

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	custommetrics "k8s.io/metrics/pkg/apis/custom_metrics"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/argosy-io/argosy/internal/member"
)

// QueryFromCluster is the annotation with the cluster that an object was read from, as in Karmada.
const QueryFromCluster = "resource.karmada.io/query-from-cluster"

// bounded is the body of a response. It fails at the limit of one response, and at that of all responses in memory.
type bounded struct {
	io.Reader
	of   *asking
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if tooBig := b.count(int64(n)); tooBig != nil {
		return 0, tooBig
	}
	return n, err
}

// itemSize is what an item takes in memory beyond its text.
const itemSize = 512

// count adds bytes to what is in memory.
func (b *bounded) count(n int64) error {
	b.left -= n
	b.of.read.Add(n)
	if b.of.pending.Add(n) > b.of.Limits.Memory || b.left < 0 {
		return errTooBig
	}
	return nil
}

// decodeItems reads a list, and calls each for its items, one at a time.
func decodeItems(body *bounded, each func(*json.Decoder) error) error {
	dec := json.NewDecoder(body)
	if err := expect(dec, '{'); err != nil {
		return err
	}
	for dec.More() {
		field, err := dec.Token()
		if err != nil {
			return err
		}
		if field != "items" {
			var other json.RawMessage
			if err := dec.Decode(&other); err != nil {
				return err
			}
			continue
		}
		first, err := dec.Token()
		switch {
		case err != nil:
			return err
		case first == nil: // no items
			continue
		case first != json.Delim('['):
			return errors.New("items are not a list")
		}
		for dec.More() {
			if err := cmp.Or(body.count(itemSize), each(dec)); err != nil {
				return err
			}
		}
		if err := expect(dec, ']'); err != nil {
			return err
		}
	}
	return expect(dec, '}')
}

func expect(dec *json.Decoder, want json.Delim) error {
	if token, err := dec.Token(); err != nil || token != want {
		return cmp.Or(err, fmt.Errorf("%q is missing", want.String()))
	}
	return nil
}

// unreadable is the reason for a response that is no list of metrics.
func unreadable(err error) error {
	if err == nil || errors.Is(err, errTooBig) {
		return err
	}
	return fmt.Errorf("the metrics are not readable: %.200w", err)
}

// usageItem is a PodMetrics or a NodeMetrics.
type usageItem struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Timestamp         metav1.Time                       `json:"timestamp"`
	Window            metav1.Duration                   `json:"window"`
	Containers        []metricsv1beta1.ContainerMetrics `json:"containers,omitempty"`
	Usage             corev1.ResourceList               `json:"usage,omitempty"`
}

// copyItem reads the next item, and writes it with the cluster that it is from. What is not decoded is dropped, so that
// nothing of one member prevents clients from reading the others.
func copyItem(dec *json.Decoder, into *bytes.Buffer, kind, cluster string) error {
	var item usageItem
	if err := dec.Decode(&item); err != nil {
		return err
	}
	item.APIVersion, item.Kind = metricsv1beta1.SchemeGroupVersion.String(), kind
	item.Annotations = map[string]string{QueryFromCluster: cluster}
	if into.Len() > 0 {
		into.WriteByte(',')
	}
	enc := json.NewEncoder(into)
	enc.SetEscapeHTML(false) // it would take several times the memory
	return enc.Encode(item)
}

// usage answers with the usage of pods or nodes of all members: of each, with its cluster in an annotation. One that is
// asked for by its name, and is in several members, is a conflict, as in Karmada.
func (a *asking) usage(ctx context.Context, w http.ResponseWriter, at *url.URL) error {
	parts, single := make([]bytes.Buffer, len(a.clusters)), a.info.Verb == "get"
	kind := map[string]string{"pods": "PodMetrics", "nodes": "NodeMetrics"}[a.info.Resource]
	why := a.requestAll(ctx, []*url.URL{at}, func(i int, body *bounded) error {
		copyNext := func(dec *json.Decoder) error { return copyItem(dec, &parts[i], kind, a.clusters[i]) }
		err := error(nil)
		if single {
			err = copyNext(json.NewDecoder(body))
		} else {
			err = decodeItems(body, copyNext)
		}
		return unreadable(err)
	})
	if err := a.outcome(ctx, why, single); err != nil {
		return err
	}
	if single {
		return a.writeSingle(w, parts, why)
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"kind":%q,"apiVersion":%q,"metadata":{},"items":[`, kind+"List", metricsv1beta1.SchemeGroupVersion)
	first := true
	for i := range parts {
		if why[i] != nil || parts[i].Len() == 0 {
			continue
		}
		if !first {
			_, _ = w.Write([]byte{','})
		}
		first = false
		_, _ = parts[i].WriteTo(w) // fails only if the client is gone
	}
	_, _ = w.Write([]byte("]}"))
	return nil
}

// writeSingle writes the one object that was found.
func (a *asking) writeSingle(w http.ResponseWriter, parts []bytes.Buffer, why []error) error {
	resource := schema.GroupResource{Group: a.info.APIGroup, Resource: a.info.Resource}
	var found []int
	silent := false
	for i := range parts {
		if why[i] == nil {
			found = append(found, i)
		}
		silent = silent || errors.Is(why[i], errSilent)
	}
	switch {
	case len(found) == 1:
		w.Header().Set("Content-Type", "application/json")
		_, _ = parts[found[0]].WriteTo(w) // fails only if the client is gone
		return nil
	case len(found) > 1:
		return apierrors.NewConflict(resource, a.info.Name, fmt.Errorf(
			"it is in more than one cluster: %s and %s; list %s instead", a.clusters[found[0]], a.clusters[found[1]],
			a.info.Resource))
	case silent:
		return apierrors.NewServiceUnavailable(fmt.Sprintf("%s %q is in no cluster that responds", resource, a.info.Name))
	}
	return apierrors.NewNotFound(resource, a.info.Name)
}

// custom answers with a custom metric: for each object the sum over the members, as in Karmada.
func (a *asking) custom(ctx context.Context, w http.ResponseWriter, at *url.URL) error {
	var mu sync.Mutex
	sums := map[corev1.ObjectReference]*member.MetricValue{}
	read := func(_ int, body *bounded) error {
		var values []member.MetricValue
		err := decodeItems(body, func(dec *json.Decoder) error {
			var v member.MetricValue
			err := dec.Decode(&v)
			values = append(values, v)
			return err
		})
		if err != nil {
			return unreadable(err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, v := range values {
			of := corev1.ObjectReference{Kind: v.DescribedObject.Kind, Namespace: v.DescribedObject.Namespace,
				Name: v.DescribedObject.Name}
			sum, known := sums[of]
			if !known {
				sums[of] = &v
				continue
			}
			sum.Value.Add(v.Value)
			if v.Timestamp.Before(&sum.Timestamp) { // a sum is as old as its oldest part
				sum.Timestamp = v.Timestamp
			}
		}
		return nil
	}
	why := a.requestAll(ctx, bothVersions(at), read)
	if err := a.outcome(ctx, why, true); err != nil {
		return err
	}
	if len(sums) == 0 {
		return apierrors.NewNotFound(schema.GroupResource{Group: a.info.APIGroup, Resource: a.info.Resource},
			cmp.Or(a.info.Subresource, a.info.Name))
	}
	a.writeValues(w, sums)
	return nil
}

// bothVersions returns the address in its own version of the API and in the other one: members may serve only one.
func bothVersions(at *url.URL) []*url.URL {
	prefix, other := "/apis/"+custommetrics.GroupName+"/", *at
	version, rest, _ := strings.Cut(strings.TrimPrefix(at.Path, prefix), "/")
	otherVersion := map[string]string{"v1beta1": "v1beta2", "v1beta2": "v1beta1"}[version]
	other.Path = prefix + otherVersion + "/" + rest
	other.RawPath = prefix + otherVersion + strings.TrimPrefix(at.RawPath, prefix+version)
	return []*url.URL{at, &other}
}

// writeValues writes the values in the version that the request is in, sorted by object.
func (a *asking) writeValues(w http.ResponseWriter, sums map[corev1.ObjectReference]*member.MetricValue) {
	values := slices.SortedFunc(maps.Values(sums), func(a, b *member.MetricValue) int {
		return cmp.Or(strings.Compare(a.DescribedObject.Namespace, b.DescribedObject.Namespace),
			strings.Compare(a.DescribedObject.Name, b.DescribedObject.Name))
	})
	for _, v := range values {
		v.InVersion(a.info.APIVersion)
	}
	writeJSON(w, map[string]any{"kind": "MetricValueList", "apiVersion": a.info.APIGroup + "/" + a.info.APIVersion,
		"metadata": map[string]any{}, "items": values})
}
