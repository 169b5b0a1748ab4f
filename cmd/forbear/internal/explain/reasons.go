package explain

import "github.com/forbear-go/forbear/reason"

// Reason is what there is to know of a reason, as a decision, a log line or a refused
// response names it.
type Reason struct {
	Name  string `json:"reason"`
	Rule  string `json:"rule,omitempty"`
	Means string `json:"means"`
	// Figures says what the numbers are that messages have beside it.
	Figures string `json:"figures,omitempty"`
	// Change says what changes it, and Settings are the keys of a dependency that do.
	Change   string   `json:"change"`
	Settings []string `json:"settings,omitempty"`
	// Metric counts calls that end so.
	Metric string `json:"metric,omitempty"`
	// Page says the same as this, and Guide says more: both are addresses.
	Page  string `json:"page"`
	Guide string `json:"guide"`
}

// Docs is where the pages are.
const Docs = "https://github.com/forbear-go/forbear/blob/main/docs/"

// Reasons returns all reasons, in their order.
func Reasons() (all []Reason) {
	for r := reason.None + 1; int(r) < len(about); r++ {
		x := about[r]
		x.Name, x.Rule, x.Page, x.Guide = r.String(), r.Rule(), r.URL(), Docs+x.Guide
		switch {
		case r.Exhausted():
			x.Metric = "retry_exhausted_total"
		case r.Suppressed():
			x.Metric = "retry_suppressed_total"
		}
		all = append(all, x)
	}
	return all
}

// about has the texts of each reason. Guides are paths below docs.
var about = [...]Reason{
	reason.Retryable: {
		Means:    "The failure may go away, so another attempt follows after a wait.",
		Figures:  "The wait is random, between zero and a bound that doubles from backoff.base to backoff.cap, or longer if the server asked for more.",
		Change:   "classify selects the failures, backoff the waits, max_retries the count.",
		Settings: []string{"classify", "backoff.base", "backoff.cap", "max_retries"}, Guide: "concepts/waiting.md",
	},
	reason.Refresh: {
		Means:    "The dependency refused the credentials (401), so the call is sent once more with fresh ones.",
		Change:   "It needs a source of fresh credentials: the policy file's, or WithCredentials in Go.",
		Settings: []string{"credentials"}, Guide: "guides/http.md",
	},
	reason.Resend: {
		Means:  "The request was lost unprocessed, as on a stale connection, GOAWAY or REFUSED_STREAM. It is sent again at once, and counted.",
		Change: "No setting changes this.", Guide: "http-faults.md",
	},
	reason.Success: {
		Means: "Nothing failed.", Change: "Nothing to do.", Guide: "guides/explain.md",
	},
	reason.Canceled: {
		Means:  "The caller gave up: its context ended, or it disconnected. Nothing more is sent.",
		Change: "Give the caller more time: its client's timeout, its context's deadline, or X-Request-Deadline.",
		Guide:  "concepts/deadlines.md",
	},
	reason.Deadline: {
		Means:    "No time is left for another attempt: the caller's deadline or the policy's total comes first.",
		Change:   "Raise total, or lower per_attempt.",
		Settings: []string{"total", "per_attempt", "min_attempt"}, Guide: "concepts/deadlines.md",
	},
	reason.Certificate: {
		Means:    "The peer's certificate was refused. That is never retried, and verification cannot be turned off.",
		Change:   "Renew or repair the certificate, or name the authority that signed it.",
		Settings: []string{"tls"}, Guide: "runbooks/ForbearCertificateErrors.md",
	},
	reason.Terminal: {
		Means:    "The same request would fail again, or the operation says that it is not retryable.",
		Change:   "Correct the request. If this error does go away, classify it as transient.",
		Settings: []string{"classify"}, Guide: "guides/explain.md",
	},
	reason.Unknown: {
		Means:    "The failure is unknown, or the work may have been done, and nothing declares it safe to repeat.",
		Change:   "In Go mark the error with forbear.Retryable or add a classifier. Set idempotent if every operation is safe to repeat.",
		Settings: []string{"classify", "idempotent"}, Guide: "guides/explain.md",
	},
	reason.Unauthorized: {
		Means:    "The dependency refused the credentials, and there are no fresh ones, or it refused those too.",
		Change:   "Correct the credentials, or name a source of fresh ones.",
		Settings: []string{"credentials"}, Guide: "runbooks/ForbearCredentialRefreshFailing.md",
	},
	reason.ServerStop: {
		Means:  "The dependency asked not to be retried: x-should-retry: false, x-envoy-overloaded, X-Forbear-No-Retry, or a negative gRPC pushback.",
		Change: "No setting overrides it.", Guide: "guides/stopping.md",
	},
	reason.ExhaustedBelow: {
		Means:    "A layer below has used its own retries for this call. Retrying here would multiply them.",
		Change:   "Let only one layer retry.",
		Settings: []string{"owner"}, Guide: "concepts/layers.md",
	},
	reason.NotReplayable: {
		Means:  "The request body cannot be sent again: it is a stream, or longer than what is kept of it.",
		Change: "In Go set GetBody, or raise httpretry.WithBodyLimit. In the gateway raise the route's body_limit, or GOMEMLIMIT if the log says that the memory for all bodies is taken.",
		Guide:  "guides/http.md",
	},
	reason.NoKey: {
		Means:    "Repeating a POST, PATCH or similar might do the work twice, so it needs an idempotency key of 1 to 64 characters.",
		Change:   "Send Idempotency-Key, have one generated if the dependency honors keys, or declare every operation safe to repeat (in Go forbear.Idempotent, for gRPC grpcretry.WithIdempotent).",
		Settings: []string{"idempotency", "idempotent", "retry_unsent"}, Guide: "concepts/idempotency.md",
	},
	reason.BreakerOpen: {
		Means:    "The circuit breaker is open: too many attempts failed or were slow, so none is sent for a while.",
		Figures:  `"until 10:15:05": time of the first probe. "held open by an operator": opened by hand. "half-open": all probes are under way.`,
		Change:   "Fix the dependency; the breaker then closes by itself. The settings decide when it opens, and for how long.",
		Settings: []string{"breaker.failure_rate", "breaker.slow_rate", "breaker.slow_call", "breaker.min_calls", "breaker.open_for", "breaker.probes"}, Guide: "concepts/breakers.md",
	},
	reason.Unhealthy: {
		Means:    "The health gate is closed: too few attempts succeed, or the health endpoint fails. First attempts continue.",
		Change:   "Fix the dependency. The settings decide when the gate closes.",
		Settings: []string{"health.min_success", "health.min_calls", "health.window", "health.endpoint"}, Guide: "guides/stopping.md",
	},
	reason.Disabled: {
		Means:    "The policy, or the caller for this call, allows no retry.",
		Change:   "Drop disabled, or in Go forbear.WithMaxRetries.",
		Settings: []string{"disabled", "max_retries"}, Guide: "guides/policy.md",
	},
	reason.Inner: {
		Means:    "An outer layer is already retrying (by X-Retry-Attempt or the context), so this one makes a single attempt.",
		Change:   "Let only one layer retry.",
		Settings: []string{"owner"}, Guide: "concepts/layers.md",
	},
	reason.Exhausted: {
		Means:    "All retries that the policy allows were made, and the last one failed too.",
		Change:   "More retries seldom help in an outage; the standard allows 1 to 5.",
		Settings: []string{"max_retries", "max_attempts"}, Guide: "runbooks/ForbearRetriesExhausted.md",
	},
	reason.DNSLimit: {
		Means:  "The name did not resolve in two attempts, the limit for such failures.",
		Change: "Correct the name, or fix the resolver.", Guide: "http-faults.md",
	},
	reason.HintTooLong: {
		Means:    "The server asked for a longer wait than the call has left. Waits are never shortened, so the call fails at once.",
		Figures:  `"the server asked for a wait of 45s": its Retry-After, or a similar header.`,
		Change:   "Raise total, or call again after that wait (in Go Error.RetryAfter).",
		Settings: []string{"total"}, Guide: "concepts/waiting.md",
	},
	reason.Budget: {
		Means: "The dependency's retry budget is spent: over all calls of the process, retries may be only a share of the requests. The last failure is returned.",
		Figures: `"3 of 3 retries of this 30s window used": retries sent, and allowed, in the window. ` +
			`"a quiet client's floor": with so few requests, budget.min_retries is the limit. "the share of all calls": budget.ratio is.`,
		Change:   "Fix the dependency first: the budget keeps an outage from growing. A client with few calls may set a floor of up to 10; a fleet may share a budget (serve --fleet-budget).",
		Settings: []string{"budget.min_retries", "budget.ratio", "budget.window", "budget.of"}, Guide: "concepts/budgets.md",
	},
	reason.NotOwner: {
		Means:    "The policy names another service as the retry owner of this dependency.",
		Change:   "Set owner to this service if it should retry. In Go, name the service with forbear.WithService.",
		Settings: []string{"owner"}, Guide: "concepts/layers.md",
	},
	reason.BulkheadFull: {
		Means:    "The limit of concurrent calls is reached. Calls that wait for a retry count.",
		Change:   "Find out why calls take so long, or raise the limit.",
		Settings: []string{"max_concurrent"}, Guide: "guides/stopping.md",
	},
	reason.RefreshFailed: {
		Means:    "The source of fresh credentials failed.",
		Change:   "Check the source: its address, client id and secret.",
		Settings: []string{"credentials"}, Guide: "runbooks/ForbearCredentialRefreshFailing.md",
	},
	reason.WeakCredential: {
		Means:    "The source returned credentials of another kind, or none. A retry is never sent with weaker credentials.",
		Change:   "Correct the source.",
		Settings: []string{"credentials"}, Guide: "runbooks/ForbearCredentialRefreshFailing.md",
	},
	reason.Paced: {
		Means:    "The dependency limits the rate of calls, and this call's turn would come too late.",
		Figures:  `"before 10:15:05": when a new call may expect its turn; through the gateway, Retry-After of the 429.`,
		Change:   "Send less, ask the dependency for a higher limit, or raise total.",
		Settings: []string{"pace", "total"}, Guide: "guides/stopping.md",
	},
}
