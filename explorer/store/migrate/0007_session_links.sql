-- The hash of the id of the link that an ended session became, so that the session's address leads to it as long as the link is there;
-- NULL: none.
ALTER TABLE sessions ADD COLUMN link_hash BLOB;
CREATE INDEX sessions_ended ON sessions (ended_ms);
