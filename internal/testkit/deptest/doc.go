// Package deptest tests the shape of the code: who may import what, and where
// the root package waits. It has no code of its own.
package deptest
