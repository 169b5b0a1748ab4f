package explain

import (
	"slices"

	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/reason"
)

// Reason is what there is to know of a reason, as a decision, a log line or a refused
// response names it.
type Reason struct {
	Name  string `json:"reason"`
	Rule  string `json:"rule,omitempty"`
	Error string `json:"-"` // what errors in Go begin with, underscored; of several the first has it
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
		if err := edge.Sentinel(r); err != nil && !slices.ContainsFunc(all, func(x Reason) bool { return x.Error == underscored(err.Error()) }) {
			x.Error = underscored(err.Error())
		}
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

// attempts is what most errors say of their call.
const attempts = `"after 4 attempts in 7.2s": the attempts that were made, the first included, and the time since the call began.`

// about has the texts of each reason. Guides are paths below docs.
var about = [...]Reason{
	reason.Retryable: {
		Means:    "The failure may go away: another attempt follows after a wait.",
		Figures:  "The wait is drawn between zero and a bound that doubles with each retry, from backoff.base to backoff.cap. It is what the server asked for where that is longer.",
		Change:   "The kind of failure is classify's, the waits are backoff's, the count is max_retries.",
		Settings: []string{"classify", "backoff.base", "backoff.cap", "max_retries"}, Guide: "concepts/waiting.md",
	},
	reason.Refresh: {
		Means:    "The dependency refused the credentials (401), and the call goes out once more with fresh ones.",
		Change:   "It happens where there is a source of fresh credentials: the policy file's, or WithCredentials in Go.",
		Settings: []string{"credentials"}, Guide: "guides/http.md",
	},
	reason.Resend: {
		Means:  "The connection was lost in a way after which the transport below would have sent the request again by itself, or the server said that it has not processed it (GOAWAY, REFUSED_STREAM); it is sent again, and counted.",
		Change: "Nothing: no setting has it.", Guide: "http-faults.md",
	},
	reason.Success: {
		Means: "Nothing failed.", Change: "Nothing.", Guide: "guides/explain.md",
	},
	reason.Canceled: {
		Means:   "The caller gave up: its context ended, or its connection did. Nothing more is sent.",
		Figures: attempts, Change: "Give the caller more time: its client's timeout, its context's deadline, X-Request-Deadline.", Guide: "concepts/deadlines.md",
	},
	reason.Deadline: {
		Means:   "No time is left for another attempt: the caller's deadline or the policy's total ends before one could.",
		Figures: attempts, Change: "Allow more time in all, or less for one attempt.",
		Settings: []string{"total", "per_attempt", "min_attempt"}, Guide: "concepts/deadlines.md",
	},
	reason.Certificate: {
		Means:    "The peer's certificate was refused. It is never retried, and verification cannot be switched off.",
		Change:   "Renew or repair the certificate, or name the authority that signs it.",
		Settings: []string{"tls"}, Guide: "runbooks/ForbearCertificateErrors.md",
	},
	reason.Terminal: {
		Means:   "The failure repeats itself: the same request would get the same response, or the operation says so.",
		Figures: attempts, Change: "Correct the request; where its error does go away, give it another class.",
		Settings: []string{"classify"}, Guide: "guides/explain.md",
	},
	reason.Unknown: {
		Means:   "The failure is of no kind that is known, or may have come after the work was done, and nothing says that it is safe to repeat.",
		Figures: attempts, Change: "In Go mark the error with forbear.Retryable or add a classifier; say idempotent where every operation may be repeated.",
		Settings: []string{"classify", "idempotent"}, Guide: "guides/explain.md",
	},
	reason.Unauthorized: {
		Means:    "The dependency refused the credentials, and there are no fresh ones, or they were refused as well.",
		Change:   "Correct the credentials, or name a source that has fresh ones.",
		Settings: []string{"credentials"}, Guide: "runbooks/ForbearCredentialRefreshFailing.md",
	},
	reason.ServerStop: {
		Means:  "The dependency asked not to be retried, by x-should-retry: false, x-envoy-overloaded, X-Forbear-No-Retry or a negative pushback of gRPC.",
		Change: "It is the dependency's word, and no setting overrides it.", Guide: "guides/stopping.md",
	},
	reason.ExhaustedBelow: {
		Means:    "A layer below has used up its own retries for this call. To repeat it here would multiply them.",
		Change:   "Let one layer retry.",
		Settings: []string{"owner"}, Guide: "concepts/layers.md",
	},
	reason.NotReplayable: {
		Means:  "The body of the request cannot be sent a second time: it is a stream, or longer than what is kept of one.",
		Change: "In Go set GetBody, or raise httpretry.WithBodyLimit; through the gateway send a shorter body.", Guide: "guides/http.md",
	},
	reason.NoKey: {
		Means:    "A repetition might do the work twice: POST, PATCH and the like are retried only with an idempotency key of 1 to 64 characters.",
		Change:   "Send Idempotency-Key, have one made where the dependency honors keys, or say that every operation is safe to repeat (in Go forbear.Idempotent, for gRPC grpcretry.WithIdempotent).",
		Settings: []string{"idempotency", "idempotent", "retry_unsent"}, Guide: "concepts/idempotency.md",
	},
	reason.BreakerOpen: {
		Means:    "The circuit breaker is open: too many attempts have failed or were slow, and for a while none goes out.",
		Figures:  `"until 10:15:05": when the first probe is let through, by the clock of the process. "held by hand": an operator has opened it. "half-open": all probes are under way.`,
		Change:   "Mend the dependency; the breaker closes by itself. These say when it opens and for how long.",
		Settings: []string{"breaker.failure_rate", "breaker.slow_rate", "breaker.slow_call", "breaker.min_calls", "breaker.open_for", "breaker.probes"}, Guide: "concepts/breakers.md",
	},
	reason.Unhealthy: {
		Means:    "The health gate is closed: too few attempts succeed, or the dependency says that it is not healthy. First attempts go on.",
		Change:   "Mend the dependency. These say when the gate closes.",
		Settings: []string{"health.min_success", "health.min_calls", "health.window", "health.endpoint"}, Guide: "guides/stopping.md",
	},
	reason.Disabled: {
		Means:    "The policy, or the caller for this call, allows no retry.",
		Change:   "Take it back, if that was not meant; in Go it may be forbear.WithMaxRetries.",
		Settings: []string{"disabled", "max_retries"}, Guide: "guides/policy.md",
	},
	reason.Inner: {
		Means:    "An outer layer is retrying already, as the request's X-Retry-Attempt or the context says: this one makes a single attempt.",
		Change:   "Let one layer retry.",
		Settings: []string{"owner"}, Guide: "concepts/layers.md",
	},
	reason.Exhausted: {
		Means:   "All retries that the policy allows were made, and the last one failed, too.",
		Figures: attempts, Change: "More retries seldom help an outage; the standard allows 1 to 5.",
		Settings: []string{"max_retries", "max_attempts"}, Guide: "runbooks/ForbearRetriesExhausted.md",
	},
	reason.DNSLimit: {
		Means:  "The name was not resolved in two attempts, which is as many as such a failure gets.",
		Change: "Correct the name, or mend the resolver. No setting has the two.", Guide: "http-faults.md",
	},
	reason.HintTooLong: {
		Means:    "The server asked for a wait that does not fit into the time that is left. A wait is never shortened: the call fails at once.",
		Figures:  `"the server asked for 45s": its Retry-After, or another header of that kind.`,
		Change:   "Allow more time, or come back later: the error has the wait (RetryAfter), and the response its header.",
		Settings: []string{"total"}, Guide: "concepts/waiting.md",
	},
	reason.Budget: {
		Means: "The retry budget of the dependency is spent: retries may be a share of the requests, over all calls of the process and not of one. The last failure stands as it is.",
		Figures: `"3 of 3 retries of this 30s window used": the retries that were sent in the window, and those that are allowed in it. ` +
			`"floor for quiet clients": the requests were so few that budget.min_retries was the limit. "share of all calls": budget.ratio was.`,
		Change:   "It is what keeps an outage from being multiplied: mend the dependency first. A client that makes few calls may have a higher floor, up to 10 without a waiver; a fleet may share one budget (serve --fleet-budget).",
		Settings: []string{"budget.min_retries", "budget.ratio", "budget.window", "budget.of"}, Guide: "concepts/budgets.md",
	},
	reason.NotOwner: {
		Means:    "The policy names another service as the one that retries this dependency.",
		Change:   "Name this service as the owner, if it is; in Go say its own name by forbear.WithService.",
		Settings: []string{"owner"}, Guide: "concepts/layers.md",
	},
	reason.BulkheadFull: {
		Means:    "As many calls to the dependency are under way as may be. Those that wait for a retry are among them.",
		Change:   "Find out why calls take so long, or allow more of them at once.",
		Settings: []string{"max_concurrent"}, Guide: "guides/stopping.md",
	},
	reason.RefreshFailed: {
		Means:    "Fresh credentials could not be had from their source.",
		Change:   "Look at the source: its address, its client id, its secret.",
		Settings: []string{"credentials"}, Guide: "runbooks/ForbearCredentialRefreshFailing.md",
	},
	reason.WeakCredential: {
		Means:    "The source gave credentials of another kind than before, or none: a retry would go out with weaker ones, and does not.",
		Change:   "Correct the source.",
		Settings: []string{"credentials"}, Guide: "runbooks/ForbearCredentialRefreshFailing.md",
	},
	reason.Paced: {
		Means:    "The dependency limits its callers, and the turn of this call under the rate that it accepts would come too late.",
		Figures:  `"before 10:15:05": when a new call may expect its turn. Through the gateway that is the Retry-After of the 429.`,
		Change:   "Send less, ask the dependency for a higher limit, or give calls more time to wait.",
		Settings: []string{"pace", "total"}, Guide: "guides/stopping.md",
	},
}
