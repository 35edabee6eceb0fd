-- Runs of kernels on Neuron hosts (store/runs.h).  A token is known by the hash of its text only; revoked_ms 0: it is valid.
CREATE TABLE runner_tokens (hash BLOB PRIMARY KEY, name TEXT NOT NULL UNIQUE, created_ms BIGINT NOT NULL,
  revoked_ms BIGINT NOT NULL);
-- Runners as they last said what they are.
CREATE TABLE runners (id BLOB PRIMARY KEY, token BLOB NOT NULL, about TEXT NOT NULL, seen_ms BIGINT NOT NULL);
-- A run is known by the hash of its id.  fence is drawn anew for each lease; whoever names it holds the lease.  refused: the runner
-- whose data were wrong, which does not get the run again.
CREATE TABLE runs (id_hash BLOB PRIMARY KEY, owner BLOB NOT NULL, created_ms BIGINT NOT NULL, target TEXT NOT NULL,
  wants BIGINT NOT NULL, about TEXT NOT NULL, state BIGINT NOT NULL, version BIGINT NOT NULL, tries BIGINT NOT NULL,
  fence BIGINT NOT NULL, lease_ms BIGINT NOT NULL, token BLOB, runner BLOB, refused BLOB, ended_ms BIGINT NOT NULL, log TEXT NOT NULL,
  outcome TEXT NOT NULL);
CREATE INDEX runs_queue ON runs (state, created_ms);
CREATE INDEX runs_owner ON runs (owner);
CREATE INDEX runs_ended ON runs (ended_ms);
-- What a run takes, and what its runner sends back.  hash is the SHA-256 of data.
CREATE TABLE run_files (run BLOB NOT NULL REFERENCES runs (id_hash) ON DELETE CASCADE, name TEXT NOT NULL,
  hash BLOB NOT NULL, data BLOB NOT NULL, PRIMARY KEY (run, name));
