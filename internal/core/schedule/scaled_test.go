package schedule

import (
	"testing"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// scaledTo is the binding of a Deployment of as many replicas, placed as listed, that autoscalers of the members have scaled.
func scaledTo(b *workv1alpha2.ResourceBinding, list, made string, replicas int32) *workv1alpha2.ResourceBinding {
	placed(b, list)
	b.Spec.Replicas = replicas
	has := map[string]int32{}
	for _, t := range targets(made) {
		has[t.Name] = t.Replicas
	}
	SetScaled(b, has)
	return b
}

func TestReplicasStayWhereTheMembersAutoscalersPutThem(t *testing.T) {
	three := fleet(named("a", "b", "c")...)
	forgotten := scaledTo(deployment(9, equally()), "a=3 b=3 c=3", "a=7 b=1 c=1", 9)
	SetScaled(forgotten, nil)
	forgotten.Spec.Replicas = 12
	broken := placed(deployment(8, equally()), "a=3 b=3 c=3")
	broken.Annotations[ScaledAnnotation] = "{"
	for name, test := range map[string]struct {
		binding workv1alpha2.Binding
		want    string
	}{
		"more, in one cluster":                       {scaledTo(deployment(9, equally()), "a=3 b=3 c=3", "a=7 b=3 c=3", 13), "a=7 b=3 c=3"},
		"fewer, against the weights":                 {scaledTo(deployment(9, equally()), "a=3 b=3 c=3", "a=1 b=1 c=3", 5), "a=1 b=1 c=3"},
		"more than there is room for":                {scaledTo(deployment(9, byAvailability()), "a=3 b=3 c=3", "a=30 b=3 c=3", 36), "a=30 b=3 c=3"},
		"of another number of replicas nothing said": {scaledTo(deployment(9, equally()), "a=3 b=3 c=3", "a=7 b=3 c=3", 12), "a=4 b=4 c=4"},
		"in a cluster that is gone":                  {scaledTo(deployment(9, equally()), "a=3 b=3 gone=3", "a=3 b=3 gone=6", 12), "a=4 b=4 c=4"},
		"when all may move":                          {rebalanced(scaledTo(deployment(9, equally()), "a=3 b=3 c=3", "a=10 b=1 c=1", 12)), "a=4 b=4 c=4"},
		"when the hub scales again":                  {forgotten, "a=4 b=4 c=4"},
		"an annotation that somebody broke":          {broken, "a=3 b=3 c=2"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := schedule(t, test.binding, three, room("a=9 b=9 c=9")); got != test.want {
				t.Errorf("placed is %s, want %s", got, test.want)
			}
		})
	}
}
