package forbear

import (
	"cmp"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/health"
)

// Policy says how the calls to one dependency may be retried. It is plain
// data: it can be printed, marshalled and compared. The zero value holds the
// standard's defaults for [Sync]; every zero field means the default of its
// kind, which is why Disabled and Strict are fields of their own.
type Policy struct {
	Kind Kind `json:"kind,omitzero"`

	// Disabled allows no retry at all.
	Disabled bool `json:"disabled,omitzero"`
	// Strict takes away the budget's floor for quiet clients.
	Strict bool `json:"strict,omitzero"`

	// MaxRetries counts the attempts after the first. Not for Webhook.
	MaxRetries int `json:"max_retries,omitzero"`
	// MaxAttempts counts all attempts (R-3's table). For Webhook only.
	MaxAttempts int `json:"max_attempts,omitzero"`

	// Total bounds the whole call: all attempts and all waits.
	Total time.Duration `json:"total,omitzero"`
	// PerAttempt bounds one attempt. In [Retryer.Do] it applies only when it
	// is set; HTTP and gRPC always apply it.
	PerAttempt time.Duration `json:"per_attempt,omitzero"`
	// Connect bounds the making of a connection. Default 2 s.
	Connect time.Duration `json:"connect,omitzero"`
	// BodyIdle bounds how long a body may stand still, while it is sent as while it
	// is read, in protocols that stream one. A caller who is slow is not meant.
	// Default 30 s; negative sets no bound.
	BodyIdle time.Duration `json:"body_idle,omitzero"`
	// MinAttempt is the least time that an attempt needs: none is started
	// with less left. Default 100 ms.
	MinAttempt time.Duration `json:"min_attempt,omitzero"`

	Backoff Backoff        `json:"backoff,omitzero"`
	Budget  budget.Policy  `json:"budget,omitzero"`
	Breaker breaker.Policy `json:"breaker,omitzero"`
	// Health stops retries while too few attempts succeed. Zero sets no gate.
	Health health.Policy `json:"health,omitzero"`
	// MaxConcurrent bounds the calls under way at once; 0 sets no bound.
	MaxConcurrent int `json:"max_concurrent,omitzero"`

	// Keys says how to treat operations that need an idempotency key.
	Keys KeyMode `json:"idempotency,omitzero"`
	// RetryUnsent allows retries without a key when the request certainly never
	// reached the server. R-6, read strictly, does not. One that a server had on its
	// connection and has disowned is sent again once in any case: [Failure.Disowned].
	RetryUnsent bool `json:"retry_unsent,omitzero"`

	// Idempotent says that every operation of the dependency is safe to repeat
	// as it is: failures after which it may have been done are retried, in
	// Do as well, and no write needs a key. See [Idempotent] for a single call.
	Idempotent bool `json:"idempotent,omitzero"`

	// Classify overrides the class of single error types, by label
	// ("http_404") or by status group ("http_5xx").
	Classify map[string]Class `json:"classify,omitempty"`

	// WaitHeaders names headers of responses that tell how long to wait, beside
	// Retry-After and those of well-known vendors, each with its form: "seconds" and
	// "milliseconds", which may have a fraction; "http-date" as Retry-After has it (RFC
	// 9110 section 5.6.7), "unix" in seconds since 1970 and "rfc3339", dates relative to
	// the response's own Date where it has one; "duration" such as 6m0s or 250ms; or
	// "auto", any of them, where the size tells seconds from dates.
	//
	// Retry-After goes first. A header with Reset in its name is the end of a limit: it
	// counts with 429 and 503, and not while the header with Remaining in that place is
	// above zero.
	WaitHeaders map[string]string `json:"wait_headers,omitempty"`

	// Owner names the one service that retries this dependency. It is compared to
	// the name given by [WithService], which [New] demands with it.
	Owner string `json:"owner,omitzero"`
}

// Backoff says how long to wait between attempts. Fixed intervals and
// equal jitter cannot be expressed.
type Backoff struct {
	Base time.Duration `json:"base,omitzero"` // default 1 s
	Cap  time.Duration `json:"cap,omitzero"`  // default 30 s
	// Jitter is full by default; for Webhook, whose waits follow Schedule,
	// it is the step's own range.
	Jitter Jitter `json:"jitter,omitzero"`
	// Schedule gives the wait before each attempt, the first included, instead
	// of Base and Cap. Default for Webhook: R-3's table.
	Schedule []time.Duration `json:"schedule,omitempty"`
}

// Jitter chooses how a wait is drawn. The zero value is full jitter, or, where a
// schedule rules, a draw between the step before and the step itself.
type Jitter string

const (
	// JitterFull draws from [0, ceiling].
	JitterFull Jitter = "full"
	// JitterDecorrelated draws from [base, 3 x previous wait]; what is over the
	// cap is the cap.
	JitterDecorrelated Jitter = "decorrelated"
)

// KeyMode says how to treat an operation that is not idempotent by itself. The zero
// value is KeyReuse.
type KeyMode string

const (
	// KeyReuse retries when the caller brought an idempotency key, with that
	// same key.
	KeyReuse KeyMode = "reuse"
	// KeyGenerate makes a key where the caller brought none. Only for servers
	// that honour keys: elsewhere a generated key is a lie.
	KeyGenerate KeyMode = "generate"
	// KeyRefuse never retries such operations.
	KeyRefuse KeyMode = "refuse"
)

// AttemptTimeout returns the time that one attempt gets: PerAttempt, or the
// default of the kind.
func (p *Policy) AttemptTimeout() time.Duration {
	return cmp.Or(p.PerAttempt, p.Kind.limits().attempt)
}

// Retries returns the number of retries that p allows, whatever it counts.
func (p *Policy) Retries() int {
	def, _, _ := p.Kind.Range()
	switch {
	case p.Disabled:
		return 0
	case p.Kind == Webhook:
		return cmp.Or(p.MaxAttempts, def) - 1
	default:
		return cmp.Or(p.MaxRetries, def)
	}
}

// limit returns the number of retries for one call: the policy's, lowered by
// the hint; the caller's own number instead of the policy's, but never above
// the allowed range of the kind.
func (p *Policy) limit(s *State, h Hint) int {
	n := p.Retries()
	if s.Limited && !p.Disabled {
		_, _, high := p.Kind.Range()
		if p.Kind == Webhook {
			high--
		}
		n = min(s.Limit, max(high, n))
	}
	if h.MaxRetries > 0 {
		n = min(n, h.MaxRetries)
	}
	return n
}

// classOf returns the class of f under p's overrides: the exact label first,
// then its status group.
func (p *Policy) classOf(f *Failure) Class {
	if len(p.Classify) == 0 || !f.Class.overridable() {
		return f.Class
	}
	if c, ok := p.Classify[f.Type]; ok {
		return c
	}
	c, ok := p.Classify[group(f.Type)]
	// A group that is made retryable leaves the finer class of those of its
	// members that are retryable anyway.
	if ok && !(c.Retryable() && f.Class.Retryable()) {
		return c
	}
	return f.Class
}
