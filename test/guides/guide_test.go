package guides

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/test/kit"
)

// cities gives each cluster of our own guide a member that plays it.
var cities = strings.NewReplacer("berlin", "member1", "oregon", "member2", "tokyo", "member3")

// section is what is under a heading of our guide, and what is true once its blocks are applied.
type section struct {
	heading string
	blocks  []document
}

// outcomes are what each section promises. One without YAML has its commands alone.
var outcomes = map[string]func(*story){
	"A CloneSet": func(s *story) {
		u := s.ref("apps.kruise.io/v1beta1", "CloneSet", "shop")
		s.shared(u, "member1:3 member2:3 member3:3")
		s.ready("shop", "member1:3 member2:3 member3:3")
		s.shows(u, map[string]any{"status.replicas": 9, "status.availableReplicas": 9})
	},
	"A canary over the fleet": func(s *story) {
		s.health(s.ref("apps.kruise.io/v1beta1", "CloneSet", "shop"), "member1:Healthy member2:Healthy member3:Healthy")
		s.shows(s.ref("apps.kruise.io/v1beta1", "CloneSet", "shop"),
			map[string]any{"status.updatedReplicas": 1, "status.availableReplicas": 9})
	},
	"An Advanced StatefulSet with names of its own": func(s *story) {
		s.waitUntil("four pods have four names", func() string {
			var names []string
			for _, m := range []string{"member1", "member2"} {
				for _, p := range s.pods(m, "db") {
					names = append(names, p.Name)
				}
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); got != "db-0 db-1 db-2 db-3" {
				return "it is " + got
			}
			return ""
		})
		s.expectObject(s.ref("v1", "Service", "db"), "member1", "member2")
	},
	"What points at a workload": func(s *story) {
		s.expectObject(s.ref("policy/v1", "PodDisruptionBudget", "db"), "member1", "member2")
	},
	"A SidecarSet": func(s *story) {
		u := s.ref("apps.kruise.io/v1beta1", "SidecarSet", "guide-logs")
		s.waitUntil("every member has it", func() string {
			for m, c := range fleet.Members {
				if s.find(c, "apps.kruise.io/v1alpha1", "SidecarSet", "guide-logs") == nil {
					return m + " has none"
				}
			}
			return ""
		})
		// A pod that is made anew gets the sidecar.
		victim := s.pods("member1", "shop")[0]
		if err := fleet.Members["member1"].Delete(s.t.Context(), &victim); err != nil {
			s.fail("delete %s: %v", victim.Name, err)
		}
		s.waitUntil("a new pod has the sidecar", func() string {
			for _, p := range s.pods("member1", "shop") {
				if slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Name == "logs" }) {
					return ""
				}
			}
			return "none has"
		})
		_ = u
	},
	"A UnitedDeployment": func(s *story) {
		s.ready("edge", both)
		s.shows(s.ref("apps.kruise.io/v1beta1", "UnitedDeployment", "edge"),
			map[string]any{"status.replicas": 4, "status.readyReplicas": 4})
		for _, m := range []string{"member1", "member2"} {
			for _, subset := range s.list(s.find(fleet.Members[m], "apps.kruise.io/v1alpha1", "UnitedDeployment", "edge"),
				"spec", "topology", "subsets") {
				if fmt.Sprint(subset["replicas"]) != "1" {
					s.fail("in %s a subset is %v", m, subset)
				}
			}
		}
		s.ready("stores", "member1:3 member2:2")
		for m, want := range map[string]string{"member1": "flagship 3", "member2": "outlet 2"} {
			var got []string
			for _, subset := range s.list(s.find(fleet.Members[m], "apps.kruise.io/v1alpha1", "UnitedDeployment", "stores"),
				"spec", "topology", "subsets") {
				got = append(got, fmt.Sprint(subset["name"], " ", subset["replicas"]))
			}
			if strings.Join(got, ", ") != want {
				s.fail("%s has the subsets %s, want %s", m, strings.Join(got, ", "), want)
			}
		}
	},
	"A BroadcastJob": func(s *story) { // each member has three nodes
		s.shows(s.ref("apps.kruise.io/v1beta1", "BroadcastJob", "warm"),
			map[string]any{"status.desired": 6, "status.succeeded": 6, "status.active": 0})
	},
	"A Workflow": func(s *story) {
		s.shows(s.ref("argoproj.io/v1alpha1", "Workflow", "report"), map[string]any{"status.phase": "Succeeded"})
		in := 0
		for _, c := range fleet.Members {
			if s.find(c, "argoproj.io/v1alpha1", "Workflow", "report") != nil {
				in++
				s.waitUntil("it may report there", func() string {
					for _, kind := range []string{"Role", "RoleBinding"} {
						if s.find(c, "rbac.authorization.k8s.io/v1", kind, "report") == nil {
							return "there is no " + kind
						}
					}
					return ""
				})
			}
		}
		if in != 1 {
			s.fail("it is in %d members", in)
		}
	},
	"What differs per cluster": func(s *story) {
		s.waitUntil("member2 alone differs", func() string {
			for m, want := range map[string]string{"member1": "registry.example.com/shop:2",
				"member2": "registry.us.example.com/shop:2"} {
				u := s.find(fleet.Members[m], "apps.kruise.io/v1alpha1", "CloneSet", "shop")
				c := s.list(u, "spec", "template", "spec", "containers")[0]
				cpu := kit.Field(&unstructured.Unstructured{Object: c}, "resources", "requests", "cpu")
				if c["image"] != want || (cpu == "20m") != (m == "member2") ||
					(u.GetLabels()["site"] == "member2") != (m == "member2") {
					return fmt.Sprintf("%s has %v, labels %v", m, c, u.GetLabels())
				}
			}
			return ""
		})
	},
	"Services across clusters": func(s *story) {
		s.reaches("member3", "shop", "shop", "member1", "member2")
		s.reaches("member3", "derived-db", "db", "member1", "member2")
		s.agrees(s.ref("networking.karmada.io/v1alpha1", "MultiClusterService", "shop"), "ServiceApplied",
			"EndpointSliceDispatched")
	},
	"Replicas that follow the load": func(s *story) {
		s.shared(s.ref("apps.kruise.io/v1beta1", "CloneSet", "front"), "member1:1 member2:1") // the minimum
		s.waitUntil("it scales, and when its bounds change is known", func() string {
			f := s.find(fleet.Hub, "autoscaling.karmada.io/v1alpha1", "FederatedHPA", "front")
			for _, c := range s.list(f, "status", "conditions") {
				if c["type"] == "ScalingActive" && c["status"] == "True" {
					return ""
				}
			}
			return fmt.Sprint(kit.Field(f, "status"))
		})
	},
	"Replicas that should move again": func(s *story) {
		s.waitUntil("the workload was found", func() string {
			u := s.find(fleet.Hub, "apps.karmada.io/v1alpha1", "WorkloadRebalancer", "shop-after-maintenance")
			if u == nil {
				return "there is no rebalancer"
			}
			got, _, _ := unstructured.NestedSlice(u.Object, "status", "observedWorkloads")
			if len(got) != 1 || got[0].(map[string]any)["result"] != "Successful" {
				return fmt.Sprint(got)
			}
			return ""
		})
	},
	"Replicas that find no node, and clusters that are full": func(s *story) {
		s.waitUntil("no member is used too much, and it says so", func() string { return s.balanced("even") })
	},
	"Coming from Open Cluster Management": func(s *story) {
		s.feeds("member2", "till", "ReadyReplicas=2 Replicas=2 AvailableReplicas=2 UpdatedReplicas=2 UpdatedReadyReplicas=2 revision=")
		s.expectObject(s.ref("apps.kruise.io/v1alpha1", "CloneSet", "till"), "member2")
	},
	"A kind of your own": func(s *story) {
		u := s.find(fleet.Hub, "config.karmada.io/v1alpha1", "ResourceInterpreterCustomization", "trains")
		if u == nil {
			s.fail("the customization is not stored")
		}
	},
}

// commands are executed, but for these, which would start another hub, change this machine, or ask what simulated nodes
// run, which is nothing: of them the flags are checked.
var notRun = regexp.MustCompile(`^(argosy (up|join|logs|exec) |export )`)

func TestGuideBlocksWork(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	text, err := os.ReadFile("../../docs/guide.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := sectionsOf(string(text))
	messages := map[string]bool{}
	dir := t.TempDir()
	ns := shopNamespace(t)
	for _, sec := range sections {
		t.Run(sec.heading, func(t *testing.T) {
			// The sections are one story: a CloneSet of the first is overridden in a later one.
			s := &story{t: t, ns: ns, keep: func(client.Object) {}, last: func(func()) {}}
			hasYAML := false
			_, err := s.run(func(s *story) string {
				outcome := outcomes[sec.heading]
				checked := false
				for _, b := range sec.blocks {
					switch b.language {
					case "yaml":
						hasYAML = true
						s.applyOurs(dir, cities.Replace(b.text))
					case "sh":
						// What a section promises is true before its commands look at it or go on.
						if outcome != nil && hasYAML && !checked && sec.heading != "A kind of your own" {
							outcome(s)
							checked = true
						}
						s.commands(dir, cities.Replace(b.text))
					default:
						s.fail("nobody knows what to do with a block of %q at line %d", b.language, b.first)
					}
				}
				if outcome != nil && !checked {
					outcome(s)
				}
				return ""
			})
			messages[sec.heading] = true
			if err != nil {
				t.Fatal(err)
			}
			if hasYAML && outcomes[sec.heading] == nil {
				t.Errorf("no outcome is checked of what this section applies")
			}
		})
	}
	for heading := range maps.Keys(outcomes) {
		if !messages[heading] && !strings.Contains(t.Name(), "/") {
			t.Errorf("the guide has no section %q", heading)
		}
	}
}

func sectionsOf(text string) []section {
	var out []section
	lines := strings.Split(text, "\n")
	docs := documents(text)
	for i, line := range lines {
		heading, ok := strings.CutPrefix(line, "## ")
		if !ok {
			continue
		}
		end := len(lines)
		for j := i + 1; j < len(lines); j++ {
			if strings.HasPrefix(lines[j], "## ") {
				end = j
				break
			}
		}
		sec := section{heading: heading}
		for _, d := range docs {
			if d.first > i && d.last <= end {
				sec.blocks = append(sec.blocks, d)
			}
		}
		out = append(out, sec)
	}
	return out
}

// shopNamespace is the guide's own: its SidecarSet names it.
func shopNamespace(t *testing.T) string {
	ns := &corev1.Namespace{}
	ns.Name = "shop"
	if err := fleet.Hub.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// balanced returns what a ReplicaSchedulingPolicy says instead of that no cluster is over its threshold.
func (s *story) balanced(policy string) string {
	u := s.find(fleet.Hub, "config.karmada.io/v1alpha1", "ReplicaSchedulingPolicy", policy)
	conditions, _ := kit.Field(u, "status", "conditions").([]any)
	for _, c := range conditions {
		if c := c.(map[string]any); c["type"] == "Balanced" && c["status"] == "True" && c["reason"] == "BelowThreshold" {
			return ""
		}
	}
	return fmt.Sprint(conditions)
}

// ref names an object of the guide.
func (s *story) ref(apiVersion, kind, name string) *unstructured.Unstructured {
	return s.object(fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s}}", apiVersion, kind, name))
}

// pods of an app in a member that are not on their way out.
func (s *story) pods(member, app string) []corev1.Pod {
	var list corev1.PodList
	if err := fleet.Members[member].List(s.t.Context(), &list, client.InNamespace(s.ns),
		client.MatchingLabels{"app": app}); err != nil {
		s.fail("list pods of %s: %v", member, err)
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// ours applies an object of our guide without a single warning, again if it is there. One that names a file is written
// to it, for the commands; if it is an object of the hub it is applied, too.
func (s *story) applyOurs(dir, text string) {
	if name, ok := strings.CutPrefix(strings.SplitN(text, "\n", 2)[0], "# file: "); ok {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			s.fail("%v", err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			s.fail("%v", err)
		}
		if !strings.Contains(text, "\nkind: ") {
			return
		}
	}
	u := s.object(text)
	if s.find(fleet.Hub, u.GetAPIVersion(), u.GetKind(), u.GetName()) != nil {
		s.change(u, func(o map[string]any) { o["spec"] = u.Object["spec"] })
		return
	}
	warnings, err := s.write(u)
	// The guide's own kind does not exist, and the hub warns about it, as the guide describes.
	warnings = slices.DeleteFunc(warnings, func(text string) bool {
		return strings.HasSuffix(text, "of group guide.example.com yet: nothing uses the customization until it does")
	})
	if err != nil || len(warnings) > 0 {
		s.fail("%s %s: %v, warnings %q", u.GetKind(), u.GetName(), err, warnings)
	}
}

// commands runs the lines of a shell block, with our binary as argosy, and the guide's namespace as the current one.
func (s *story) commands(dir, text string) {
	kubeconfig := filepath.Join(dir, "hub.kubeconfig")
	config, err := os.ReadFile(fleet.Lab.Hub.Kubeconfig())
	if err != nil {
		s.fail("%v", err)
	}
	config = regexp.MustCompile(`(?m)^(\s*)(user: .*)$`).ReplaceAll(config, []byte("$1$2\n${1}namespace: "+s.ns))
	if err := os.WriteFile(kubeconfig, config, 0o600); err != nil {
		s.fail("%v", err)
	}
	bin := filepath.Join(dir, "bin")
	binary, err := filepath.Abs(fleet.Lab.Hub.Binary)
	if err == nil {
		err = os.MkdirAll(bin, 0o755)
	}
	if err == nil {
		if err = os.Symlink(binary, filepath.Join(bin, "argosy")); os.IsExist(err) {
			err = nil
		}
	}
	if err != nil {
		s.fail("%v", err)
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if notRun.MatchString(line) {
			s.flags(line)
			continue
		}
		if _, err := exec.LookPath("kubectl"); err != nil && strings.HasPrefix(line, "kubectl ") {
			s.t.Logf("not run, as there is no kubectl here: %s", line)
			continue
		}
		cmd := exec.CommandContext(s.t.Context(), "sh", "-c", line)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil || out.Len() == 0 || strings.Contains(out.String(), "No resources found") {
			s.fail("%s: %v, it printed %q", line, err, cut(out.String(), 500))
		}
		s.t.Logf("%s\n%s", line, cut(out.String(), 300))
	}
}

// flags checks that a command that is not run here has the flags that it is given.
func (s *story) flags(line string) {
	words := strings.Fields(line)
	if words[0] != "argosy" {
		return
	}
	help, err := s.argosy("argosy", words[1], "--help")
	if err != nil {
		s.fail("%s: %v", line, err)
	}
	for _, w := range words {
		if strings.HasPrefix(w, "--") && !strings.Contains(help, w+" ") {
			s.fail("%s: there is no flag %s", line, w)
		}
	}
}
