package policyfile

import (
	"encoding"
	"encoding/json"
	"maps"
	"net/netip"
	"reflect"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/health"
	"github.com/forbear-go/forbear/internal/waitform"
)

// object is a JSON object of the schema.
type object = map[string]any

// generateSchema makes what schema.json holds. A test compares the two and
// rewrites the file under -update, so that the schema follows the types.
func generateSchema() ([]byte, error) {
	layer := object{
		"extends": object{"type": "string", "description": "profile to start from: standard, cautious, lattice or one of this file"},
		"profile": object{"type": "string", "description": "same as extends"},
	}
	maps.Copy(layer, properties(reflect.TypeFor[forbear.Policy]()))
	layer["body_idle"] = object{
		"description": "how long a body may stall; off for no limit",
		"oneOf":       []any{object{"const": "off"}, object{"type": "string", "pattern": durationPattern}},
	}
	layer["idempotent"].(object)["description"] = "true: every operation is safe to repeat without a key (R-6)"
	budget := layer["budget"].(object)
	// none is in the schema so that an editor shows why it is refused.
	layer["budget"] = object{"oneOf": []any{budget, object{"const": "none", "description": "refused: every dependency needs one (R-7)"}}}
	dependency := object{"url": env("address, or {env: NAME}")}
	maps.Copy(dependency, layer)
	for name, p := range properties(reflect.TypeFor[Dependency]()) {
		if dependency[name] == nil {
			dependency[name] = p
		}
	}
	dependency["health"] = healthSchema(true)
	dependency["pace"].(object)["description"] = "on, the default, learns the accepted rate from 429s and keeps to it"
	dependency["endpoints"] = object{
		"description": "addresses to connect to in turn: dns for all of the url's host, or a list",
		"oneOf":       []any{object{"const": "dns"}, object{"type": "array", "minItems": 1, "uniqueItems": true, "items": object{"type": "string"}}},
	}
	dependency["connection_age"] = object{
		"description": "maximum age of a connection; off for no limit",
		"oneOf":       []any{object{"const": "off"}, object{"type": "string", "pattern": durationPattern}},
	}
	dependency["secret"] = object{
		"type": "object", "additionalProperties": false, "required": []string{"env"},
		"properties": object{"env": object{"type": "string"}}, "description": "place of the signing secret; never the secret itself",
	}
	credentials := dependency["credentials"].(object)["properties"].(object)
	credentials["token_url"] = env("OAuth token endpoint, or {env: NAME}")
	dependency["tls"] = tlsSchema()
	dependency["methods"] = object{"type": "array", "items": object{"enum": httpMethods}}
	named := func(p object) object {
		return object{"type": "object", "additionalProperties": closed(p), "propertyNames": object{"pattern": "^[A-Za-z0-9._-]{1,64}$"}}
	}
	root := object{
		"$schema":       object{"type": "string"},
		"version":       object{"const": Version, "description": "format version; 1 by default"},
		"service":       object{"type": "string"},
		"instances":     object{"type": "integer", "minimum": 1},
		"idempotency":   closed(properties(reflect.TypeFor[Keys]())),
		"observability": closed(object{"metrics": object{"type": "boolean"}, "logs": object{"type": "boolean"}}),
		"profiles":      named(layer),
		"dependencies":  named(dependency),
		"consumers":     named(dependency),
		"webhooks":      named(dependency),
		"waivers":       object{"type": "array", "items": waiverSchema()},
		"gateway":       closed(properties(reflect.TypeFor[Gateway]())),
		"lint":          closed(properties(reflect.TypeFor[Lint]())),
	}
	gateway := root["gateway"].(object)["properties"].(object)
	gateway["access_log"] = object{
		"description": "share of calls to log; failures are always logged",
		"oneOf":       []any{object{"enum": []any{"on", "off", true, false}}, object{"type": "string", "pattern": `^[0-9.]+%$`}, object{"type": "number", "minimum": 0, "maximum": 1}},
	}
	doc := closed(root)
	doc["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	doc["$id"] = SchemaURL
	doc["title"] = "forbear policy file"
	doc, err := annotated(doc)
	if err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(doc, "", "  ")
	return append(data, '\n'), err
}

// waiverSchema is the schema of a waiver, whose rule and dates the embedded
// struct leaves out.
func waiverSchema() object {
	p := properties(reflect.TypeFor[Waiver]())
	day := object{"type": "string", "description": "a day, which counts, or a moment in RFC 3339"}
	maps.Copy(p, object{
		"rule": object{"enum": rules}, "dependency": object{"type": "string"}, "reason": object{"type": "string"},
		"created": day, "expires": day,
	})
	w := closed(p)
	w["required"] = []string{"rule", "reason", "expires"}
	w["anyOf"] = []any{object{"required": []string{"dependency"}}, object{"required": []string{"code"}}, object{"required": []string{"files"}}}
	return w
}

// described is closed, with descriptions of fields.
func described(p object, texts map[string]string) object {
	for field, text := range texts {
		p[field].(object)["description"] = text
	}
	return closed(p)
}

// closed is an object that admits no other properties, as the strict reader
// does.
func closed(p object) object {
	return object{"type": "object", "additionalProperties": false, "properties": p}
}

// env is a text, or the environment variable that holds it.
func env(description string) object {
	return object{"description": description, "oneOf": []any{
		object{"type": "string"},
		object{"type": "object", "additionalProperties": false, "required": []string{"env"}, "properties": object{"env": object{"type": "string"}}},
	}}
}

// properties lists the fields of a struct by their JSON names.
func properties(t reflect.Type) object {
	p := object{}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported() || name == "-":
		case options == "inline":
			maps.Copy(p, properties(f.Type))
		case name != "":
			p[name] = typeSchema(f.Type, name)
		}
	}
	return p
}

// The patterns help editors. They admit a little more than the reader does.
const (
	durationPattern = `^[0-9.]+(ns|us|µs|ms|s|m|h|d)([0-9.]+(ns|us|µs|ms|s|m|h))*$`
	sharePattern    = `^[0-9.]+ *%$`
)

// typeSchema is the schema of one field. Most follow from the type; the
// name marks the one number that is not a share.
func typeSchema(t reflect.Type, name string) object {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return object{"type": "string", "pattern": durationPattern, "description": "a duration such as 500ms, 1s or 2m"}
	case t == reflect.TypeFor[breaker.Policy]():
		return breakerSchema()
	case t == reflect.TypeFor[health.Policy]():
		return healthSchema(false)
	case t == reflect.TypeFor[Ingress]():
		return ingressSchema()
	case t == reflect.TypeFor[Addresses]():
		return object{"description": "127.0.0.1:8080, unix:PATH, systemd: or systemd:NAME, or a list", "oneOf": []any{
			object{"type": "string"}, object{"type": "array", "minItems": 1, "items": object{"type": "string"}},
		}}
	case t == reflect.TypeFor[netip.Prefix]():
		return object{"type": "string", "description": "an address, or a prefix such as 10.0.0.0/8"}
	case t == reflect.TypeFor[ListenerTLS]():
		return listenerTLSSchema()
	case t == reflect.TypeFor[Size]():
		return sizeSchema()
	case t == reflect.TypeFor[forbear.Class]():
		return object{"enum": []string{"transient", "timeout", "throttled", "dns", "unauthorized", "terminal", "retry"}}
	case choices[t] != nil, t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return object{"enum": enum(t)}
	case name == "wait_headers" && t.Kind() == reflect.String:
		return object{"enum": waitform.Names}
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int:
		return object{"type": "integer", "minimum": 1}
	case reflect.Float64:
		if name == "max_multiplier" {
			return object{"type": "number", "minimum": 1, "maximum": 10}
		}
		return object{"description": "a share such as 20% or 0.2", "oneOf": []any{
			object{"type": "number", "exclusiveMinimum": 0, "maximum": 1}, object{"type": "string", "pattern": sharePattern},
		}}
	case reflect.Slice:
		return object{"type": "array", "items": typeSchema(t.Elem(), name)}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": typeSchema(t.Elem(), name)}
	case reflect.Struct:
		return closed(properties(t))
	default:
		return object{"type": "string"}
	}
}
