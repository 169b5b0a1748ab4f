// Package deadletter keeps failed work until a person decides what is done
// with it.
//
// A [Letter] holds the original as it came, why it failed, and everything that
// was tried. It is written before its source is acknowledged, and it raises an
// alert. Nothing disappears by itself: a letter is resolved by a redrive,
// discarded by a person with a reason, or exported before its retention ends.
//
// Package deadletter/queue keeps letters, redrives them and sends the alerts.
//
// Experimental: what this package exports may change in any version.
package deadletter
