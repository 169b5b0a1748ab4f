// Package sqlstore keeps deliveries, dead letters and what belongs to them in
// SQLite or PostgreSQL, over database/sql. It imports no driver: the caller
// opens the pools.
//
// All stores share one list of migrations, one writer and one dialect layer:
//
//   - Statements are written once; [dialect] turns them into what the database
//     wants. Times are microseconds of the store's clock: the database's own on
//     PostgreSQL, the process's on SQLite, which has one host.
//   - Writes go through the group commit of [writer]: those that wait are
//     committed together, so that many share one fsync. A write is durable when
//     its method returns.
//   - On SQLite there is one writer, with its own connection, and a separate
//     read-only pool. On PostgreSQL any number of processes share the work:
//     due deliveries are claimed in batches with FOR UPDATE SKIP LOCKED, under
//     a lease with a fencing token.
package sqlstore
