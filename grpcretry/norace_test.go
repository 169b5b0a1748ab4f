//go:build !race

package grpcretry_test

const raceSlack = 0
