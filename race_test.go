//go:build race

package forbear_test

// raced says that the race detector is on: arithmetic on many instances then
// takes ten times as long and shows nothing more.
const raced = true
