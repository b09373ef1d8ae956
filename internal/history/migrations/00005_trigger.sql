-- +goose Up
-- What started the release. Empty for releases that were gone before the column was there.
ALTER TABLE releases ADD COLUMN trigger TEXT NOT NULL DEFAULT '';
