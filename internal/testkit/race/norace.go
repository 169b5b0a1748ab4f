//go:build !race

// Package race says whether the race detector is on. Arithmetic on one goroutine
// takes ten times as long under it and shows nothing more, and allocations cannot
// be counted.
package race

// Enabled reports whether the race detector is on.
const Enabled = false
