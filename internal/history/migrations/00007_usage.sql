-- +goose Up
-- What the workloads of a namespace requested in a cluster at a time: CPU in millicores, memory in bytes. All rows of a
-- sample have one time. A row without a namespace marks a complete sample.
CREATE TABLE usage_samples (
	namespace TEXT NOT NULL,
	cluster TEXT NOT NULL,
	at TEXT NOT NULL,
	cpu BIGINT NOT NULL,
	memory BIGINT NOT NULL,
	PRIMARY KEY (at, namespace, cluster)
);
