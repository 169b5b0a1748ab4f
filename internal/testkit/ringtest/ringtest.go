// Package ringtest says which ring of the suite is running, so that a test states
// its own weight instead of being named in the Makefile.
//
//   - make quick runs what a change can break, without servers: FORBEAR_RING=quick.
//   - make test is the default. A simulation runs at the smallest size that still
//     fails when the code is broken.
//   - make nightly runs everything, at full size: FORBEAR_RING=nightly.
package ringtest

import (
	"os"
	"testing"
)

// Env names the variable that selects the ring. Unset means make test.
const Env = "FORBEAR_RING"

// Quick reports whether only the quick ring runs.
func Quick() bool { return ring() == "quick" }

// Nightly reports whether the long sizes are wanted.
func Nightly() bool { return ring() == "nightly" }

// ring panics at a misspelled one, which would run less than was asked for.
func ring() string {
	name := os.Getenv(Env)
	if name != "" && name != "quick" && name != "nightly" {
		panic(Env + " is " + name + ": it is quick, nightly or unset")
	}
	return name
}

// OnlyNightly skips a test that make test does not wait for. The reason is shown.
func OnlyNightly(t testing.TB, why string) {
	t.Helper()
	if !Nightly() {
		t.Skipf("%s: %s=nightly runs it", why, Env)
	}
}

// NotQuick skips a test that the quick ring leaves out, for what it starts or takes.
func NotQuick(t testing.TB, why string) {
	t.Helper()
	if Quick() {
		t.Skipf("%s: make test runs it", why)
	}
}

// Size returns the size of a simulation for the ring that runs.
func Size[T any](test, nightly T) T {
	if Nightly() {
		return nightly
	}
	return test
}
