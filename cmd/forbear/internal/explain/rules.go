package explain

// rule is a rule of the standard, in a sentence.
type rule struct {
	ID    string `json:"rule"`
	Means string `json:"means"`
	// Reasons and Findings go by it.
	Reasons  []string `json:"reasons,omitempty"`
	Findings []string `json:"findings,omitempty"`
	Page     string   `json:"page"`
}

// rules are those of the standard, and of the two beside it that forbear keeps to.
var rules = []rule{
	{ID: "R-1", Means: "The wait before a retry is drawn at random between zero and a bound that doubles each time, up to a cap (full jitter), so that clients that failed together do not come back together."},
	{ID: "R-2", Means: "Each kind of call has a maximum count of retries: 3 for a synchronous call, 1 to 5 by setting. More wants a waiver."},
	{ID: "R-3", Means: "All attempts and all waits of a call end within one total: 30 s, or 24 h for events and webhooks."},
	{ID: "R-4", Means: "What may go away is retried: lost connections, timeouts, 429, 502, 503, 504. What repeats itself is not: most other 4xx, and what is not recognized."},
	{ID: "R-5", Means: "A wait that the server asks for (Retry-After) is kept: never shortened, and where it does not fit the call fails at once."},
	{ID: "R-6", Means: "What is not idempotent by nature is repeated only with an idempotency key, one for all attempts; servers remember keys for a day at least."},
	{ID: "R-7", Means: "Retries may be a fifth of the requests to a dependency in any 30 s, over all callers of a client; a circuit breaker stops calls to one that keeps failing; and one layer retries, no other."},
	{ID: "R-8", Means: "Durable work that has used up its attempts goes to a dead-letter queue with an alert, and can be sent again from there."},
	{ID: "R-9", Means: "Certificates are verified and their refusal is not retried; no retry goes out with weaker credentials; logs and errors hold no secrets."},
	{ID: "R-10", Means: "Retries can be seen: in logs with the seven fields, in metrics with set names, and by a correlation id that all attempts share."},
	{ID: "INTG-STD-033", Means: "Circuit breakers open above a failure rate or a share of slow calls, let probes through after a while, and bulkheads bound the calls that are under way."},
	{ID: "INTG-STD-035", Means: "Timeouts fit into one another: an attempt into the total, and the call of a layer below into the attempt of the one above."},
}
