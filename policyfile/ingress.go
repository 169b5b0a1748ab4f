package policyfile

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/policyfile/strict"
)

// Ingress makes a route of the gateway honor idempotency keys in front of a
// service that need not know of them. The zero value is off; zero fields of
// one that is on mean the defaults.
type Ingress struct {
	On bool `json:"-"`
	// Principal says whose keys they are.
	Principal Principal `json:"principal,omitzero"`
	// Optional lets POST and PATCH without a key pass unprotected; in the file
	// it is required: false.
	Optional bool `json:"-"`
	// Retention is how long responses are kept. Default 48 h, at least 24 h
	//
	Retention time.Duration `json:"retention,omitzero"`
	// Wait is how long a duplicate waits for the response to the first
	// request. Default: as long as such requests usually take.
	Wait time.Duration `json:"wait,omitzero"`
	// Timeout bounds a response of the service, body included. Default 30
	// s.
	Timeout time.Duration `json:"timeout,omitzero"`
	// MaxRequest and MaxResponse bound the bodies, in bytes. Default 1 MiB.
	MaxRequest  Size `json:"max_request,omitzero"`
	MaxResponse Size `json:"max_response,omitzero"`
	// Rerunnable declares that an operation whose outcome is unknown may be
	// repeated.
	Rerunnable bool     `json:"rerunnable,omitzero"`
	At         Position `json:"-"`
}

// Principal says where the caller's name comes from: keys of different
// callers must not meet. At most one field is set; none means the header
// [DefaultPrincipal].
type Principal struct {
	// Header is set by an authenticating proxy in front, which takes it off
	// what comes from outside.
	Header string `json:"header,omitzero"`
	JWT    JWT    `json:"jwt,omitzero"`
	// Single says that all callers are one; in the file it is principal:
	// single.
	Single bool `json:"-"`
}

// DefaultPrincipal is the header that names the caller where the file does not
// say another.
const DefaultPrincipal = "X-Principal"

// JWT takes the caller from a claim of a bearer token, whose signature is
// checked. Without that check any caller could read another's stored
// responses.
type JWT struct {
	Claim string `json:"claim,omitzero"` // default sub
	// Keys is a file with public keys: PEM, or a JSON Web Key Set.
	Keys     string        `json:"keys"`
	Issuer   string        `json:"issuer,omitzero"`
	Audience string        `json:"audience,omitzero"`
	Leeway   time.Duration `json:"leeway,omitzero"`
}

// Size is a number of bytes.
type Size int64

// MarshalText writes 1MiB or 64KiB where that is exact, and else bytes.
func (s Size) MarshalText() ([]byte, error) {
	n, unit := int64(s), ""
	switch {
	case n%(1<<20) == 0:
		n, unit = n>>20, "MiB"
	case n%(1<<10) == 0:
		n, unit = n>>10, "KiB"
	}
	return append(strconv.AppendInt(nil, n, 10), unit...), nil
}

// maxSize bounds a [Size]: a body is held in memory.
const maxSize = 1 << 30

// MaxBodyLimit bounds the body_limit of a route, in bytes. A body is kept for as long as
// its call may be retried. 64 MiB is a quarter of what serve has for the bodies of all
// calls where it knows no limit of its memory, so that one upload cannot take it all.
// What is longer is better sent in parts.
const MaxBodyLimit = 64 << 20

// UnmarshalText reads bytes, KiB or MiB: 1 byte to 1024MiB.
func (s *Size) UnmarshalText(text []byte) error { return s.read(text, maxSize) }

// read reads bytes, KiB or MiB, up to most.
func (s *Size) read(text []byte, most Size) error {
	digits, unit := string(text), int64(1)
	for suffix, u := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20} {
		if rest, ok := strings.CutSuffix(string(text), suffix); ok {
			digits, unit = strings.TrimSpace(rest), u
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case err != nil:
		return errors.New("want a size such as 64KiB or 1MiB")
	case n <= 0 || n > int64(most)/unit:
		return fmt.Errorf("want 1 byte to %dMiB", most>>20)
	}
	*s = Size(n * unit)
	return nil
}

// ingress reads "on", "off" or a mapping of options, which switches it on.
func (d *decoder) ingress(n *yaml.Node, owner string, into *Ingress) {
	into.At = d.At(n)
	if n.Kind != yaml.MappingNode {
		i, ok := d.Choice(n, "idempotency", "on", "off", "true", "false")
		into.On = ok && i%2 == 0
		return
	}
	into.On = true
	required := true
	known := d.values("idempotency.", into)
	maps.Copy(known, fields{
		"principal":    func(v *yaml.Node) { d.principal(v, &into.Principal) },
		"required":     func(v *yaml.Node) { d.Flag(v, "idempotency.required", &required) },
		"retention":    func(v *yaml.Node) { d.retention(v, owner, &into.Retention) },
		"max_request":  func(v *yaml.Node) { d.size(v, "idempotency.max_request", &into.MaxRequest) },
		"max_response": func(v *yaml.Node) { d.size(v, "idempotency.max_response", &into.MaxResponse) },
	})
	d.Keys(n, "idempotency", known)
	into.Optional = !required
}

// retention reads how long responses are kept, and refuses less than R-6
// demands.
func (d *decoder) retention(v *yaml.Node, owner string, into *time.Duration) {
	const least = 24 * time.Hour
	d.duration(v, "idempotency.retention", into)
	if *into > 0 && *into < least {
		d.refuse(d.At(v), "R-6", owner, "idempotency.retention", "idempotency.retention %s is under 24h: clients may retry for that long", FormatDuration(*into))
	}
}

// principal reads "single", or exactly one of header and jwt.
func (d *decoder) principal(n *yaml.Node, into *Principal) {
	if n.Kind != yaml.MappingNode {
		_, into.Single = d.Choice(n, "principal", "single", "{header: NAME}", "{jwt: {keys: FILE}}")
		return
	}
	before := d.Count()
	d.Keys(n, "principal", fields{
		"header": func(v *yaml.Node) { d.header(v, &into.Header) },
		"jwt":    func(v *yaml.Node) { d.jwt(v, &into.JWT) },
	})
	// Only where both could be read: a fault in one must not be reported as
	// its absence.
	if d.Count() == before && (into.Header == "") == (into.JWT == JWT{}) {
		d.Fault(n, "principal needs either header or jwt")
	}
}

// header reads the name of the header that says who calls. A header that
// carries a credential does not: its value changes when the credential is
// refreshed, and a repeated request would then count as another caller's and
// run twice.
func (d *decoder) header(v *yaml.Node, into *string) {
	s, ok := d.Scalar(v, "principal.header", "the name of a header")
	switch {
	case !ok:
	case !isLabel(s):
		d.Fault(v, "principal.header is %s: want the name of a header", strict.Quote(s))
	case strings.EqualFold(s, "Authorization") || strings.EqualFold(s, "Cookie") || strings.EqualFold(s, "Idempotency-Key"):
		d.Fault(v, "principal.header is %s, whose value changes when a token is refreshed: write principal: {jwt: {keys: FILE}}, or the header of an authenticating proxy", s)
	default:
		*into = s
	}
}

// jwt reads where a token is checked. Keys is required: a token whose
// signature is not checked names no one.
func (d *decoder) jwt(n *yaml.Node, into *JWT) {
	before := d.Count()
	d.Keys(n, "jwt", d.values("jwt.", into))
	if d.Count() == before && into.Keys == "" {
		d.Fault(n, "jwt needs keys: a file with public keys, as PEM or JWKS")
	}
}

// size reads a [Size].
func (d *decoder) size(v *yaml.Node, what string, into *Size) { d.sizeUpTo(v, what, maxSize, into) }

// sizeUpTo reads a [Size] with a bound of its own.
func (d *decoder) sizeUpTo(v *yaml.Node, what string, most Size, into *Size) {
	s, ok := d.Scalar(v, what, "a size such as 64KiB or 1MiB")
	if !ok {
		return
	}
	if err := into.read([]byte(s), most); err != nil {
		d.Fault(v, "%s is %s: %v", what, strict.Quote(s), err)
	}
}

// node is how Marshal writes it: as "on" when all is at its default. Fields
// that the file words the other way round are added by hand.
func (in Ingress) node() *yaml.Node {
	if !in.On {
		return nil
	}
	type plainIngress Ingress // without this method
	n := node(reflect.ValueOf(plainIngress(in)), "")
	if n == nil { // nothing but defaults
		n = &yaml.Node{Kind: yaml.MappingNode}
	}
	if in.Optional {
		n.Content = append(n.Content, plain("required"), plain("false"))
	}
	if in.Principal.Single {
		n.Content = append(n.Content, plain("principal"), plain("single"))
	}
	if len(n.Content) == 0 {
		return plain("on")
	}
	return n
}
