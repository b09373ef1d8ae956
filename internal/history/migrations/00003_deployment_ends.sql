-- +goose Up
-- When workloads were deleted on the hub.
CREATE TABLE deployment_ends (
	api_group TEXT NOT NULL,
	kind TEXT NOT NULL,
	namespace TEXT NOT NULL,
	name TEXT NOT NULL,
	at TEXT NOT NULL,
	PRIMARY KEY (api_group, kind, namespace, name, at)
);

DROP VIEW deployments;

-- A revision runs in a cluster until the next one of the same workload starts there, or the workload is deleted.
CREATE VIEW deployments AS
SELECT release_uid, target, cluster, api_group, kind, namespace, name, revision, from_at, to_at FROM (
	SELECT release_uid, target, cluster, api_group, kind, namespace, name, revision, from_at,
		LEAD(from_at) OVER (PARTITION BY cluster, api_group, kind, namespace, name
			ORDER BY from_at, direction DESC) AS to_at
	FROM (
		SELECT release_uid, target, cluster, direction, api_group, kind, namespace, name, revision, from_at
		FROM deployment_starts
		UNION ALL
		SELECT '' AS release_uid, '' AS target, s.cluster, '' AS direction, e.api_group, e.kind, e.namespace, e.name,
			'' AS revision, e.at AS from_at
		FROM deployment_ends e JOIN (SELECT DISTINCT cluster, api_group, kind, namespace, name FROM deployment_starts) s
			ON s.api_group = e.api_group AND s.kind = e.kind AND s.namespace = e.namespace AND s.name = e.name
	) AS changes
) AS periods
WHERE release_uid <> '';
