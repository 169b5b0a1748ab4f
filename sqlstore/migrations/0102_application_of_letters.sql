-- The application of a dead letter's endpoint, and of a redrive's letters: lists of one
-- tenant begin with what is its own.

ALTER TABLE forbear_letters ADD COLUMN application TEXT;
UPDATE forbear_letters SET application = (SELECT e.application FROM forbear_endpoints e WHERE e.id = forbear_letters.dest) WHERE queue = 'webhooks';
UPDATE forbear_letters SET application = substr(dest, 13) WHERE queue = 'webhooks' AND dest LIKE 'application/%';
CREATE INDEX forbear_letters_application ON forbear_letters (application, seq) WHERE application IS NOT NULL;

ALTER TABLE forbear_jobs ADD COLUMN application TEXT;
CREATE INDEX forbear_jobs_application ON forbear_jobs (application, created) WHERE application IS NOT NULL;
