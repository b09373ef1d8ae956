package why

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
)

func TestRoomMetricHasOneUnitAndIsNeverNegative(t *testing.T) {
	q := resource.MustParse
	for _, c := range []struct {
		name                       string
		resource                   corev1.ResourceName
		all, allocated, allocating string
		want                       string
	}{
		{"whole cores", "cpu", "96", "32", "0", "cpu: 64 of 96 free"},
		{"thousandths of a core", "cpu", "96", "31960m", "0", "cpu: 64.04 of 96 free"},
		{"what is allocating is not free", "cpu", "10", "2", "500m", "cpu: 7.5 of 10 free"},
		{"more is requested than there is", "cpu", "96", "128040m", "0", "cpu: over-committed by 32.04, has 96"},
		{"whole cores too many", "cpu", "96", "128", "0", "cpu: over-committed by 32, has 96"},
		{"nothing is left", "cpu", "4", "4", "0", "cpu: 0 of 4 free"},
		{"memory that nodes tell in Ki", "memory", "65970992Ki", "33554432Ki", "1Gi", "memory: 29.91Gi of 62.91Gi free"},
		{"little memory of much", "memory", "64Gi", "65024Mi", "0", "memory: 0.5Gi of 64Gi free"},
		{"bytes without a suffix", "ephemeral-storage", "107374182400", "10Gi", "0", "ephemeral-storage: 90Gi of 100Gi free"},
		{"pods are counted", "pods", "110", "20", "0", "pods: 90 of 110 free"},
		{"devices are counted", "nvidia.com/gpu", "8", "9", "0", "nvidia.com/gpu: over-committed by 1, has 8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &clusterv1alpha1.ResourceSummary{
				Allocatable: corev1.ResourceList{c.resource: q(c.all)},
				Allocated:   corev1.ResourceList{c.resource: q(c.allocated)},
				Allocating:  corev1.ResourceList{c.resource: q(c.allocating)},
			}
			if got := strings.Join(roomOf(s), "; "); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestRequestAndFreeAmountHaveReadableUnits(t *testing.T) {
	over := resource.MustParse("32040m")
	for _, c := range []struct {
		free Free
		want string
	}{
		{Free{Resource: "cpu", Free: resource.MustParse("7500m"), Request: resource.MustParse("100m")},
			"7.5 cpu free, a replica requests 0.1"},
		{Free{Resource: "memory", Free: resource.MustParse("65970992Ki"), Request: resource.MustParse("512Mi")},
			"62.91Gi memory free, a replica requests 512Mi"},
		{Free{Resource: "cpu", OverCommitted: &over, Request: resource.MustParse("1")},
			"cpu over-committed by 32.04, a replica requests 1"},
	} {
		if got := c.free.text(); got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}
