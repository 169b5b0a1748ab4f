-- Endpoints, messages, deliveries, attempts, the outbox, dead letters, redrive
-- jobs, alerts and the audit trail. Times are microseconds since 1970, UTC.

CREATE TABLE forbear_endpoints (
  id            TEXT PRIMARY KEY,
  spec          TEXT NOT NULL,
  state         TEXT NOT NULL,
  reason        TEXT NOT NULL DEFAULT '',
  since         BIGINT NOT NULL,
  failing_since BIGINT,
  version       BIGINT NOT NULL DEFAULT 1
);

CREATE TABLE forbear_messages (
  seq     {serial},
  id      TEXT NOT NULL,
  meta    TEXT NOT NULL,
  body    {bytes} NOT NULL,
  created BIGINT NOT NULL
);
CREATE UNIQUE INDEX forbear_messages_id ON forbear_messages (id);

-- state: 0 waiting, 1 leased, 2 delivered, 3 dead, 4 held behind its key
CREATE TABLE forbear_deliveries (
  id       {serial},
  message  BIGINT NOT NULL,
  endpoint TEXT NOT NULL,
  okey     TEXT,
  state    SMALLINT NOT NULL,
  due      BIGINT NOT NULL,
  start    BIGINT NOT NULL,
  progress TEXT,
  fence    BIGINT NOT NULL DEFAULT 0,
  claims   INTEGER NOT NULL DEFAULT 0,
  owner    TEXT,
  lease    BIGINT,
  letter   TEXT,
  finished BIGINT
) {hot};
CREATE UNIQUE INDEX forbear_deliveries_message ON forbear_deliveries (message, endpoint);
-- start is there for those that wait for too long: among many that are scheduled they are found without a look at the rows
CREATE INDEX forbear_deliveries_due ON forbear_deliveries (endpoint, due, start) WHERE state = 0;
CREATE INDEX forbear_deliveries_lease ON forbear_deliveries (lease) WHERE state = 1;
CREATE INDEX forbear_deliveries_key ON forbear_deliveries (endpoint, okey, id) WHERE okey IS NOT NULL AND state IN (0, 1, 4);
CREATE INDEX forbear_deliveries_finished ON forbear_deliveries (finished) WHERE finished IS NOT NULL;

CREATE TABLE forbear_attempts (
  delivery   BIGINT NOT NULL,
  claim      INTEGER NOT NULL,
  n          INTEGER NOT NULL,
  due        BIGINT NOT NULL,
  at         BIGINT NOT NULL,
  took       BIGINT NOT NULL,
  wait       BIGINT NOT NULL,
  error_type TEXT NOT NULL,
  status     INTEGER NOT NULL,
  worker     TEXT NOT NULL,
  response   TEXT,
  PRIMARY KEY (delivery, claim)
) {clustered};

-- Applications insert here, in their own transactions.
CREATE TABLE forbear_outbox (
  id              {serial},
  message_id      TEXT NOT NULL,
  endpoint        TEXT NOT NULL,
  type            TEXT,
  source          TEXT,
  subject         TEXT,
  order_key       TEXT,
  idempotency_key TEXT,
  correlation_id  TEXT,
  content_type    TEXT,
  headers         TEXT,
  not_before      BIGINT,
  body            {bytes} NOT NULL
);

CREATE TABLE forbear_letters (
  seq        {serial},
  id         TEXT NOT NULL,
  queue      TEXT NOT NULL,
  dest       TEXT NOT NULL,
  event_id   TEXT NOT NULL,
  reason     TEXT NOT NULL,
  error_type TEXT NOT NULL,
  state      TEXT NOT NULL,
  dead_at    BIGINT NOT NULL,
  redrives   INTEGER NOT NULL DEFAULT 0,
  redriven   BIGINT,
  redriver   TEXT,
  job        TEXT,
  outcome    TEXT NOT NULL DEFAULT '',
  discard    TEXT,
  meta       TEXT NOT NULL,
  sealed     {bytes} NOT NULL
);
CREATE UNIQUE INDEX forbear_letters_id ON forbear_letters (id);
CREATE INDEX forbear_letters_state ON forbear_letters (state, seq);
CREATE INDEX forbear_letters_job ON forbear_letters (job) WHERE job IS NOT NULL;
CREATE INDEX forbear_letters_dead ON forbear_letters (dead_at);

CREATE TABLE forbear_jobs (
  id      TEXT PRIMARY KEY,
  spec    TEXT NOT NULL,
  state   TEXT NOT NULL,
  created BIGINT NOT NULL,
  owner   TEXT,
  lease   BIGINT NOT NULL DEFAULT 0,
  fence   BIGINT NOT NULL DEFAULT 0
);

-- state: 0 gathering, 1 being sent, 2 sent
CREATE TABLE forbear_alerts (
  id       {serial},
  queue    TEXT NOT NULL,
  reason   TEXT NOT NULL,
  state    SMALLINT NOT NULL,
  count    BIGINT NOT NULL,
  first_at BIGINT NOT NULL,
  last_at  BIGINT NOT NULL,
  due      BIGINT NOT NULL,
  letter   TEXT NOT NULL DEFAULT '',
  detail   TEXT NOT NULL DEFAULT '',
  spec     TEXT NOT NULL DEFAULT '{}'
);
CREATE UNIQUE INDEX forbear_alerts_open ON forbear_alerts (queue, reason) WHERE state = 0;
CREATE INDEX forbear_alerts_due ON forbear_alerts (due) WHERE state < 2;
CREATE INDEX forbear_alerts_last ON forbear_alerts (queue, reason, id);

CREATE TABLE forbear_audit (
  id     {serial},
  at     BIGINT NOT NULL,
  who    TEXT NOT NULL,
  action TEXT NOT NULL,
  target TEXT NOT NULL,
  detail TEXT NOT NULL DEFAULT ''
);
