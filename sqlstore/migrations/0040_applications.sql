-- Applications, which are tenants with endpoints of their own, and the tokens of
-- the API. A row of the outbox names either an endpoint or an application.

CREATE TABLE forbear_applications (
  id      TEXT PRIMARY KEY,
  spec    TEXT NOT NULL,
  version BIGINT NOT NULL DEFAULT 1,
  created BIGINT NOT NULL
);
ALTER TABLE forbear_endpoints ADD COLUMN application TEXT;
CREATE INDEX forbear_endpoints_application ON forbear_endpoints (application) WHERE application IS NOT NULL;

CREATE TABLE forbear_tokens (
  name        TEXT PRIMARY KEY,
  hash        TEXT NOT NULL,
  scope       TEXT NOT NULL,
  application TEXT NOT NULL,
  created     BIGINT NOT NULL,
  creator     TEXT NOT NULL,
  expires     BIGINT NOT NULL
);
CREATE UNIQUE INDEX forbear_tokens_hash ON forbear_tokens (hash);

{postgres} ALTER TABLE forbear_outbox ADD COLUMN application TEXT;
{postgres} ALTER TABLE forbear_outbox ALTER COLUMN endpoint DROP NOT NULL;
{sqlite} ALTER TABLE forbear_outbox RENAME TO forbear_outbox_old;
{sqlite} CREATE TABLE forbear_outbox (
  id              {serial},
  message_id      TEXT NOT NULL DEFAULT ('msg_' || lower(hex(randomblob(16)))),
  endpoint        TEXT,
  type            TEXT,
  source          TEXT,
  subject         TEXT,
  order_key       TEXT,
  idempotency_key TEXT,
  correlation_id  TEXT,
  content_type    TEXT,
  headers         TEXT,
  not_before      BIGINT,
  body            {bytes} NOT NULL,
  created         BIGINT NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
  application     TEXT
);
{sqlite} INSERT INTO forbear_outbox (id, message_id, endpoint, type, source, subject, order_key, idempotency_key, correlation_id, content_type, headers, not_before, body, created)
  SELECT id, message_id, endpoint, type, source, subject, order_key, idempotency_key, correlation_id, content_type, headers, not_before, body, created FROM forbear_outbox_old;
{sqlite} DROP TABLE forbear_outbox_old;
ALTER TABLE forbear_outbox_refused ADD COLUMN application TEXT;
