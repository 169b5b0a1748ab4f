package gateway

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"net/http"
	"net/netip"
	"net/textproto"
	"slices"
	"strings"
	"time"
)

// errPrincipal is the one error for every token that is refused: which check
// failed is of use to an attacker only.
var errPrincipal = errors.New("no principal")

// PrincipalHeader finds the principal in a header that an authenticating proxy
// in front sets, and that it takes off what comes from outside: a caller that can
// set it gets the stored responses of all others.
func PrincipalHeader(name string) func(*http.Request) (string, error) {
	return func(r *http.Request) (string, error) {
		v := r.Header.Values(name)
		if len(v) != 1 {
			return "", errPrincipal
		}
		// Over HTTP/2 net/http leaves the spaces around a value, which are not part of it
		// (RFC 9110 section 5.5).
		if who := textproto.TrimString(v[0]); who != "" {
			return who, nil
		}
		return "", errPrincipal
	}
}

// PrincipalHeaderFrom is [PrincipalHeader] for requests of the peers that trusts
// accepts: those of the proxies in front. Any other request has no principal,
// whatever it brings; nor has one whose peer has no IP address, such as that of a
// Unix socket. The peer is the other end of the connection, never what a header
// says of it. trusts must be safe for concurrent use.
func PrincipalHeaderFrom(name string, trusts func(peer netip.Addr) bool) func(*http.Request) (string, error) {
	principal := PrincipalHeader(name)
	return func(r *http.Request) (string, error) {
		peer, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil || !trusts(peer.Addr().Unmap().WithZone("")) {
			return "", errPrincipal
		}
		return principal(r)
	}
}

// JWT finds the principal in a claim of the bearer token, after checking the
// token's signature and times: a stored response is given without asking the
// service, so that an unchecked token would open it.
type JWT struct {
	Claim string // such as "sub"
	// Keys check the signature: those that the token's kid names, or all of them when
	// it names none. The key says which algorithm is used, and never the token.
	Keys []VerifyKey
	// Issuer and Audience, where set, must be the token's.
	Issuer, Audience string
	// Leeway is for clocks that differ. Default none.
	Leeway time.Duration
}

// Principal is the Scope of [idempotency.Options]: the token's issuer and the claim,
// with a space between. A subject is unique only within its issuer (RFC 7519 section
// 4.1.2).
func (j JWT) Principal(r *http.Request) (string, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	parts := strings.Split(token, ".")
	if !strings.EqualFold(scheme, "Bearer") || len(parts) != 3 || len(token) > 16<<10 {
		return "", errPrincipal
	}
	var head header
	claims := map[string]any{}
	sig, err := base64.RawURLEncoding.DecodeString(parts[2])
	switch {
	case err != nil, part(parts[0], &head) != nil,
		head.Crit != nil, // it demands what is not understood here
		!j.verify(head, parts[0]+"."+parts[1], sig),
		part(parts[1], &claims) != nil, !j.valid(claims, time.Now()):
		return "", errPrincipal
	}
	s, ok := claims[j.Claim].(string)
	if !ok || s == "" {
		return "", errPrincipal
	}
	if issuer, _ := claims["iss"].(string); issuer != "" {
		return word(issuer) + " " + word(s), nil
	}
	return word(s), nil
}

// word returns s without spaces, and no two as the same.
func word(s string) string { return words.Replace(s) }

var words = strings.NewReplacer("%", "%25", " ", "%20")

// part decodes the head or the claims of a token (RFC 7515 section 7.1).
func part(text string, into any) error {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

// header is that of a token, as far as it is read.
type header struct {
	Alg, Kid string
	Crit     json.RawMessage
}

// verify checks the signature, with each key that may be meant. A kid only
// chooses among the configured keys; it never brings one.
func (j JWT) verify(h header, signed string, sig []byte) bool {
	return slices.ContainsFunc(j.Keys, func(k VerifyKey) bool {
		return (h.Kid == "" || k.ID == "" || h.Kid == k.ID) && k.verify(h.Alg, signed, sig)
	})
}

// verify checks a signature by the algorithm that the key is for. The token's own
// alg must agree and never decides: a token that named HS256 would otherwise be
// checked with a public key as the shared secret (RFC 8725 section 3.1).
func (k VerifyKey) verify(alg, signed string, sig []byte) bool {
	sum := sha256.Sum256([]byte(signed))
	switch key := k.Key.(type) {
	case *rsa.PublicKey:
		return alg == "RS256" && rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], sig) == nil
	case *ecdsa.PublicKey:
		return alg == "ES256" && len(sig) == 64 && ecdsa.Verify(key, sum[:], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:]))
	case ed25519.PublicKey:
		return alg == "EdDSA" && len(key) == ed25519.PublicKeySize && ed25519.Verify(key, []byte(signed), sig)
	}
	return false
}

// valid checks times, issuer and audience (RFC 7519 section 4.1). A token without
// an end is refused: it would open the stored responses permanently. The audience
// may be one string or a list.
func (j JWT) valid(claims map[string]any, now time.Time) bool {
	at := func(name string) (time.Time, bool) {
		v, ok := claims[name].(float64)
		return time.Unix(int64(v), 0), ok && math.Abs(v) < 1<<53 // beyond it the conversion may be anything
	}
	if exp, ok := at("exp"); !ok || !now.Before(exp.Add(j.Leeway)) {
		return false
	}
	if _, said := claims["nbf"]; said {
		if nbf, ok := at("nbf"); !ok || now.Add(j.Leeway).Before(nbf) {
			return false
		}
	}
	if j.Issuer != "" && claims["iss"] != j.Issuer {
		return false
	}
	if j.Audience == "" || claims["aud"] == j.Audience {
		return true
	}
	list, _ := claims["aud"].([]any)
	return slices.Contains(list, any(j.Audience))
}
