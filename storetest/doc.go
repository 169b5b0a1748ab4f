// Package storetest is the conformance suite of forbear's stores. A
// store that is written elsewhere runs it in a test of its own:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Store { return open(t) })
//	}
//
// Each test gets a store of its own, empty. [Run] covers webhooks and dead
// letters, [RunBudget] a fleet's retry budget, and [RunIdempotency] the
// records of idempotency keys.
//
// The suite is ordinary code and not a _test.go file, so that other modules
// may import it. It goes by the store's own clock, with leases of
// milliseconds, and asserts no upper bound on how long a store takes.
//
// Experimental: what this package exports may change in any version.
package storetest
