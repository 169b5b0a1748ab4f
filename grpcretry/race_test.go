//go:build race

package grpcretry_test

// raceSlack is what the race detector adds: under it sync.Pool drops a part of
// what is put into it.
const raceSlack = 4
