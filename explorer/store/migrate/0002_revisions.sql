-- How many later revisions a snippet has.  Revision n (from 2) is a row of its own, whose id_hash is made from the first
-- row's and n.
ALTER TABLE snippets ADD COLUMN revisions BIGINT NOT NULL DEFAULT 0;
