-- An application is suspended since a time, for a reason. Rows of the outbox for it are
-- put aside: they hold up no others, and come back in their order.

ALTER TABLE forbear_applications ADD COLUMN suspended BIGINT;
ALTER TABLE forbear_applications ADD COLUMN reason TEXT NOT NULL DEFAULT '';

CREATE TABLE forbear_outbox_aside (
  tenant          TEXT NOT NULL,
  id              BIGINT NOT NULL,
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
  created         BIGINT,
  application     TEXT,
  PRIMARY KEY (tenant, id)
);
