-- Who has disabled an endpoint: what the operator has, no one else enables. Of what is
-- older it is not known.

ALTER TABLE forbear_endpoints ADD COLUMN disabled_by TEXT NOT NULL DEFAULT '';
