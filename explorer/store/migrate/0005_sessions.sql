-- People together in one kernel (store/sessions.h).  A session is known by the hash of its id, a person by the hash of their token.
-- seq: of the last update; log_bytes: of the updates after the snapshot; offered: the person to whom the lead is offered, 0: nobody.
-- request: the kernel as its leader last had it, JSON; snippet: the link that an ended session became, "": none.
CREATE TABLE sessions (id_hash BLOB PRIMARY KEY, created_ms BIGINT NOT NULL, touched_ms BIGINT NOT NULL, ended_ms BIGINT NOT NULL,
  seq BIGINT NOT NULL, log_bytes BIGINT NOT NULL, leader BIGINT NOT NULL, offered BIGINT NOT NULL, read_only BIGINT NOT NULL,
  snapshot_seq BIGINT NOT NULL, snapshot BLOB NOT NULL, request TEXT NOT NULL, snippet TEXT NOT NULL);
CREATE INDEX sessions_touched ON sessions (touched_ms);
CREATE TABLE session_people (session BLOB NOT NULL REFERENCES sessions (id_hash) ON DELETE CASCADE, person BIGINT NOT NULL,
  token BLOB NOT NULL, name TEXT NOT NULL, PRIMARY KEY (session, person));
-- What people have changed, as their editors encode it.
CREATE TABLE session_updates (session BLOB NOT NULL REFERENCES sessions (id_hash) ON DELETE CASCADE, seq BIGINT NOT NULL,
  person BIGINT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (session, seq));
