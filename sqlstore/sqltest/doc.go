// Package sqltest tests package sqlstore on SQLite and PostgreSQL: the suites
// of package storetest, the migrations, the relay of the outbox and the
// transaction mode of idempotency. It holds tests only, in a module of its own,
// so that the drivers enter no one's requirements.
package sqltest
