package rule

import (
	"github.com/forbear-go/forbear/lint/internal/ablate"
	"github.com/forbear-go/forbear/lint/internal/retry"
)

// Evidence is one term of the score of a finding: a fact, and what it weighs. What
// speaks against the finding weighs less than nothing.
type Evidence struct {
	Text   string
	Weight int
}

// A retry is reported with high confidence from the score Sufficient on, with medium
// confidence from Likely on, and not shown below.
const (
	Sufficient = 4
	Likely     = 3
)

// term is a fact and what it weighs.
type term struct {
	weight int
	holds  func(r *retry.Retry) bool
	text   string
}

// terms are the facts that are weighed. The weights were fitted on the labelled
// corpora (FIELD.md), and rounded.
var terms = []term{
	{1, func(r *retry.Retry) bool { return r.Pure }, "a success ends it"},
	{3, func(r *retry.Retry) bool { return len(r.Waits) > 0 && !r.Pure && !r.Refuses }, "it waits only after a failure"},
	{3, func(r *retry.Retry) bool { return r.Boundary == retry.Remote }, "the attempt leaves the process"},
	{2, func(r *retry.Retry) bool { return r.Boundary == retry.Unknown && r.Reaches }, "the attempt looks like a call to another machine"},
	{1, func(r *retry.Retry) bool { return r.Boundary == retry.Unknown && r.Bound.Context }, "it takes a context, like calls to other services"},
	{1, func(r *retry.Retry) bool { return r.Spoken }, "its names speak of retrying"},
	{1, func(r *retry.Retry) bool { return r.Bound.Counter }, "it counts the attempts"},
	{1, func(r *retry.Retry) bool { return r.Delay.Class == retry.Growing }, "its wait grows, which is rare elsewhere"},
	{1, func(r *retry.Retry) bool { return r.Starts }, "what it starts runs until it fails"},
	{-6, func(r *retry.Retry) bool { return r.Boundary == retry.Local }, "it stays on this machine"},
	{-1, func(r *retry.Retry) bool { return r.Waiting && r.Delay.Class != retry.Growing }, "its names speak of waiting for a state"},
	{-1, func(r *retry.Retry) bool { return r.Delay.Ticker && !r.Bound.Counter }, "a ticker paces it, like a poller"},
	{-1, func(r *retry.Retry) bool { return r.Refuses }, "it also repeats after a response that it does not accept"},
	{-1, func(r *retry.Retry) bool { return r.Weak }, "only a bool or a missing result shows the failure"},
	{-2, func(r *retry.Retry) bool { return r.WaitFirst }, "it also waits before the first attempt"},
	{-1, func(r *retry.Retry) bool { return len(r.Waits) == 0 }, "it does not wait"},
}

// score adds up what is known of a retry.
func score(r *retry.Retry) (sum int) {
	for _, t := range terms {
		if t.holds(r) {
			sum += t.weight
		}
	}
	return sum
}

// RetryConfidence is how sure it is that code is a retry of a call across a boundary.
func RetryConfidence(r *retry.Retry) Confidence {
	switch s := score(r); {
	case !ablate.On("score"):
		return High
	case s >= Sufficient:
		return High
	case s >= Likely:
		return Medium
	}
	return Low
}

// Terms lists what is known of a retry, for those who ask.
func Terms(r *retry.Retry) (facts []Evidence) {
	for _, t := range terms {
		if t.holds(r) {
			facts = append(facts, Evidence{Text: t.text, Weight: t.weight})
		}
	}
	return facts
}
