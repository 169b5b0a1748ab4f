// Package grpc_retry has the signatures of go-grpc-middleware.
package grpc_retry

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

type (
	CallOption  struct{ grpc.CallOption }
	BackoffFunc func(attempt uint) time.Duration
)

func WithMax(maxRetries uint) CallOption                  { return CallOption{} }
func WithBackoff(bf BackoffFunc) CallOption               { return CallOption{} }
func WithCodes(retryCodes ...codes.Code) CallOption       { return CallOption{} }
func BackoffLinear(waitBetween time.Duration) BackoffFunc { return nil }
func BackoffExponential(scalar time.Duration) BackoffFunc { return nil }
func BackoffLinearWithJitter(waitBetween time.Duration, jitterFraction float64) BackoffFunc {
	return nil
}

func BackoffExponentialWithJitter(scalar time.Duration, jitterFraction float64) BackoffFunc {
	return nil
}
func UnaryClientInterceptor(optFuncs ...CallOption) grpc.UnaryClientInterceptor { return nil }
