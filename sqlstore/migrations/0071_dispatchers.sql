-- The dispatchers that are at work, which share the rates of endpoints.

CREATE TABLE forbear_dispatchers (
  owner   TEXT PRIMARY KEY,
  expires BIGINT NOT NULL
);
