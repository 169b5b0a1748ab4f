// Package storetest is the conformance suite of forbear's stores. A
// store that is written elsewhere runs it in a test of its own:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Store { return open(t) })
//	}
//
// Each test gets a store of its own, empty.
package storetest
