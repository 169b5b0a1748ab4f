-- Attempts are counted by the endpoint, ten minutes and the process, which writes
-- its own rows. counts is JSON: see webhook.Tally. Dead letters are counted by where
-- they were to go; the text may be anything in a row of an outbox that was refused.

CREATE TABLE forbear_tallies (
  endpoint TEXT NOT NULL,
  slot     BIGINT NOT NULL,
  owner    TEXT NOT NULL,
  counts   TEXT NOT NULL,
  PRIMARY KEY (endpoint, slot, owner)
) {clustered};
CREATE INDEX forbear_tallies_slot ON forbear_tallies (slot);
CREATE INDEX forbear_letters_dest ON forbear_letters (substr(dest, 1, 64)) WHERE state = 'dead';
