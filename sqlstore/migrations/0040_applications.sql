-- Applications, which are tenants with endpoints of their own, and the tokens of
-- the API.

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
