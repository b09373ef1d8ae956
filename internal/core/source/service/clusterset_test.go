package service

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/source/mcs"
)

const betaVersion = "multicluster.x-k8s.io/v1beta1"

// exported is the ServiceExport of a cluster, of a Service of a type.
func exported(cluster string, kind multiclusterv1alpha1.ServiceImportType) mcs.Export {
	return mcs.Export{Cluster: cluster, Created: time.Unix(0, 0).UTC(), Service: &mcs.Service{ImportType: kind,
		Ports: []multiclusterv1alpha1.ServicePort{{Name: "http", Protocol: "TCP", Port: 80}}}}
}

// importsOf decides about the exports of cluster a and a consumer b, and describes the import of b as TYPE IPS.
func importsOf(t *testing.T, kind multiclusterv1alpha1.ServiceImportType, b Consumer,
	standing []*workv1alpha1.Work) (text string, stuck []string, works []*workv1alpha1.Work) {
	t.Helper()
	exports := []mcs.Export{exported("a", kind)}
	x, stuck, err := ClusterSet(Owner{ClusterSetOwner, "shop", "web"}, exports, mcs.Merge(exports),
		map[string]Consumer{"b": b}, standing)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Decide(x, standing, nil, func() string { return "id" })
	if err != nil {
		t.Fatal(err)
	}
	if i := standingImports(d.Works)["b"]; i != nil {
		text = fmt.Sprint(i.APIVersion, " ", i.Spec.Type, " ", i.Spec.IPs, i.Spec.IPFamilies)
	}
	return text, stuck, d.Works
}

func TestImportOfAConsumer(t *testing.T) {
	const clusterSetIP, headless = multiclusterv1alpha1.ClusterSetIP, multiclusterv1alpha1.Headless
	ip := &mcs.Service{ImportType: clusterSetIP, ClusterIPs: []string{"10.0.0.7"},
		Families: []corev1.IPFamily{corev1.IPv4Protocol}}
	none := &mcs.Service{ImportType: headless}
	_, _, withIP := importsOf(t, clusterSetIP, Consumer{betaVersion, ip}, nil)
	_, _, withNone := importsOf(t, headless, Consumer{betaVersion, none}, nil)
	const has, hasNone = betaVersion + " ClusterSetIP [10.0.0.7] [IPv4]", betaVersion + " Headless [] []"
	for story, tc := range map[string]struct {
		kind     multiclusterv1alpha1.ServiceImportType
		consumer Consumer
		standing []*workv1alpha1.Work
		want     string
		stuck    string
	}{
		"no derived Service yet":          {clusterSetIP, Consumer{betaVersion, nil}, nil, "", ""},
		"no address yet":                  {clusterSetIP, Consumer{betaVersion, &mcs.Service{ImportType: clusterSetIP}}, nil, "", ""},
		"an address":                      {clusterSetIP, Consumer{betaVersion, ip}, nil, has, ""},
		"headless":                        {headless, Consumer{betaVersion, nil}, nil, hasNone, ""},
		"the cluster is silent":           {clusterSetIP, Consumer{betaVersion, nil}, withIP, has, ""},
		"and its kinds are not known":     {clusterSetIP, Consumer{"", nil}, withIP, has, ""},
		"a new cluster without the kinds": {clusterSetIP, Consumer{"", ip}, nil, "", ""},
		"it is to become headless":        {headless, Consumer{betaVersion, ip}, withIP, has, "b"},
		"it is to become another":         {clusterSetIP, Consumer{betaVersion, none}, withNone, hasNone, "b"},
		"silent, to become another":       {clusterSetIP, Consumer{betaVersion, nil}, withNone, hasNone, ""},
		"an older version of the API": {clusterSetIP, Consumer{"multicluster.x-k8s.io/v1alpha1", ip}, nil,
			"multicluster.x-k8s.io/v1alpha1 ClusterSetIP [10.0.0.7] [IPv4]", ""},
	} {
		got, stuck, _ := importsOf(t, tc.kind, tc.consumer, tc.standing)
		got = strings.Replace(got, "][", "] [", 1)
		if got != tc.want || strings.Join(stuck, " ") != tc.stuck {
			t.Errorf("%s: %q, stuck %v, want %q, %q", story, got, stuck, tc.want, tc.stuck)
		}
	}
}

// The exports in the Works of imports count until a cluster responds.
func TestExportsAreRecalled(t *testing.T) {
	_, _, works := importsOf(t, multiclusterv1alpha1.Headless, Consumer{betaVersion, nil}, nil)
	again := mcs.Merge([]mcs.Export{Recalled(works)["a"]})
	want := mcs.Merge([]mcs.Export{exported("a", multiclusterv1alpha1.Headless)})
	if fmt.Sprint(*again.Spec) != fmt.Sprint(*want.Spec) || !slices.Equal(again.Exporters, []string{"a"}) {
		t.Errorf("recalled is %+v, want %+v", again.Spec, want.Spec)
	}
	if got := Imported(works); len(got) != 1 || !got["b"] {
		t.Errorf("the consumers are %v", got)
	}
}
