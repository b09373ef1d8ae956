package kruise_test

import (
	"context"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"

	"github.com/argosy-io/argosy/api/kruise"
)

func TestAnAPIServerAcceptsTheDefinitions(t *testing.T) {
	crds, err := kruise.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range crds {
		apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
		apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
		// Which versions were ever stored is the server's to say.
		crd.Status.StoredVersions = []string{crd.Spec.Versions[0].Name}
		var internal apiextensions.CustomResourceDefinition
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, &internal, nil); err != nil {
			t.Fatalf("%s: %v", crd.Name, err)
		}
		for _, err := range validation.ValidateCustomResourceDefinition(context.Background(), &internal) {
			t.Errorf("%s: %v", crd.Name, err)
		}
	}
}
