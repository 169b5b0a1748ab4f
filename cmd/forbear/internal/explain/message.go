package explain

import (
	"regexp"
	"strings"
)

var (
	// named is how a message names the word that says more of it.
	named = regexp.MustCompile(`forbear explain ([a-zA-Z][\w-]*)`)
	// logged is a line of the log, or a member of a problem.
	logged = regexp.MustCompile(`\breason"?[=:] ?"?([a-z0-9_]+)`)
	// coded is a finding, as reports have it.
	coded = regexp.MustCompile(`\bF[BC]\d{3,4}\b`)
	// ruled is a rule of the standard, as errors have it.
	ruled = regexp.MustCompile(`\bR-\d+\b`)
	// apart is what stands between the words of a message.
	apart = regexp.MustCompile(`[^a-z0-9]+`)
)

// phrases are what errors say, underscored, and the reasons that they are of. A phrase
// that others begin with comes behind these.
var phrases = []struct{ says, reason string }{
	{"retries_exhausted_this_call_may_have_none", "disabled"},
	{"retries_exhausted_a_name_that_does_not_resolve", "dns_limit"},
	{"retries_exhausted", "exhausted"},
	{"no_time_left_for_another_attempt_the_server_asked", "after_exceeds_deadline"},
	{"no_time_left_for_another_attempt", "deadline"},
	{"not_retryable_unknown_error", "unknown_error"},
	{"may_come_after_the_work_was_done", "unknown_error"},
	{"not_retryable_the_credentials_were_refused", "unauthorized"},
	{"not_retryable", "terminal"},
	{"not_safe_to_send_again_send_an_idempotency_key", "no_idempotency_key"},
	{"not_safe_to_send_again", "not_replayable"},
	{"another_layer_owns_the_retries_the_policy_s_owner", "not_owner"},
	{"another_layer_owns_the_retries", "inner_layer"},
	{"a_layer_above_retries", "inner_layer"},
	{"a_layer_below_has_used_its_retries", "exhausted_below"},
	{"retry_budget_exhausted", "budget_exhausted"},
	{"circuit_breaker_open", "breaker_open"},
	{"dependency_unhealthy", "unhealthy"},
	{"canceled_by_the_caller", "canceled"},
	{"certificate_refused", "tls_certificate"},
	{"the_server_asked_not_to_be_retried", "server_said_stop"},
	{"too_many_calls_under_way", "bulkhead_full"},
	{"no_turn_in_time_under", "paced"},
	{"credentials_could_not_be_refreshed", "refresh_failed"},
	{"a_weaker_credential_or_none", "weaker_credential"},
	{"msg_retry_correlation_id", "retryable"},
	{"warn_retry_correlation_id", "retryable"},
}

// inside returns the word that a whole message is about, such as an error or a line of a
// log: the one that it names, the reason that it is logged with, the finding, or the reason
// whose words it has. It is "" where there is none.
func inside(message string) string {
	for _, pattern := range []*regexp.Regexp{named, logged} {
		if m := pattern.FindStringSubmatch(message); m != nil {
			return m[1]
		}
	}
	if code := coded.FindString(message); code != "" {
		return code
	}
	text := "_" + apart.ReplaceAllString(strings.ToLower(message), "_") + "_"
	for _, p := range phrases {
		if strings.Contains(text, "_"+p.says+"_") {
			return p.reason
		}
	}
	return ruled.FindString(message)
}
