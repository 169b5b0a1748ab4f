-- A delivery whose message could not be read by the process that claimed it, and that waits:
-- its fence at that time. Once it is claimed again it has another one.

ALTER TABLE forbear_deliveries ADD COLUMN unreadable BIGINT;
CREATE INDEX forbear_deliveries_unreadable ON forbear_deliveries (endpoint) WHERE state = 0 AND unreadable = fence;
