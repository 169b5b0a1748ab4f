package cohort

import (
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/storm/internal/model"
)

// mass is a number of requests and the sum of their start times, in steps. Two
// masses add up, and the mean start of their calls, which decides how much of a
// total is left, stays known.
type mass struct{ n, start float64 }

// group is the part of a fleet that shares one Retryer: all instances of it, or
// those on one side of a partition. Each request that the Retryer sees stands for
// unit requests.
type group struct {
	fleet     *model.Fleet
	plan      *model.Plan
	caller    *model.Caller
	share     float64 // of the fleet
	instances int     // of the fleet
	unit      float64
	// requested is the fresh mass that the budget has not seen yet.
	requested float64
	// idle are the users of a closed loop that think.
	idle float64
	// breakers is nil without any.
	breakers *breakers
}

// class is the part of a group whose calls all have the same luck: sticky errors
// and partitions hit all of them or none. Its calls have their luck between that
// of the class before it and its own, and their instances in the same way.
type class struct {
	g     *group
	share float64 // of the group
	// A sticky fault of at least the rate luck hits the class, and so does a
	// partition of at least the share cut.
	luck, cut float64

	// first is the number of its first lane in the queue.
	first int
	lanes []lane
	// expire is the number of steps until an attempt times out, and limit the
	// seconds of queue and service that still are in time.
	expire int
	limit  float64
	// dropped is the arrival rate of what expired and was dropped just now.
	dropped float64
	// admitted is the share of this step's attempts that the breakers let by.
	admitted float64
	// arriving and samples are the attempts that breakers get to see.
	arriving, samples []sample
	// concluded is how many of the samples have ended.
	concluded int
	// lost is a ring, by step and lane, of what was sent and lost on the way; nil
	// where no partition is.
	lost []mass
}

// lane is one attempt number of a class. Retries that wait are spread over the
// steps to come; a ring of differences takes a box of any width in two additions.
type lane struct {
	ring    []mass // differences of the coming arrivals, by step
	due     mass   // sum of the differences so far
	now     mass   // arrivals of this step
	rulings [failures]ruling
}

// The ways in which an attempt fails, as far as a decision can tell.
const (
	byError = iota
	byShed
	byTimeout
	failures
)

// ruling is what the Retryer said last about a kind of failure, and for how
// much mass that still holds.
type ruling struct {
	left  float64
	retry bool
	why   forbear.Reason
	// key is the floor and the ceiling for which the boxes were sampled: they are
	// sampled anew when a step or more has come between.
	key   [2]time.Duration
	boxes []box
}

// box is a part of the mass that waits for between from and to steps, spread
// evenly.
type box struct {
	from, to int
	share    float64
}
