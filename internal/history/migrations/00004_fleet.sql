-- +goose Up
-- What happened in the fleet beside releases.
CREATE TABLE fleet_events (
	uid TEXT NOT NULL,
	type TEXT NOT NULL,
	at TEXT NOT NULL,
	-- The generation of the object, so that two events of a second differ.
	generation BIGINT NOT NULL,
	api_group TEXT NOT NULL,
	kind TEXT NOT NULL,
	namespace TEXT NOT NULL,
	name TEXT NOT NULL,
	-- Clusters before and after, as JSON: [{"name":"eu","replicas":2}]
	from_clusters TEXT NOT NULL,
	to_clusters TEXT NOT NULL,
	-- The field manager that changed the object.
	manager TEXT NOT NULL,
	reason TEXT NOT NULL,
	message TEXT NOT NULL,
	PRIMARY KEY (uid, type, at, generation)
);
CREATE INDEX fleet_events_by_time ON fleet_events (at);
CREATE INDEX fleet_events_by_object ON fleet_events (kind, namespace, name);

-- Where the workloads of bindings were last seen. The uid is empty after a binding was deleted.
CREATE TABLE placements (
	namespace TEXT NOT NULL,
	binding TEXT NOT NULL,
	uid TEXT NOT NULL,
	api_group TEXT NOT NULL,
	kind TEXT NOT NULL,
	name TEXT NOT NULL,
	-- As in fleet_events.
	clusters TEXT NOT NULL,
	PRIMARY KEY (namespace, binding)
);
