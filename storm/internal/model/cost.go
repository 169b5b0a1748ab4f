package model

import "time"

// Cost is what a run would need, at most.
type Cost struct {
	// Events are the exact engine's; for the cohort engine they are steps.
	Events float64
	// Memory is in bytes.
	Memory float64
	Time   time.Duration
}
