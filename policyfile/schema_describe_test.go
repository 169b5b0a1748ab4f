package policyfile

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear"
)

// descriptions explain the keys, by their paths in the file. The user's own names are *, an item of a list is [], and the paths of
// a dependency begin with "dependency": consumers, webhooks and profiles share them.
var descriptions = map[string]string{
	"$schema":               "address of this schema, for editors",
	"service":               "the service that makes the calls",
	"instances":             "number of instances of the service, for check",
	"idempotency":           "what the service itself promises about idempotency keys",
	"observability":         "what the service shows of its retries; everything by default (R-10)",
	"observability.metrics": "false turns metrics off, which R-10 forbids",
	"observability.logs":    "false turns logs off, which R-10 forbids",
	"profiles":              "named policies, for dependencies to extend",
	"dependencies":          "what the service calls, by name",
	"consumers":             "queues that the service reads, by name",
	"webhooks":              "endpoints that the service sends webhooks to, by name",
	"waivers":               "signed exceptions from rules, each with an end date",
	"gateway":               "addresses and routes of forbear serve",
	"lint":                  "hints for forbear lint about the service's code",

	"keys.max_length": "longest idempotency key accepted, in bytes",
	"keys.retention":  "how long a key is remembered, such as 48h (R-6)",

	"dependency.kind":           "sort of call; sets defaults and ranges (R-2, R-3)",
	"dependency.disabled":       "true allows no retry",
	"dependency.strict":         "true drops budget.min_retries: quiet clients get no extra retries",
	"dependency.max_retries":    "retries after the first attempt (R-2); not for webhooks",
	"dependency.max_attempts":   "attempts, the first included; only for webhooks",
	"dependency.total":          "limit for the whole call, waits included (R-3)",
	"dependency.per_attempt":    "limit for one attempt",
	"dependency.connect":        "limit for making a connection",
	"dependency.min_attempt":    "no attempt starts with less time left",
	"dependency.max_concurrent": "limit of concurrent calls; none by default",
	"dependency.idempotency":    "writes are retried with the caller's key, a generated key, or never (R-6)",
	"dependency.retry_unsent":   "true retries a write without a key if it was not sent; needs a waiver of R-6",
	"dependency.owner":          "the only service that may retry this dependency",
	"dependency.other_layers":   "what the layers around the owner do; a note for readers",
	"dependency.service":        "service behind it, if named differently; links the files of several services",
	"dependency.protocol":       "protocol, such as http, grpc or amqp; a note for readers",
	"dependency.methods":        "methods used; all by default",
	"dependency.dedup":          "how long a consumer remembers events, such as 8d (R-6)",
	"dependency.http2":          "auto: by TLS handshake",
	"dependency.classify":       "class of an error, such as http_404, or of a group, such as http_5xx (R-4)",
	"dependency.wait_headers":   "further headers that ask for a wait, each with its format",

	"dependency.backoff":               "waits between attempts (R-1)",
	"dependency.backoff.base":          "upper bound of the first wait; it doubles with each retry",
	"dependency.backoff.cap":           "upper bound of every wait",
	"dependency.backoff.jitter":        "full: from zero to the bound; decorrelated: from base to three times the last wait",
	"dependency.backoff.schedule":      "wait before each attempt, the first included; replaces base and cap",
	"dependency.budget":                "limits retries to a share of the requests (R-7)",
	"dependency.budget.ratio":          "retries as a share of the requests, at most 20%",
	"dependency.budget.of":             "share of initial requests, or of all requests sent",
	"dependency.budget.window":         "time over which requests and retries are counted",
	"dependency.budget.min_retries":    "retries per window that a quiet client always has; more than 10 need a waiver",
	"dependency.budget.max_multiplier": "alternative to ratio: 1.2 lets retries add 20 %",
	"dependency.budget.round_up":       "true rounds the allowed retries up, so one more may be sent",

	"dependency.breaker":                   "circuit breaker: stops calls while the dependency fails",
	"dependency.breaker.disabled":          "true turns the breaker off",
	"dependency.health":                    "stops retries while the dependency is unhealthy",
	"dependency.keys":                      "what the dependency promises about idempotency keys",
	"dependency.dead_letter":               "where messages go that used up their attempts (R-8)",
	"dependency.dead_letter.queue":         "queue of the dead letters",
	"dependency.dead_letter.alert":         "who is alerted",
	"dependency.credentials":               "what the gateway sends if the caller sends no Authorization",
	"dependency.credentials.secret":        "place of a whole Authorization value; never the value itself",
	"dependency.credentials.client_id":     "client id for token_url",
	"dependency.credentials.client_secret": "place of the client secret; never the secret itself",
	"dependency.credentials.scopes":        "scopes to request",
	"dependency.credentials.override":      "true also replaces what callers send",
	"dependency.tls":                       "certificates and TLS versions, for https",

	"waivers[].id":                    "name of the waiver",
	"waivers[].rule":                  "rule that it lifts",
	"waivers[].dependency":            "dependency that it applies to",
	"waivers[].code":                  "source files that it applies to, for forbear lint",
	"waivers[].files":                 "files of other software that it applies to",
	"waivers[].lifts":                 "values of other software that it allows, such as max_retries 7",
	"waivers[].reason":                "why the rule cannot be kept",
	"waivers[].owner":                 "who requests it; cannot approve it",
	"waivers[].ticket":                "where it was discussed",
	"waivers[].created":               "first of its 180 days",
	"waivers[].expires":               "last day, or an RFC 3339 time; at most 180 days after created",
	"waivers[].approvals":             "who approved it, each with a signature",
	"waivers[].approvals[].by":        "approver, as in the file of allowed signers",
	"waivers[].approvals[].role":      "iab: the board that grants exceptions to the standard",
	"waivers[].approvals[].signature": "output of ssh-keygen -Y sign for forbear policy payload",

	"gateway.tls":                     "the gateway's own certificate; without it the port speaks plain HTTP",
	"gateway.trusted_proxies":         "proxies whose forwarded headers are believed",
	"gateway.routes":                  "which requests go to which dependency; the most specific route wins",
	"gateway.routes[].prefix":         "path, with all below it",
	"gateway.routes[].host":           "host; any by default",
	"gateway.routes[].keep_prefix":    "true forwards the prefix too, as gRPC needs",
	"gateway.routes[].methods":        "methods; all by default",
	"gateway.routes[].headers":        "headers that a request must have, with values",
	"gateway.routes[].dependency":     "dependency that requests go to",
	"gateway.routes[].timeout":        "limit for a call and its whole response; only the policy's by default",
	"gateway.routes[].max_body":       "longest request body, such as 1MiB",
	"gateway.routes[].body_limit":     "bytes of a request body to keep for a retry, at most 64MiB; 64KiB by default",
	"gateway.routes[].max_concurrent": "limit of concurrent requests of the route",
	"gateway.routes[].stream":         "true: bodies are streams, which may pause for any time",

	"gateway.routes[].idempotency.retention":    "how long responses are kept; 48h by default, at least 24h (R-6)",
	"gateway.routes[].idempotency.wait":         "how long a duplicate waits for the first response; 5s by default",
	"gateway.routes[].idempotency.timeout":      "limit for the service's whole response; 30s by default",
	"gateway.routes[].idempotency.max_request":  "longest request body; 1MiB by default",
	"gateway.routes[].idempotency.max_response": "longest response that is stored; 1MiB by default",
	"gateway.routes[].idempotency.rerunnable":   "true allows repeating an operation whose outcome is unknown",

	"gateway.routes[].idempotency.principal.header":       "header set by an authenticating proxy",
	"gateway.routes[].idempotency.principal.jwt":          "caller from a claim of a bearer token, whose signature is verified",
	"gateway.routes[].idempotency.principal.jwt.claim":    "claim that names the caller; sub by default",
	"gateway.routes[].idempotency.principal.jwt.keys":     "file with the public keys: PEM, or a JSON Web Key Set",
	"gateway.routes[].idempotency.principal.jwt.issuer":   "required issuer",
	"gateway.routes[].idempotency.principal.jwt.audience": "required audience",
	"gateway.routes[].idempotency.principal.jwt.leeway":   "allowed clock difference, such as 30s",

	"lint.code":        "package and file patterns where each dependency is called",
	"lint.key_headers": "further headers that carry idempotency keys",
}

// policies are the sections that hold them, with the kinds whose defaults hold there.
var policies = map[string]forbear.Kind{"dependencies": forbear.Sync, "consumers": forbear.Event, "webhooks": forbear.Webhook, "profiles": 0}

// annotated is the schema with descriptions and defaults. It is a copy, in which
// sections share nothing: their defaults differ.
func annotated(doc object) (object, error) {
	data, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	doc = object{}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	annotate(doc, "")
	for name, v := range doc["properties"].(object) {
		if kind, ok := policies[name]; ok {
			each := v.(object)["additionalProperties"].(object)
			annotate(each, "dependency")
			if name != "profiles" { // which may be of any kind
				defaults(each, kind)
			}
		}
	}
	return doc, nil
}

// annotate gives the keys of a section their descriptions. path is that of s.
func annotate(s object, path string) {
	for _, one := range either(s) {
		annotate(one, path)
	}
	if item, ok := s["items"].(object); ok {
		annotate(item, path+"[]")
	}
	p, _ := s["properties"].(object)
	for name, v := range p {
		v := v.(object)
		full := strings.TrimPrefix(path+"."+name, ".")
		text := descriptions[full]
		if text == "" {
			text = descriptions["keys."+name] // of keys and of idempotency alike
		}
		switch {
		case name == "env" && text == "":
			text = "name of an environment variable"
		case name == "file" && text == "":
			text = "path of a file"
		}
		if text != "" {
			v["description"] = text
		}
		annotate(v, full)
	}
}

func either(s object) (found []object) {
	list, _ := s["oneOf"].([]any)
	for _, one := range list {
		found = append(found, one.(object))
	}
	return found
}

// defaults gives the keys of a policy the values that hold where the file says
// nothing, for the kind that a section has.
func defaults(s object, kind forbear.Kind) {
	p := forbear.Policy{Kind: kind}
	p = p.WithDefaults()
	p.Kind = 0
	// Slow calls are counted by the per-attempt timeout, which is no fixed value.
	p.Breaker.SlowCall = 0
	p.PerAttempt = p.AttemptTimeout()
	withDefaults(s, node(reflect.ValueOf(p), ""))
}

func withDefaults(s object, n *yaml.Node) {
	if n == nil {
		return
	}
	if n.Kind != yaml.MappingNode {
		var v any
		if err := n.Decode(&v); err != nil {
			panic(fmt.Sprintf("a default that is no YAML: %v", err)) // the tests reach it
		}
		s["default"] = v
		return
	}
	for _, one := range append(either(s), s) {
		p, _ := one["properties"].(object)
		for i := 0; i+1 < len(n.Content); i += 2 {
			if v, ok := p[n.Content[i].Value].(object); ok {
				withDefaults(v, n.Content[i+1])
			}
		}
	}
}
