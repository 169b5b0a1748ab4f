-- The body of a message may go before its deliveries: dropped is when it went,
-- and body has a digest from then on. Sweeps note how far they are.

ALTER TABLE forbear_messages ADD COLUMN dropped BIGINT;
CREATE TABLE forbear_sweeps (
  name     TEXT PRIMARY KEY,
  finished BIGINT NOT NULL,
  delivery BIGINT NOT NULL
);
