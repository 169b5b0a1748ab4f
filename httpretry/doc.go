// Package httpretry puts forbear's decisions into an [http.RoundTripper].
//
//	r, err := forbear.New("payments", forbear.Policy{})
//	client := &http.Client{Transport: httpretry.NewTransport(nil, r)}
//
// What it does with a request:
//
//   - GET, HEAD, OPTIONS, TRACE, PUT and DELETE may be retried. Every other
//     method only with an Idempotency-Key, which all attempts share; the policy
//     says whether forbear makes one.
//   - Each attempt is sent as a clone with its own timeout and with
//     X-Retry-Attempt: 0 on the first send, 1 on the first retry.
//   - A request body is replayed through GetBody; from its beginning, when it can
//     seek; or from a buffer of up to 64 KiB that fills while the first attempt
//     sends it. What the body's own Read returned as an error is the caller's: the
//     call ends, and the dependency is not blamed.
//   - net/http repeats some sends silently, without limit or wait, when a
//     pooled connection turns out to be dead. The transport stops these and
//     takes them over as attempts: one at once, charged to the budget, the
//     others after the backoff. A request that was certainly not written does not count as sent:
//     an [http.Transport] directly below may try the next connection, whatever the
//     method.
//
// What it does with a response:
//
//   - Statuses and errors are classified by [Classify] after.
//     Retry-After and its relatives are a floor under the wait.
//   - The body of a response that is not handed over is drained, within limits,
//     so that its connection can be used again, and closed.
//   - When the retrying stops, the caller gets the last response as it came:
//     status, headers, body unread. [Outcome] has the reason. A network
//     error comes as a [*forbear.Error] that unwraps to the original.
//
// What forbear prints of a failure, in errors and logs, holds no query string,
// no password, no header and no body, even where the error of the transport
// below quotes them; that error itself is still there for errors.As. An
// http.Client puts the request's URL in front of each error it returns.
//
// The per-attempt timeout covers the server's part of an attempt: the connection and
// its handshake, and the time from the end of the request to the headers of the
// response. While a body moves, in either direction, Policy.BodyIdle bounds how long it
// may stand still; how slowly the caller writes or reads is the caller's affair. Streams
// of events have no such bound, nor have the connections of upgrades that the request asks
// for; a 101 that it does not ask for comes without a body, its connection closed.
package httpretry
