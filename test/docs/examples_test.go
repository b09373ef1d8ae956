package docs

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/examples"
	"github.com/argosy-io/argosy/internal/migration"
)

// Each example of a page is run by a test, checked by a test of this file, or listed here with the reason why not.

// runAsWritten are the pages whose commands and objects a test of the long suite runs, by that test.
var runAsWritten = map[string]string{
	"README.md":     "TestReadmeCommandsRunTopToBottom",
	"docs/guide.md": "TestGuideBlocksWork",
	"docs/pull.md":  "TestCommandsOfThePullPageRunTopToBottom",
}

// appliedObjects are the pages whose YAML a test applies or loads, by that test.
var appliedObjects = map[string]string{
	"docs/access.md":        "TestDeveloperWorksInTheNamespaceAndIsRefusedElsewhere",
	"docs/simulate.md":      "TestTheFleetOfTheDocumentsIsOne",
	"docs/configuration.md": "TestExampleOfThePageIsAValidConfiguration",
	"docs/pull.md":          "TestCommandsOfThePullPageRunTopToBottom",
}

// acceptedCommands is the test that parses every command line of argosy in the pages.
const acceptedCommands = "TestCommandLinesOfPagesAreAccepted"

// notRun are commands of other programs that no test runs as written, by the reason.
var notRun = map[string][]string{
	"a request of kubectl to the hub; tests send the same request": {
		`kubectl create rolebinding developers --clusterrole edit --group shop-developers -n shop`,
		`kubectl annotate clusterrole argosy:edit rbac.authorization.kubernetes.io/autoupdate=false --overwrite`,
		`kubectl auth can-i update overridepolicies -n shop --as jane --as-group shop-developers`,
		`kubectl auth can-i --list -n shop --as jane`,
		`kubectl patch releaserevision cloneset-web-5d0c7f21aa10 -n shop --subresource=status --type=merge ` +
			`-p '{"status":{"blocked":null}}'`,
		`kubectl patch releaserevision cloneset-web-5d0c7f21aa10 -n shop --subresource=status --type=merge ` +
			`-p '{"status":{"blocked":{"reason":"DataLoss","at":"2026-01-01T12:00:00Z"}}}'`,
		`kubectl auth can-i create overridepolicies.policy.karmada.io -n shop --as jane`,
		`kubectl annotate customresourcedefinition works.work.karmada.io ` +
			`argosy.io/confirm-deletion=works.work.karmada.io`,
		`kubectl delete customresourcedefinition works.work.karmada.io`,
		`kubectl label cluster eu resourcetemplate.karmada.io/deletion-protected=Always`,
		`kubectl annotate cluster berlin argosy.io/impersonate-system-names=system:serviceaccount:ci:deployer`,
		`kubectl annotate cloneset web argosy.io/rollout-order=Stages argosy.io/rollout-stages=` +
			`'[{"percent": 10, "pause": true}, {"clusters": ["eu"]}, {"percent": 100}]'`,
		`kubectl annotate crd $crd argosy.io/installed-`,
		`kubectl patch crd $crd --type merge --patch-file versions.json`,
		`kubectl annotate deployment web argosy.io/rollout-order=Ordered`,
		`kubectl apply -f web.yaml`,
		`kubectl apply -f examples/release-guard.yaml`,
		`kubectl annotate cloneset web argosy.io/release-strategy=one-two-seven -n shop`,
		`kubectl create serviceaccount prometheus -n karmada-system`,
		`kubectl create clusterrolebinding prometheus --clusterrole system:monitoring ` +
			`--serviceaccount karmada-system:prometheus`,
		`kubectl create token prometheus -n karmada-system --duration 8760h > token`,
	},
	"it only reads": {
		`kubectl get clusters`,
		`kubectl get deployments -A -l ` +
			`'!propagationpolicy.karmada.io/permanent-id,!clusterpropagationpolicy.karmada.io/permanent-id'`,
		`kubectl get releaseguards`,
		`kubectl get clusterrolebindings -o wide | grep -e cluster-admin -e argosy:operator`,
		`kubectl get --raw /metrics`,
		`kubectl get --raw /apis/policy.karmada.io/v1alpha1`,
		`kubectl get deployment web`,
		`kubectl get resourcebinding web-deployment -o yaml`,
		`kubectl get clusters -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints`,
		`kubectl get events -n shop --field-selector reason=ScheduleBindingFailed`,
		`kubectl explain propagationpolicy.spec.placement`,
		`kubectl explain propagationpolicy.spec`,
		`journalctl -u argosy`,
		`argo get NAME -n shop`,
	},
	"it changes a member, past the hub": {
		`kubectl --context member annotate cloneset web argosy.io/hands-off=true`,
		`kubectl --context member annotate cloneset web argosy.io/hands-off-`,
		`kubectl --context member annotate namespace kube-system argosy.io/hands-off=true`,
		`kubectl --context member annotate namespace kube-system argosy.io/hands-off-`,
		`kubectl --context member get crd $crd -o json | jq '{spec: {versions: .spec.versions}}' > versions.json`,
		`crd=clonesets.apps.kruise.io`,
	},
	"it needs Helm, a host cluster, a container runtime or a registry; make release-test checks chart and image": {
		`make image`,
		`skopeo copy --all oci:dist/image docker://registry.example.com/argosy:v1`,
		`podman load --input dist/argosy-image.tar`,
		`podman run --detach --name argosy --publish 7443:7443 --volume argosy:/var/lib/argosy argosy:VERSION`,
		`helm install argosy charts/argosy --namespace argosy --create-namespace ` +
			`--set image.repository=registry.example.com/argosy --set image.tag=v1`,
		`kubectl create namespace argosy`,
		`kubectl create secret generic argosy-pki --namespace argosy --from-file=./pki`,
		`kubectl create secret generic etcd-client --namespace argosy --from-file=ca.crt --from-file=tls.crt ` +
			`--from-file=tls.key`,
		`helm install argosy charts/argosy --namespace argosy --values three.yaml`,
		`kubectl patch pvc data-argosy-0 --namespace argosy --patch ` +
			`'{"spec": {"resources": {"requests": {"storage": "20Gi"}}}}'`,
		`kubectl delete sts argosy --namespace argosy --cascade=orphan`,
		`helm upgrade argosy charts/argosy --namespace argosy --reuse-values --set persistence.size=20Gi`,
	},
	"every run of the tests does it": {
		`make build`,
	},
}

// notDecoded are YAML blocks of other programs, by their first key.
var notDecoded = map[string]string{
	"scrape_configs": "the configuration of Prometheus",
}

// fragments are the paths in a PropagationPolicy at which blocks without a kind belong, by their first key.
var fragments = map[string][]string{
	"failover":          {"spec"},
	"statePreservation": {"spec", "failover", "application"},
}

// example is a code block of a page.
type example struct {
	page, language, text string
	line                 int
}

// examplesOf returns the blocks of a page: those in fences, and indented lines, which are commands.
func examplesOf(page, text string) []example {
	var found []example
	var open *example
	for i, line := range strings.Split(text, "\n") {
		rest, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open == nil:
			open = &example{page: page, language: rest, line: i + 2}
		case isFence:
			found = append(found, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		case strings.HasPrefix(line, "    ") && strings.TrimSpace(line) != "":
			if n := len(found) - 1; n >= 0 && found[n].language == "indented" && found[n].line+
				strings.Count(found[n].text, "\n") == i+1 {
				found[n].text += line + "\n"
			} else {
				found = append(found, example{page: page, language: "indented", text: line + "\n", line: i + 1})
			}
		}
	}
	return found
}

// ownCommand matches a command line of argosy, which acceptedCommands covers.
var ownCommand = regexp.MustCompile(
	`^(\$ |\(umask 077; |sudo (-u \w+ )?)?((podman|kubectl) exec [^|]*)?(\S*/)?argosy |\| argosy `)

// commands returns the command lines of a block, without comments. Lines of output follow a line with a prompt.
func (e example) commands() []string {
	var found []string
	output := false
	for line := range strings.Lines(strings.ReplaceAll(e.text, "\\\n", " ")) {
		line, _, _ = strings.Cut(strings.Join(strings.Fields(line), " "), " #")
		if line != "" && !output {
			found = append(found, line)
		}
		output = output || strings.HasPrefix(line, "$ ")
	}
	return found
}

// allExamples returns the examples of all user pages.
func allExamples(t *testing.T) []example {
	t.Helper()
	all := pages(t)
	var found []example
	for _, page := range slices.Sorted(maps.Keys(all)) {
		if strings.HasPrefix(page, "docs/") || page == "README.md" {
			found = append(found, examplesOf(page, all[page])...)
		}
	}
	return found
}

func TestEveryCommandOfPagesIsRunOrListed(t *testing.T) {
	known, listed, used := tests(t), map[string]bool{}, map[string]bool{}
	for _, commands := range notRun {
		for _, c := range commands {
			listed[c] = true
		}
	}
	for _, e := range allExamples(t) {
		if runAsWritten[e.page] != "" || e.language == "yaml" || e.language == "mermaid" {
			continue
		}
		for _, c := range e.commands() {
			used[c] = true
			if !listed[c] && !ownCommand.MatchString(c) {
				t.Errorf("%s:%d: no test runs %q: add it to a test, or to notRun with the reason", e.page, e.line, c)
			}
		}
	}
	for c := range listed {
		if !used[c] {
			t.Errorf("no page has the command %q: remove it from notRun", c)
		}
	}
	for _, name := range append(slices.Collect(maps.Values(runAsWritten)), append(
		slices.Collect(maps.Values(appliedObjects)), acceptedCommands)...) {
		if !known[name] {
			t.Errorf("there is no test %s", name)
		}
	}
}

func TestEveryObjectOfPagesIsValid(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{policyv1alpha1.AddToScheme, releasev1alpha1.AddToScheme,
		corev1.AddToScheme, rbacv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	checked := 0
	for _, e := range allExamples(t) {
		if e.language != "yaml" || runAsWritten[e.page] != "" || appliedObjects[e.page] != "" {
			continue
		}
		for doc := range strings.SplitSeq(e.text, "---\n") {
			checked++
			if err := validExample(decoder, doc); err != nil {
				t.Errorf("%s:%d: %v\n%s", e.page, e.line, err, doc)
			}
		}
	}
	if checked < 5 {
		t.Errorf("only %d objects were checked", checked)
	}
}

// The demo applies the workload of another project; all other files of examples/ are of our API.
func TestEveryFileOfExamplesIsValid(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{policyv1alpha1.AddToScheme, releasev1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	checked := 0
	err := fs.WalkDir(examples.Files, ".", func(path string, file fs.DirEntry, err error) error {
		if err != nil || file.IsDir() || path == "cloneset.yaml" {
			return err
		}
		raw, err := examples.Files.ReadFile(path)
		if err != nil {
			return err
		}
		checked++
		if err := validExample(decoder, string(raw)); err != nil {
			t.Errorf("examples/%s: %v", path, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked < 4 {
		t.Errorf("only %d files were checked", checked)
	}
}

// validExample returns an error if a document is not an object of the API, a known fragment of one, the file of a
// migration, or values of the chart.
func validExample(decoder runtime.Decoder, doc string) error {
	var content map[string]any
	if err := yaml.UnmarshalStrict([]byte(doc), &content); err != nil {
		return err
	}
	for key := range content {
		if notDecoded[key] != "" {
			return nil
		}
		if path := fragments[key]; path != nil {
			for _, name := range slices.Backward(path) {
				content = map[string]any{name: content}
			}
			content["apiVersion"], content["kind"] = "policy.karmada.io/v1alpha1", "PropagationPolicy"
			break
		}
	}
	if content["items"] != nil && content["kind"] == nil {
		_, err := migration.ParseWhitelist([]byte(doc))
		return err
	}
	if content["kind"] == nil {
		return inValues(content)
	}
	raw, err := yaml.Marshal(content)
	if err != nil {
		return err
	}
	_, _, err = decoder.Decode(raw, nil, nil)
	return err
}

// inValues returns an error if the chart has no such values.
func inValues(content map[string]any) error {
	raw, err := os.ReadFile(filepath.Join(root, "charts", "argosy", "values.yaml"))
	if err != nil {
		return err
	}
	var values map[string]any
	if err := yaml.Unmarshal(raw, &values); err != nil {
		return err
	}
	return subset("", content, values)
}

func subset(path string, part, whole map[string]any) error {
	for key, value := range part {
		has, ok := whole[key]
		if !ok {
			return fmt.Errorf("neither an object of the API nor a value of the chart: %s%s", path, key)
		}
		below, ok := value.(map[string]any)
		if hasBelow, isMap := has.(map[string]any); ok && isMap {
			if err := subset(path+key+".", below, hasBelow); err != nil {
				return err
			}
		}
	}
	return nil
}

func TestWrongExamplesAreFound(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := policyv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for doc, valid := range map[string]bool{
		"failover: {cluster: {purgeMode: Gracefully}}":                                             true,
		"failover: {clusters: {purgeMode: Gracefully}}":                                            false,
		"apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nspec: {placement: {}}":   true,
		"apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nspec: {placements: {}}":  false,
		"apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicies\nspec: {placement: {}}": false,
		"replicas: 3\nimage: {tag: v1}":                                                            true,
		"replicas: 3\nimage: {version: v1}":                                                        false,
	} {
		if err := validExample(decoder, doc); (err == nil) != valid {
			t.Errorf("valid is %t, got %v for:\n%s", valid, err, doc)
		}
	}
}

// withoutCommand are pages that are not about a task.
var withoutCommand = map[string]string{
	"docs/guide.md":    "a tutorial, which starts with what the reader needs",
	"docs/commands.md": "a list of commands",
}

func TestPagesStartWithACommand(t *testing.T) {
	for page, text := range pages(t) {
		if !strings.HasPrefix(page, "docs/") || withoutCommand[page] != "" {
			continue
		}
		_, body, _ := strings.Cut(text, "\n")
		before, _, found := strings.Cut(body, "\n```")
		lead := strings.TrimSpace(before)
		if strings.HasPrefix(body, "```") || strings.HasPrefix(strings.TrimLeft(body, "\n"), "    ") {
			continue
		}
		// A single sentence may introduce the command.
		if !found || !strings.HasSuffix(lead, ":") || strings.Contains(lead, "\n") {
			t.Errorf("%s does not start with a command", page)
		}
	}
}
