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
		Why:     "A gate that is silent about what it did not understand would be trusted too far.",
		Fix:     "Judge it by hand.",
	})

	beyondTheProduct = newRule(report.Rule{
		ID: "FC002", Name: "beyond-the-product", Severity: note, Waivable: true,
		Summary: "the software cannot hold a rule, whatever its file says",
		Why:     "What a product has no setting for cannot be mended in its file, and holds for each of its retries.",
		Fix:     "Put forbear's gateway behind it and switch its retries off, switch them off alone, or have a waiver signed.",
	})

	unreadSetting = newRule(report.Rule{
		ID: "FC003", Name: "unread-setting", Severity: warn,
		Summary: "a file that is judged has a setting for retries of something else",
		Why:     "It may retry whatever it likes: nothing here reads it.",
		Fix:     "Judge it by hand; the settings may then switch this off for the file.",
	})

	deprecatedKey = newRule(report.Rule{
		ID: "FC004", Name: "deprecated-key", Severity: warn,
		Summary: "a key stands in the file under a former name",
		Why:     "A later version refuses the former name, and then the whole file.",
		Fix:     "Write the new name: it means the same.",
	})

	// FC1xx: the retry budget.
	retryBudgetMissing = newRule(report.Rule{
		ID: "FC101", Name: "retry-budget-missing", Standard: "R-7", Severity: fail, Waivable: true,
		Summary: "a dependency has no retry budget",
		Why:     "Without a budget every failed call is sent again, several times, to a dependency that already cannot keep up.",
		Fix:     "Set budget: {ratio: 20%, window: 30s}, or less.",
	})
	retryBudgetTooLarge = newRule(report.Rule{
		ID: "FC102", Name: "retry-budget-too-large", Standard: "R-7", Severity: fail, Waivable: true,
		Summary: "a retry budget is over 20 %",
		Why:     "At 20 % an outage costs the dependency a fifth more load; that much it can be asked to bear.",
		Fix:     "Set budget.ratio to 20% or less.",
	})
	retryBudgetWindow = newRule(report.Rule{
		ID: "FC103", Name: "retry-budget-window", Standard: "R-7", Severity: warn, Waivable: true,
		Summary: "a budget's window is not 30 s",
		Why:     "A longer window saves up retries and spends them in one burst; a shorter one forgets too fast. A longer window with a share that is smaller in proportion is fine.",
		Fix:     "Set budget.window to 30s, or lower budget.ratio in proportion.",
	})
	retryBudgetOutlived = newRule(report.Rule{
		ID: "FC104", Name: "retry-budget-outlived", Standard: "R-7", Severity: fail, Waivable: true,
		Summary: "waits outlive the budget's window",
		Why:     "A retry that waits longer than the window is charged to a window that has ended.",
		Fix:     "Lower backoff.cap, or widen budget.window.",
	})
	quietClientFloor = newRule(report.Rule{
		ID: "FC105", Name: "quiet-client-floor", Standard: "R-7", Severity: warn, Waivable: true,
		Summary: "quiet clients may retry beyond the budget's share",
		Why:     "A few retries for each window are allowed whatever the traffic. Over a large fleet they add up.",
		Fix:     "Write strict: true, share one floor with --fleet-budget or budget.Fleet, or say instances: N and accept the load.",
	})
	strictContradicted = newRule(report.Rule{
		ID: "FC106", Name: "strict-contradicted", Standard: "R-7", Severity: fail, Waivable: true,
		Summary: "a strict policy softens its own budget",
		Why:     "strict: true takes away the floor and the rounding that the same policy asks for.",
		Fix:     "Drop one of the two.",
	})
	quietClientFloorHigh = newRule(report.Rule{
		ID: "FC107", Name: "quiet-client-floor-high", Standard: "R-7", Severity: fail, Waivable: true,
		Summary: "the floor for quiet clients is over 10 retries in a window",
		Why:     "A high floor is a budget of its own, for each instance, whatever the share says.",
		Fix:     "Set budget.min_retries to 10 or less, or share one budget among the instances.",
	})

	// FC2xx: counts, durations and backoff.
	retryCount = newRule(report.Rule{
		ID: "FC201", Name: "retry-count", Standard: "R-2", Severity: fail, Waivable: true,
		Summary: "a retry count is outside the range of its kind",
		Why:     "More retries hardly help and multiply the load of an outage.",
		Fix:     "Stay inside the range, or have a waiver signed by the board that your standard names for exceptions (role: iab).",
	})
	totalDuration = newRule(report.Rule{
		ID: "FC202", Name: "total-duration", Standard: "R-3", Severity: fail, Waivable: true,
		Summary: "a call may last longer than its kind allows",
		Why:     "The result comes too late to be of use, and the work goes on all the same.",
		Fix:     "Set total to 30s or less; to 24h or less for events and webhooks.",
	})
	backoffCap = newRule(report.Rule{
		ID: "FC203", Name: "backoff-cap", Standard: "R-1", Severity: fail, Waivable: true,
		Summary: "a wait may exceed 60 s",
		Why:     "No caller waits in memory for so long.",
		Fix:     "Set backoff.cap to 60s or less.",
	})
	backoffBase = newRule(report.Rule{
		ID: "FC204", Name: "backoff-base", Standard: "R-1", Severity: fail, Waivable: true,
		Summary: "the base of the backoff is not under its cap",
		Why:     "Waits that do not grow by a factor keep up the load on a service that is down.",
		Fix:     "Set backoff.base below backoff.cap.",
	})
	jitter = newRule(report.Rule{
		ID: "FC205", Name: "jitter", Standard: "R-1", Severity: fail, Waivable: true,
		Summary: "waits are not jittered as the standard asks",
		Why:     "Callers that failed together come back together.",
		Fix:     "Use full jitter, the default, or decorrelated.",
	})
	schedule = newRule(report.Rule{
		ID: "FC206", Name: "schedule", Standard: "R-3", Severity: fail, Waivable: true,
		Summary: "a schedule does not increase, or is too short",
		Why:     "A receiver that is down for an hour is to be asked less often, not at a steady pace.",
		Fix:     "Use the default: 0s, 1s, 5s, 30s, 2m, 15m, 1h, 4h.",
	})
	timeoutsDoNotFit = newRule(report.Rule{
		ID: "FC207", Name: "timeouts-do-not-fit", Standard: "INTG-STD-035", Severity: fail,
		Summary: "one attempt may outlast the whole call",
		Why:     "An attempt that hangs takes all of the time, and no retry follows it, whatever the policy says.",
		Fix:     "Set per_attempt below total / attempts.",
	})
	worstCaseOverTotal = newRule(report.Rule{
		ID: "FC208", Name: "worst-case-over-total", Standard: "INTG-STD-035", Severity: warn,
		Summary: "all attempts and waits together exceed the total",
		Why:     "The total is hard, so the last attempts will not happen when attempts are slow.",
		Fix:     "Lower per_attempt or the count, or raise total.",
	})
	totalMissing = newRule(report.Rule{
		ID: "FC209", Name: "total-missing", Standard: "R-3", Severity: fail, Waivable: true,
		Summary: "nothing bounds the whole call",
		Why:     "A count bounds the attempts, and not the time.",
		Fix:     "Set a total of at most 30 s.",
	})
	callerGivesUpFirst = newRule(report.Rule{
		ID: "FC210", Name: "caller-gives-up-first", Standard: "INTG-STD-035", Severity: warn,
		Summary: "a caller's attempt ends before the callee's own retries may",
		Why:     "The callee goes on retrying to no purpose, while the caller asks again.",
		Fix:     "Lower the callee's total below the caller's per_attempt.",
	})
	routeGivesUpFirst = newRule(report.Rule{
		ID: "FC211", Name: "route-gives-up-first", Standard: "INTG-STD-035", Severity: warn,
		Summary: "a route's timeout ends a call before one attempt may end",
		Why:     "An attempt that takes its time is cut off by the route, and no retry follows it, whatever the policy says.",
		Fix:     "Set the dependency's per_attempt below the route's timeout, so that a retry has time.",
	})
	retryAfterIgnored = newRule(report.Rule{
		ID: "FC212", Name: "retry-after-ignored", Standard: "R-5", Severity: fail, Waivable: true,
		Summary: "a setting by which Retry-After is heeded is not used",
		Why:     "A server that asks for a pause is asked again within milliseconds.",
		Fix:     "Set what makes the software wait for Retry-After, for as long as a call may last.",
	})

	// FC3xx: what may be repeated at all, at the client and at
	// the gateway.
	writeWithoutKey = newRule(report.Rule{
		ID: "FC301", Name: "write-without-key", Standard: "R-6", Severity: fail, Waivable: true,
		Summary: "writes may be repeated without an idempotency key, or the file does not say who brings one",
		Why:     "A POST that timed out may have been done: a repetition without a key does it twice.",
		Fix:     "Write idempotency: reuse, generate or refuse.",
	})
	retryUnsent = newRule(report.Rule{
		ID: "FC302", Name: "retry-unsent", Standard: "R-6", Severity: fail, Waivable: true,
		Summary: "unkeyed writes are retried when they were certainly not sent",
		Why:     "R-6 is strict: no key, no retry.",
		Fix:     "Drop retry_unsent, or have it waived.",
	})
	keyLength = newRule(report.Rule{
		ID: "FC303", Name: "key-length", Standard: "R-6", Severity: fail, Waivable: true,
		Summary: "idempotency keys may be longer than 64 characters",
		Why:     "Servers may refuse, or worse, cut longer keys.",
		Fix:     "Set max_length to 64 or less.",
	})
	keyRetention = newRule(report.Rule{
		ID: "FC304", Name: "key-retention", Standard: "R-6", Severity: fail, Waivable: true,
		Summary: "idempotency keys are forgotten within 24 hours",
		Why:     "A late repetition would be done as new work.",
		Fix:     "Set retention to 24h or more.",
	})
	dedupWindow = newRule(report.Rule{
		ID: "FC305", Name: "dedup-window", Standard: "R-6", Severity: fail, Waivable: true,
		Summary: "a consumer remembers events for less than 7 days, or not at all",
		Why:     "Queues deliver twice, also after days.",
		Fix:     "Set dedup: 8d.",
	})
	nonRetryableRetried = newRule(report.Rule{
		ID: "FC306", Name: "non-retryable-retried", Standard: "R-4", Severity: fail, Waivable: true,
		Summary: "a failure that repeats itself is retried",
		Why:     "The same request gets the same response: 400, 401, 403, 404, 409 and 422 do not go away.",
		Fix:     "Drop the override.",
	})
	ingressKeysShared = newRule(report.Rule{
		ID: "FC307", Name: "ingress-keys-shared", Standard: "R-6", Severity: warn, Waivable: true,
		Summary: "a route with idempotency keys takes all callers for one",
		Why:     "A caller who uses another's key gets that caller's stored response.",
		Fix:     "Set principal: {header: NAME} or {jwt: {keys: FILE}}, unless there is one caller.",
	})
	ingressKeyOptional = newRule(report.Rule{
		ID: "FC308", Name: "ingress-key-optional", Standard: "R-6", Severity: warn, Waivable: true,
		Summary: "a route with idempotency keys lets writes pass without one",
		Why:     "A write without a key that is repeated is done twice.",
		Fix:     "Drop required: false when all callers send keys.",
	})
	ingressRerunnable = newRule(report.Rule{
		ID: "FC309", Name: "ingress-rerunnable", Standard: "R-6", Severity: warn, Waivable: true,
		Summary: "a route repeats operations whose outcome is unknown",
		Why:     "The service may have done the work before it broke off; a repetition does it again.",
		Fix:     "Drop rerunnable unless doing it twice is harmless.",
	})
	declaredIdempotent = newRule(report.Rule{
		ID: "FC310", Name: "declared-idempotent", Standard: "R-6", Severity: warn, Waivable: true,
		Summary: "the file says that every operation may be repeated as it is, so that no write needs a key",
		Why:     "R-6 allows it for what is idempotent by nature. One operation that is not is done twice.",
		Fix:     "Keep idempotent: true only where every operation is safe to repeat; otherwise write idempotency: reuse, generate or refuse.",
	})
	principalFromTheWire = newRule(report.Rule{
		ID: "FC311", Name: "principal-from-the-wire", Standard: "R-6", Severity: warn, Waivable: true,
		Summary: "a route with idempotency keys believes any peer who the caller is",
		Why:     "A caller that sends the header itself gets the stored responses of any other.",
		Fix:     "Name the authenticating proxies in gateway.trusted_proxies, or set principal: {jwt: {keys: FILE}}.",
	})
	ingressKeysMeet = newRule(report.Rule{
		ID: "FC312", Name: "ingress-keys-meet", Standard: "R-6", Severity: note,
		Summary: "one idempotency key may mean two operations: two routes with keys are one place",
		Why:     "A key is valid for one caller, dependency, route (prefix and headers) and host. Methods do not tell places apart, nor do files whose gateways share a database: a caller gets 422, or the other service's response.",
		Fix:     "Give one of the dependencies another name, or use a database for each gateway.",
	})

	// FC4xx: what happens to work that cannot be done.
	deadLetterMissing = newRule(report.Rule{
		ID: "FC401", Name: "dead-letter-missing", Standard: "R-8", Severity: fail, Waivable: true,
		Summary: "an async consumer or webhook has no dead-letter queue",
		Why:     "What cannot be done would be lost, or retried for ever.",
		Fix:     "Set dead_letter: {queue: NAME, alert: NAME}.",
	})
	deadLetterAlertMissing = newRule(report.Rule{
		ID: "FC402", Name: "dead-letter-alert-missing", Standard: "R-8", Severity: fail, Waivable: true,
		Summary: "no one is alerted to dead letters",
		Why:     "A dead-letter queue that no one looks at is a slow way to lose messages.",
		Fix:     "Set dead_letter.alert.",
	})

	// FC5xx: what several layers or files come to together.
	ownerMissing = newRule(report.Rule{
		ID: "FC501", Name: "owner-missing", Severity: fail,
		Summary: "a dependency has no retry owner",
		Why:     "Where no service owns the retries, every layer retries.",
		Fix:     "Set owner to the service that retries it.",
	})
	twoOwners = newRule(report.Rule{
		ID: "FC502", Name: "two-owners", Severity: fail,
		Summary: "two owners are named for one dependency, or two layers retry it",
		Why:     "Two layers that both retry multiply.",
		Fix:     "Agree on one owner; the others do not retry.",
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
		Why:     "That is the load which an outage would add to.",
		Fix:     "Lower the counts or the budgets along the path.",
	})
	durationLimit = newRule(report.Rule{
		ID: "FC505", Name: "duration-limit", Severity: fail,
		Summary: "a call may last longer than the given limit",
		Why:     "The limit was set for this run.",
		Fix:     "Lower total.",
	})

	// FC6xx: security and observability.
	tlsVerificationOff = newRule(report.Rule{
		ID: "FC601", Name: "tls-verification-off", Standard: "R-9", Severity: fail,
		Summary: "TLS verification is switched off",
		Why:     "Anyone on the way may read and change what is sent.",
		Fix:     "Remove it, and fix the certificates.",
	})
	silent = newRule(report.Rule{
		ID: "FC602", Name: "silent", Standard: "R-10", Severity: fail, Waivable: true,
		Summary: "metrics or logs of retries are switched off",
		Why:     "A retry budget that no one observes is half a control.",
		Fix:     "Switch them on.",
	})
	secretInClear = newRule(report.Rule{
		ID: "FC603", Name: "secret-in-clear", Standard: "R-9", Severity: fail,
		Summary: "a credential is written in the file, or would be sent in clear",
		Why:     "Policy files are read by many.",
		Fix:     "Refer to the environment: {env: NAME}; a token is had over https.",
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
		Why:     "A breaker that opens at every hiccup is an outage of its own.",
		Fix:     "Stay at 25% and 5s or more.",
	})
	breakerOff = newRule(report.Rule{
		ID: "FC702", Name: "breaker-off", Standard: "INTG-STD-033", Severity: warn, Waivable: true,
		Summary: "the circuit breaker is switched off",
		Why:     "Calls go on into a dependency that is down.",
		Fix:     "Leave the breaker on.",
	})
	breakerSelfInflicted = newRule(report.Rule{
		ID: "FC703", Name: "breaker-self-inflicted", Standard: "INTG-STD-033", Severity: warn, Waivable: true,
		Summary: "the circuit breaker makes an outage of a partial failure",
		Why:     "When a dependency fails three attempts in ten, retries save half of the calls that would fail. A breaker that opens then fails nearly all calls.",
		Fix:     "Leave breaker.on_budget and breaker.failure_rate at their defaults; forbear sim curve partial --policy FILE#DEPENDENCY shows the difference.",
	})

	// FC8xx: what forbear serve would refuse.
	gatewayWithoutRoutes = newRule(report.Rule{
		ID: "FC801", Name: "gateway-without-routes", Severity: fail,
		Summary: "a gateway has no routes",
		Why:     "forbear serve refuses to start with it: there is nothing to serve.",
		Fix:     "Add gateway.routes, or drop the section gateway.",
	})
	routeOfTheDeliveryAPI = newRule(report.Rule{
		ID: "FC802", Name: "route-of-the-delivery-api", Severity: fail,
		Summary: "a route is where forbear serve has the API of its deliveries",
		Why:     "forbear serve refuses to start with it while it delivers: one of the two would hide the other. It is a warning where nothing in the file asks for deliveries.",
		Fix:     "Choose another prefix than /v1, or start serve with --api or --no-delivery.",
	})

	// FC9xx: the waivers themselves. None of these can be waived.
	waiverExpired = newRule(report.Rule{
		ID: "FC901", Name: "waiver-expired", Severity: fail,
		Summary: "a waiver has expired",
		Why:     "The exception was for a time, and that is over.",
		Fix:     "Remove it, or have a new one signed.",
	})
	waiverUnmatched = newRule(report.Rule{
		ID: "FC902", Name: "waiver-unmatched", Severity: fail,
		Summary: "a waiver is for a dependency that the file does not have",
		Why:     "It waits for the next dependency of that name.",
		Fix:     "Remove it, or correct the name.",
	})
	waiverUnused = newRule(report.Rule{
		ID: "FC903", Name: "waiver-unused", Severity: warn,
		Summary: "a waiver lifts nothing",
		Why:     "Exceptions that are not needed hide those that are.",
		Fix:     "Remove it.",
	})
	waiverTooLong = newRule(report.Rule{
		ID: "FC904", Name: "waiver-too-long", Severity: fail,
		Summary: "a waiver lasts longer than 180 days, or does not say since when",
		Why:     "Exceptions are looked at twice a year, at least.",
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
		Why:     "Four eyes see more than two.",
		Fix:     "Have another person sign.",
	})
	waiverSignature = newRule(report.Rule{
		ID: "FC907", Name: "waiver-signature", Severity: fail,
		Summary: "a waiver's signature is missing, wrong or cannot be verified",
		Why:     "Anyone can write a name into a file.",
		Fix:     "Sign what forbear policy payload prints, with ssh-keygen -Y sign, and give check --allowed-signers.",
	})
	waiverOfTheUnwaivable = newRule(report.Rule{
		ID: "FC908", Name: "waiver-of-the-unwaivable", Standard: "R-9", Severity: fail,
		Summary: "a waiver names a rule that cannot be waived",
		Why:     "Certificates are never negotiable.",
		Fix:     "Remove it.",
	})
	waiverNeedsBoard = newRule(report.Rule{
		ID: "FC909", Name: "waiver-needs-iab", Standard: "R-2", Severity: fail,
		Summary: "a count over its range needs the architecture board's approval",
		Why:     "R-2 reserves that to a board, the Integration Architecture Board (IAB) of the standard: those whom --allowed-signers lists for the namespace forbear-waiver-iab.",
		Fix:     "Have someone sign it, with role: iab, whom --allowed-signers lists for the namespace forbear-waiver-iab.",
	})
	waiverEndsSoon = newRule(report.Rule{
		ID: "FC910", Name: "waiver-ends-soon", Severity: warn,
		Summary: "a waiver ends within 14 days",
		Why:     "What it lifts will fail the gate on that day.",
		Fix:     "Fix the cause, or have a new one signed.",
	})
	commentInvalid = newRule(report.Rule{
		ID: "FC911", Name: "comment-invalid", Severity: fail,
		Summary: "a comment that is to lift a finding cannot",
		Why:     "A comment without a reason and an end is one that no one will ever remove.",
		Fix:     "Write # forbear:ignore FC301 until=2027-03-01 REASON, at most 180 days ahead; in a policy file, have a waiver signed.",
	})
	commentUnused = newRule(report.Rule{
		ID: "FC912", Name: "comment-unused", Severity: warn,
		Summary: "a comment lifts nothing",
		Why:     "What is not needed hides what is.",
		Fix:     "Remove it.",
	})
)
