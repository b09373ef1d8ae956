package shipped_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/shipped"
)

// operations by the letters of the table of kinds that people know from Karmada, and more where that was too little.
var letters = map[byte]configv1alpha1.InterpreterOperation{
	'C': configv1alpha1.InterpreterOperationInterpretComponent,
	'D': configv1alpha1.InterpreterOperationInterpretDependency,
	'H': configv1alpha1.InterpreterOperationInterpretHealth, 'R': configv1alpha1.InterpreterOperationInterpretReplica,
	'V': configv1alpha1.InterpreterOperationReviseReplica, 'T': configv1alpha1.InterpreterOperationRetain,
	'A': configv1alpha1.InterpreterOperationAggregateStatus, 'S': configv1alpha1.InterpreterOperationInterpretStatus,
}

var answered = map[schema.GroupKind]string{
	{Group: "batch.volcano.sh", Kind: "Job"}:                      "CDHAS",
	{Group: "flink.apache.org", Kind: "FlinkDeployment"}:          "CDHRAS",
	{Group: "helm.toolkit.fluxcd.io", Kind: "HelmRelease"}:        "DHTAS",
	{Group: "kustomize.toolkit.fluxcd.io", Kind: "Kustomization"}: "DHTAS",
	{Group: "source.toolkit.fluxcd.io", Kind: "GitRepository"}:    "DHTAS",
	{Group: "source.toolkit.fluxcd.io", Kind: "Bucket"}:           "DHTAS",
	{Group: "source.toolkit.fluxcd.io", Kind: "HelmChart"}:        "DHTAS",
	{Group: "source.toolkit.fluxcd.io", Kind: "HelmRepository"}:   "DHTAS",
	{Group: "source.toolkit.fluxcd.io", Kind: "OCIRepository"}:    "DHTAS",
	{Group: "kubeflow.org", Kind: "Notebook"}:                     "DHRAS",
	{Group: "kubeflow.org", Kind: "PyTorchJob"}:                   "CDHAS",
	{Group: "kubeflow.org", Kind: "TFJob"}:                        "CDHAS",
	{Group: "kubeflow.org", Kind: "MPIJob"}:                       "CDHAS",
	{Group: "kyverno.io", Kind: "ClusterPolicy"}:                  "HAS",
	{Group: "kyverno.io", Kind: "Policy"}:                         "HAS",
	{Group: "ray.io", Kind: "RayCluster"}:                         "CDHAS",
	{Group: "ray.io", Kind: "RayJob"}:                             "CDHAS",
	{Group: "ray.io", Kind: "RayService"}:                         "CDHAS",
	{Group: "sparkoperator.k8s.io", Kind: "SparkApplication"}:     "CDHAS",
}

func TestShippedKindsImplementTheirOperations(t *testing.T) {
	tier := shipped.Tier()
	for kind, want := range answered {
		for letter, operation := range letters {
			got := tier.Find(kind.WithVersion("v1"), operation).Evaluate != nil
			if got != strings.Contains(want, string(letter)) {
				t.Errorf("%s answers %s: %v", kind, operation, got)
			}
		}
	}
	for _, operation := range letters {
		if tier.Find(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, operation).Evaluate != nil {
			t.Errorf("a script answers %s of a Deployment", operation)
		}
	}
}

func TestShippedScriptsCompile(t *testing.T) {
	all, err := shipped.Customizations()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != len(answered) {
		t.Errorf("%d customizations for %d kinds", len(all), len(answered))
	}
	for _, c := range all {
		for _, s := range script.Scripts(c.Spec.Customizations) {
			if _, err := script.Compile(c.Name, s.Operation, s.Source, nil); err != nil {
				t.Error(err)
			}
		}
	}
}
