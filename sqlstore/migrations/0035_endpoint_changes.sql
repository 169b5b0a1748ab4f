-- Changes of endpoints are numbered, so that each process reads those that it
-- does not know. An endpoint that was deleted stays for a while, without its
-- configuration: others learn of it by that.

ALTER TABLE forbear_endpoints ADD COLUMN changed BIGINT NOT NULL DEFAULT 1;
ALTER TABLE forbear_endpoints ADD COLUMN deleted BIGINT;
CREATE INDEX forbear_endpoints_changed ON forbear_endpoints (changed);
CREATE INDEX forbear_endpoints_deleted ON forbear_endpoints (deleted) WHERE deleted IS NOT NULL;
