package policyfile

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear"
)

// descriptions say what the keys mean of which the types say nothing, by their paths
// in the file. A name of the user's is *, an item of a list is [], and the paths of
// a dependency begin with "dependency": consumers, webhooks and profiles share them.
var descriptions = map[string]string{
	"$schema":               "the address of this schema, for editors",
	"service":               "the service that this file is about: the one that makes the calls",
	"instances":             "how many instances of the service run, for the load that a fleet of quiet clients may add",
	"idempotency":           "what the service itself promises about idempotency keys",
	"observability":         "what the service shows of its retries; all of it unless said (R-10)",
	"observability.metrics": "false switches the metrics off, which R-10 forbids",
	"observability.logs":    "false switches the logs off, which R-10 forbids",
	"profiles":              "policies by name, for dependencies to extend",
	"dependencies":          "what the service calls, by name, and how each call may be retried",
	"consumers":             "the queues that the service reads, by name, and how each message may be retried",
	"webhooks":              "whom the service sends webhooks to, by name, and how each delivery may be retried",
	"waivers":               "signed exceptions from rules, each with an end",
	"gateway":               "what forbear serve listens on, and where it sends requests to",
	"lint":                  "what forbear lint is to know of the service's code",

	"keys.max_length": "the longest idempotency key that is accepted, in bytes",
	"keys.retention":  "how long a key is remembered, such as 48h (R-6)",

	"dependency.kind":           "what sort of call it is; defaults and ranges go by it (R-2, R-3)",
	"dependency.disabled":       "true allows no retry at all",
	"dependency.strict":         "true takes away the retries that a quiet client has whatever the budget's share",
	"dependency.max_retries":    "retries after the first attempt (R-2); not for webhooks",
	"dependency.max_attempts":   "all attempts, the first included; for webhooks only",
	"dependency.total":          "bounds the whole call, all attempts and all waits, such as 30s (R-3)",
	"dependency.per_attempt":    "bounds one attempt, such as 5s",
	"dependency.connect":        "bounds the making of a connection, such as 2s",
	"dependency.min_attempt":    "the least time that an attempt needs: none is started with less left",
	"dependency.max_concurrent": "bounds the calls under way at once; no bound unless said",
	"dependency.idempotency":    "what becomes of a write: retried with the caller's key, with one that is made, or never (R-6)",
	"dependency.retry_unsent":   "true retries a write without a key when it certainly was not sent; R-6 wants a waiver",
	"dependency.owner":          "the service that may retry this dependency: one layer, and no other",
	"dependency.other_layers":   "what the layers around the owner do, for readers",
	"dependency.service":        "the service behind it, where that has another name: it ties the files of several services together",
	"dependency.protocol":       "what it speaks, such as http, grpc or amqp, for readers",
	"dependency.methods":        "the methods that it is called with; all of them unless said",
	"dependency.dedup":          "how long a consumer remembers the events that it has seen, such as 8d (R-6)",
	"dependency.http2":          "auto as the handshake agrees, off, or only",
	"dependency.classify":       "the class of single errors, such as http_404, or of groups, such as http_5xx (R-4)",
	"dependency.wait_headers":   "headers that tell how long to wait, beside Retry-After and those of well-known vendors, each with its form",

	"dependency.backoff":               "how long to wait between attempts (R-1)",
	"dependency.backoff.base":          "the bound of the first wait, which doubles with each retry, such as 1s",
	"dependency.backoff.cap":           "the bound of every wait, such as 30s",
	"dependency.backoff.jitter":        "full draws between zero and the bound, decorrelated between the base and three times the last wait",
	"dependency.backoff.schedule":      "the wait before each attempt, the first included, instead of base and cap",
	"dependency.budget":                "how many retries a share of the requests may be, so that an outage is not multiplied (R-7)",
	"dependency.budget.ratio":          "retries as a share of the requests, such as 20%, which is the most",
	"dependency.budget.of":             "what the share is of: the initial requests, or all that are sent",
	"dependency.budget.window":         "how far back requests and retries count, such as 30s",
	"dependency.budget.min_retries":    "retries in a window that a quiet client has whatever the share; more than 10 want a waiver",
	"dependency.budget.max_multiplier": "another spelling of the ratio: 1.2 lets retries add 20 % to the initial requests",
	"dependency.budget.round_up":       "true counts a fraction of a retry as a whole one, so that one more may be sent than the ratio says",

	"dependency.breaker":                   "the circuit breaker: stops calls while the dependency fails",
	"dependency.breaker.disabled":          "true takes the breaker away",
	"dependency.health":                    "stops retries while too few attempts succeed, or while the dependency says that it is not healthy",
	"dependency.keys":                      "what the dependency promises about idempotency keys",
	"dependency.dead_letter":               "where what has used up its attempts goes (R-8)",
	"dependency.dead_letter.queue":         "the queue of the dead letters",
	"dependency.dead_letter.alert":         "who is alerted to them",
	"dependency.credentials":               "what the gateway sends where callers send no Authorization: a secret, or a token that it fetches",
	"dependency.credentials.secret":        "where a whole value is, such as Bearer and a token; never the value itself",
	"dependency.credentials.client_id":     "the name that a token is asked for with",
	"dependency.credentials.client_secret": "where the secret is that a token is asked for with; never the secret itself",
	"dependency.credentials.scopes":        "what a token is asked for",
	"dependency.credentials.override":      "true replaces what callers send, too",
	"dependency.tls":                       "the connection's certificates and versions, for https",

	"waivers[].id":                    "its name, for its payload and the findings about it",
	"waivers[].rule":                  "the rule that it lifts",
	"waivers[].dependency":            "the dependency that it is for",
	"waivers[].code":                  "patterns of the source code in which it lifts the rule for forbear lint",
	"waivers[].files":                 "patterns of the files of other software in which it lifts the rule",
	"waivers[].lifts":                 "the values of other software that it allows, such as max_retries 7",
	"waivers[].reason":                "why the rule cannot be kept",
	"waivers[].owner":                 "who asks for it and is responsible for it; not an approver",
	"waivers[].ticket":                "where it was discussed",
	"waivers[].created":               "the day from which its 180 days count",
	"waivers[].expires":               "the last day of it, or a moment in RFC 3339; at most 180 days on",
	"waivers[].approvals":             "who approved it, with a signature each",
	"waivers[].approvals[].by":        "the approver, as the file of allowed signers has it",
	"waivers[].approvals[].role":      "iab for the architecture board",
	"waivers[].approvals[].signature": "what ssh-keygen -Y sign makes of forbear policy payload",

	"gateway.tls":                     "the gateway's own certificate; without it the port speaks in clear",
	"gateway.trusted_proxies":         "the proxies in front, whose word about the caller counts",
	"gateway.routes":                  "which requests go to which dependency; the most specific route counts",
	"gateway.routes[].prefix":         "the path that it is for, and all below it",
	"gateway.routes[].host":           "the host that it is for; every one unless said",
	"gateway.routes[].keep_prefix":    "true leaves the prefix in the path that is sent on, as it is for gRPC",
	"gateway.routes[].methods":        "the methods that it takes; all of them unless said",
	"gateway.routes[].headers":        "headers that a request must have, with their values",
	"gateway.routes[].dependency":     "the dependency that its requests go to",
	"gateway.routes[].timeout":        "bounds a call up to the end of its response; no bound beside the policy's unless said",
	"gateway.routes[].max_body":       "the longest body of a request, such as 1MiB",
	"gateway.routes[].max_concurrent": "bounds the requests of the route that are under way at once",
	"gateway.routes[].stream":         "true says that bodies are streams, which may stand still for any time",

	"gateway.routes[].idempotency.retention":    "how long responses are kept, such as 48h, which is the default; at least 24h (R-6)",
	"gateway.routes[].idempotency.wait":         "how long a duplicate waits for the response to the first request; 5s unless said",
	"gateway.routes[].idempotency.timeout":      "bounds a response of the service, its body included; 30s unless said",
	"gateway.routes[].idempotency.max_request":  "the longest body of a request; 1MiB unless said",
	"gateway.routes[].idempotency.max_response": "the longest response that is kept; 1MiB unless said",
	"gateway.routes[].idempotency.rerunnable":   "true declares that an operation whose outcome is unknown may be repeated",

	"gateway.routes[].idempotency.principal.header":       "the header that an authenticating proxy sets",
	"gateway.routes[].idempotency.principal.jwt":          "the caller from a claim of a bearer token, whose signature is checked",
	"gateway.routes[].idempotency.principal.jwt.claim":    "the claim that names the caller; sub unless said",
	"gateway.routes[].idempotency.principal.jwt.keys":     "a file with the public keys: PEM, or a JSON Web Key Set",
	"gateway.routes[].idempotency.principal.jwt.issuer":   "who must have issued the token",
	"gateway.routes[].idempotency.principal.jwt.audience": "whom the token must be for",
	"gateway.routes[].idempotency.principal.jwt.leeway":   "how far the clocks may differ, such as 30s",

	"lint.code":        "where each dependency is called, as patterns of packages and files, so that its policy counts there",
	"lint.key_headers": "headers that servers take idempotency keys from, besides those with idempotency in their names",
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
			text = "the environment variable that it is in"
		case name == "file" && text == "":
			text = "the file that it is in"
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
