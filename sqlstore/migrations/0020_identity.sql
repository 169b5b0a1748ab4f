-- A message is identified by its endpoint and its id together: the id moves
-- from the message, which is the content, to its deliveries.

ALTER TABLE forbear_deliveries ADD COLUMN message_id TEXT;
UPDATE forbear_deliveries SET message_id = (SELECT m.id FROM forbear_messages m WHERE m.seq = forbear_deliveries.message);
CREATE UNIQUE INDEX forbear_deliveries_identity ON forbear_deliveries (message_id, endpoint);
DROP INDEX forbear_deliveries_message;
DROP INDEX forbear_messages_id;
ALTER TABLE forbear_messages DROP COLUMN id;

-- Whether one of a key is on its way, however many are held behind it.
CREATE INDEX forbear_deliveries_active ON forbear_deliveries (endpoint, okey) WHERE okey IS NOT NULL AND state IN (0, 1);

-- The outbox notes when a row was inserted. A row that cannot be moved as a
-- whole, since it is too large, is kept where the application's rows do not
-- wait behind it.

{postgres} ALTER TABLE forbear_outbox ADD COLUMN created BIGINT NOT NULL DEFAULT (extract(epoch from clock_timestamp())*1000000)::bigint;
{sqlite} ALTER TABLE forbear_outbox RENAME TO forbear_outbox_old;
{sqlite} CREATE TABLE forbear_outbox (
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
  body            {bytes} NOT NULL,
  created         BIGINT NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER))
);
{sqlite} INSERT INTO forbear_outbox (id, message_id, endpoint, type, source, subject, order_key, idempotency_key, correlation_id, content_type, headers, not_before, body)
  SELECT id, message_id, endpoint, type, source, subject, order_key, idempotency_key, correlation_id, content_type, headers, not_before, body FROM forbear_outbox_old;
{sqlite} DROP TABLE forbear_outbox_old;

CREATE TABLE forbear_outbox_refused (
  letter          TEXT PRIMARY KEY,
  id              BIGINT,
  message_id      TEXT,
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
  body            {bytes},
  created         BIGINT
);
