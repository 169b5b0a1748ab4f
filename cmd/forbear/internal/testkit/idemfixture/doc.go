// Package idemfixture holds idempotency to its conformance scenarios, on every
// store: memory, SQLite, PostgreSQL and Redis. It is tests alone.
//
// The service that the scenarios are run against is a process of its own, the
// test binary started again (TestMain), which can be killed and frozen, and whose
// clock can be moved. What its handler does is written down by a ledger in the
// process of the test, which survives it: only from outside can it be seen that
// work was done once.
//
// The scenarios come from the conformance vectors and from testdata.
// fixture_test.go is the service, ledger_test.go the ledger, and world_test.go
// puts a run together.
package idemfixture
