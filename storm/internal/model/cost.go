package model

import "time"

// Cost is what a run would need.
type Cost struct {
	Events float64 // or steps
	Memory float64 // bytes
	Time   time.Duration
}
