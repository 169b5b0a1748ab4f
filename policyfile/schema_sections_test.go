package policyfile

import (
	"maps"
	"reflect"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/health"
)

// These are the schemas of sections of which the types alone cannot tell what a duration
// or a share does.

// healthSchema is the schema of the section, of a profile or, with an endpoint,
// of a dependency.
func healthSchema(endpoint bool) object {
	p := properties(reflect.TypeFor[health.Policy]())
	if endpoint {
		maps.Copy(p, properties(reflect.TypeFor[Probe]()))
		p["endpoint"] = env("asked by the gateway: a response other than 2xx, twice in a row, stops retries; or {env: NAME}")
		p["interval"].(object)["description"] = "the mean time between two questions, such as 5s, which is the default"
	}
	return described(p, map[string]string{
		"min_success": "retries stop below this share of good attempts, such as 50% or 0.5, when it is certain to 99.9 %; no limit unless said",
		"window":      "how far back attempts count, such as 60s, which is the default",
		"min_calls":   "attempts in the window before their share counts; 20 unless said otherwise",
	})
}

// ingressSchema is the schema of an Ingress: a word, or a mapping of
// options.
func ingressSchema() object {
	p := properties(reflect.TypeFor[Ingress]())
	p["required"] = object{"type": "boolean", "description": "whether POST and PATCH without a key are refused; true unless said otherwise"}
	principal := p["principal"].(object)
	principal["properties"].(object)["jwt"].(object)["required"] = []string{"keys"}
	p["principal"] = object{
		"description": "whose keys they are; the header " + DefaultPrincipal + " unless said otherwise",
		"oneOf":       []any{object{"const": "single"}, principal},
	}
	return object{
		"description": "done once: idempotency keys in front of the dependency (R-6)",
		"oneOf":       []any{object{"enum": []any{"on", "off", true, false}}, closed(p)},
	}
}

// sizePattern is for editors; the reader checks the range too.
const sizePattern = `^[0-9]+ *(KiB|MiB)?$`

func sizeSchema() object {
	return object{"description": "bytes, or a size such as 64KiB or 1MiB", "oneOf": []any{
		object{"type": "integer", "minimum": 1}, object{"type": "string", "pattern": sizePattern},
	}}
}

// tlsSchema is the schema of the section of a dependency.
func tlsSchema() object {
	p := properties(reflect.TypeFor[TLS]())
	p["min_version"] = tlsVersionSchema()
	p["verify"] = object{"const": true}
	return described(p, map[string]string{
		"ca":          "a file with the authorities to trust, in place of the system's; read again when it changes",
		"cert":        "a file with the certificate that the gateway shows; read again when it changes",
		"key":         "a file with the certificate's key",
		"server_name": "what the dependency's certificate is for, where that is not the host of the url",
		"verify":      "cannot be switched off (R-9)",
	})
}

// listenerTLSSchema is that of the gateway's own.
func listenerTLSSchema() object {
	p := properties(reflect.TypeFor[ListenerTLS]())
	p["min_version"] = tlsVersionSchema()
	s := described(p, map[string]string{
		"cert":      "a file with the gateway's certificate; read again when it changes",
		"key":       "a file with the certificate's key",
		"client_ca": "a file with the authorities of the callers, who then need a certificate",
	})
	s["required"] = []string{"cert", "key"}
	return s
}

// tlsVersionSchema admits the number too: YAML takes 1.3 without quotes for one.
func tlsVersionSchema() object {
	return object{"description": "the least version of TLS; 1.2 unless said", "enum": []any{"1.2", "1.3", 1.2, 1.3}}
}

// breakerSchema is the schema of the section. Its descriptions are written
// out, since the types alone cannot say what a duration or a share does
// here.
func breakerSchema() object {
	return described(properties(reflect.TypeFor[breaker.Policy]()), map[string]string{
		"failure_rate": "opens above this share of failed calls, such as 50% or 0.5, when it is certain to 99.9 %",
		"slow_rate":    "opens above this share of slow calls, such as 80% or 0.8, when it is certain to 99.9 %",
		"slow_call":    "what a slow call takes, such as 500ms; the per-attempt timeout unless said otherwise",
		"window":       "one of the two windows, both of which are looked at: the last so many calls; 100 unless said otherwise",
		"window_time":  "the other window: the calls of the last so long, such as 60s, which is the default",
		"min_calls":    "calls in a window before its rate counts; 20 unless said otherwise",
		"open_for":     "the longest time that it stays open, such as 30s: it starts with 5s, and doubles with each probing that fails after the first",
		"probes":       "calls that must all succeed before it closes; 5 unless said otherwise",
		"on_budget":    "what a spent retry budget does: signal shows it, immediate opens the breaker, off does not even show it",
	})
}
