-- Blobs of results may lie in an object store (store/objects.h).  object: its name there, with data empty; packed: its bytes.  send_ms:
-- when the blob is to be sent there, if there is one; 0: never, as documents.
ALTER TABLE blobs ADD COLUMN object TEXT;
ALTER TABLE blobs ADD COLUMN packed BIGINT NOT NULL DEFAULT 0;
ALTER TABLE blobs ADD COLUMN send_ms BIGINT NOT NULL DEFAULT 0;
UPDATE blobs SET send_ms = 1 WHERE hash IN (SELECT frames FROM snippets UNION SELECT frames FROM results);
CREATE INDEX blobs_to_send ON blobs (send_ms) WHERE send_ms > 0;
CREATE INDEX blobs_sent ON blobs (packed) WHERE packed > 0;
-- Objects that no blob refers to, or not yet, and when they are to be deleted.
CREATE TABLE objects_gone (name TEXT PRIMARY KEY, due_ms BIGINT NOT NULL);
CREATE INDEX objects_gone_due ON objects_gone (due_ms);
