package httpretry

// Names of headers that the package reads or writes.
const (
	// HeaderAttempt carries the number of the attempt, less one.
	HeaderAttempt = "X-Retry-Attempt"
	// HeaderKey carries the idempotency key.
	HeaderKey = "Idempotency-Key"
	// HeaderDeadline carries the time by which a response is of use, in
	// milliseconds since 1970 (INTG-STD-035).
	HeaderDeadline = "X-Request-Deadline"
	// HeaderCorrelation and HeaderRequestID carry the correlation id.
	HeaderCorrelation = "X-Correlation-ID"
	HeaderRequestID   = "X-Request-ID"
	// HeaderExhausted on a response says that a layer below has used its
	// retries, and those above should not begin theirs.
	HeaderExhausted = "X-Forbear-Retries-Exhausted"
	// HeaderNoRetry on a response asks all layers above not to retry, whatever its
	// value; see also [NoRetryDeadline].
	HeaderNoRetry = "X-Forbear-No-Retry"
)
