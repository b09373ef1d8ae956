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

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/yaml"

	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	addonv1alpha1 "github.com/argosy-io/argosy/api/ocm/addon/v1alpha1"
	addonv1beta1 "github.com/argosy-io/argosy/api/ocm/addon/v1beta1"
	placementv1beta1 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta1"
	setv1beta2 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta2"
	ocmworkv1alpha1 "github.com/argosy-io/argosy/api/ocm/work/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	remedyv1alpha1 "github.com/argosy-io/argosy/api/remedy/v1alpha1"
	searchv1alpha1 "github.com/argosy-io/argosy/api/search/v1alpha1"
	"github.com/argosy-io/argosy/examples"
	"github.com/argosy-io/argosy/internal/migration"
)

// Each example of a page is run by a test, checked by a test of this file, or listed here with the reason why not.

// runAsWritten are the pages whose commands and objects a test of the long suite runs, by that test.
var runAsWritten = map[string]string{
	"README.md":     "TestReadmeAndGuideRunInOneClone",
	"docs/guide.md": "TestReadmeAndGuideRunInOneClone",
	"docs/pull.md":  "TestCommandsOfThePullPageRunTopToBottom",
}

// appliedObjects are the pages whose YAML a test applies or loads, by that test.
var appliedObjects = map[string]string{
	"docs/access.md":        "TestDeveloperWorksInTheNamespaceAndIsRefusedElsewhere",
	"docs/simulate.md":      "TestTheFleetOfTheDocumentsIsOne",
	"docs/configuration.md": "TestExampleOfThePageIsAValidConfiguration",
	"docs/pull.md":          "TestCommandsOfThePullPageRunTopToBottom",
}

// notRun are commands that no test runs as written, by the reason. All others of the pages are run by their stories.
var notRun = map[string][]string{
	"it needs a container runtime or a registry; make release-test checks the image": {
		`make image`,
		`skopeo copy --all oci:dist/image docker://registry.example.com/argosy:v1`,
		`podman load --input dist/argosy-image.tar`,
		`podman run --detach --name argosy --publish 7443:7443 --volume argosy:/var/lib/argosy argosy:VERSION`,
	},
	"it needs Helm; make release-test checks the chart": {
		`helm install argosy charts/argosy --namespace argosy --create-namespace ` +
			`--set image.repository=registry.example.com/argosy --set image.tag=v1`,
		`helm install argosy charts/argosy --namespace argosy --values three.yaml`,
		`helm upgrade argosy charts/argosy --namespace argosy --reuse-values --set persistence.size=20Gi`,
	},
	"it needs the command line of Argo Workflows": {`argo get NAME -n shop`},
	"it needs systemd":                            {`journalctl -u argosy`},
	"it measures for a long time": {
		`make bench`,
		`make bench ARGS=--hub-arg=--encrypt-secrets=false`,
		`make bench ARGS=--hub-arg=--enable-priority-and-fairness=false`,
	},
	"every run of the tests does it": {`make build`},
}

// runElsewhere are commands that a test of their subject runs, by that test: they need a state that takes long to make.
var runElsewhere = map[string][]string{
	"TestTwoHubsOnOneStoreServeBothAndWorkOneAtATime": {
		`argosy up --etcd-servers https://etcd.example.com:2379 --pki-dir /etc/argosy/pki`,
	},
	"TestHelmInstallsUpgradesAndRollsBack": {`helm upgrade --install web ./web --namespace shop --wait`},
	"TestHelmWaitsAsThePageSays": {
		`kubectl rollout status deployment/web --namespace shop --timeout 5m`,
	},
	"TestRestoredHubChangesNothingUntilAccepted": {
		`argosy restore accept deployment web -n shop`,
		`argosy restore accept --all`,
	},
	"TestHistoryIsExportedAndImported": {
		`argosy release import -f history.jsonl --history-dsn 'host=db.example.com dbname=argosy user=argosy' ` +
			`--history-password-file /etc/argosy/history-password`,
	},
}

// listedCommands are those of notRun and runElsewhere.
func listedCommands() map[string]bool {
	listed := map[string]bool{}
	for _, list := range []map[string][]string{notRun, runElsewhere} {
		for _, commands := range list {
			for _, c := range commands {
				listed[c] = true
			}
		}
	}
	return listed
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
	all, byPage, used := pages(t), map[string]story{}, map[string]bool{}
	for _, s := range stories {
		byPage[s.page] = s
	}
	for _, e := range allExamples(t) {
		for _, c := range e.commands() {
			used[c] = true
		}
	}
	for _, page := range slices.Sorted(maps.Keys(all)) {
		if !strings.HasPrefix(page, "docs/") || runAsWritten[page] != "" {
			continue
		}
		commands, lines := commandsOf(page, all[page])
		if s, found := byPage[page]; !found && len(commands) > 0 {
			t.Errorf("%s:%d: no test runs %q: add the page to stories", page, lines[0], commands[0])
		} else if _, err := s.expected(commands); err != nil {
			t.Error(err)
		}
		delete(byPage, page)
	}
	for page := range byPage {
		t.Errorf("there is a story of %s, which is no page that it could run", page)
	}
	for c := range listedCommands() {
		if !used[c] {
			t.Errorf("no page has the command %q: remove it from notRun or runElsewhere", c)
		}
	}
	known := tests(t)
	for _, name := range slices.Concat(slices.Collect(maps.Values(runAsWritten)),
		slices.Collect(maps.Values(appliedObjects)), slices.Collect(maps.Keys(runElsewhere))) {
		if !known[name] {
			t.Errorf("there is no test %s", name)
		}
	}
}

func TestEveryObjectOfPagesIsValid(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{policyv1alpha1.AddToScheme, releasev1alpha1.AddToScheme,
		remedyv1alpha1.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme, autoscalingv2.AddToScheme,
		searchv1alpha1.AddToScheme, ocmworkv1alpha1.AddToScheme, addonv1alpha1.AddToScheme, addonv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	// In clusters, kinds of SIG Multicluster are in v1beta1, whose schema is that of v1alpha1.
	scheme.AddKnownTypeWithName(multiclusterv1alpha1.ServiceExportKind.WithVersion("v1beta1"),
		&multiclusterv1alpha1.ServiceExport{})
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

// ofOthers are files of examples/ that are no objects of our API: the workload of another project, and lists of files.
var ofOthers = map[string]bool{"cloneset.yaml": true, "kustomization.yaml": true}

func TestEveryFileOfExamplesIsValid(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{policyv1alpha1.AddToScheme, releasev1alpha1.AddToScheme,
		addonv1alpha1.AddToScheme, placementv1beta1.AddToScheme, setv1beta2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	checked := 0
	err := fs.WalkDir(examples.Files, ".", func(path string, file fs.DirEntry, err error) error {
		if err != nil || file.IsDir() || ofOthers[file.Name()] {
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

// notApplied are folders of examples/ that have no objects of the hub, by the reason.
var notApplied = map[string]string{"migration": "a list that argosy migrate reads"}

// What `kubectl apply -k` would send of a folder: all of its files, and a ReleaseGuard, which is for the whole fleet,
// only of its own.
func TestEveryFolderOfExamplesIsWholeAndGuardsNothingElse(t *testing.T) {
	folders, err := fs.ReadDir(examples.Files, ".")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "examples", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	applied := 0
	for _, folder := range folders {
		if !strings.Contains(string(readme), fmt.Sprintf("| [%[1]s](%[1]s) |", folder.Name())) {
			t.Errorf("examples/README.md has no row for %s", folder.Name())
		}
		if notApplied[folder.Name()] != "" {
			continue
		}
		infos, err := resource.NewLocalBuilder().Unstructured().Local().Flatten().FilenameParam(false,
			&resource.FilenameOptions{Kustomize: filepath.Join(root, "examples", folder.Name())}).Do().Infos()
		if err != nil {
			t.Errorf("examples/%s: %v", folder.Name(), err)
			continue
		}
		files, err := fs.ReadDir(examples.Files, folder.Name())
		if err != nil {
			t.Fatal(err)
		}
		applied++
		if len(infos) != len(files)-1 {
			t.Errorf("examples/%s has %d files, and applies %d objects: each file but kustomization.yaml has one",
				folder.Name(), len(files), len(infos))
		}
		for _, info := range infos {
			if kind := info.Object.GetObjectKind().GroupVersionKind().Kind; kind == "ReleaseGuard" &&
				folder.Name() != "release-guard" {
				t.Errorf("examples/%s has the ReleaseGuard %s", folder.Name(), info.Name)
			}
		}
	}
	if applied < 5 {
		t.Errorf("only %d folders are applied", applied)
	}
}

var (
	// exampleRow matches a row of examples/README.md: the folder, what it needs, and what to do then.
	exampleRow   = regexp.MustCompile(`(?m)^\| \[(\S+)\]\(\S+\) \|.*\| (.*) \| (.*) \|$`)
	matchedLabel = regexp.MustCompile(`matchLabels: \{(\w+): (\w+)\}`)
)

// The row of a folder names what its commands need: the CloneSet of another folder, and the labels of clusters that
// its objects select.
func TestExamplesNameWhatTheyNeed(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(root, "examples", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, row := range exampleRow.FindAllStringSubmatch(string(readme), -1) {
		folder, needs, then := row[1], row[2], row[3]
		if notApplied[folder] != "" {
			continue
		}
		if strings.Contains(then, "cloneset shop") && folder != "shop" && !strings.Contains(needs, "[shop](shop)") {
			t.Errorf("examples/README.md: %s needs shop", folder)
		}
		files, err := fs.Glob(examples.Files, folder+"/*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			raw, err := fs.ReadFile(examples.Files, file)
			if err != nil {
				t.Fatal(err)
			}
			for _, label := range matchedLabel.FindAllStringSubmatch(string(raw), -1) {
				checked++
				if want := "`" + label[1] + "=" + label[2] + "`"; !strings.Contains(needs, want) {
					t.Errorf("examples/README.md: %s needs a cluster with the label %s", file, want)
				}
			}
		}
	}
	if checked < 5 {
		t.Errorf("only %d labels were checked", checked)
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
