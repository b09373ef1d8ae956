package history

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	corerelease "github.com/argosy-io/argosy/internal/core/release"
)

type table struct {
	name string
	// keys is the number of the first columns that identify a row.
	keys    int
	columns []string
	// immutable is true if rows never change.
	immutable bool
	// added has the values of columns that older archives do not have.
	added map[string]any
	// guard is a column: a row with a smaller value than the stored one changes nothing.
	guard string
}

var (
	releasesTable = table{name: "releases", keys: 1, guard: "version", columns: []string{"uid", "namespace", "name",
		"strategy", "plan_hash", "author", "change_url", "commit_sha", "committed_at", "ticket", "reason", "phase", "outcome",
		"created_at", "started_at", "failed_at", "ended_at", "version", "trigger"}, added: map[string]any{"trigger": ""}}
	targetsTable = table{name: "release_targets", keys: 2, columns: []string{"release_uid", "target", "api_group", "kind",
		"namespace", "name", "revision_from", "revision_to"}}
	stagesTable = table{name: "stages", keys: 2, columns: []string{"release_uid", "ordinal", "name", "environment",
		"phase", "attempt", "clusters", "skipped", "pods", "started_at", "reached_at", "ended_at"}}
	stageClustersTable = table{name: "stage_clusters", keys: 4, columns: []string{"release_uid", "stage", "cluster",
		"target", "phase", "message"}}
	gatesTable = table{name: "gates", keys: 5, columns: []string{"release_uid", "stage", "position", "name", "attempt",
		"phase", "by_users", "started_at", "release_check", "verdict", "passed", "failed", "evidence"},
		added: map[string]any{"release_check": "", "verdict": "", "passed": int64(0), "failed": int64(0), "evidence": ""}}
	approvalsTable = table{name: "approvals", keys: 1, immutable: true, columns: []string{"uid", "release_uid", "revision",
		"stage", "position", "gate", "attempt", "verdict", "by_user", "comment", "at"}}
	eventsTable = table{name: "events", keys: 3, immutable: true, columns: []string{"release_uid", "seq", "at", "type",
		"stage", "cluster", "actor", "reason", "message"}}
	revisionsTable = table{name: "revisions", keys: 2, columns: []string{"namespace", "revision", "api_group", "kind",
		"name", "hash", "blocked", "created_at"}}
	imagesTable = table{name: "revision_images", keys: 3, immutable: true, columns: []string{"namespace", "revision",
		"image"}}
	startsTable = table{name: "deployment_starts", keys: 4, immutable: true, columns: []string{"release_uid", "target",
		"cluster", "direction", "api_group", "kind", "namespace", "name", "revision", "from_at"}}
	endsTable = table{name: "deployment_ends", keys: 5, immutable: true, columns: []string{"api_group", "kind",
		"namespace", "name", "at"}}
)

// row is a row of a table, with one value per column.
type row struct {
	table  table
	values []any
}

// timeText returns a time as a text that sorts by time; nil for no time.
func timeText(t *metav1.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(time.RFC3339)
}

// createdAt returns the time at which an object was created.
func createdAt(obj metav1.Object) string {
	at := obj.GetCreationTimestamp()
	return at.UTC().Format(time.RFC3339)
}

// releaseRows returns all rows of a release. The same object always gives the same rows.
func releaseRows(r *releasev1alpha1.Release) []row {
	uid, status := string(r.UID), r.Status
	change := ptr.Deref(r.Spec.Change, releasev1alpha1.ReleaseChange{})
	strategy, author, outcome := "", "", ""
	if r.Spec.StrategyRef != nil {
		strategy = r.Spec.StrategyRef.Name
	}
	if r.Spec.CreatedBy != nil {
		author = r.Spec.CreatedBy.User
	}
	if status.Phase.Ended() {
		outcome = string(status.Phase)
	}
	rows := []row{{releasesTable, []any{uid, r.Namespace, r.Name, strategy, status.PlanHash, author, change.URL,
		change.Commit, timeText(change.CommittedAt), change.Ticket, change.Reason, string(status.Phase), outcome,
		createdAt(r), timeText(status.StartedAt), failedAt(status), timeText(status.EndedAt),
		versionOf(r), triggerOf(r)}}}
	for _, t := range r.Spec.Targets {
		from, to := revisionsOf(status, t.Name)
		rows = append(rows, row{targetsTable, []any{uid, t.Name, groupOf(t.Ref), t.Ref.Kind, r.Namespace, t.Ref.Name,
			from, to}})
	}
	rows = append(rows, stageRows(r)...)
	for _, e := range status.Journal {
		rows = append(rows, row{eventsTable, []any{uid, e.Seq, timeText(&e.At), string(e.Type), e.Stage, e.Cluster,
			e.Actor, e.Reason, e.Message}})
	}
	return rows
}

// The triggers of releases of users. The API defines the triggers of releases of the hub.
const (
	triggerUser     = "User"
	triggerRollback = "Rollback"
)

// triggerOf returns what started a release: the hub, a user, or a user who released a stored revision that the template
// does not have. Before the hub has compared it with the template, each stored revision counts as such.
func triggerOf(r *releasev1alpha1.Release) string {
	if r.Spec.Trigger != nil {
		return string(r.Spec.Trigger.Type)
	}
	for _, t := range r.Spec.Targets {
		if t.To.Revision != "" && !isOfTemplate(r.Status, t.Name) {
			return triggerRollback
		}
	}
	return triggerUser
}

// isOfTemplate reports whether the template had the revision of a target when the release was accepted.
func isOfTemplate(status releasev1alpha1.ReleaseStatus, target string) bool {
	return slices.ContainsFunc(status.Targets, func(t releasev1alpha1.ReleaseTargetStatus) bool {
		return t.Name == target && t.TemplateRevision == ""
	})
}

// versionOf returns a number that orders the states of an object. A restored hub continues with greater numbers.
func versionOf(r *releasev1alpha1.Release) int64 {
	version, _ := strconv.ParseInt(r.ResourceVersion, 10, 64) // 0 for none
	return version
}

// stageRows returns the rows of the stages, of their clusters and gates, and of the revisions that began to run.
func stageRows(r *releasev1alpha1.Release) []row {
	uid, status := string(r.UID), r.Status
	var rows, gates, inClusters, starts []row
	var clusters []string
	started := map[string]bool{}
	for i, s := range status.Stages {
		if !s.SameClusters {
			clusters = s.ClusterNames
		}
		environment := ""
		if status.Strategy != nil && i < len(status.Strategy.Stages) {
			environment = status.Strategy.Stages[i].Environment
		}
		rows = append(rows, row{stagesTable, []any{uid, i, s.Name, environment, string(s.Phase), s.Attempt,
			s.Counts.Clusters, s.Counts.Skipped, s.Counts.Pods, timeText(s.StartedAt), timeText(s.ReachedAt),
			timeText(s.EndedAt)}})
		for _, g := range s.Gates {
			c := ptr.Deref(g.Check, releasev1alpha1.ReleaseCheckStatus{})
			gates = append(gates, row{gatesTable, []any{uid, s.Name, string(g.Position), g.Name, s.Attempt, string(g.Phase),
				strings.Join(g.By, ", "), timeText(g.Since), c.Name, string(c.Verdict), c.Passed, c.Failed,
				corerelease.SampleText(c)}})
		}
		if s.StartedAt == nil {
			continue
		}
		reported := map[[2]string]releasev1alpha1.ReleaseClusterStatus{}
		for _, c := range s.Clusters {
			reported[[2]string{c.Name, c.Workload}] = c
		}
		for _, cluster := range clusters {
			for _, t := range r.Spec.Targets {
				c, unreached := reported[[2]string{cluster, t.Name}]
				phase := string(c.Phase)
				if !unreached {
					phase = string(s.Phase)
				}
				inClusters = append(inClusters, row{stageClustersTable, []any{uid, s.Name, cluster, t.Name, phase, c.Message}})
				_, to := revisionsOf(status, t.Name)
				if key := t.Name + "/" + cluster; !unreached && s.ReachedAt != nil && !started[key] {
					started[key] = true
					starts = append(starts, row{startsTable, []any{uid, t.Name, cluster, "forward", groupOf(t.Ref),
						t.Ref.Kind, r.Namespace, t.Ref.Name, to, timeText(s.ReachedAt)}})
				}
			}
		}
	}
	rows = slices.Concat(rows, gates, inClusters, starts)
	if status.Phase == releasev1alpha1.ReleaseRolledBack {
		rows = append(rows, rollbackRows(r, starts)...)
	}
	return rows
}

// rollbackRows returns the rows of the old revisions that run again after a rollback.
func rollbackRows(r *releasev1alpha1.Release, starts []row) []row {
	rows := make([]row, 0, len(starts))
	for _, s := range starts {
		values := append([]any{}, s.values...)
		from, _ := revisionsOf(r.Status, values[1].(string))
		values[3], values[8], values[9] = "back", from, timeText(r.Status.EndedAt)
		rows = append(rows, row{startsTable, values})
	}
	return rows
}

// failedAt returns the time at which a rollback began or the release failed; nil if neither happened.
func failedAt(status releasev1alpha1.ReleaseStatus) any {
	if status.Rollback != nil {
		return timeText(&status.Rollback.StartedAt)
	}
	if status.Phase == releasev1alpha1.ReleaseFailed {
		return timeText(status.EndedAt)
	}
	return nil
}

func revisionsOf(status releasev1alpha1.ReleaseStatus, target string) (from, to string) {
	for _, t := range status.Targets {
		if t.Name == target {
			return t.From, t.To
		}
	}
	return "", ""
}

func groupOf(ref releasev1alpha1.ReleaseObjectReference) string {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group
}

func approvalRows(a *releasev1alpha1.ReleaseApproval) []row {
	by := ""
	if a.Spec.By != nil {
		by = a.Spec.By.User
	}
	return []row{{approvalsTable, []any{string(a.UID), string(a.Spec.ReleaseUID), a.Spec.Revision, a.Spec.Stage,
		string(a.Spec.Position), a.Spec.Gate, a.Spec.Attempt, string(a.Spec.Verdict), by, a.Spec.Comment,
		createdAt(a)}}}
}

// revisionRows returns the rows of a revision. Its pods and overrides are there by hash alone: they can have secrets,
// and the database is not encrypted.
func revisionRows(r *releasev1alpha1.ReleaseRevision) []row {
	blocked := ""
	if r.Status.Blocked != nil {
		blocked = r.Status.Blocked.Reason
	}
	rows := []row{{revisionsTable, []any{r.Namespace, r.Name, groupOf(r.Spec.Target), r.Spec.Target.Kind,
		r.Spec.Target.Name, r.Spec.Hash, blocked, createdAt(r)}}}
	for _, image := range r.Spec.Images {
		if len(image) > longestImage {
			continue
		}
		rows = append(rows, row{imagesTable, []any{r.Namespace, r.Name, image}})
	}
	return rows
}

type Workload struct{ Group, Kind, Namespace, Name string }

// Deployed returns the workloads with a revision of a release that runs in a cluster now.
func (s *Store) Deployed(ctx context.Context) ([]Workload, error) {
	return queryAll(ctx, s, "SELECT DISTINCT api_group, kind, namespace, name FROM deployments WHERE to_at IS NULL "+
		"ORDER BY namespace, name, kind, api_group", nil,
		func(w *Workload) []any { return []any{&w.Group, &w.Kind, &w.Namespace, &w.Name} })
}

// RecordEnds writes that workloads were deleted on the hub, which ends their pods in all clusters.
func (s *Store) RecordEnds(ctx context.Context, deleted []Workload, at time.Time) error {
	rows := make([]row, len(deleted))
	for i, w := range deleted {
		rows[i] = row{endsTable, []any{w.Group, w.Kind, w.Namespace, w.Name, timeText(&metav1.Time{Time: at})}}
	}
	return s.upsert(ctx, rows)
}
