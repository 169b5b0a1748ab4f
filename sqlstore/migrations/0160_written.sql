-- Works beside 0150
-- When a delivery's due time or lease was written, and the lease of an idempotency record, by
-- the store's clock: one that is in the future shows that the clock was ahead then. NULL: by
-- a version that did not write it.

ALTER TABLE forbear_deliveries ADD COLUMN written BIGINT;
CREATE INDEX forbear_deliveries_written ON forbear_deliveries (written) WHERE state = 0;
ALTER TABLE forbear_idempotency ADD COLUMN written BIGINT;
