package server

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/test/kit"
)

// testConfig returns a hub of its own on a free port.
func testConfig(t testing.TB) Config {
	t.Helper()
	c := DefaultConfig()
	c.DataDir = filepath.Join(t.TempDir(), "data")
	c.Port = 0
	return c
}

// start runs a hub for the length of a test.
func start(t testing.TB, c Config, parts Parts) (*Hub, string) {
	t.Helper()
	var out bytes.Buffer
	h, err := Start(t.Context(), c, parts, &out)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Stop)
	return h, out.String()
}

func adminClient(t testing.TB, kubeconfig string) (*kubernetes.Clientset, *rest.Config) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client, config
}

func TestRestartKeepsTheHubsState(t *testing.T) {
	kit.Long(t)
	c := testConfig(t)
	h, _ := start(t, c, Parts{})
	client, _ := adminClient(t, AdminKubeconfig(c.DataDir))
	made, err := client.CoreV1().ConfigMaps("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	h.Stop()

	h, _ = start(t, c, Parts{})
	client, _ = adminClient(t, AdminKubeconfig(c.DataDir))
	kept, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if kept.UID != made.UID || kept.ResourceVersion != made.ResourceVersion {
		t.Errorf("the ConfigMap was rewritten: %s/%s, was %s/%s", kept.UID, kept.ResourceVersion, made.UID,
			made.ResourceVersion)
	}
	// The first hub was stopped while it defined workload kinds: the second continues, and here we wait until it has.
	if err := installWorkloadCRDs(t.Context(), h.Config(), h.config.defines); err != nil {
		t.Fatal(err)
	}
	before := versions(t, h)
	if err := installCRDs(t.Context(), h.Config()); err != nil {
		t.Fatal(err)
	}
	if err := installWorkloadCRDs(t.Context(), h.Config(), h.config.defines); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, versions(t, h)); diff != "" {
		t.Errorf("installing definitions that are right already wrote some of them: %s", diff)
	}

	// The hub restores a definition that carries its annotation, and leaves one without it to the user.
	for _, name := range []string{"clonesets.apps.kruise.io", "sidecarsets.apps.kruise.io"} {
		changeDefinition(t, h, name, func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Names.ShortNames = []string{"my" + crd.Spec.Names.Singular}
			if name == "clonesets.apps.kruise.io" {
				delete(crd.Annotations, wellknown.InstalledAnnotation)
			}
		})
	}
	if err := installWorkloadCRDs(t.Context(), h.Config(), h.config.defines); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"clonesets.apps.kruise.io": true, "sidecarsets.apps.kruise.io": false} {
		changeDefinition(t, h, name, func(crd *apiextensionsv1.CustomResourceDefinition) {
			if mine := slices.Contains(crd.Spec.Names.ShortNames, "my"+crd.Spec.Names.Singular); mine != want {
				t.Errorf("%s is as somebody changed it: %v, want %v", name, mine, want)
			}
		})
	}
}

func changeDefinition(t *testing.T, h *Hub, name string, change func(*apiextensionsv1.CustomResourceDefinition)) {
	t.Helper()
	client, err := apiextensions.NewForConfig(h.Config())
	if err != nil {
		t.Fatal(err)
	}
	definitions := client.ApiextensionsV1().CustomResourceDefinitions()
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		crd, err := definitions.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(crd)
		_, err = definitions.Update(t.Context(), crd, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// versions returns the resource versions of every definition on the hub.
func versions(t *testing.T, h *Hub) map[string]string {
	t.Helper()
	client, err := apiextensions.NewForConfig(h.Config())
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.ApiextensionsV1().CustomResourceDefinitions().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, crd := range list.Items {
		found[crd.Name] = crd.ResourceVersion
	}
	return found
}
