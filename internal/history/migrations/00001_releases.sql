-- +goose Up
-- Periods of which the history may lack releases that do not exist any more.
CREATE TABLE gaps (
	found_at TEXT PRIMARY KEY,
	from_at TEXT NOT NULL
);

CREATE TABLE releases (
	uid TEXT PRIMARY KEY,
	namespace TEXT NOT NULL,
	name TEXT NOT NULL,
	strategy TEXT NOT NULL,
	plan_hash TEXT NOT NULL,
	author TEXT NOT NULL,
	change_url TEXT NOT NULL,
	commit_sha TEXT NOT NULL,
	committed_at TEXT,
	ticket TEXT NOT NULL,
	reason TEXT NOT NULL,
	phase TEXT NOT NULL,
	outcome TEXT NOT NULL,
	created_at TEXT NOT NULL,
	started_at TEXT,
	failed_at TEXT,
	ended_at TEXT,
	-- The resource version of the state: an older state changes nothing.
	version BIGINT NOT NULL
);
CREATE INDEX releases_by_name ON releases (namespace, name);
CREATE INDEX releases_by_creation ON releases (created_at);
CREATE INDEX releases_by_author ON releases (author, created_at);

CREATE TABLE release_targets (
	release_uid TEXT NOT NULL REFERENCES releases (uid) ON DELETE CASCADE,
	target TEXT NOT NULL,
	api_group TEXT NOT NULL,
	kind TEXT NOT NULL,
	namespace TEXT NOT NULL,
	name TEXT NOT NULL,
	revision_from TEXT NOT NULL,
	revision_to TEXT NOT NULL,
	PRIMARY KEY (release_uid, target)
);
CREATE INDEX release_targets_by_object ON release_targets (api_group, kind, namespace, name);

CREATE TABLE stages (
	release_uid TEXT NOT NULL REFERENCES releases (uid) ON DELETE CASCADE,
	ordinal INTEGER NOT NULL,
	name TEXT NOT NULL,
	environment TEXT NOT NULL,
	phase TEXT NOT NULL,
	attempt INTEGER NOT NULL,
	clusters INTEGER NOT NULL,
	skipped INTEGER NOT NULL,
	pods INTEGER NOT NULL,
	started_at TEXT,
	reached_at TEXT,
	ended_at TEXT,
	PRIMARY KEY (release_uid, ordinal)
);
CREATE INDEX stages_by_environment ON stages (environment, ended_at);

CREATE TABLE stage_clusters (
	release_uid TEXT NOT NULL REFERENCES releases (uid) ON DELETE CASCADE,
	stage TEXT NOT NULL,
	cluster TEXT NOT NULL,
	target TEXT NOT NULL,
	phase TEXT NOT NULL,
	message TEXT NOT NULL,
	PRIMARY KEY (release_uid, stage, cluster, target)
);
CREATE INDEX stage_clusters_by_cluster ON stage_clusters (cluster);

CREATE TABLE gates (
	release_uid TEXT NOT NULL REFERENCES releases (uid) ON DELETE CASCADE,
	stage TEXT NOT NULL,
	position TEXT NOT NULL,
	name TEXT NOT NULL,
	attempt INTEGER NOT NULL,
	phase TEXT NOT NULL,
	by_users TEXT NOT NULL,
	started_at TEXT,
	PRIMARY KEY (release_uid, stage, position, name, attempt)
);

CREATE TABLE approvals (
	uid TEXT PRIMARY KEY,
	release_uid TEXT NOT NULL,
	revision TEXT NOT NULL,
	stage TEXT NOT NULL,
	position TEXT NOT NULL,
	gate TEXT NOT NULL,
	attempt INTEGER NOT NULL,
	verdict TEXT NOT NULL,
	by_user TEXT NOT NULL,
	comment TEXT NOT NULL,
	at TEXT NOT NULL
);
CREATE INDEX approvals_by_release ON approvals (release_uid);
CREATE INDEX approvals_by_user ON approvals (by_user, at);

-- The time is part of the key: after the hub is restored from a backup, a release counts the same numbers again.
CREATE TABLE events (
	release_uid TEXT NOT NULL REFERENCES releases (uid) ON DELETE CASCADE,
	seq INTEGER NOT NULL,
	at TEXT NOT NULL,
	type TEXT NOT NULL,
	stage TEXT NOT NULL,
	cluster TEXT NOT NULL,
	actor TEXT NOT NULL,
	reason TEXT NOT NULL,
	message TEXT NOT NULL,
	PRIMARY KEY (release_uid, seq, at)
);
CREATE INDEX events_by_time ON events (at);

CREATE TABLE revisions (
	namespace TEXT NOT NULL,
	revision TEXT NOT NULL,
	api_group TEXT NOT NULL,
	kind TEXT NOT NULL,
	name TEXT NOT NULL,
	hash TEXT NOT NULL,
	blocked TEXT NOT NULL,
	created_at TEXT NOT NULL,
	PRIMARY KEY (namespace, revision)
);
CREATE INDEX revisions_by_object ON revisions (api_group, kind, namespace, name, created_at);

CREATE TABLE revision_images (
	namespace TEXT NOT NULL,
	revision TEXT NOT NULL,
	image TEXT NOT NULL,
	PRIMARY KEY (namespace, revision, image)
);
CREATE INDEX revision_images_by_image ON revision_images (image);

CREATE TABLE deployment_starts (
	release_uid TEXT NOT NULL REFERENCES releases (uid) ON DELETE CASCADE,
	target TEXT NOT NULL,
	cluster TEXT NOT NULL,
	direction TEXT NOT NULL,
	api_group TEXT NOT NULL,
	kind TEXT NOT NULL,
	namespace TEXT NOT NULL,
	name TEXT NOT NULL,
	revision TEXT NOT NULL,
	from_at TEXT NOT NULL,
	PRIMARY KEY (release_uid, target, cluster, direction)
);
CREATE INDEX deployment_starts_by_object ON deployment_starts (cluster, api_group, kind, namespace, name, from_at);

-- A revision runs in a cluster until the next one of the same workload starts there.
CREATE VIEW deployments AS
SELECT release_uid, target, cluster, api_group, kind, namespace, name, revision, from_at,
	LEAD(from_at) OVER (PARTITION BY cluster, api_group, kind, namespace, name ORDER BY from_at, direction DESC) AS to_at
FROM deployment_starts;
