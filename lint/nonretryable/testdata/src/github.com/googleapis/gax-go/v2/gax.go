// Package gax has the signatures of googleapis/gax-go.
package gax

import (
	"time"

	"google.golang.org/grpc/codes"
)

type Retryer interface {
	Retry(err error) (pause time.Duration, shouldRetry bool)
}

type Backoff struct {
	Initial, Max time.Duration
	Multiplier   float64
}

func OnCodes(cc []codes.Code, bo Backoff) Retryer { return nil }
func OnHTTPCodes(bo Backoff, cc ...int) Retryer   { return nil }
