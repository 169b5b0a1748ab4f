-- Idempotency records, of HTTP requests and of consumed events. Times are
-- microseconds of the store's clock.
-- state: 1 started, 2 completed, 3 released, 4 held

CREATE TABLE forbear_idempotency (
  scope       TEXT NOT NULL,
  hash        TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  operation   TEXT NOT NULL,
  state       SMALLINT NOT NULL,
  rerun       SMALLINT NOT NULL,
  owner       TEXT NOT NULL,
  fence       BIGINT NOT NULL,
  attempt     INTEGER NOT NULL,
  lease       BIGINT NOT NULL,
  created     BIGINT NOT NULL,
  completed   BIGINT,
  expires     BIGINT NOT NULL,
  status      INTEGER,
  header      TEXT,
  body        {bytes},
  tombstone   TEXT NOT NULL DEFAULT '',
  note        TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (scope, hash)
) {hot};
CREATE INDEX forbear_idempotency_expires ON forbear_idempotency (expires) WHERE state <> 4;
CREATE INDEX forbear_idempotency_held ON forbear_idempotency (scope, hash) WHERE state IN (1, 4);
