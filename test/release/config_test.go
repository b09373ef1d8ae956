package release

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	corerelease "github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/test/kit"
)

// configures writes the ConfigMap settings of a story.
func (s *story) configures(value string) {
	s.t.Helper()
	fleet.Hub.Apply(s.t, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: %s},
		data: {value: "%s"}}`, s.ns, value))
}

// version returns the name of the version of the ConfigMap settings with a value.
func (s *story) version(value string) string {
	return corerelease.VersionOf(kit.Object(s.t, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap,
		metadata: {name: settings, namespace: %s}, data: {value: "%s"}}`, s.ns, value)))
}

// exists reports whether the hub has a ConfigMap.
func (s *story) exists(name string) bool {
	s.t.Helper()
	return fleet.Hub.Find(s.t, "v1", "ConfigMap", s.ns, name) != nil
}

// mounted waits until all pods run an image and mount a ConfigMap.
func (s *story) mounted(image, config string, pods int) {
	s.t.Helper()
	s.runs("shop", image, pods)
	s.waits("all pods mount "+config, func() bool {
		for _, all := range s.pods {
			for _, p := range all {
				if p.config != config {
					return false
				}
			}
		}
		return true
	})
	for _, c := range s.clusters {
		kit.Eventually(s.t, fmt.Sprintf("ConfigMap %s is in %s", config, c), func() string {
			if fleet.Members[c].Find(s.t, "v1", "ConfigMap", s.ns, config) == nil {
				return "it is not there" // simulated pods do not wait for it
			}
			return ""
		})
	}
}

// mounts is a time in which a pod mounted a ConfigMap, from its creation to its deletion, as resource versions of its
// cluster; to is 0 while the pod runs.
type mounts struct {
	cluster, config string
	from, to        uint64
}

// outlasts returns a function that reports each ConfigMap that left a cluster before its pods, since this call. Streams
// of two kinds may be behind each other, so it compares resource versions, and it is called at the end.
func (s *story) outlasts() (report func()) {
	pods, left := map[types.UID]*mounts{}, []mounts{} // left has ConfigMaps, deleted at from
	s.check(func(e event) {
		if e.obj == nil {
			return
		}
		version, err := strconv.ParseUint(e.obj.GetResourceVersion(), 10, 64)
		if err != nil {
			s.violated("%s has the resource version %q", e.obj.GetName(), e.obj.GetResourceVersion())
		}
		switch obj := e.obj.(type) {
		case *corev1.Pod:
			p, is := pods[obj.UID], podOf(obj)
			switch {
			case p == nil && is != nil && !e.deleted:
				pods[obj.UID] = &mounts{e.cluster, is.config, version, 0}
			case p != nil && p.to == 0 && (is == nil || e.deleted):
				p.to = version
			}
		case *corev1.ConfigMap:
			if e.deleted {
				left = append(left, mounts{cluster: e.cluster, config: obj.Name, from: version})
			}
		}
	})
	return func() {
		s.t.Helper()
		s.read(func() {
			if len(left) == 0 {
				s.t.Error("no ConfigMap has left a cluster")
			}
			for _, gone := range left {
				for uid, p := range pods {
					if p.cluster == gone.cluster && p.config == gone.config && p.from < gone.from &&
						(p.to == 0 || p.to > gone.from) {
						s.t.Errorf("ConfigMap %s left %s at %d, before its pod %s, which ran from %d to %d", gone.config, gone.cluster,
							gone.from, uid, p.from, p.to)
					}
				}
			}
		})
	}
}

func versionedConfig(t *testing.T) {
	s := newStory(t, "m1", "m2", "m3")
	outlasts := s.outlasts()
	const strategy = `{config: Versioned, stages: [{name: half, to: {percent: 50}}, {name: rest, before: [{name: go}]}]}`
	s.creates(fmt.Sprintf(`{apiVersion: release.argosy.io/v1alpha1, kind: ReleaseStrategy,
		metadata: {name: any, namespace: %s}, spec: %s}`, s.ns, strategy))
	s.configures("1")
	fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy,
		metadata: {name: shop, namespace: %[1]s}, spec: {propagateDeps: true,
		resourceSelectors: [{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: shop}],
		placement: {clusterAffinity: {clusterNames: [%[2]s]}, replicaScheduling: {%[3]s}}}}
---
{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet,
		metadata: {name: shop, namespace: %[1]s, annotations: {argosy.io/release-strategy: any}},
		spec: {replicas: 6, selector: {matchLabels: {app: shop}}, updateStrategy: {maxUnavailable: 2},
		template: {metadata: {labels: {app: shop}}, spec: {containers: [{name: main, image: "%[4]s"}],
		volumes: [{name: c, configMap: {name: settings}}]}}}}`, s.ns, strings.Join(s.clusters, ", "), divided, image(1)))
	one, two, three := s.version("1"), s.version("2"), s.version("3")
	s.mounted(image(1), one, 6)

	// At every event, pods of an image mount the ConfigMap of that image.
	pairs := map[string]bool{image(1) + " " + one: true, image(2) + " " + two: true}
	s.check(func(e event) {
		if obj, ok := e.obj.(*corev1.Pod); ok && !e.deleted {
			if p := podOf(obj); p != nil && !pairs[p.image+" "+p.config] {
				s.violated("a pod in %s runs %s with ConfigMap %s", e.cluster, p.image, p.config)
			}
		}
	})
	generation := func() any {
		return kit.Field(fleet.Hub.Find(t, "apps.kruise.io/v1alpha1", "CloneSet", s.ns, "shop"), "metadata", "generation")
	}

	// 1. The image and its ConfigMap go half of the way, and back.
	s.configures("2")
	s.sets(image(2))
	before := generation()
	s.starts("both", strings.Replace(strategy, "{config", "{rollback: {order: Reverse}, config", 1))
	s.awaits("both", "rest")
	s.read(func() {
		if n := s.count("shop", image(2)); n != 3 {
			t.Errorf("%d pods are new in the middle, want 3", n)
		}
	})
	s.does("rollback", "both", "--yes")
	r := s.becomes("both", rolledBack, releasev1alpha1.ReasonRolledBack)
	s.mounted(image(1), one, 6)
	if generation() != before {
		t.Error("the hub has written the template")
	}

	// 2. A change of the ConfigMap alone is a release.
	s.sets(image(1))
	s.configures("3")
	s.waits("the change waits for a release", func() bool {
		for _, c := range s.bindings["shop-cloneset"].Status.Conditions {
			if c.Type == "ChangeAwaitsRelease" && c.Status == "True" && strings.Contains(c.Message, "ConfigMaps") {
				return true
			}
		}
		return false
	})
	s.read(func() { pairs[image(1)+" "+three] = true })
	s.starts("config", `{config: Versioned, stages: [{name: all}]}`)
	s.becomes("config", succeeded, completed)
	s.mounted(image(1), three, 6)

	kit.Eventually(t, "the versions that no pod reads leave the clusters", func() string {
		for _, c := range s.clusters {
			for _, config := range []string{one, two} {
				if fleet.Members[c].Find(t, "v1", "ConfigMap", s.ns, config) != nil {
					return config + " is in " + c
				}
			}
		}
		return ""
	})
	outlasts()

	// 3. A version goes with the last revision that uses it.
	fleet.Hub.Remove(t, "release.argosy.io/v1alpha1", "ReleaseRevision", s.ns, r.Status.Targets[0].To)
	kit.Eventually(t, "the version of a deleted revision is deleted", func() string {
		if s.exists(two) {
			return "it exists"
		}
		return ""
	})
	if !s.exists(one) || !s.exists(three) {
		t.Error("the version of another revision was deleted")
	}
	s.keepsVersion(three)
}
