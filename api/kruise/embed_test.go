package kruise_test

import (
	"context"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"

	"github.com/argosy-io/argosy/api/argo"
	"github.com/argosy-io/argosy/api/kruise"
)

func TestAnAPIServerAcceptsTheDefinitions(t *testing.T) {
	for name, read := range map[string]func() ([]*apiextensionsv1.CustomResourceDefinition, error){
		"hub": kruise.Hub, "members": func() ([]*apiextensionsv1.CustomResourceDefinition, error) {
			return kruise.Member(kruise.Release1_8)
		}, "Argo": argo.CRDs,
		"members of 1.10": func() ([]*apiextensionsv1.CustomResourceDefinition, error) {
			return kruise.Member(kruise.Release1_10)
		},
	} {
		crds, err := read()
		if err != nil {
			t.Fatal(err)
		}
		if len(crds) < 5 {
			t.Errorf("%s: %d definitions", name, len(crds))
		}
		for _, crd := range crds {
			apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
			apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
			// Which versions were ever stored is the server's to say.
			crd.Status.StoredVersions = []string{crd.Spec.Versions[0].Name}
			var internal apiextensions.CustomResourceDefinition
			if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd,
				&internal, nil); err != nil {
				t.Fatalf("%s: %s: %v", name, crd.Name, err)
			}
			for _, err := range validation.ValidateCustomResourceDefinition(context.Background(), &internal) {
				t.Errorf("%s: %s: %v", name, crd.Name, err)
			}
		}
	}
}

// The versions that releases store; everything else about who gets what follows from them.
func TestStorageVersionPerRelease(t *testing.T) {
	stored := map[string]map[string]string{}
	for _, release := range []string{kruise.Release1_8, kruise.Release1_9, kruise.Release1_10} {
		stored[release] = map[string]string{}
		crds, err := kruise.Member(release)
		if err != nil {
			t.Fatal(err)
		}
		for _, crd := range crds {
			stored[release][crd.Spec.Names.Kind+"."+crd.Spec.Group] = crd.Spec.Versions[0].Name
		}
	}
	const alpha, beta = "v1alpha1", "v1beta1"
	for kind, want := range map[string][3]string{
		"CloneSet.apps.kruise.io":                 {alpha, alpha, beta},
		"StatefulSet.apps.kruise.io":              {beta, beta, beta},
		"SidecarSet.apps.kruise.io":               {alpha, beta, beta},
		"UnitedDeployment.apps.kruise.io":         {alpha, alpha, beta},
		"DaemonSet.apps.kruise.io":                {alpha, beta, beta},
		"BroadcastJob.apps.kruise.io":             {alpha, beta, beta},
		"AdvancedCronJob.apps.kruise.io":          {alpha, beta, beta},
		"ImagePullJob.apps.kruise.io":             {alpha, beta, beta},
		"ImageListPullJob.apps.kruise.io":         {alpha, beta, beta},
		"ContainerRecreateRequest.apps.kruise.io": {alpha, alpha, beta},
		"ResourceDistribution.apps.kruise.io":     {alpha, alpha, beta},
		"WorkloadSpread.apps.kruise.io":           {alpha, alpha, beta},
		"PersistentPodState.apps.kruise.io":       {alpha, alpha, beta},
		"PodUnavailableBudget.policy.kruise.io":   {alpha, alpha, beta},
		"EphemeralJob.apps.kruise.io":             {alpha, alpha, alpha},
		"PodProbeMarker.apps.kruise.io":           {alpha, alpha, alpha},
		"Rollout.rollouts.kruise.io":              {beta, beta, beta},
		"BatchRelease.rollouts.kruise.io":         {beta, beta, beta},
	} {
		got := [3]string{stored[kruise.Release1_8][kind], stored[kruise.Release1_9][kind], stored[kruise.Release1_10][kind]}
		if got != want {
			t.Errorf("%s is stored as %v by 1.8, 1.9 and 1.10, want %v", kind, got, want)
		}
	}
}
