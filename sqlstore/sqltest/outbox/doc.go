// Package outbox has the tests of docs/guides/outbox.md and outbox-postgresql.md: their
// program, examples/outbox, and their statements and programs in other languages, on real
// databases.
package outbox
