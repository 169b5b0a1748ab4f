// Package forbear retries calls and knows when to stop.
//
// A [Retryer] applies one [Policy] to the calls to one dependency. Its zero policy
// is the standard: three retries with full jitter, 30 seconds in all
// the server's wait obeyed or the call ended at once, nothing repeated
// that is not safe to repeat, and at most 20 % more load on the dependency,
// whatever the number of callers.
//
//	payments := forbear.Must(forbear.New("payments", forbear.Policy{}))
//	err := payments.Do(ctx, func(ctx context.Context) error {
//		return ledger.Append(ctx, entry)
//	})
//
// [Retryer.Do] calls an operation that is safe to repeat. The operation marks its
// own errors with [Retryable] and [Terminal]; an error that nothing recognizes is
// not retried. The error of a failed call is an [*Error]: it says why the call
// ended, and unwraps to the operation's last error. For HTTP, put package httpretry
// under an http.Client instead; for gRPC, module grpcretry. A service with several
// dependencies makes a [Set].
//
// # The decision
//
// [Decide] is the heart: a pure function of the policy, the [State] of the call,
// the [Failure] of its latest attempt, the time and a source of randomness.
// [Policy.Decide] takes the [Facts] of the moment as well: the circuit breaker, the
// health gate, the budget. It asks its questions in a fixed order, and the first
// that objects gives the [Reason]:
//
//	canceled? class terminal? replayable and keyed? breaker, health?
//	retries left? does the wait fit into what is left? budget?
//
// [Retryer.Next] decides and commits: it takes the retry from the budget and
// advances the State. Everything that is live goes through it; nothing else decides.
//
// # Stopping
//
// What the calls to a dependency share is its Retryer's: the retry budget (package
// budget), the circuit breaker and the bulkhead (package breaker). A budget may be
// shared by all instances of a service; see budget.Fleet.
//
// One layer retries, the one right above the dependency. A Retryer that runs inside
// a retry of another makes a single attempt, and what one has given up the next
// does not begin again.
//
// # Watching
//
// A Retryer logs every retry and every failed call to slog.Default(), unless
// it has an [Observer] of its own. Observers that are no log, such as those of the
// modules promretry and otelretry, stand beside it.
//
// # Writing an edge
//
// A protocol, a queue or a schedule that wants forbear's retries keeps a call
// itself. A [Call] is live: it waits in its goroutine. A [DurableCall] waits
// elsewhere, in a database or in a queue, and its [Progress] is stored between
// attempts; webhooks, event consumers and batches are made of it.
//
// # Where things are
//
//   - policy.go, defaults.go, kind.go, profile.go, validate.go: what may be retried,
//     the figures of the standard, and what is refused.
//   - decide.go, decision.go, state.go, facts.go, backoff.go: the decision.
//   - failure.go, classify.go, classify_net.go, classify_text.go, outcome.go, reason.go,
//     errors.go: what failed, what a breaker makes of it, and why a call ended.
//   - retryer.go, options.go, set.go, next.go: what is shared, and the commit.
//   - do.go, call.go, begin.go, wait.go: a live call; durable.go, progress.go,
//     pace.go: one that survives.
//   - observe.go, dispatch.go, log.go: events; context.go, layers.go: what contexts
//     carry.
package forbear
