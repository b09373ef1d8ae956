package schedule

import (
	"hash/fnv"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
)

// apiSet are the kinds that a cluster serves. Most clusters serve the same kinds, and share one set.
type apiSet struct {
	source []clusterv1alpha1.APIEnablement
	// versions are the served versions by group and kind, in the order of the discovery.
	versions map[schema.GroupKind][]string
}

// apiSets are sets by the hash of their source.
type apiSets map[uint64][]*apiSet

// apiSets returns the sets of the snapshot's members.
func (s Snapshot) apiSets() apiSets {
	sets, seen := apiSets{}, map[*apiSet]bool{}
	for i := range s.members {
		set := s.members[i].apis
		if seen[set] {
			continue
		}
		seen[set] = true
		key := hashOf(set.source)
		sets[key] = append(sets[key], set)
	}
	return sets
}

// setOf returns the set of a cluster with these enablements. It adds a new set if there is none.
func (s apiSets) setOf(source []clusterv1alpha1.APIEnablement) *apiSet {
	key := hashOf(source)
	for _, known := range s[key] {
		if slices.EqualFunc(known.source, source, sameEnablement) {
			return known
		}
	}
	set := &apiSet{source: source, versions: map[schema.GroupKind][]string{}}
	for i := range source {
		gv, err := schema.ParseGroupVersion(source[i].GroupVersion)
		if err != nil {
			// The cluster's status lists a version that no API server serves; nothing can be sent in it.
			continue
		}
		for _, r := range source[i].Resources {
			kind := schema.GroupKind{Group: gv.Group, Kind: r.Kind}
			if versions := set.versions[kind]; !slices.Contains(versions, gv.Version) {
				set.versions[kind] = append(versions, gv.Version)
			}
		}
	}
	s[key] = append(s[key], set)
	return set
}

func sameEnablement(a, b clusterv1alpha1.APIEnablement) bool {
	return a.GroupVersion == b.GroupVersion &&
		slices.EqualFunc(a.Resources, b.Resources, func(x, y clusterv1alpha1.APIResource) bool { return x.Kind == y.Kind })
}

func hashOf(source []clusterv1alpha1.APIEnablement) uint64 {
	h := fnv.New64a()
	// fnv never fails to write.
	for i := range source {
		_, _ = h.Write([]byte(source[i].GroupVersion))
		for j := range source[i].Resources {
			_, _ = h.Write([]byte(source[i].Resources[j].Kind))
		}
	}
	return h.Sum64()
}

// serves reports whether the cluster serves the question's kind in any version.
func (q *question) serves(m *member) bool {
	if m.apis != nil {
		if m.apis != q.apis {
			q.apis, q.served = m.apis, len(m.apis.versions[q.kind]) > 0
		}
		return q.served
	}
	for i := range m.cluster.Status.APIEnablements {
		e := &m.cluster.Status.APIEnablements[i]
		if gv, err := schema.ParseGroupVersion(e.GroupVersion); err != nil || gv.Group != q.kind.Group {
			continue
		}
		for j := range e.Resources {
			if e.Resources[j].Kind == q.kind.Kind {
				return true
			}
		}
	}
	return false
}
