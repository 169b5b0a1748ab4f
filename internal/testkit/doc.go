// Package testkit is the folder of test support: servers and faults that they
// start, weights that they state, and the tests of the house itself (deptest, doctest).
// No product imports anything below it; deptest holds that.
package testkit
