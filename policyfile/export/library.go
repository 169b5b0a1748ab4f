package export

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
)

// maxAttempts is the most that gRPC's clients make of maxAttempts (gRFC A6).
const maxAttempts = 5

// grpc writes a service config for all methods. That gRPC writes do not carry a
// key, no field can change: it retries what was refused before it was done.
func grpc(w *writer, t *target) {
	method := map[string]any{"name": []any{map[string]any{}}, "timeout": seconds(t.p.Total)}
	config := map[string]any{"methodConfig": []any{method}}
	codes := slices.DeleteFunc(slices.Clone(t.codes), func(code string) bool {
		_, said := t.p.Classify["grpc_"+code]
		return code != "UNAVAILABLE" && !said
	})
	switch {
	case t.retries > 0 && len(codes) == 0:
		w.lose("R-4", "throttling, timeouts and resets share codes with other failures", "nothing is retried, since the policy does not retry UNAVAILABLE")
	case t.retries > 0:
		method["retryPolicy"] = map[string]any{
			"maxAttempts": min(t.retries+1, maxAttempts), "initialBackoff": seconds(t.p.Backoff.Base), "maxBackoff": seconds(t.p.Backoff.Cap),
			"backoffMultiplier": 2, "retryableStatusCodes": codes,
		}
		config["retryThrottling"] = map[string]any{"maxTokens": 10, "tokenRatio": max(math.Round(t.p.Budget.Ratio*1000)/1000, 0.001)} // no finer
		w.lose("R-1", "no full jitter: waits lie within 20 % of one time", "gRPC's own waits, around "+t.steps(min(t.retries, maxAttempts-1)))
		if t.retries+1 > maxAttempts {
			w.lose("R-2", "at most five attempts", "five")
		}
		w.lose("R-4", "throttling, timeouts and resets share codes with other failures", "only UNAVAILABLE is retried, and what the policy adds")
		w.lose("R-6", "idempotency keys are invisible, and all methods share a policy", "list the methods that may be repeated instead of all")
		w.lose("R-7", "no budget over 30 s", "retryThrottling: each success earns "+t.percent()+" % of a retry, from ten tokens")
		w.lose("R-9", "a refused certificate is UNAVAILABLE like any failed connection", "it is retried; the credentials of the channel verify it")
	}
	w.lose("R-3", "no timeout for one attempt that all clients support", "the timeout of the whole call")
	text, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		panic(err) // strings and numbers alone
	}
	w.line("%s", text)
}

// resilience4j writes the settings of Spring Boot's starter. Which failures are
// retried is a matter of exceptions there, which the application has to name.
func resilience4j(w *writer, t *target) {
	name := t.name
	if strings.ContainsFunc(name, func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9') }) {
		name = "[" + name + "]" // Spring takes other keys apart, or letters from them
	}
	name = scalar(name)
	w.line("resilience4j:")
	w.line("  retry:")
	w.line("    instances:")
	w.line("      %s:", name)
	w.line("        max-attempts: %d", t.retries+1)
	w.line("        wait-duration: %dms", t.p.Backoff.Base.Milliseconds())
	w.line("        enable-exponential-backoff: true")
	w.line("        exponential-backoff-multiplier: 2")
	w.line("        exponential-max-wait-duration: %dms", t.p.Backoff.Cap.Milliseconds())
	w.line("        enable-randomized-wait: true")
	w.line("        randomized-wait-factor: 0.99")
	w.line("        retry-exceptions:")
	for _, name := range brokenCalls {
		w.line("        - %s", name)
	}
	var written, dropped []int
	for _, status := range t.statuses {
		name := springErrors[status]
		if name == "" {
			dropped = append(dropped, status)
			continue
		}
		written = append(written, status)
		w.line("        - %s", springClient+name)
	}
	w.line("        ignore-exceptions: [javax.net.ssl.SSLException]")
	w.line("  timelimiter:")
	w.line("    instances:")
	w.line("      %s: {timeout-duration: %dms, cancel-running-future: true}", name, t.attempt.Milliseconds())
	r4jBreaker(w, t, name)
	if t.retries == 0 {
		return
	}
	w.lose("R-1", "waits vary around a time instead of between zero and it", "a randomized wait from 1 % to 199 % of "+t.steps(t.retries))
	w.lose("R-3", "nothing bounds a call and its retries together", "the time limiter of one attempt")
	w.lose("R-4", "statuses are exceptions of the HTTP client", "those of Spring's RestClient for "+cmp.Or(join(written, ", "), "none"))
	if len(dropped) > 0 {
		w.lose("R-4", "Spring has no exception for "+join(dropped, ", "), "these go to the caller")
	}
	w.lose("R-5", "Retry-After is not read", "an interval function of the application would")
	w.lose("R-6", "methods and keys are invisible", "use the instance only for calls that may be repeated")
	instead := "the circuit breaker ends long outages"
	if t.p.Breaker.Disabled {
		instead = "only the count bounds them"
	}
	w.lose("R-7", "no retry budget", instead)
	w.lose("R-9", "Spring hides a refused certificate in a ResourceAccessException", "it is retried; an SSLException by itself is not")
}

// brokenCalls are the exceptions for calls that had no response.
var brokenCalls = []string{
	"java.io.IOException", "java.util.concurrent.TimeoutException", "org.springframework.web.client.ResourceAccessException",
}

// r4jBreaker writes the circuit breaker: by the last calls, and not by the last minute.
func r4jBreaker(w *writer, t *target, name string) {
	b := t.p.Breaker
	if b.Disabled {
		return
	}
	w.line("  circuitbreaker:")
	w.line("    instances:")
	w.line("      %s:", name)
	w.line("        failure-rate-threshold: %s", percent(b.FailureRate))
	w.line("        slow-call-rate-threshold: %s", percent(b.SlowRate))
	w.line("        slow-call-duration-threshold: %dms", b.SlowCall.Milliseconds())
	w.line("        sliding-window-size: %d", b.Window)
	w.line("        minimum-number-of-calls: %d", b.MinCalls)
	w.line("        permitted-number-of-calls-in-half-open-state: %d", b.Probes)
	w.line("        wait-duration-in-open-state: %dms", b.OpenFor.Milliseconds())
	// By default every exception counts, and 404 is one.
	w.line("        record-exceptions:")
	for _, name := range append(slices.Clone(brokenCalls), springClient+"HttpServerErrorException", springClient+springErrors[429]) {
		w.line("        - %s", name)
	}
}

const springClient = "org.springframework.web.client."

// springErrors are the exceptions by which Spring's clients tell one status from
// others.
var springErrors = map[int]string{
	400: "HttpClientErrorException.BadRequest", 401: "HttpClientErrorException.Unauthorized", 403: "HttpClientErrorException.Forbidden",
	404: "HttpClientErrorException.NotFound", 405: "HttpClientErrorException.MethodNotAllowed", 406: "HttpClientErrorException.NotAcceptable",
	409: "HttpClientErrorException.Conflict", 410: "HttpClientErrorException.Gone", 415: "HttpClientErrorException.UnsupportedMediaType",
	429: "HttpClientErrorException.TooManyRequests", 500: "HttpServerErrorException.InternalServerError", 501: "HttpServerErrorException.NotImplemented",
	502: "HttpServerErrorException.BadGateway", 503: "HttpServerErrorException.ServiceUnavailable", 504: "HttpServerErrorException.GatewayTimeout",
}
