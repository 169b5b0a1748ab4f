-- Why an attempt failed, as JSON, and the fingerprint of why a letter is dead.
-- What is older has none.

ALTER TABLE forbear_attempts ADD COLUMN cause TEXT;
ALTER TABLE forbear_letters ADD COLUMN cause TEXT NOT NULL DEFAULT '';
