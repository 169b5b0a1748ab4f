// Package forbear retries calls and knows when to stop.
//
// A [Retryer] applies one [Policy] to the calls to one dependency. Its zero policy
// is the standard: three retries with full jitter, 30 seconds in all
// the server's wait obeyed or the call ended at once, nothing repeated
// that is not safe to repeat, and at most 20 % more load on the dependency from
// a busy process, whatever the number of its callers, or three retries in 30 seconds
// from a quiet one.
//
//	payments := forbear.Must(forbear.New("payments", forbear.Policy{}))
//	err := payments.Do(ctx, func(ctx context.Context) error {
//		return ledger.Append(ctx, entry)
//	})
//
// [Retryer.Do] calls an operation that is safe to repeat. For HTTP, put package
// httpretry under an http.Client instead; for gRPC, module grpcretry. A service with
// several dependencies makes a [Set].
//
// # Defaults that surprise
//
//   - An attempt over HTTP or gRPC ends after 5 seconds (Policy.PerAttempt). In
//     [Retryer.Do] an attempt has no limit of its own until PerAttempt is set.
//   - A call ends after 30 seconds, attempts and waits together (Policy.Total).
//   - A circuit breaker opens when more than half of the attempts fail. Calls then end at
//     once, for 5 seconds at first (Policy.Breaker).
//   - An error that no classifier knows is not retried ([Retryable], [WithClassifier]).
//   - A client that makes few calls may retry three times in 30 seconds (Policy.Budget).
//   - A POST or PATCH without an idempotency key is sent once (Policy.Keys, [Idempotent]).
//   - An Owner needs [WithService]: [New] refuses it alone.
//
// # What is retried
//
// The operation says it best, since it knows what its errors mean: [Retryable] marks
// one that may go away, with the server's advice on when, [Terminal] one that will not.
// A classifier of [WithClassifier] says it for all errors of a kind. Among errors that are
// neither marked nor classified, Do retries by itself:
//
//   - errors from before anything was sent: a refused connection, a host or network
//     that cannot be reached, a name that does not resolve (twice in all, R-4);
//   - an attempt that Policy.PerAttempt has ended;
//   - with [Idempotent] on the context or Policy.Idempotent, every network failure that
//     may go away, resets and time-outs among them. The operation may have been done all
//     the same, which is why the program has to say so.
//
// A refused certificate is never retried, whatever a mark or a policy says, and an
// error that nothing recognizes is not retried either.
//
// # Time
//
// Policy.Total bounds the whole call, attempts and waits together, and so does
// the deadline of the caller's context. The operation sees the earlier of the two as
// its context's deadline, and is ended there: that is a timeout of the dependency's, or
// the caller's own end. Policy.PerAttempt bounds single attempts in Do only when it is
// set; an operation that hangs then leaves time for another. The context is over when
// the operation returns: it reads bodies and rows itself, and returns what it has read.
//
// # Errors
//
// The error of a failed call is an [*Error]. It says why the call ended, by Reason and
// by a sentinel for errors.Is, and unwraps to the operation's last error. Its text names
// the figures that decided:
//
//	payments: retries exhausted after 4 attempts in 7.2s: ...
//	payments: retry budget exhausted: 3 of 3 retries of this 30s window used; a quiet client's floor is budget.min_retries (R-7; forbear explain budget_exhausted) after 1 attempt in 2ms: ...
//	payments: circuit breaker open until 12:00:31+01:00 (R-7; forbear explain breaker_open)
//
// When the caller has ended the call, errors.Is finds [ErrCanceled] or [ErrDeadline], the
// error of the context, and the cause that it was canceled with.
//
// # The decision
//
// [Decide] is the heart: a pure function of the policy, the [State] of the call and what
// is known of the moment, the [Failure] of its latest attempt, the time and a source of
// randomness. It asks its questions in a fixed order, and the first that objects gives
// the [Reason]:
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
// budget), the circuit breaker and the bulkhead (package breaker). The budget allows a
// fifth of the initial requests of the last 30 seconds as retries, and never fewer than
// three: the floor for clients with little to do, which a program that makes a call now
// and then lives on. Policy.Strict takes the floor away, budget.Policy.MinRetries raises
// it. Each instance of a service has a floor of its own: what they add up to is
// budget.Policy.AllowedEach. A budget.Fleet is one budget, with one floor, for all of them.
//
// One layer retries, the one right above the dependency. A Retryer that runs inside
// a retry of another makes a single attempt, and what one has given up the next
// does not begin again.
//
// # Watching
//
// A Retryer logs every retry and every failed call to slog.Default(), unless
// it has an [Observer] of its own: at WARN what the dependency or the policy ended, at
// DEBUG what is the caller's own affair, since the caller has the error, such as a
// failure that is final or unknown; at ERROR a refused certificate. Observers that
// do not log, such as those of the modules promretry and otelretry, leave the log on.
//
// # Where things are
//
// A protocol, a queue or a schedule that wants forbear's retries keeps a call itself:
// package edge is for those who write one. Package reason has the values of [Reason].
//
//   - policy.go, kind.go, defaults.go, validate.go: what may be retried, the figures of
//     the standard, its profiles, and what is refused.
//   - decide.go, state.go, backoff.go: the decision.
//   - failure.go, classify.go and its kin, explain.go: what failed, and how a breaker counts it;
//     resend.go: what is sent anew; errors.go: what a caller gets.
//   - new.go, options.go, retryer.go, next.go, earned.go: what is shared, and the commit.
//   - do.go, call.go, begin.go, attempt.go, wait.go, end.go: a live call; engine.go: what
//     package edge sees of all this.
//   - observe.go, log.go: events; context.go: what contexts carry.
package forbear
