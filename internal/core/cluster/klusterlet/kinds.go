package klusterlet

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/api/wellknown"
)

// KindsWork is the name of the ManifestWork by which the hub asks a klusterlet which kinds its cluster serves.
const KindsWork = "argosy-kinds"

// versionsAsked is the number of versions of a kind that the hub asks for.
const versionsAsked = 4

// AskForKinds returns the ManifestWork that asks for CustomResourceDefinitions by their names, plural.group. The
// klusterlet reads them and changes nothing. was is the present one; nil for none.
func AskForKinds(cluster string, definitions []string, was *ocmv1.ManifestWork) *ocmv1.ManifestWork {
	// A ManifestWork has at least one manifest, and each klusterlet has this definition.
	definitions = append(slices.Clone(definitions), "appliedmanifestworks.work.open-cluster-management.io")
	mw := &ocmv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: KindsWork}}
	if was != nil {
		mw = was.DeepCopy()
	}
	metav1.SetMetaDataAnnotation(&mw.ObjectMeta, wellknown.WorkAnnotation, "")
	paths := []ocmv1.JsonPath{{Name: "kind", Path: ".spec.names.kind"}}
	for i := range versionsAsked {
		for _, field := range []string{"name", "served"} {
			paths = append(paths, ocmv1.JsonPath{Name: fmt.Sprintf("%s%d", field, i),
				Path: fmt.Sprintf(".spec.versions[%d].%s", i, field)})
		}
	}
	mw.Spec = ocmv1.ManifestWorkSpec{ManifestConfigs: []ocmv1.ManifestConfigOption{{
		ResourceIdentifier: ocmv1.ResourceIdentifier{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions",
			Name: "*"},
		FeedbackScrapeType: ocmv1.FeedbackPoll,
		FeedbackRules:      []ocmv1.FeedbackRule{{Type: ocmv1.FeedbackJSONPaths, JsonPaths: paths}},
		UpdateStrategy:     &ocmv1.UpdateStrategy{Type: ocmv1.UpdateStrategyReadOnly},
	}}}
	for _, name := range slices.Sorted(slices.Values(definitions)) {
		mw.Spec.Workload.Manifests = append(mw.Spec.Workload.Manifests, ocmv1.Manifest{RawExtension: runtime.RawExtension{
			Raw: fmt.Appendf(nil, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":%q}}`, name)}})
	}
	return mw
}

// Served returns the kinds of CustomResourceDefinitions that a cluster serves, by the answer to AskForKinds, and why
// others are unknown, by group. known is false before the answer. mw may be nil.
func Served(mw *ocmv1.ManifestWork) (lists []*metav1.APIResourceList, failed map[string]string, known bool) {
	if mw == nil || len(mw.Status.ResourceStatus.Manifests) < len(mw.Spec.Workload.Manifests) {
		return nil, nil, false
	}
	byVersion := map[string]*metav1.APIResourceList{}
	failed = map[string]string{}
	for _, m := range mw.Status.ResourceStatus.Manifests {
		plural, group, _ := strings.Cut(m.ResourceMeta.Name, ".")
		switch available := meta.FindStatusCondition(m.Conditions, ocmv1.Available); {
		case available == nil:
			return nil, nil, false
		case available.Status == metav1.ConditionUnknown:
			failed[group] = available.Message
			continue
		case available.Status != metav1.ConditionTrue:
			continue
		}
		values := map[string]string{}
		for _, v := range m.StatusFeedbacks.Values {
			switch {
			case v.Value.String != nil:
				values[v.Name] = *v.Value.String
			case v.Value.Boolean != nil && *v.Value.Boolean:
				values[v.Name] = "true"
			}
		}
		for i := range versionsAsked {
			version := values[fmt.Sprintf("name%d", i)]
			if version == "" || values["kind"] == "" || values[fmt.Sprintf("served%d", i)] != "true" {
				continue
			}
			gv := group + "/" + version
			if byVersion[gv] == nil {
				byVersion[gv] = &metav1.APIResourceList{GroupVersion: gv}
				lists = append(lists, byVersion[gv])
			}
			byVersion[gv].APIResources = append(byVersion[gv].APIResources,
				metav1.APIResource{Name: plural, Kind: values["kind"]})
		}
	}
	return lists, failed, true
}
