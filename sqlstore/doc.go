// Package sqlstore keeps deliveries, dead letters, idempotency records and what
// belongs to them in SQLite or PostgreSQL, over database/sql. It imports no
// driver: the program does.
//
// [OpenSQLite] and [Postgres] return a [DB], on which each concept has a view:
//
//	db := sqlstore.Postgres(pool)
//	_, err := db.Migrate(ctx)
//	db.Webhooks()      // store.Store: endpoints, deliveries, the outbox
//	db.DeadLetters()   // queue.Store: letters, redrives, alerts, the audit
//	db.Idempotency()   // idempotency.Store
//	db.Transactions(p) // idempotency.Transactor and consume.Transactor, with the application's pool
//
// All views share one list of migrations, one group commit and one dialect:
//
//   - Statements are written once; a [dialect] turns them into what the database
//     wants. Times are microseconds of the store's clock: the database's own on
//     PostgreSQL, the process's on SQLite, which has one host.
//   - Writes go through the group commit of [writer]: those that wait are
//     committed together, so that many share one fsync. A write is durable when
//     its method returns.
//   - On SQLite there is one writer, with its own connection, and a separate
//     read-only pool. On PostgreSQL any number of processes share the work:
//     due deliveries are claimed in batches with FOR UPDATE SKIP LOCKED, under
//     a lease with a fencing token.
//
// The files are named by concept, and what one of the databases does in its own
// way is in a file that ends with its name. The tests on real databases are the
// nested module sqltest.
//
// Experimental: what this package exports may change in any version.
package sqlstore
