-- +goose Up
-- The user who changed the object. Empty for other events, and for changes before the column was there.
ALTER TABLE fleet_events ADD COLUMN by_user TEXT NOT NULL DEFAULT '';
