package kruise

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/argosy-io/argosy/internal/core/admission/dialect"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/workload/kruise"
)

// With the defaults of the hub, the webhook of a member adds nothing that the hub sets or reads, in either version, so
// that the hub does not write a second time.
func TestWebhookAddsNothingToTheDefaultsOfTheHub(t *testing.T) {
	d := Defaulter{
		Template: func(p *corev1.PodTemplateSpec) { p.Spec.RestartPolicy = corev1.RestartPolicyAlways },
		Claim:    func(*corev1.PersistentVolumeClaim) {},
	}
	const alpha, beta = "apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1"
	for _, version := range []string{alpha, beta} {
		for name, text := range map[string]string{
			"CloneSet": cloneSetText, "CloneSet in place": cloneSetText + map[string]string{
				alpha: "  updateStrategy: {type: InPlaceIfPossible, partition: 1}\n",
				beta:  "  updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, partition: 1}}\n"}[version],
			"StatefulSet": statefulSetText, "StatefulSet, OnDelete": statefulSetText + "  updateStrategy: {type: OnDelete}\n",
			"StatefulSet with values": statefulSetText + "  replicas: 3\n  podManagementPolicy: Parallel\n" +
				"  updateStrategy: {rollingUpdate: {maxUnavailable: 50%}}\n",
		} {
			hub := object(t, strings.NewReplacer(alpha, version, beta, version).Replace(text))
			dialect.Default(hub)
			for _, member := range []string{alpha, beta} {
				sent, err := kruise.Convert(hub, member)
				if err != nil {
					t.Fatal(err)
				}
				stored := sent.DeepCopy()
				if err := d.Default(stored); err != nil {
					t.Fatal(err)
				}
				if diff := execute.Differences(sent, stored); len(diff) > 0 {
					t.Errorf("%s %s in a member with %s differs: %v", version, name, member, diff)
				}
				for _, o := range []map[string]any{sent.Object, stored.Object} {
					spec := o["spec"].(map[string]any)
					delete(spec, "template") // the defaults of pods and claims are the member's
					delete(spec, "persistentVolumeClaimRetentionPolicy")
					if update := spec["updateStrategy"].(map[string]any); version != member {
						delete(update, "inPlaceUpdateStrategy") // empty, which a conversion leaves out
					}
				}
				if diff := cmp.Diff(sent.Object["spec"], stored.Object["spec"]); diff != "" {
					t.Errorf("%s %s: the webhook of a member with %s adds: %s", version, name, member, diff)
				}
			}
		}
	}
}
