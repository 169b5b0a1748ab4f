// Package storetest is the conformance suite of forbear's stores. Whoever
// writes one runs it in a test of their own:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Store { return open(t) })
//	}
//
// Each test gets a store of its own, empty.
package storetest
