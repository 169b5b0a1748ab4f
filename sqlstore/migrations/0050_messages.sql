-- Messages are canceled and sent again. cancel is when a delivery that was under
-- way was to be canceled: it is when the attempt has not ended it. state: 5
-- canceled. The letter of a message is found by its id, whatever an outbox had for
-- one.

ALTER TABLE forbear_deliveries ADD COLUMN cancel BIGINT;
CREATE INDEX forbear_deliveries_cancel ON forbear_deliveries (id) WHERE cancel IS NOT NULL AND state = 0;
{postgres} CREATE INDEX forbear_letters_event ON forbear_letters USING hash (event_id);
{sqlite} CREATE INDEX forbear_letters_event ON forbear_letters (event_id);
