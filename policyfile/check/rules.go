package check

import (
	"slices"

	"github.com/forbear-go/forbear/internal/report"
)

// Rules lists what can be found, in the order of the ids. It is a copy:
// callers may sort or filter it.
func Rules() []report.Rule { return slices.Clone(table) }

// table is filled by the declarations below.
var table []report.Rule

// rule is a kind of finding, with what is made of it.
type rule struct{ report.Rule }

// newRule adds a rule to the table.
func newRule(r report.Rule) *rule {
	table = append(table, r)
	return &rule{r}
}

// RuleOf returns the rule of an id; ok is false when there is no such rule.
func RuleOf(id string) (report.Rule, bool) {
	i := slices.IndexFunc(table, func(r report.Rule) bool { return r.ID == id })
	if i < 0 {
		return report.Rule{}, false
	}
	return table[i], true
}

// Short names keep the table readable.
const (
	note = report.Note
	warn = report.Warning
	fail = report.Error
)

// These are all rules, in the order of the ids. Ids are grouped by
// subject and never reused: they appear in waivers, in reports and in the
// configuration of CI.
//
// Standard is the rule of the standard that a finding breaks, and Waivable
// says whether a waiver of that rule lifts it. Summary says what is wrong, Why
// what it costs, and Fix what to write instead.
var (
	notJudged = newRule(report.Rule{
		ID: "FC001", Name: "not-judged", Severity: note,
		Summary: "something in the file cannot be judged",
		Why:     "A gate that skips silently what it does not understand would be trusted too far.",
		Fix:     "Judge it by hand.",
	})

	beyondTheProduct = newRule(report.Rule{
		ID: "FC002", Name: "beyond-the-product", Severity: note, Waivable: true,
		Summary: "the software cannot keep a rule, whatever its file says",
		Why:     "No setting of the product can fix this.",
		Fix:     "Turn its retries off, with forbear's gateway behind it if you need them, or have a waiver signed.",
	})

	unreadSetting = newRule(report.Rule{
		ID: "FC003", Name: "unread-setting", Severity: warn,
		Summary: "a judged file has retry settings that check does not read",
		Why:     "Nothing here limits those retries.",
		Fix:     "Judge them by hand; .forbear-check.yaml can then turn this finding off for the file.",
	})

	deprecatedKey = newRule(report.Rule{
		ID: "FC004", Name: "deprecated-key", Severity: warn,
		Summary: "the file uses an old name of a key",
		Why:     "A later version will refuse the old name and the whole file.",
		Fix:     "Write the new name; it means the same.",
	})

	unknownWord = newRule(report.Rule{
		ID: "FC005", Name: "unknown-word", Severity: warn,
		Summary: "a list of what is retried has a word that the software does not know",
		Why:     "The software ignores the word or refuses the file: what was meant is not retried.",
		Fix:     "Correct the word, or leave it out.",
	})

	// FC1xx: the retry budget.
	retryBudgetMissing = newRule(report.Rule{
		ID: "FC101", Name: "retry-budget-missing", Standard: "R-7", Severity: fail, Waivable: true,
		Summary: "a dependency has no retry budget",
		Why:     "In an outage every failed call is sent again, several times, to a dependency that is already overloaded.",
		Fix:     "Set budget: {ratio: 20%, window: 30s}, or less.",
	})
	retryBudgetTooLarge = newRule(report.Rule{
		ID: "FC102", Name: "retry-budget-too-large", Standard: "R-7", Severity: fail, Waivable: true,
		Summary: "a retry budget is over 20 %",
		Why:     "At 20 % an outage adds a fifth to the dependency's load; more may keep it down.",
		Fix:     "Set budget.ratio to 20% or less.",
	})
	retryBudgetWindow = newRule(report.Rule{
		ID: "FC103", Name: "retry-budget-window", Standard: "R-7", Severity: warn, Waivable: true,
		Summary: "a budget's window is not 30 s",
		Why:     "A longer window saves retries up and spends them in one burst; a shorter one forgets too fast.",
		Fix:     "Set budget.window to 30s, or lower budget.ratio in proportion to a longer window.",
	})
	retryBudgetOutlived = newRule(report.Rule{
		ID: "FC104", Name: "retry-budget-outlived", Standard: "R-7", Severity: fail, Waivable: true,
		Summary: "waits outlast the budget's window",
		Why:     "A retry that waits longer than the window is charged to a window that is over.",
		Fix:     "Lower backoff.cap, or raise budget.window.",
	})
	quietClientFloor = newRule(report.Rule{
		ID: "FC105", Name: "quiet-client-floor", Standard: "R-7", Severity: warn, Waivable: true,
		Summary: "quiet clients may retry beyond the budget's share",
		Why:     "Each instance may make a few retries per window, whatever its traffic. In a large fleet they add up.",
		Fix:     "Set strict: true, share one budget with serve --fleet-budget or budget.Fleet, or state instances: N and accept the load by a waiver.",
	})
	strictContradicted = newRule(report.Rule{
		ID: "FC106", Name: "strict-contradicted", Standard: "R-7", Severity: fail, Waivable: true,
		Summary: "a strict policy loosens its own budget",
		Why:     "strict: true excludes the floor and the rounding that the same policy sets.",
		Fix:     "Drop one of the two.",
	})
	quietClientFloorHigh = newRule(report.Rule{
		ID: "FC107", Name: "quiet-client-floor-high", Standard: "R-7", Severity: fail, Waivable: true,
		Summary: "the floor for quiet clients is over 10 retries per window",
		Why:     "Such a floor is a second budget for each instance.",
		Fix:     "Set budget.min_retries to 10 or less, or share one budget among the instances.",
	})

	// FC2xx: counts, durations and backoff.
	retryCount = newRule(report.Rule{
		ID: "FC201", Name: "retry-count", Standard: "R-2", Severity: fail, Waivable: true,
		Summary: "a retry count is outside the range of its kind",
		Why:     "More retries hardly help, and they multiply the load of an outage.",
		Fix:     "Stay inside the range, or have a waiver signed with role: iab (the board that grants exceptions to the standard).",
	})
	totalDuration = newRule(report.Rule{
		ID: "FC202", Name: "total-duration", Standard: "R-3", Severity: fail, Waivable: true,
		Summary: "a call may last longer than its kind allows",
		Why:     "The caller has given up by then, and the work goes on.",
		Fix:     "Set total to 30s or less; to 24h or less for events and webhooks.",
	})
	backoffCap = newRule(report.Rule{
		ID: "FC203", Name: "backoff-cap", Standard: "R-1", Severity: fail, Waivable: true,
		Summary: "a wait may exceed 60 s",
		Why:     "No caller waits that long in memory.",
		Fix:     "Set backoff.cap to 60s or less.",
	})
	backoffBase = newRule(report.Rule{
		ID: "FC204", Name: "backoff-base", Standard: "R-1", Severity: fail, Waivable: true,
		Summary: "backoff.base is not below backoff.cap",
		Why:     "Waits that do not grow keep the load on a service that is down.",
		Fix:     "Set backoff.base below backoff.cap.",
	})
	jitter = newRule(report.Rule{
		ID: "FC205", Name: "jitter", Standard: "R-1", Severity: fail, Waivable: true,
		Summary: "waits lack the jitter that the standard asks for",
		Why:     "Clients that failed together come back together.",
		Fix:     "Use full jitter, the default, or decorrelated.",
	})
	schedule = newRule(report.Rule{
		ID: "FC206", Name: "schedule", Standard: "R-3", Severity: fail, Waivable: true,
		Summary: "a schedule does not increase, or is too short",
		Why:     "A receiver that is down for an hour should be called less and less often.",
		Fix:     "Use the default: 0s, 1s, 5s, 30s, 2m, 15m, 1h, 4h.",
	})
	timeoutsDoNotFit = newRule(report.Rule{
		ID: "FC207", Name: "timeouts-do-not-fit", Standard: "INTG-STD-035", Severity: fail,
		Summary: "one attempt may outlast the whole call",
		Why:     "An attempt that hangs uses up all the time, so no retry follows.",
		Fix:     "Set per_attempt below total divided by the attempts.",
	})
	worstCaseOverTotal = newRule(report.Rule{
		ID: "FC208", Name: "worst-case-over-total", Standard: "INTG-STD-035", Severity: warn,
		Summary: "all attempts and waits together exceed the total",
		Why:     "When attempts are slow, the last ones will not happen.",
		Fix:     "Lower per_attempt or the count, or raise total.",
	})
	totalMissing = newRule(report.Rule{
		ID: "FC209", Name: "total-missing", Standard: "R-3", Severity: fail, Waivable: true,
		Summary: "nothing bounds the whole call",
		Why:     "A count bounds the attempts but not the time.",
		Fix:     "Set a total of at most 30 s.",
	})
	callerGivesUpFirst = newRule(report.Rule{
		ID: "FC210", Name: "caller-gives-up-first", Standard: "INTG-STD-035", Severity: warn,
		Summary: "a caller's attempt ends before the callee's own retries may",
		Why:     "The callee goes on retrying for a caller that has already asked again.",
		Fix:     "Set the callee's total below the caller's per_attempt.",
	})
	routeGivesUpFirst = newRule(report.Rule{
		ID: "FC211", Name: "route-gives-up-first", Standard: "INTG-STD-035", Severity: warn,
		Summary: "a route's timeout ends a call before one attempt may end",
		Why:     "The route cuts off a slow attempt, so no retry follows.",
		Fix:     "Set the dependency's per_attempt below the route's timeout.",
	})
	retryAfterIgnored = newRule(report.Rule{
		ID: "FC212", Name: "retry-after-ignored", Standard: "R-5", Severity: fail, Waivable: true,
		Summary: "the setting that honors Retry-After is not used",
		Why:     "A server that asks for a pause is called again within milliseconds.",
		Fix:     "Set what makes the software wait for Retry-After, for as long as a call may last.",
	})

	// FC3xx: what may be repeated at all, at the client and at
	// the gateway.
	writeWithoutKey = newRule(report.Rule{
		ID: "FC301", Name: "write-without-key", Standard: "R-6", Severity: fail, Waivable: true,
		Summary: "writes may be repeated without an idempotency key, or the file does not say where keys come from",
		Why:     "A POST that timed out may have been carried out: repeating it without a key does it twice.",
		Fix:     "Set idempotency: reuse, generate or refuse.",
	})
	retryUnsent = newRule(report.Rule{
		ID: "FC302", Name: "retry-unsent", Standard: "R-6", Severity: fail, Waivable: true,
		Summary: "writes without a key are retried when they were not sent",
		Why:     "R-6 is strict: no key, no retry.",
		Fix:     "Drop retry_unsent, or have a waiver signed.",
	})
	keyLength = newRule(report.Rule{
		ID: "FC303", Name: "key-length", Standard: "R-6", Severity: fail, Waivable: true,
		Summary: "idempotency keys may be longer than 64 characters",
		Why:     "Servers may refuse longer keys or, worse, cut them.",
		Fix:     "Set max_length to 64 or less.",
	})
	keyRetention = newRule(report.Rule{
		ID: "FC304", Name: "key-retention", Standard: "R-6", Severity: fail, Waivable: true,
		Summary: "idempotency keys are forgotten within 24 hours",
		Why:     "A late repetition would run as new work.",
		Fix:     "Set retention to 24h or more.",
	})
	dedupWindow = newRule(report.Rule{
		ID: "FC305", Name: "dedup-window", Standard: "R-6", Severity: fail, Waivable: true,
		Summary: "a consumer remembers events for less than 7 days, or not at all",
		Why:     "Queues deliver twice, even days later.",
		Fix:     "Set dedup: 8d.",
	})
	nonRetryableRetried = newRule(report.Rule{
		ID: "FC306", Name: "non-retryable-retried", Standard: "R-4", Severity: fail, Waivable: true,
		Summary: "a permanent failure is retried",
		Why:     "The same request gets the same response: 400, 401, 403, 404, 409 and 422 do not go away.",
		Fix:     "Drop the override.",
	})
	ingressKeysShared = newRule(report.Rule{
		ID: "FC307", Name: "ingress-keys-shared", Standard: "R-6", Severity: warn, Waivable: true,
		Summary: "a route with idempotency keys treats all callers as one",
		Why:     "A caller who uses another caller's key gets that caller's stored response.",
		Fix:     "Set principal: {header: NAME} or {jwt: {keys: FILE}}, unless there is only one caller.",
	})
	ingressKeyOptional = newRule(report.Rule{
		ID: "FC308", Name: "ingress-key-optional", Standard: "R-6", Severity: warn, Waivable: true,
		Summary: "a route with idempotency keys accepts writes without one",
		Why:     "A write without a key that is repeated is done twice.",
		Fix:     "Drop required: false once all callers send keys.",
	})
	ingressRerunnable = newRule(report.Rule{
		ID: "FC309", Name: "ingress-rerunnable", Standard: "R-6", Severity: warn, Waivable: true,
		Summary: "a route repeats operations whose outcome is unknown",
		Why:     "The service may have done the work before it broke off; repeating it does it again.",
		Fix:     "Drop rerunnable unless doing it twice is harmless.",
	})
	declaredIdempotent = newRule(report.Rule{
		ID: "FC310", Name: "declared-idempotent", Standard: "R-6", Severity: warn, Waivable: true,
		Summary: "the file says that every operation may be repeated, so no write needs a key",
		Why:     "One operation that is not idempotent would be done twice.",
		Fix:     "Keep idempotent: true only where every operation is safe to repeat; otherwise set idempotency: reuse, generate or refuse.",
	})
	principalFromTheWire = newRule(report.Rule{
		ID: "FC311", Name: "principal-from-the-wire", Standard: "R-6", Severity: warn, Waivable: true,
		Summary: "a route with idempotency keys believes any peer about who the caller is",
		Why:     "A caller that sends the header itself gets other callers' stored responses.",
		Fix:     "List the authenticating proxies in gateway.trusted_proxies, or set principal: {jwt: {keys: FILE}}.",
	})
	ingressKeysMeet = newRule(report.Rule{
		ID: "FC312", Name: "ingress-keys-meet", Standard: "R-6", Severity: note,
		Summary: "two routes share their idempotency keys, so one key may mean two operations",
		Why:     "Keys are kept apart by caller, dependency, route (prefix and headers) and host, not by method or by the file of a gateway that shares the database. A caller may get 422, or the other service's response.",
		Fix:     "Rename one of the dependencies, or give each gateway its own database.",
	})
	unlistedRetried = newRule(report.Rule{
		ID: "FC313", Name: "unlisted-retried", Standard: "R-4", Severity: warn, Waivable: true,
		Summary: "a failure is retried that R-4 does not list",
		Why:     "What R-4 does not list counts as permanent: 501, INTERNAL or DATA_LOSS rarely go away, and the retry is load for nothing.",
		Fix:     "Leave it out, or have a waiver signed.",
	})

	// FC4xx: what happens to work that cannot be done.
	deadLetterMissing = newRule(report.Rule{
		ID: "FC401", Name: "dead-letter-missing", Standard: "R-8", Severity: fail, Waivable: true,
		Summary: "an async consumer or webhook has no dead-letter queue",
		Why:     "Failed work would be lost, or retried forever.",
		Fix:     "Set dead_letter: {queue: NAME, alert: NAME}.",
	})
	deadLetterAlertMissing = newRule(report.Rule{
		ID: "FC402", Name: "dead-letter-alert-missing", Standard: "R-8", Severity: fail, Waivable: true,
		Summary: "no one is alerted to dead letters",
		Why:     "Messages in a queue that no one watches are lost slowly.",
		Fix:     "Set dead_letter.alert.",
	})

	// FC5xx: what several layers or files come to together.
	ownerMissing = newRule(report.Rule{
		ID: "FC501", Name: "owner-missing", Severity: fail,
		Summary: "a dependency has no retry owner",
		Why:     "Without an owner every layer retries.",
		Fix:     "Set owner to the service that retries it.",
	})
	twoOwners = newRule(report.Rule{
		ID: "FC502", Name: "two-owners", Severity: fail,
		Summary: "two owners are named for one dependency, or two layers retry it",
		Why:     "The retries of two layers multiply.",
		Fix:     "Agree on one owner; turn the retries of the others off.",
	})
	callCycle = newRule(report.Rule{
		ID: "FC503", Name: "call-cycle", Severity: fail,
		Summary: "services call each other in a circle",
		Why:     "Retries around a circle multiply without bound.",
		Fix:     "Break the circle.",
	})
	amplificationLimit = newRule(report.Rule{
		ID: "FC504", Name: "amplification-limit", Severity: fail,
		Summary: "the worst-case amplification is over the given limit",
		Why:     "An outage would multiply the load that much.",
		Fix:     "Lower the counts or budgets along the path, or raise --max-amplification.",
	})
	durationLimit = newRule(report.Rule{
		ID: "FC505", Name: "duration-limit", Severity: fail,
		Summary: "a call may last longer than the given limit",
		Why:     "The limit is that of this run.",
		Fix:     "Lower total, or raise --max-duration.",
	})

	bodiesInMemory = newRule(report.Rule{
		ID: "FC506", Name: "bodies-in-memory", Severity: note,
		Summary: "long request bodies are kept in memory for a retry",
		Why:     "Each concurrent request adds to the memory. forbear serve limits the sum, and sends a body once if it does not fit.",
		Fix:     "Limit the concurrent requests, lower the limit of each body, or send long bodies in parts.",
	})

	// FC6xx: security and observability.
	tlsVerificationOff = newRule(report.Rule{
		ID: "FC601", Name: "tls-verification-off", Standard: "R-9", Severity: fail,
		Summary: "TLS verification is turned off",
		Why:     "Anyone on the path can read and change the traffic.",
		Fix:     "Turn it on, and fix the certificates.",
	})
	silent = newRule(report.Rule{
		ID: "FC602", Name: "silent", Standard: "R-10", Severity: fail, Waivable: true,
		Summary: "metrics or logs of retries are turned off",
		Why:     "No one would see a spent retry budget.",
		Fix:     "Turn them on.",
	})
	secretInClear = newRule(report.Rule{
		ID: "FC603", Name: "secret-in-clear", Standard: "R-9", Severity: fail,
		Summary: "a credential is in the file, or would be sent in clear",
		Why:     "Many people read policy files.",
		Fix:     "Refer to the environment, {env: NAME}, and fetch tokens over https.",
	})
	certificateRetried = newRule(report.Rule{
		ID: "FC604", Name: "certificate-retried", Standard: "R-9", Severity: fail,
		Summary: "a certificate error is made retryable",
		Why:     "It may be an attack, and a retry sends the request into it again.",
		Fix:     "Drop the override.",
	})

	// FC7xx: the circuit breaker (INTG-STD-033).
	breakerFloor = newRule(report.Rule{
		ID: "FC701", Name: "breaker-floor", Standard: "INTG-STD-033", Severity: fail, Waivable: true,
		Summary: "a circuit breaker is set below its floors",
		Why:     "A breaker that opens at every hiccup causes outages.",
		Fix:     "Use a failure_rate of at least 25% and an open_for of at least 5s.",
	})
	breakerOff = newRule(report.Rule{
		ID: "FC702", Name: "breaker-off", Standard: "INTG-STD-033", Severity: warn, Waivable: true,
		Summary: "the circuit breaker is turned off",
		Why:     "Calls continue to a dependency that is down.",
		Fix:     "Leave the breaker on.",
	})
	breakerSelfInflicted = newRule(report.Rule{
		ID: "FC703", Name: "breaker-self-inflicted", Standard: "INTG-STD-033", Severity: warn, Waivable: true,
		Summary: "the circuit breaker turns a partial failure into an outage",
		Why:     "When three attempts in ten fail, retries save half of the calls that would fail. A breaker that opens then fails nearly all of them.",
		Fix:     "Leave breaker.on_budget and breaker.failure_rate at their defaults; forbear sim curve partial --policy FILE#DEPENDENCY shows the difference.",
	})

	// FC8xx: what forbear serve would refuse.
	gatewayWithoutRoutes = newRule(report.Rule{
		ID: "FC801", Name: "gateway-without-routes", Severity: fail,
		Summary: "a gateway has no routes",
		Why:     "forbear serve refuses to start: there is nothing to serve.",
		Fix:     "Add gateway.routes, or drop the section gateway.",
	})
	routeOfTheDeliveryAPI = newRule(report.Rule{
		ID: "FC802", Name: "route-of-the-delivery-api", Severity: fail,
		Summary: "a route collides with the delivery API of forbear serve",
		Why:     "forbear serve refuses to start with it while it delivers. It is a warning if nothing in the file asks for deliveries.",
		Fix:     "Choose another prefix than /v1, or start serve with --api or --no-delivery.",
	})

	// FC9xx: the waivers themselves. None of these can be waived.
	waiverExpired = newRule(report.Rule{
		ID: "FC901", Name: "waiver-expired", Severity: fail,
		Summary: "a waiver has expired",
		Why:     "The exception was granted for a limited time.",
		Fix:     "Remove it, or have a new one signed.",
	})
	waiverUnmatched = newRule(report.Rule{
		ID: "FC902", Name: "waiver-unmatched", Severity: fail,
		Summary: "a waiver is for a dependency that the file does not have",
		Why:     "It would lift rules for the next dependency of that name.",
		Fix:     "Remove it, or correct the name.",
	})
	waiverUnused = newRule(report.Rule{
		ID: "FC903", Name: "waiver-unused", Severity: warn,
		Summary: "a waiver lifts nothing",
		Why:     "Needless exceptions hide those that are needed.",
		Fix:     "Remove it.",
	})
	waiverTooLong = newRule(report.Rule{
		ID: "FC904", Name: "waiver-too-long", Severity: fail,
		Summary: "a waiver lasts longer than 180 days, or has no start",
		Why:     "Exceptions must be reviewed at least twice a year.",
		Fix:     "Set created, and expires at most 180 days later.",
	})
	waiverIncomplete = newRule(report.Rule{
		ID: "FC905", Name: "waiver-incomplete", Severity: fail,
		Summary: "a waiver lacks id, owner, ticket or approval",
		Why:     "A reader must be able to ask who decided this, and why.",
		Fix:     "Add what is missing.",
	})
	waiverSelfApproved = newRule(report.Rule{
		ID: "FC906", Name: "waiver-self-approved", Severity: fail,
		Summary: "a waiver is approved by its own owner",
		Why:     "Two people must agree.",
		Fix:     "Have another person sign.",
	})
	waiverSignature = newRule(report.Rule{
		ID: "FC907", Name: "waiver-signature", Severity: fail,
		Summary: "a waiver's signature is missing, wrong or cannot be verified",
		Why:     "Anyone can write a name into a file.",
		Fix:     "Sign the output of forbear policy payload with ssh-keygen -Y sign, and give check --allowed-signers.",
	})
	waiverOfTheUnwaivable = newRule(report.Rule{
		ID: "FC908", Name: "waiver-of-the-unwaivable", Standard: "R-9", Severity: fail,
		Summary: "a waiver names a rule that cannot be waived",
		Why:     "Certificate checks are never negotiable.",
		Fix:     "Remove it.",
	})
	waiverNeedsBoard = newRule(report.Rule{
		ID: "FC909", Name: "waiver-needs-iab", Standard: "R-2", Severity: fail,
		Summary: "a count over its range needs an approval with role: iab",
		Why:     "The standard leaves such counts to a board for exceptions (the Integration Architecture Board, IAB).",
		Fix:     "Have it signed, with role: iab, by someone whom --allowed-signers lists for the namespace forbear-waiver-iab.",
	})
	waiverEndsSoon = newRule(report.Rule{
		ID: "FC910", Name: "waiver-ends-soon", Severity: warn,
		Summary: "a waiver ends within 14 days",
		Why:     "The findings that it lifts will then fail the gate.",
		Fix:     "Fix the cause, or have a new waiver signed.",
	})
	commentInvalid = newRule(report.Rule{
		ID: "FC911", Name: "comment-invalid", Severity: fail,
		Summary: "a forbear:ignore comment is invalid",
		Why:     "A comment without a reason and an end date stays forever.",
		Fix:     "Write # forbear:ignore FC301 until=2027-03-01 REASON, at most 180 days ahead; in a policy file, use a waiver.",
	})
	commentUnused = newRule(report.Rule{
		ID: "FC912", Name: "comment-unused", Severity: warn,
		Summary: "a forbear:ignore comment lifts nothing",
		Why:     "Needless comments hide those that are needed.",
		Fix:     "Remove it.",
	})
)
