package queue

import (
	"errors"
	"fmt"
	"time"
)

// Job is a redrive: the letters that a filter chose, sent on their way again
// under a rate, watched, and stopped when too many fail.
type Job struct {
	ID     string `json:"id"`
	Filter Filter `json:"filter"`
	By     string `json:"by"`

	// Rate is the number of letters per second. Default 10.
	Rate float64 `json:"rate"`
	// Canary sends one letter first and the others only when it was delivered.
	Canary bool `json:"canary"`
	// StopRatio stops the job when more than this part of at least five known
	// outcomes are failures. Default 0.5; 1 never stops.
	StopRatio float64 `json:"stop_ratio"`
	// MaxRedrives leaves letters alone that were redriven this often.
	// Default 3.
	MaxRedrives int `json:"max_redrives"`

	State   JobState  `json:"state"`
	Why     string    `json:"why,omitempty"` // why it stopped, left letters that cannot be read, or a letter was refused
	Created time.Time `json:"created_at"`
	Updated time.Time `json:"updated_at,omitzero"`

	// Total was counted when the job was made.
	Total     int `json:"total"`
	Begun     int `json:"begun"`
	Delivered int `json:"delivered"`
	Failing   int `json:"failing"`

	// Fence is the store's: it changes with each owner.
	Fence int64 `json:"-"`
}

// JobState says where a redrive stands.
type JobState string

const (
	JobRunning  JobState = "running"
	JobPaused   JobState = "paused"
	JobDone     JobState = "done"
	JobStopped  JobState = "stopped" // by its canary or its failure ratio
	JobCanceled JobState = "canceled"
)

// Open reports whether the job may still send letters.
func (s JobState) Open() bool { return s == JobRunning || s == JobPaused }

// The defaults of a [Job].
const (
	DefaultRate        = 10
	DefaultStopRatio   = 0.5
	DefaultMaxRedrives = 3
	maxRate            = 500
)

// withDefaults fills in what is zero, and returns all faults at once.
func (j Job) withDefaults() (Job, error) {
	if j.Rate == 0 {
		j.Rate = DefaultRate
	}
	if j.StopRatio == 0 {
		j.StopRatio = DefaultStopRatio
	}
	if j.MaxRedrives == 0 {
		j.MaxRedrives = DefaultMaxRedrives
	}
	var errs []error
	if j.Rate < 0 || j.Rate > maxRate {
		errs = append(errs, fmt.Errorf("rate %v is outside 0 to %d a second", j.Rate, maxRate))
	}
	if j.StopRatio < 0 || j.StopRatio > 1 {
		errs = append(errs, fmt.Errorf("stop_ratio %v is outside 0 to 1", j.StopRatio))
	}
	if j.MaxRedrives < 0 {
		errs = append(errs, fmt.Errorf("max_redrives %d is negative", j.MaxRedrives))
	}
	if j.By == "" {
		errs = append(errs, errors.New("by is missing: name the operator who asks for the redrive"))
	}
	if len(errs) > 0 {
		return j, fmt.Errorf("%w redrive: %w", ErrInvalid, errors.Join(errs...))
	}
	return j, nil
}
