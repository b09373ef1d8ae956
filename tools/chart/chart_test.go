package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Masterminds/semver/v3"
	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

const (
	folder    = "../../charts/argosy"
	namespace = "fleet"
)

// variants are the ways to run a hub that the chart is for, by their values.
var variants = map[string]string{
	"one hub with a volume": "",
	"three hubs on an external etcd": `
replicas: 3
etcd: {servers: ["https://etcd.example.com:2379"], existingSecret: etcd-client}
pki: {existingSecret: argosy-pki}`,
	"everything set": `
image: {repository: registry.example.com/argosy, digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000", pullPolicy: Always}
imagePullSecrets: [{name: pull}]
persistence: {size: 20Gi, storageClassName: fast, annotations: {backup: daily}}
config: {forbidOverwrite: true, log: {level: 2}, members: {proxyRequests: 500}}
tlsSANs: [argosy.example.com, 192.0.2.7]
service: {type: LoadBalancer, port: 7443, annotations: {a: b}, loadBalancerClass: example.com/lb, loadBalancerSourceRanges: [192.0.2.0/24]}
serviceAccount: {annotations: {a: b}}
networkPolicy: {enabled: true, from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ops}}}]}
podAnnotations: {a: b}
podLabels: {team: fleet}
nodeSelector: {kubernetes.io/os: linux}
tolerations: [{key: dedicated, operator: Exists}]
topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app.kubernetes.io/name: argosy}}}]
env: [{name: HTTPS_PROXY, value: "http://proxy.example.com:3128"}]
extraVolumes: [{name: oidc, configMap: {name: oidc}}]
extraVolumeMounts: [{name: oidc, mountPath: /etc/argosy/oidc, readOnly: true}]`,
}

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// render is what helm install would send, and what it would say.
func render(t *testing.T, text string) (objects []*unstructured.Unstructured, notes string, err error) {
	t.Helper()
	c := load(t)
	values, err := commonutil.ToRenderValues(c, parse(t, text),
		common.ReleaseOptions{Name: "argosy", Namespace: namespace, IsInstall: true, Revision: 1}, nil)
	if err != nil {
		return nil, "", err
	}
	files, err := engine.Engine{Strict: true}.RenderWithContext(t.Context(), c, values)
	if err != nil {
		return nil, "", err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, "NOTES.txt") {
			notes = files[name]
			continue
		}
		for d := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(files[name]), 4096); ; {
			u := &unstructured.Unstructured{}
			if err := d.Decode(&u.Object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s is no YAML (%v):\n%s", name, err, files[name])
			}
			if len(u.Object) > 0 {
				objects = append(objects, u)
			}
		}
	}
	return objects, notes, nil
}

func mustRender(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	objects, notes, err := render(t, text)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(notes, "argosy kubeconfig") {
		t.Errorf("the notes do not say how to get a kubeconfig:\n%s", notes)
	}
	return objects
}

// find is the one object of a kind.
func find(t *testing.T, objects []*unstructured.Unstructured, kind string) *unstructured.Unstructured {
	t.Helper()
	i := slices.IndexFunc(objects, func(u *unstructured.Unstructured) bool { return u.GetKind() == kind })
	if i < 0 {
		t.Fatalf("there is no %s", kind)
	}
	return objects[i]
}

func TestHelmsLinterFindsNothing(t *testing.T) {
	for story, values := range variants {
		if r := lint.RunAll(folder, parse(t, values), namespace); r.HighestSeverity >= support.WarningSev {
			t.Errorf("%s: %v", story, r.Messages)
		}
	}
}

func TestInvalidValuesAreRefused(t *testing.T) {
	for values, says := range map[string]string{
		"replicas: 3": "etcd.servers",
		"{replicas: 3, etcd: {servers: [\"http://e:2379\"]}}":       "pki.existingSecret",
		"etcd: {servers: [\"http://e:2379\"]}":                      "pki.existingSecret",
		"config: {kubeAPIServer: {args: [anonymous-auth=false]}}":   "anonymous",
		"config: {kubeAPIServer: {args: [\"--anonymous-auth=0\"]}}": "anonymous",
		"replicas: 0":                "replicas",
		"replcas: 3":                 "replcas",
		"config: {port: 6443}":       "config",
		"image: {digest: latest}":    "digest",
		"service: {type: Ingress}":   "type",
		"etcd: {servers: [e:2379]}":  "servers",
		"persistence: {size: a lot}": "size",
	} {
		if _, _, err := render(t, values); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want it refused for %s", values, err, says)
		}
	}
}

func TestThreeHubsShareKeysAndGoOneAtATime(t *testing.T) {
	three := mustRender(t, variants["three hubs on an external etcd"])
	find(t, three, "PodDisruptionBudget")
	set := find(t, three, "StatefulSet")
	if claims, there, _ := unstructured.NestedSlice(set.Object, "spec", "volumeClaimTemplates"); there {
		t.Errorf("hubs on an external etcd claim %v", claims)
	}
	text, err := json.Marshal(set.Object)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"secretName":"argosy-pki"`, `"secretName":"etcd-client"`, `"import"`,
		`"podAntiAffinity"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the StatefulSet lacks %s", want)
		}
	}
	for _, u := range mustRender(t, "") {
		if u.GetKind() == "PodDisruptionBudget" || u.GetKind() == "NetworkPolicy" {
			t.Errorf("one hub has a %s", u.GetKind())
		}
	}
}

func TestAPackageHasItsVersionAndTheSameBytesEachTime(t *testing.T) {
	var sums [2][sha256.Size]byte
	for i := range sums {
		to := t.TempDir()
		var out bytes.Buffer
		if err := run([]string{"--chart", folder, "--output", to, "--version", "v1.2.3", "--date", "2026-01-31T12:00:00Z"},
			&out); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(to, "argosy-1.2.3.tgz")
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("it says %q: %v", out.String(), err)
		}
		sums[i] = sha256.Sum256(data)
		c, err := loader.Load(file)
		if err != nil || c.Metadata.AppVersion != "v1.2.3" || len(c.Templates) != len(load(t).Templates) {
			t.Errorf("%v: %+v", err, c)
		}
	}
	if sums[0] != sums[1] {
		t.Error("the bytes differ")
	}
	c := load(t)
	stamp(c, "0123456789ab-dirty", time.Now())
	if err := c.Validate(); err != nil || c.Metadata.Version != "0.1.0-0.g0123456789ab-dirty" {
		t.Errorf("between releases it is %s (%v)", c.Metadata.Version, err)
	}
}

func TestChartVersionsSortByBuild(t *testing.T) {
	for image, want := range map[string]string{
		"v1.2.3":                  "1.2.3",
		"v1.2.3-rc.1":             "1.2.3-rc.1",
		"v1.2.3-dirty":            "1.2.4-0.0.g0-dirty",
		"v1.2.3-4-gabc0123":       "1.2.4-0.4.gabc0123",
		"v1.2.3-4-gabc0123-dirty": "1.2.4-0.4.gabc0123-dirty",
		"v1.2.3-rc.1-4-gabc0123":  "1.2.3-rc.1.4.gabc0123",
		"0123456789ab":            "0.1.0-0.g0123456789ab",
		"v1":                      "0.1.0-0.gv1",
	} {
		if got := chartVersion("0.1.0", image); got != want {
			t.Errorf("%s has a chart of version %s, want %s", image, got, want)
		}
	}
	// The order in which a release comes about.
	var last *semver.Version
	for _, image := range []string{"v1.2.3-rc.1", "v1.2.3-rc.1-4-gabc0123", "v1.2.3-rc.2", "v1.2.3", "v1.2.3-4-gabc0123",
		"v1.2.3-12-gabc0124", "v1.2.4-rc.1", "v1.2.4"} {
		v, err := semver.StrictNewVersion(chartVersion("0.1.0", image))
		if err != nil {
			t.Fatalf("%s: %v", image, err)
		}
		if last != nil && !v.GreaterThan(last) {
			t.Errorf("%s, of %s, does not come after %s", v, image, last)
		}
		last = v
	}
}

// binary is the hub and the simulated clusters of the tests below.
func binary(t *testing.T) string {
	t.Helper()
	b := os.Getenv("ARGOSY_BINARY")
	if b == "" {
		t.Skip("ARGOSY_BINARY is not set: make test sets it to the argosy that it has built")
	}
	return b
}

// background runs argosy until the test ends, and file is there.
func background(t *testing.T, file string, args ...string) {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary(t), args...)
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "KUBECONFIG=")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the test's context has ended by now
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("argosy %s said:\n%s", strings.Join(args, " "), said.String())
		}
	})
	eventually(t, file+" is there", func() error { _, err := os.Stat(file); return err })
}

func eventually(t *testing.T, what string, then func() error) {
	t.Helper()
	err := then()
	for deadline := time.Now().Add(2 * time.Minute); err != nil && time.Now().Before(deadline); err = then() {
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// resources of the kinds of the chart.
var resources = map[string]schema.GroupVersionResource{
	"ConfigMap":           {Version: "v1", Resource: "configmaps"},
	"Service":             {Version: "v1", Resource: "services"},
	"ServiceAccount":      {Version: "v1", Resource: "serviceaccounts"},
	"StatefulSet":         {Group: "apps", Version: "v1", Resource: "statefulsets"},
	"PodDisruptionBudget": {Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	"NetworkPolicy":       {Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
}

func TestAClusterOfTheStrictestPodSecurityTakesEverything(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "members.yaml")
	background(t, kubeconfig, "sim", "--members", "1", "--nodes", "1", "--kubeconfig-out", kubeconfig)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	ns := &unstructured.Unstructured{Object: parse(t, `
apiVersion: v1
kind: Namespace
metadata: {name: fleet, labels: {pod-security.kubernetes.io/enforce: restricted}}`)}
	if _, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(ctx, ns,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(namespace)
	create := func(name string, spec any) error {
		pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"name": name, "namespace": namespace}, "spec": spec}}
		_, err := pods.Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll},
			FieldValidation: metav1.FieldValidationStrict})
		return err
	}
	var accounts error
	for story, values := range variants {
		t.Run(story, func(t *testing.T) {
			objects := mustRender(t, values)
			for _, u := range objects {
				if err := apply(ctx, client, u); err != nil {
					t.Errorf("%s %s: %v", u.GetKind(), u.GetName(), err)
				}
			}
			spec, _, err := unstructured.NestedMap(find(t, objects, "StatefulSet").Object, "spec", "template", "spec")
			if err != nil {
				t.Fatal(err)
			}
			if claims, _, _ := unstructured.NestedSlice(find(t, objects, "StatefulSet").Object, "spec",
				"volumeClaimTemplates"); len(claims) > 0 {
				volumes, _, _ := unstructured.NestedSlice(spec, "volumes")
				spec["volumes"] = append(volumes,
					map[string]any{"name": "data", "persistentVolumeClaim": map[string]any{"claimName": "data-argosy-0"}})
			}
			if err := create("as-the-controller-makes-it", spec); err != nil {
				t.Errorf("a pod of the StatefulSet: %v", err)
			}
			accounts = create("of-root", map[string]any{"serviceAccountName": "argosy",
				"containers": []any{map[string]any{"name": "c", "image": "i"}}})
			// What is immutable in one variant is another's.
			for _, u := range objects {
				if err := client.Resource(resources[u.GetKind()]).Namespace(namespace).Delete(ctx, u.GetName(),
					metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	if accounts == nil || !strings.Contains(accounts.Error(), "PodSecurity") {
		t.Errorf("the cluster takes a pod that restricted forbids (%v), so that this test shows nothing", accounts)
	}
}

// apply sends an object as helm does: by a server-side apply that takes no field that it does not know.
func apply(ctx context.Context, client dynamic.Interface, u *unstructured.Unstructured) error {
	data, err := json.Marshal(u.Object)
	if err != nil {
		return err
	}
	resource, known := resources[u.GetKind()]
	if !known || resource.GroupVersion().String() != u.GetAPIVersion() || u.GetNamespace() != namespace {
		return errors.New("the test does not know this kind, or its namespace is another")
	}
	_, err = client.Resource(resource).Namespace(namespace).Patch(ctx, u.GetName(), types.ApplyPatchType, data,
		metav1.PatchOptions{FieldManager: "helm", FieldValidation: metav1.FieldValidationStrict})
	return err
}

// The image has no shell to fetch anything with: all that is done in a pod of the chart is done by the binary.
func TestHubServesWithRenderedConfiguration(t *testing.T) {
	dir := t.TempDir()
	objects := mustRender(t, "tlsSANs: [argosy.example.com]\nconfig: {members: {proxyRequests: 500}}")
	text, _, err := unstructured.NestedString(find(t, objects, "ConfigMap").Object, "data", "config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file, data, shared := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "data"), filepath.Join(dir, "shared")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	must := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(binary(t), args...)
		cmd.Env = append(os.Environ(), "HOME="+dir, "KUBECONFIG=")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("argosy %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	if said := must("config", "--config", file); !strings.Contains(said, "proxyRequests: 500") ||
		!strings.Contains(said, "dataDir: /var/lib/argosy/data") {
		t.Errorf("the hub reads\n%s", said)
	}
	// As the init container of hubs that share their keys does.
	must("certificates", "create", "--pki-dir", shared)
	for _, changed := range []string{"6 files changed", "0 files changed"} {
		if said := must("certificates", "import", "--from", shared, "--config", file, "--data-dir",
			data); !strings.Contains(said, changed) {
			t.Errorf("import says %q, want %s", said, changed)
		}
	}
	admin := filepath.Join(data, "admin.kubeconfig")
	background(t, admin, "up", "--config", file, "--data-dir", data, "--bind-address", "127.0.0.1", "--port", "0")
	written, err := clientcmd.LoadFromFile(admin)
	if err != nil {
		t.Fatal(err)
	}
	url := written.Clusters["argosy"].Server
	// 127.0.0.1 in the place of each name, as /etc/hosts would have it: the client verifies the name all the same.
	for _, name := range []string{"argosy", "argosy.fleet", "argosy.fleet.svc", "argosy.fleet.svc.cluster.local",
		"argosy.example.com"} {
		config, err := clientcmd.RESTConfigFromKubeConfig([]byte(must("kubeconfig", "--config", file, "--data-dir", data,
			"--server", "https://"+name+":443")))
		if err != nil {
			t.Fatal(err)
		}
		if config.ServerName != "" {
			t.Errorf("the serving certificate lacks %s", name)
		}
		config.Host, config.ServerName = url, name
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the hub answers as "+name, func() error {
			_, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).List(t.Context(),
				metav1.ListOptions{})
			return err
		})
	}
	// Any other name works by the kubeconfig's word for it.
	if said := must("kubeconfig", "--config", file, "--data-dir", data, "--server",
		"https://elsewhere.example.com"); !strings.Contains(said, "tls-server-name: kubernetes.default.svc") {
		t.Errorf("a kubeconfig for another name is\n%s", said)
	}
	// The image has no tar either: a backup comes out by standard output.
	taken := exec.Command(binary(t), "backup", "--config", file, "--data-dir", data, "--to", "-")
	backup, err := taken.Output()
	if err != nil {
		t.Fatalf("backup to standard output: %v", err)
	}
	archive := filepath.Join(dir, "hub.tar.gz")
	if err := os.WriteFile(archive, backup, 0o600); err != nil {
		t.Fatal(err)
	}
	must("restore", archive, "--data-dir", filepath.Join(dir, "restored"))
	if err := exec.Command(binary(t), "certificates", "import", "--from", dir, "--data-dir", data).Run(); err == nil {
		t.Error("a folder without keys is imported")
	}
}
