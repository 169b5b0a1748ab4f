//go:build race

package storm

// raceEnabled says that the race detector slows everything down tenfold.
const raceEnabled = true
