-- History comes and goes in the order of time, some thousands of rows at once: their
-- place is reused if they are vacuumed before the next come. By PostgreSQL's default a
-- table of a million waits for 200,000 dead rows.

{postgres} ALTER TABLE forbear_deliveries SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_limit = 2000);
{postgres} ALTER TABLE forbear_messages SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_limit = 2000,
  toast.autovacuum_vacuum_scale_factor = 0.01, toast.autovacuum_vacuum_threshold = 1000, toast.autovacuum_vacuum_cost_limit = 2000);
{postgres} ALTER TABLE forbear_attempts SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_limit = 2000);
