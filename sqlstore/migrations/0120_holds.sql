-- What dispatchers have found out about endpoints, for the others. Each change has a
-- number, as those of endpoints have. What is over stays for an hour.

CREATE TABLE forbear_holds (
  endpoint TEXT NOT NULL,
  kind     TEXT NOT NULL,
  owner    TEXT NOT NULL,
  why      TEXT NOT NULL,
  looks    BIGINT NOT NULL,
  due      BIGINT NOT NULL,
  finished BIGINT NOT NULL,
  expires  BIGINT NOT NULL,
  changed  BIGINT NOT NULL,
  PRIMARY KEY (endpoint, kind)
) {clustered};
CREATE INDEX forbear_holds_changed ON forbear_holds (changed);
CREATE INDEX forbear_holds_expires ON forbear_holds (expires);
