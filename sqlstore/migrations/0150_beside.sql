-- Works beside 0140
-- The step that an earlier forbear must know to go on working on a database to which a
-- later one has applied this step. None: it must know this step itself.

ALTER TABLE forbear_migrations ADD COLUMN beside INTEGER;
