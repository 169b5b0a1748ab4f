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
		p["endpoint"] = env("URL that the gateway polls: two failures in a row stop retries; or {env: NAME}")
		p["interval"].(object)["description"] = "mean time between polls; 5s by default"
	}
	return described(p, map[string]string{
		"min_success": "retries stop when successes are below this share, with 99.9 % confidence; no limit by default",
		"window":      "time over which attempts are counted; 60s by default",
		"min_calls":   "attempts before the share counts; 20 by default",
	})
}

// ingressSchema is the schema of an Ingress: a word, or a mapping of
// options.
func ingressSchema() object {
	p := properties(reflect.TypeFor[Ingress]())
	p["required"] = object{"type": "boolean", "description": "true, the default, refuses POST and PATCH without a key"}
	principal := p["principal"].(object)
	principal["properties"].(object)["jwt"].(object)["required"] = []string{"keys"}
	p["principal"] = object{
		"description": "who the caller is; the header " + DefaultPrincipal + " by default",
		"oneOf":       []any{object{"const": "single"}, principal},
	}
	return object{
		"description": "idempotency keys in front of the dependency: each key runs once (R-6)",
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
		"ca":          "file with the authorities to trust instead of the system's; reloaded",
		"cert":        "file with the client certificate; reloaded",
		"key":         "file with its key",
		"server_name": "name in the dependency's certificate, if not the url's host",
		"verify":      "cannot be turned off (R-9)",
	})
}

// listenerTLSSchema is that of the gateway's own.
func listenerTLSSchema() object {
	p := properties(reflect.TypeFor[ListenerTLS]())
	p["min_version"] = tlsVersionSchema()
	s := described(p, map[string]string{
		"cert":      "file with the certificate; reloaded",
		"key":       "file with its key",
		"client_ca": "file with the callers' authorities; callers then need a certificate",
	})
	s["required"] = []string{"cert", "key"}
	return s
}

// tlsVersionSchema admits the number too: YAML takes 1.3 without quotes for one.
func tlsVersionSchema() object {
	return object{"description": "minimum version; 1.2 by default", "enum": []any{"1.2", "1.3", 1.2, 1.3}}
}

// breakerSchema is the schema of the section. Its descriptions are written
// out, since the types alone cannot say what a duration or a share does
// here.
func breakerSchema() object {
	return described(properties(reflect.TypeFor[breaker.Policy]()), map[string]string{
		"failure_rate": "opens above this share of failed calls, with 99.9 % confidence",
		"slow_rate":    "opens above this share of slow calls, with 99.9 % confidence",
		"slow_call":    "duration of a slow call; per_attempt by default",
		"window":       "window in calls; both windows are judged",
		"window_time":  "window in time; both windows are judged",
		"min_calls":    "calls in a window before its rate counts",
		"open_for":     "longest time open; starts at 5s, and doubles each time probes fail again",
		"probes":       "calls that must all succeed before it closes",
		"on_budget":    "on a spent budget: signal shows it, immediate opens the breaker, off ignores it",
	})
}
