// Package outbox has the tests of docs/guides/outbox.md: its program, examples/outbox,
// and its statements and programs in other languages, on real databases.
package outbox
