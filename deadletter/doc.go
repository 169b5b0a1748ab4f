// Package deadletter keeps what could not be done until a person decides
// what becomes of it.
//
// A [Letter] holds the original as it came, why it failed, and everything that
// was tried. It is written before its source is acknowledged, and it raises an
// [Alert]. Nothing disappears by itself: a letter is resolved by a redrive,
// discarded by a person with a reason, or exported before its retention ends.
//
// A redrive ([Job]) sends letters on their way again with their id and key:
// chosen by a [Filter], counted beforehand, one canary first when asked for, at
// a rate, until too many fail.
//
// Experimental: what this package exports may change in any version.
package deadletter
