package history

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
)

// Entry is a line of the time line.
type Entry struct {
	// ID identifies the entry.
	ID string `json:"id"`
	At string `json:"at"`
	// Class is moves, failovers, releases, clusters or changes.
	Class string `json:"class"`
	Type  string `json:"type"`
	// The object: a workload, a cluster, a policy or a release.
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Stage and Cluster of an entry in the journal of a release.
	Stage   string `json:"stage,omitempty"`
	Cluster string `json:"cluster,omitempty"`
	// From and To have the clusters before and after.
	From []PlacedCluster `json:"from,omitempty"`
	To   []PlacedCluster `json:"to,omitempty"`
	// User who did it, or the field manager if the user is not known.
	User    string `json:"user,omitempty"`
	Manager string `json:"manager,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Who did what an entry is about: people, and their programs, or the hub.
const (
	ByPeople = "people"
	ByHub    = "hub"
)

// Conditions for what people did: they change policies, create releases, and steer them. The hub's own user, and an
// empty one in a journal, is the hub. What people do to clusters and workloads is in the journal of the hub.
const (
	byPeople        = "(type IN ('" + Changed + "', '" + Deleted + "') AND by_user <> '" + user.APIServerUser + "')"
	journalByPeople = "e.actor NOT IN ('', '" + user.APIServerUser + "')"
	createdByPeople = "r.author NOT IN ('', '" + user.APIServerUser + "')"
)

// addBy adds the condition for entries of people, or of the hub; empty selects all.
func (w *where) addBy(who, people string) {
	switch who {
	case ByPeople:
		w.add(people)
	case ByHub:
		w.add("NOT (" + people + ")")
	}
}

// The classes of entries.
const (
	ClassMoves     = "moves"
	ClassFailovers = "failovers"
	ClassReleases  = "releases"
	ClassClusters  = "clusters"
	ClassChanges   = "changes"
)

var Classes = []string{ClassMoves, ClassFailovers, ClassReleases, ClassClusters, ClassChanges}

// classTypes has the types of FleetEvents of each class.
var classTypes = map[string][]string{ClassMoves: {Placed, Moved, Removed}, ClassFailovers: {FailedOver},
	ClassClusters: {Joined, Left, BecameNotReady, BecameReady}, ClassChanges: {Changed, Deleted}}

func classOf(kind string) string {
	for class, types := range classTypes {
		if slices.Contains(types, kind) {
			return class
		}
	}
	return ClassChanges
}

// TimelineFilter selects entries of the time line. An empty field selects all.
type TimelineFilter struct {
	// Namespaces of the objects, with "" for cluster-scoped ones; nil selects all, an empty list none.
	Namespaces []string
	Class      string
	Cluster    string
	// Text is a part of the name of the object, or of a workload of a release. Case does not matter.
	Text string
	// By is people or hub.
	By string
	// Since is the earliest time, and Before the latest, both inclusive.
	Since, Before time.Time
}

// Timeline returns up to limit entries, the newest first. The caller removes those that the user may not see.
func (s *Store) Timeline(ctx context.Context, f TimelineFilter, limit int) ([]Entry, error) {
	entries := []Entry{}
	var reads []func(context.Context, TimelineFilter, int) ([]Entry, error)
	if f.Class == "" || f.Class == ClassReleases {
		reads = append(reads, s.journals, s.created)
	}
	if f.Class != ClassReleases {
		reads = append(reads, s.fleetEvents)
	}
	for _, read := range reads {
		found, err := read(ctx, f, limit)
		if err != nil {
			return nil, err
		}
		entries = append(entries, found...)
	}
	slices.SortStableFunc(entries, func(a, b Entry) int { return cmp.Compare(b.At, a.At) })
	return entries[:min(len(entries), limit)], nil
}

// like is the operator for patterns whose texts come from escapeLike, in SQLite and PostgreSQL.
const like = ` LIKE ? ESCAPE '!'`

// escapeLike returns a text with its wildcards escaped, for a pattern of the operator like.
var escapeLike = strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace

// part adds the condition that one of the expressions, which use the operator like, contains a text in any case.
func (w *where) part(text string, expressions ...string) {
	values := slices.Repeat([]any{"%" + escapeLike(strings.ToLower(text)) + "%"}, len(expressions))
	w.add("("+strings.Join(expressions, " OR ")+")", values...)
}

// fleetEvents returns events of the fleet beside releases.
func (s *Store) fleetEvents(ctx context.Context, f TimelineFilter, limit int) (all []Entry, err error) {
	var w where
	w.oneOf("namespace", f.Namespaces)
	w.between("at", f.Since, f.Before)
	w.addBy(f.By, byPeople)
	if types := classTypes[f.Class]; len(types) > 0 {
		w.oneOf("type", types)
	}
	if f.Cluster != "" {
		pattern := clusterPattern(f.Cluster)
		w.add("(from_clusters"+like+" OR to_clusters"+like+")", pattern, pattern)
	}
	if f.Text != "" {
		w.part(f.Text, "LOWER(name)"+like)
	}
	err = s.query(ctx, `SELECT uid, type, at, generation, api_group, kind, namespace, name, from_clusters, to_clusters,
		by_user, manager, reason, message FROM fleet_events`+w.String()+
		fmt.Sprintf(" ORDER BY at DESC, generation DESC, uid, type LIMIT %d", limit), w.values,
		func(found *sql.Rows) error {
			var e Entry
			var uid, from, to string
			var generation int64
			err := found.Scan(&uid, &e.Type, &e.At, &generation, &e.Group, &e.Kind, &e.Namespace, &e.Name, &from, &to,
				&e.User, &e.Manager, &e.Reason, &e.Message)
			if err != nil {
				return err
			}
			if e.From, err = decodeClusters(from); err != nil {
				return err
			}
			if e.To, err = decodeClusters(to); err != nil {
				return err
			}
			e.ID, e.Class = fmt.Sprintf("fleet/%s/%s/%s/%d", uid, e.Type, e.At, generation), classOf(e.Type)
			all = append(all, e)
			return nil
		})
	return all, err
}

// ofReleases adds the conditions for entries of the release r. stage is a condition on the clusters c of its stages.
func (w *where) ofReleases(f TimelineFilter, stage string) {
	w.oneOf("r.namespace", f.Namespaces)
	if f.Text != "" {
		w.part(f.Text, "LOWER(r.name)"+like,
			"EXISTS (SELECT 1 FROM release_targets t WHERE t.release_uid = r.uid AND LOWER(t.name)"+like+")")
	}
	if f.Cluster != "" {
		w.add("EXISTS (SELECT 1 FROM stage_clusters c WHERE c.release_uid = r.uid AND c.cluster = ?"+stage+")", f.Cluster)
	}
}

// journals returns entries of the journals of releases.
func (s *Store) journals(ctx context.Context, f TimelineFilter, limit int) (all []Entry, err error) {
	var w where
	w.between("e.at", f.Since, f.Before)
	w.addBy(f.By, journalByPeople)
	w.ofReleases(f, " AND (e.stage = '' OR e.stage = c.stage) AND (e.cluster = '' OR e.cluster = c.cluster)")
	err = s.query(ctx, `SELECT r.uid, e.seq, e.at, e.type, e.stage, e.cluster, e.actor, e.reason, e.message, r.namespace,
		r.name FROM events e JOIN releases r ON r.uid = e.release_uid`+w.String()+
		fmt.Sprintf(" ORDER BY e.at DESC, e.seq DESC LIMIT %d", limit), w.values, func(found *sql.Rows) error {
		e := Entry{Class: ClassReleases, Group: Resource.Group, Kind: "Release"}
		var uid string
		var seq int64
		err := found.Scan(&uid, &seq, &e.At, &e.Type, &e.Stage, &e.Cluster, &e.User, &e.Reason, &e.Message, &e.Namespace,
			&e.Name)
		e.ID = fmt.Sprintf("journal/%s/%d/%s", uid, seq, e.At)
		all = append(all, e)
		return err
	})
	return all, err
}

// created returns the creations of releases.
func (s *Store) created(ctx context.Context, f TimelineFilter, limit int) (all []Entry, err error) {
	var w where
	w.between("r.created_at", f.Since, f.Before)
	w.addBy(f.By, createdByPeople)
	w.ofReleases(f, "")
	err = s.query(ctx, "SELECT r.uid, r.created_at, r.author, r.namespace, r.name, r.reason FROM releases r"+w.String()+
		fmt.Sprintf(" ORDER BY r.created_at DESC, r.uid LIMIT %d", limit), w.values, func(found *sql.Rows) error {
		e := Entry{Class: ClassReleases, Type: "Created", Group: Resource.Group, Kind: "Release"}
		var uid string
		err := found.Scan(&uid, &e.At, &e.User, &e.Namespace, &e.Name, &e.Message)
		e.ID = "created/" + uid
		all = append(all, e)
		return err
	})
	return all, err
}
