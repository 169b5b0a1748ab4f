// Package budget bounds the retries that a client adds to a dependency's load
// one call may retry three times, and a thousand failing calls may not
// retry three thousand times.
//
// [Ratio] is what a policy gets by default: in any 30 seconds, retries come to at
// most a fifth of the initial requests. [Fleet] is the same budget for all
// instances of a service together, kept in a [Store]. [TokenBucket] bounds a
// rate instead of a share, and [GRPC] is the throttle of gRPC's service configs. Pass
// any of them to forbear.WithBudget, or write a [Budget].
//
// All budgets take the time as an argument and are safe for concurrent use. The
// package knows nothing of policies, calls or protocols.
package budget
