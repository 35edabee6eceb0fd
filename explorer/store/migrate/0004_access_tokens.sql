-- Tokens of programs (store/tokens.h), known by the hash of their text only; revoked_ms 0: it is valid.  member_of: groups, one a line.
CREATE TABLE access_tokens (hash BLOB PRIMARY KEY, name TEXT NOT NULL UNIQUE, role TEXT NOT NULL, member_of TEXT NOT NULL,
  created_ms BIGINT NOT NULL, revoked_ms BIGINT NOT NULL);
