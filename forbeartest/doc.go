// Package forbeartest helps to test code that retries. It imports the standard
// library and forbear only, and has three tools:
//
//   - [Server] is a real HTTP server on the loopback that follows a script:
//     respond 503 twice, reset the connection, then 200. It records what
//     reached it.
//   - [RoundTripper] follows the same script without a network, so that a test
//     may run in a testing/synctest bubble, where waits of minutes take no
//     time.
//   - [Recorder] is an observer that keeps what a Retryer did.
//
// A script is a list of steps; each request takes the next, and the last step
// repeats:
//
//	srv := forbeartest.NewServer(t,
//		forbeartest.Status(503).With("Retry-After", "1"),
//		forbeartest.Reset(),
//		forbeartest.Text(200, "hello"),
//	)
//	// ... call srv.URL with the client under test ...
//	if n := len(srv.Requests()); n != 3 {
//		t.Errorf("%d requests, want 3", n)
//	}
//
// [JitterFault] and [SequenceFault] judge the waits of any retry loop against
// R-1, which forbids fixed intervals and equal jitter.
package forbeartest
