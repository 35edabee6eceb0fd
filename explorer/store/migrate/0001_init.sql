-- One schema for SQLite and PostgreSQL (where BLOB is a domain over bytea).  Times are Unix milliseconds.
-- Texts and frames lie in blobs, named by the SHA-256 of what they unpack to, so that equal ones are kept once.
CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE blobs (hash BLOB PRIMARY KEY, size BIGINT NOT NULL, data BLOB NOT NULL);
-- An unlisted snippet is known by the hash of its id only; a public one also keeps the id.  expires_ms 0 is never.
-- sum covers every other column.
CREATE TABLE snippets (id_hash BLOB PRIMARY KEY, public_id TEXT UNIQUE, token_hash BLOB NOT NULL, parent_hash BLOB,
  created_ms BIGINT NOT NULL, expires_ms BIGINT NOT NULL, doc BLOB NOT NULL REFERENCES blobs (hash),
  frames BLOB NOT NULL REFERENCES blobs (hash), sum BLOB NOT NULL);
CREATE INDEX snippets_expires ON snippets (expires_ms);
CREATE INDEX snippets_doc ON snippets (doc);
CREATE INDEX snippets_frames ON snippets (frames);
-- The results cache: what was compiled lately, by content key.  size is what the blob takes in the store.
CREATE TABLE results (key BLOB PRIMARY KEY, frames BLOB NOT NULL REFERENCES blobs (hash), size BIGINT NOT NULL,
  used_ms BIGINT NOT NULL);
CREATE INDEX results_used ON results (used_ms);
CREATE INDEX results_frames ON results (frames);
