package server

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/argosy-io/argosy/api/crds"
	"github.com/argosy-io/argosy/api/kruise"
)

// installedAnnotation marks definitions of OpenKruise that the hub installed, and keeps as they should be.
const installedAnnotation = "argosy.io/installed"

// convertPath is where the hub converts its own kinds between versions.
const convertPath = "/argosy/convert"

// conversion sends the API server's conversion requests to itself. It knows this service's name and answers
// it in memory, with its own identity, so that neither address, port nor CA is written anywhere.
func conversion() *apiextensionsv1.CustomResourceConversion {
	path, port := convertPath, int32(443)
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
				Namespace: metav1.NamespaceDefault, Name: "kubernetes", Path: &path, Port: &port,
			}},
			ConversionReviewVersions: []string{"v1"},
		},
	}
}

// installCRDs makes the server serve our kinds, and returns when it does. Definitions that are right already cost a
// read of their list and no write.
func installCRDs(ctx context.Context, config *rest.Config) error {
	client, err := apiextensions.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client for definitions: %w", err)
	}
	want, err := crds.All()
	if err != nil {
		return err
	}
	workloads, err := kruise.CRDs()
	if err != nil {
		return err
	}
	definitions := client.ApiextensionsV1().CustomResourceDefinitions()
	list, err := definitions.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list definitions: %w", err)
	}
	have := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for i := range list.Items {
		have[list.Items[i].Name] = &list.Items[i]
	}
	for _, crd := range workloads {
		metav1.SetMetaDataAnnotation(&crd.ObjectMeta, installedAnnotation, "true")
		// A definition that somebody brought, from a newer OpenKruise for example, is theirs.
		if current := have[crd.Name]; current == nil || current.Annotations[installedAnnotation] == "true" {
			want = append(want, crd)
		}
	}
	for _, crd := range want {
		if crds.Converted(crd) {
			crd.Spec.Conversion = conversion()
		}
		apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(crd)
		current := have[crd.Name]
		switch {
		case current == nil:
			crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
			_, err = definitions.Create(ctx, crd, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) { // another replica, starting with us, was first
				err = nil
			}
		case !upToDate(current, crd):
			current = current.DeepCopy()
			current.Spec = crd.Spec
			for name, value := range crd.Labels {
				metav1.SetMetaDataLabel(&current.ObjectMeta, name, value)
			}
			for name, value := range crd.Annotations {
				metav1.SetMetaDataAnnotation(&current.ObjectMeta, name, value)
			}
			_, err = definitions.Update(ctx, current, metav1.UpdateOptions{})
		}
		if err != nil {
			return fmt.Errorf("install definition %s: %w", crd.Name, err)
		}
	}
	return waitEstablished(ctx, client, want)
}

// upToDate says that current already has what want asks for. want has the server's defaults.
func upToDate(current, want *apiextensionsv1.CustomResourceDefinition) bool {
	return apiequality.Semantic.DeepEqual(current.Spec, want.Spec) &&
		contains(current.Labels, want.Labels) && contains(current.Annotations, want.Annotations)
}

func contains(have, want map[string]string) bool {
	for name, value := range want {
		if v, ok := have[name]; !ok || v != value {
			return false
		}
	}
	return true
}

func waitEstablished(ctx context.Context, client apiextensions.Interface, want []*apiextensionsv1.CustomResourceDefinition) error {
	var pending string
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		list, err := client.ApiextensionsV1().CustomResourceDefinitions().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		established := map[string]bool{}
		for _, crd := range list.Items {
			for _, c := range crd.Status.Conditions {
				established[crd.Name] = established[crd.Name] || c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
			}
		}
		for _, crd := range want {
			if !established[crd.Name] {
				pending = crd.Name
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("wait until %s is served: %w", pending, err)
	}
	return nil
}
