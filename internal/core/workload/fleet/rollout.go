package fleet

import (
	"maps"
	"slices"
	"strings"

	kruiserollout "github.com/argosy-io/argosy/internal/core/workload/rollout"
)

// kruiseRollout divides the numeric replicas of the steps by the replicas of the workload in each cluster. The replicas
// of a cluster never decrease from step to step. Percentages are copied. If the replicas are unknown, nothing changes.
//
// Members reject a step without replicas. If the first steps have none for a cluster, its Rollout is paused until the
// other clusters reach the first step that has some. Then it passes the earlier steps without waiting, with one pod,
// which is no more than that step has.
func (f *fleet) kruiseRollout() error {
	if f.Target == nil {
		return nil
	}
	for _, strategy := range []string{"canary", "blueGreen"} {
		path := []string{"spec", "strategy", strategy, "steps"}
		written, divided := f.copies(path...), false
		begins := make([]int, len(f.members)) // how many steps have none, before the first that has some
		for k, step := range list(f.Template.Object, path...) {
			step, _ := step.(map[string]any)
			n, ok := whole(step["replicas"])
			if !ok {
				continue
			}
			divided = true
			weights := make([]int64, len(f.members))
			for i, m := range f.members {
				weights[i] = f.Target[m.Cluster]
			}
			for i, share := range proportional(n, weights) {
				if k < len(written[i]) {
					if s, ok := written[i][k].(map[string]any); ok {
						s["replicas"] = max(share, 1)
						if share == 0 && begins[i] == k && f.Target[f.members[i].Cluster] > 0 {
							begins[i] = k + 1
							if s["pause"] != nil {
								s["pause"] = map[string]any{"duration": int64(1)}
							}
						}
					}
				}
			}
		}
		for i, m := range f.members {
			if divided && m.Base != nil {
				f.put(m, written[i], path...)
			}
		}
		if slices.ContainsFunc(begins, func(k int) bool { return k > 0 }) {
			f.pauseRollouts(begins)
		}
	}
	return nil
}

// pauseRollouts pauses the Rollouts of clusters whose turn has not come. Each cluster names its revisions itself, so
// the Work records the revision at which the Rollout last completed: it tells a completed Rollout from one that has
// not started. A Rollout is also paused between rollouts; otherwise it would start before the hub has seen the change.
func (f *fleet) pauseRollouts(begins []int) {
	progress := make([]kruiserollout.Progress, len(f.members))
	for i, m := range f.members {
		progress[i] = kruiserollout.ProgressOf(m.status)
	}
	rolling := func(i int) bool { return progress[i].Phase == "Progressing" }
	for i, m := range f.members {
		if begins[i] == 0 || m.Base == nil {
			continue
		}
		stood := map[string]string{}
		if m.note != nil {
			for pair := range strings.SplitSeq(m.note.Stood, ",") {
				if cluster, revision, ok := strings.Cut(pair, "="); ok {
					stood[cluster] = revision
				}
			}
		}
		turn := rolling(i)
		for j, other := range f.members {
			// Consider only clusters that begin earlier and have replicas.
			if i == j || begins[j] >= begins[i] || f.Target[other.Cluster] == 0 || f.options.ignoreLost && !other.Reachable {
				continue
			}
			p := progress[j]
			before, known := stood[other.Cluster]
			if !rolling(i) && !rolling(j) {
				stood[other.Cluster] = p.Revision
			}
			there := rolling(j) && p.Step > int64(begins[i])
			ended := p.Phase == "Healthy" && p.Revision != "" &&
				(p.Revision == progress[i].Revision || known && p.Revision != before)
			turn = turn && (there || ended)
		}
		if !turn {
			f.put(m, true, "spec", "strategy", "paused")
		}
		var pairs []string
		for _, cluster := range slices.Sorted(maps.Keys(stood)) {
			pairs = append(pairs, cluster+"="+stood[cluster])
		}
		f.result.Notes[m.Cluster] = Note{Stood: strings.Join(pairs, ",")}.String()
	}
}
