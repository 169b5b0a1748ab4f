// Package memstore has the stores of webhook, deadletter, idempotency and budget
// in memory: for tests, examples and benchmarks of what uses one, and for
// nothing that must last. Each passes the suite of package storetest, but for what
// operators do with deliveries and letters, and each is ready as its zero value:
//
//	&memstore.Store{}       // store.Store and queue.Store
//	&memstore.Idempotency{} // idempotency.Store
//	&memstore.Budget{}      // budget.Store, which fails on demand
//
// They keep the rules of package sqlstore, not its speed: what a database finds
// by an index they may find by looking at everything.
//
// Experimental: what this package exports may change in any version.
package memstore
