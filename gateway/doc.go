// Package gateway retries on behalf of services that cannot: it takes their
// outgoing HTTP requests, sends them on to the dependency that a route names,
// and retries as that dependency's policy says.
//
//	g, err := gateway.New(gateway.Config{Routes: []gateway.Route{{
//		Prefix:  "/payments",
//		Target:  target,
//		Retryer: payments,
//	}}})
//	srv := gateway.NewServer(g)
//	srv.Addr = "127.0.0.1:8080"
//	err = srv.ListenAndServe()
//
// All callers of a dependency share its Retryer, and so one budget,
// however many processes they are.
//
// What the caller sees:
//
//   - A response of the dependency as it came, streamed. When it is a failure
//     that was not retried (further), Forbear-Stop says why and
//     Forbear-Attempts how many attempts were made.
//   - Where there is no response, problem details (RFC 9457), by the last attempt: 502
//     for network errors and 504 for timeouts, whatever ended the call after it. 429 and
//     503, by the dependency's limit, the breaker or the bulkhead, mean that nothing was
//     sent. They hold no query string, no header and no text of an error.
//   - X-Correlation-ID, its own or a new one, on every response. The retries are
//     logged under it.
//
// What callers may send: X-Request-Deadline (epoch milliseconds) bounds the
// call, less a margin for the way back. X-Retry-Attempt above 0,
// X-Envoy-Attempt-Count above 1 or Grpc-Previous-Rpc-Attempts above 0 says that the
// caller is retrying already; the gateway then makes a single attempt.
//
// gRPC calls over HTTP/2 are judged by their own status and deadline, as package
// grpcretry judges them, and what the gateway has to say itself is a gRPC status.
//
// GET /health/live and /health/ready are the gateway's own, except under the
// hosts of routes.
//
// # The way of a request
//
// [Gateway.ServeHTTP] takes these steps in order. Each gets the request as an argument,
// and responds itself where the way ends:
//
//   - match (table.go): host, path, method and headers choose the route
//   - admit (admit.go): what cannot be passed on, or may not, is refused
//   - enter (limits.go): the call gets its time, and a place in its route
//   - forward (forward.go): package forward makes the outgoing request, httpretry
//     retries it, attempts counts and sends each attempt through package upstream, and
//     package forward copies the response; where there is none, failed (problem.go) responds
//   - record (record.go): its outcome, for the access log and the metrics
//
// A request with an idempotency key goes through package idempotency instead of the
// retries (ingress.go).
//
// Experimental: what this package exports may change in any version.
package gateway
