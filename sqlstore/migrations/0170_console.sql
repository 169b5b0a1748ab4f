-- Works beside 0150
-- What the console's pages ask for. Messages pay nothing for it: only those that end badly,
-- and their letters, are in these indexes. A destination may be any text: see
-- forbear_letters_dest.

CREATE INDEX forbear_deliveries_failed ON forbear_deliveries (endpoint, state, id) WHERE state IN (3, 5);
CREATE INDEX forbear_letters_to ON forbear_letters (substr(dest, 1, 64), seq);
CREATE INDEX forbear_letters_cause ON forbear_letters (cause, seq);
-- These two have all that is counted: a letter is a long row.
CREATE INDEX forbear_letters_reason ON forbear_letters (reason, state, seq, queue, dead_at, redrives);
CREATE INDEX forbear_letters_counted ON forbear_letters (state, queue, reason, cause, dead_at, seq, redrives);

-- The processes that share the database, by their dispatchers. Others link to their consoles.
CREATE TABLE forbear_instances (
  owner   TEXT PRIMARY KEY,
  name    TEXT NOT NULL,
  console TEXT NOT NULL,
  version TEXT NOT NULL,
  seen    BIGINT NOT NULL,
  expires BIGINT NOT NULL
);
