-- A row of the outbox names either an endpoint or an application. This step and those
-- behind it come last: applications wait with their transactions while the table is
-- locked.

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
