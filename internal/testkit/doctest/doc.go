// Package doctest holds the tests of the documentation: that links lead
// somewhere, that what docs/rules.md names exists, that the README's program is
// one that compiles.
package doctest
