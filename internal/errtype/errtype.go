// Package errtype has the error_type labels of failures that no protocol owns.
// Protocols add their own, such as "http_503". They are part of what users see, in
// logs, metrics, policy files and dead letters: none is ever changed.
package errtype

const (
	Unknown        = "unknown"              // nothing recognized the error
	Marked         = "retryable_error"      // the operation marked it with Retryable
	Terminal       = "terminal_error"       // the operation marked it with Terminal
	Canceled       = "canceled"             // the caller gave up
	CallerDeadline = "caller_deadline"      // the caller's own deadline passed
	Timeout        = "timeout"              // the attempt brought no response in its time
	Certificate    = "tls_certificate"      // the peer could not prove who it is
	Resend         = "transport_resend"     // the transport below was about to send again by itself
	Silent         = "connection_silent"    // nothing came over a kept connection on which the attempt failed
	RefusedStream  = "http2_refused_stream" // the server has refused a stream of HTTP/2, and has not looked at it
	RequestBody    = "request_body"         // the caller's own body could not be read, or not again
	InProgress     = "in_progress"          // the server is still at work on the call's own idempotency key
	ExhaustedBelow = "exhausted_below"      // a layer below has used its retries
)
