package history

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

// Filter selects what a query returns. An empty field selects all.
type Filter struct {
	// Namespaces that the user may read; nil is all of them.
	Namespaces []string
	// UID and Release identify a release: by its UID, or its name.
	UID, Release string
	// Kind and Name of a workload.
	Kind, Name string
	Author     string
	Cluster    string
	Image      string
	Outcome    string
	// Trigger is User, Rollback, Template or Direct.
	Trigger string
	// Environment of the stages that count for DORA figures.
	Environment string
	// Since and Until bound the creation of releases, or the end of stages.
	Since, Until time.Time
	// Limit bounds the answer; 0 is DefaultLimit.
	Limit int
}

// DefaultLimit is the number of rows of a query whose filter sets no limit. MaxLimit bounds the limit of a request,
// whose rows are in memory.
const DefaultLimit, MaxLimit = 200, 5000

// Resource is the resource for which rights are checked.
var Resource = releasev1alpha1.GroupVersion.WithResource("releases").GroupResource()

// Release is a release as the history has it. Times are RFC 3339 in UTC, empty if it has not happened.
type Release struct {
	UID       string `json:"uid"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Strategy  string `json:"strategy,omitempty"`
	Author    string `json:"author,omitempty"`
	URL       string `json:"url,omitempty"`
	Commit    string `json:"commit,omitempty"`
	Ticket    string `json:"ticket,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Phase     string `json:"phase"`
	// Trigger is User, Rollback (a user chose a stored revision that the template did not have), Template or Direct.
	Trigger   string   `json:"trigger,omitempty"`
	CreatedAt string   `json:"createdAt"`
	StartedAt string   `json:"startedAt,omitempty"`
	EndedAt   string   `json:"endedAt,omitempty"`
	Targets   []Target `json:"targets"`
}

// Target is a workload of a release.
type Target struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// Event is an entry of a release's journal.
type Event struct {
	Seq     int64  `json:"seq"`
	At      string `json:"at"`
	Type    string `json:"type"`
	Stage   string `json:"stage,omitempty"`
	Cluster string `json:"cluster,omitempty"`
	Actor   string `json:"actor,omitempty"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// Deployment is a revision that runs, or ran, in a cluster.
type Deployment struct {
	Cluster   string   `json:"cluster"`
	Namespace string   `json:"namespace"`
	Kind      string   `json:"kind"`
	Name      string   `json:"name"`
	Revision  string   `json:"revision"`
	Images    []string `json:"images,omitempty"`
	Release   string   `json:"release"`
	From      string   `json:"from"`
	To        string   `json:"to,omitempty"`
}

// where collects conditions of a query.
type where struct {
	conditions []string
	values     []any
}

func (w *where) add(condition string, values ...any) {
	w.conditions, w.values = append(w.conditions, condition), append(w.values, values...)
}

// equal adds a condition if the value is not empty.
func (w *where) equal(column, value string) {
	if value != "" {
		w.add(column+" = ?", value)
	}
}

// oneOf adds a condition unless allowed is nil.
func (w *where) oneOf(column string, allowed []string) {
	if allowed == nil {
		return
	}
	if len(allowed) == 0 {
		w.add("1 = 0")
		return
	}
	values := make([]any, len(allowed))
	for i, value := range allowed {
		values[i] = value
	}
	w.add(column+" IN ("+strings.Join(slices.Repeat([]string{"?"}, len(allowed)), ", ")+")", values...)
}

func (w *where) between(column string, since, until time.Time) {
	if !since.IsZero() {
		w.add(column+" >= ?", since.UTC().Format(time.RFC3339))
	}
	if !until.IsZero() {
		w.add(column+" <= ?", until.UTC().Format(time.RFC3339))
	}
}

func (w *where) String() string {
	if len(w.conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conditions, " AND ")
}

func (f Filter) limit() int {
	if f.Limit <= 0 {
		return DefaultLimit
	}
	return f.Limit
}

// query runs a query and calls scan for each row.
func (s *Store) query(ctx context.Context, text string, values []any, scan func(*sql.Rows) error) error {
	rows, err := s.read.QueryContext(ctx, s.bind(text), values...)
	if err != nil {
		return fmt.Errorf("read the release history: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return fmt.Errorf("read the release history: %w", err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read the release history: %w", err)
	}
	return nil
}

// queryAll runs a query and returns a value for each row. into returns where the columns of a row go, in their order.
func queryAll[T any](ctx context.Context, s *Store, text string, values []any, into func(*T) []any) ([]T, error) {
	found := []T{}
	err := s.query(ctx, text, values, func(rows *sql.Rows) error {
		var v T
		err := rows.Scan(into(&v)...)
		found = append(found, v)
		return err
	})
	return found, err
}

// Releases returns releases, the newest first.
func (s *Store) Releases(ctx context.Context, f Filter) ([]Release, error) {
	var w where
	w.oneOf("r.namespace", f.Namespaces)
	w.equal("r.uid", f.UID)
	w.equal("r.name", f.Release)
	w.equal("r.author", f.Author)
	w.equal("r.outcome", f.Outcome)
	w.equal("r.trigger", f.Trigger)
	w.between("r.created_at", f.Since, f.Until)
	if f.Kind != "" || f.Name != "" {
		var t where
		t.add("t.release_uid = r.uid")
		if f.Kind != "" {
			t.add("LOWER(t.kind) = ?", strings.ToLower(f.Kind))
		}
		t.equal("t.name", f.Name)
		w.add("EXISTS (SELECT 1 FROM release_targets t"+t.String()+")", t.values...)
	}
	if f.Cluster != "" {
		w.add("EXISTS (SELECT 1 FROM stage_clusters c WHERE c.release_uid = r.uid AND c.cluster = ?)", f.Cluster)
	}
	found, err := queryAll(ctx, s, `SELECT r.uid, r.namespace, r.name, r.strategy, r.author, r.change_url, r.commit_sha, r.ticket,
		r.reason, r.phase, r.trigger, r.created_at, COALESCE(r.started_at, ''), COALESCE(r.ended_at, '') FROM releases r`+w.String()+
		fmt.Sprintf(" ORDER BY r.created_at DESC, r.uid LIMIT %d", f.limit()), w.values, func(r *Release) []any {
		return []any{&r.UID, &r.Namespace, &r.Name, &r.Strategy, &r.Author, &r.URL, &r.Commit, &r.Ticket, &r.Reason,
			&r.Phase, &r.Trigger, &r.CreatedAt, &r.StartedAt, &r.EndedAt}
	})
	if err != nil {
		return nil, err
	}
	index, uids := map[string]int{}, make([]string, len(found))
	for i, r := range found {
		index[r.UID], uids[i], found[i].Targets = i, r.UID, []Target{}
	}
	var of where
	of.oneOf("release_uid", uids)
	err = s.query(ctx, "SELECT release_uid, kind, name, revision_from, revision_to FROM release_targets"+of.String()+
		" ORDER BY release_uid, target", of.values, func(rows *sql.Rows) error {
		var uid string
		var t Target
		err := rows.Scan(&uid, &t.Kind, &t.Name, &t.From, &t.To)
		r := &found[index[uid]]
		r.Targets = append(r.Targets, t)
		return err
	})
	return found, err
}

// Events returns the journal of a release, the oldest entry first. The caller checks that the user may read it.
func (s *Store) Events(ctx context.Context, uid string) ([]Event, error) {
	return queryAll(ctx, s, `SELECT seq, at, type, stage, cluster, actor, reason, message FROM events WHERE release_uid = ?
		ORDER BY seq, at`, []any{uid}, func(e *Event) []any {
		return []any{&e.Seq, &e.At, &e.Type, &e.Stage, &e.Cluster, &e.Actor, &e.Reason, &e.Message}
	})
}

// Deployments returns what ran at a time, or what runs now if the time is zero: sorted by namespace, workload, cluster.
func (s *Store) Deployments(ctx context.Context, f Filter, at time.Time) ([]Deployment, error) {
	var w where
	w.oneOf("d.namespace", f.Namespaces)
	w.equal("d.cluster", f.Cluster)
	w.equal("d.name", f.Name)
	if f.Kind != "" {
		w.add("LOWER(d.kind) = ?", strings.ToLower(f.Kind))
	}
	if f.Image != "" {
		w.add(`EXISTS (SELECT 1 FROM revision_images i WHERE i.namespace = d.namespace AND i.revision = d.revision
			AND i.image = ?)`, f.Image)
	}
	if at.IsZero() {
		w.add("d.to_at IS NULL")
	} else {
		text := at.UTC().Format(time.RFC3339)
		w.add("d.from_at <= ? AND (d.to_at IS NULL OR d.to_at > ?)", text, text)
	}
	found, err := queryAll(ctx, s, `SELECT d.cluster, d.namespace, d.kind, d.name, d.revision, r.name, d.from_at, COALESCE(d.to_at, '')
		FROM deployments d JOIN releases r ON r.uid = d.release_uid`+w.String()+
		fmt.Sprintf(" ORDER BY d.namespace, d.kind, d.name, d.cluster LIMIT %d", f.limit()), w.values,
		func(d *Deployment) []any {
			return []any{&d.Cluster, &d.Namespace, &d.Kind, &d.Name, &d.Revision, &d.Release, &d.From, &d.To}
		})
	if err != nil {
		return nil, err
	}
	images := map[[2]string][]string{}
	for i, d := range found {
		key := [2]string{d.Namespace, d.Revision}
		if images[key] == nil {
			images[key], err = queryAll(ctx, s,
				"SELECT image FROM revision_images WHERE namespace = ? AND revision = ? ORDER BY image",
				[]any{d.Namespace, d.Revision}, func(image *string) []any { return []any{image} })
			if err != nil {
				return nil, err
			}
		}
		found[i].Images = images[key]
	}
	return found, nil
}
