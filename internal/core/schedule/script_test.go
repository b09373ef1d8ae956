package schedule

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// TestScripts plays the stories in testdata. A story is the placement as a policy has it, a line "---", and steps.
// A step changes something; then the binding is looked at, scheduled if due, and must hold what stands after "=>".
//
//	join NAME [KEY=VALUE label]…    a cluster joins, or joins with other labels; region, zone and provider are fields
//	leave NAME                      a cluster is deleted
//	taint NAME KEY:EFFECT           untaint NAME
//	free NAME=N …                   from now on, clusters have room for so many more; one not named is unknown
//	replicas N                      the template has so many; a template without a number is a ConfigMap
//	uid TEXT                        the template's UID
//	rebalance                       a fresh run is asked for
//
// "=> not due" expects that no run is due, and that the binding is unchanged. After each step a second check must find
// nothing due, unless the run failed, and a second run must return the same.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { play(t, file) })
	}
}

type story struct {
	clusters []*clusterv1alpha1.Cluster
	snapshot Snapshot
	free     map[string]int32
	binding  *workv1alpha2.ResourceBinding
	now      time.Time
}

func play(t *testing.T, file string) {
	script, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, steps, ok := bytes.Cut(script, []byte("\n---\n"))
	if !ok {
		t.Fatalf("%s has no line ---", file)
	}
	var p policyv1alpha1.Placement
	if err := yaml.UnmarshalStrict(head, &p); err != nil {
		t.Fatal(err)
	}
	s := &story{binding: configMap(p), now: time.Unix(1000, 0)}

	lines := bufio.NewScanner(bytes.NewReader(steps))
	for n := bytes.Count(head, []byte("\n")) + 3; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		step, want, looks := strings.Cut(line, "=>")
		if strings.TrimSpace(step) != "" {
			s.run(t, file+":"+strconv.Itoa(n), strings.Fields(step))
		}
		if looks {
			s.look(t, file+":"+strconv.Itoa(n)+": "+strings.TrimSpace(step), strings.TrimSpace(want))
		}
	}
}

func (s *story) run(t *testing.T, at string, words []string) {
	t.Helper()
	args := words[1:]
	switch words[0] {
	case "join":
		var changes []with
		for _, label := range args[1:] {
			key, value, _ := strings.Cut(label, "=")
			changes = append(changes, property(key, value))
		}
		s.remove(args[0])
		s.clusters = append(s.clusters, cluster(args[0], changes...))
	case "leave":
		s.remove(args[0])
	case "taint":
		key, effect, _ := strings.Cut(args[1], ":")
		s.change(args[0], func(c *clusterv1alpha1.Cluster) {
			c.Spec.Taints = []corev1.Taint{{Key: key, Effect: corev1.TaintEffect(effect)}}
		})
	case "untaint":
		s.change(args[0], func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = nil })
	case "free":
		s.free = map[string]int32{}
		for _, t := range targets(strings.Join(args, " ")) {
			s.free[t.Name] = t.Replicas
		}
	case "replicas":
		n, err := strconv.Atoi(args[0])
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		uid := s.binding.Spec.Resource.UID
		template := deployment(int32(n), *s.binding.Spec.Placement).Spec
		s.binding.Spec.Resource, s.binding.Spec.ReplicaRequirements = template.Resource, template.ReplicaRequirements
		s.binding.Spec.Resource.UID, s.binding.Spec.Replicas = uid, int32(n)
	case "uid":
		s.binding.Spec.Resource.UID = types.UID(args[0])
	case "rebalance":
		rebalanced(s.binding)
	default:
		t.Fatalf("%s: what is %q?", at, words[0])
	}
	s.snapshot = s.snapshot.Next(s.clusters)
}

// property returns a field of the cluster to spread over, or else a label.
func property(key, value string) with {
	return func(c *clusterv1alpha1.Cluster) {
		switch key {
		case "region":
			c.Spec.Region = value
		case "zone":
			c.Spec.Zones = strings.Split(value, ",")
		case "provider":
			c.Spec.Provider = value
		default:
			labelled(key, value)(c)
		}
	}
}

func (s *story) remove(name string) {
	s.clusters = slices.DeleteFunc(slices.Clone(s.clusters), func(c *clusterv1alpha1.Cluster) bool {
		return c.Name == name
	})
}

func (s *story) change(name string, change with) {
	for i, c := range s.clusters {
		if c.Name == name {
			s.clusters[i] = c.DeepCopy()
			change(s.clusters[i])
		}
	}
}

func (s *story) look(t *testing.T, at, want string) {
	t.Helper()
	s.now = s.now.Add(time.Hour)
	_, due := Due(s.binding, s.snapshot)
	if !due {
		if got := targetList(s.binding.Spec.Clusters); want != "not due" && got != want {
			t.Errorf("%s: not due, with %q, want %q", at, got, want)
		}
		return
	}
	before := s.binding.Spec.Clusters
	r, err := Schedule(s.binding, s.snapshot, Answers(s.free))
	record(s.binding, r, err, s.now)
	got := targetList(r.Clusters)
	if err != nil {
		c := Condition(err)
		got = c.Reason + ": " + c.Message
	}
	if got != want {
		t.Errorf("%s: got %q, want %q", at, got, want)
	}

	take(s.free, before, r.Clusters)
	if reason, due := Due(s.binding, s.snapshot); due && err == nil {
		t.Errorf("%s: due again, because %s", at, reason)
	}
	again, againErr := Schedule(s.binding, s.snapshot, Answers(s.free))
	if targetList(again.Clusters) != targetList(r.Clusters) || Condition(againErr).Message != Condition(err).Message {
		t.Errorf("%s: a second run gives %q (%v)", at, targetList(again.Clusters), againErr)
	}
}
