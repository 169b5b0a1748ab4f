package model

import (
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/hint"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/internal/window"
)

// The failures that attempts come back with, as the HTTP edge would classify them:
// a 500, and an attempt that took too long.
var (
	FailedResponse = forbear.Failure{Class: forbear.ClassTransient, Type: "http_500"}
	FailedTimeout  = forbear.Failure{Class: forbear.ClassTimeout, Type: errtype.Timeout}
	failedShed     = forbear.Failure{Class: forbear.ClassTransient, Type: "http_503"}
)

// Refusal returns a 503 with a Retry-After, if that is above 0: a floor, and
// 10 % of it (at most 5 s) as a spread, as the HTTP edge makes of it.
func Refusal(retryAfter time.Duration) forbear.Failure {
	f := failedShed
	if retryAfter > 0 {
		f.Hint.Floor = retryAfter
		f.Hint.Spread = hint.Spread(retryAfter, hint.SpreadShare)
	}
	return f
}

// StartOfTime is the start of every run on the clock of budgets and breakers:
// at a fixed distance from the windows' epoch, so that their slots lie alike in
// every run, and after the making of any breaker.
func StartOfTime() time.Time { return window.Epoch().Add(10 * 365 * 24 * time.Hour) }
