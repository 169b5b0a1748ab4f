package gateway_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/gateway"
)

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// sign makes a token with the given header. The key decides how it is signed;
// nil leaves the signature empty, bytes make an HMAC.
func sign(t *testing.T, head map[string]any, claims map[string]any, key any) string {
	t.Helper()
	part := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b64(b)
	}
	signed := part(head) + "." + part(claims)
	sum := sha256.Sum256([]byte(signed))
	var sig []byte
	var err error
	switch k := key.(type) {
	case nil:
	case []byte:
		mac := hmac.New(sha256.New, k)
		mac.Write([]byte(signed))
		sig = mac.Sum(nil)
	case *rsa.PrivateKey:
		sig, err = rsa.SignPKCS1v15(rand.Reader, k, crypto.SHA256, sum[:])
	case *ecdsa.PrivateKey:
		var r, s *big.Int
		r, s, err = ecdsa.Sign(rand.Reader, k, sum[:])
		sig = append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	case ed25519.PrivateKey:
		sig = ed25519.Sign(k, []byte(signed))
	}
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + b64(sig)
}

func publicPEM(t *testing.T, keys ...any) []byte {
	t.Helper()
	var text []byte
	for _, k := range keys {
		der, err := x509.MarshalPKIXPublicKey(k)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})...)
	}
	return text
}

// jwks writes a key set as an identity provider does.
func jwks(t *testing.T, rs *rsa.PublicKey, es *ecdsa.PublicKey, ed ed25519.PublicKey) []byte {
	t.Helper()
	point, err := es.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Appendf(nil, `{"keys":[
		{"kty":"RSA","use":"enc","kid":"e","n":"AQAB","e":"AQAB"},
		{"kty":"RSA","use":"sig","kid":"r","alg":"RS256","n":%q,"e":"AQAB"},
		{"kty":"EC","crv":"P-256","kid":"s","x":%q,"y":%q},
		{"kty":"OKP","crv":"Ed25519","kid":"d","x":%q}]}`, b64(rs.N.Bytes()), b64(point[1:33]), b64(point[33:]), b64(ed))
}

func TestJWTKeys(t *testing.T) {
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	es, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text := publicPEM(t, &rs.PublicKey)
	in := time.Now().Add(time.Hour).Unix()
	good := map[string]any{"sub": "ann", "tenant": "t7", "exp": in, "aud": "pay", "iss": "https://id.example"}
	but := func(name string, v any) map[string]any {
		c := maps.Clone(good)
		if c[name] = v; v == nil {
			delete(c, name)
		}
		return c
	}
	head := func(alg string, more ...string) map[string]any {
		h := map[string]any{"alg": alg, "typ": "JWT"}
		for i := 0; i+1 < len(more); i += 2 {
			h[more[i]] = more[i+1]
		}
		return h
	}
	for source, data := range map[string][]byte{
		"PEM":  publicPEM(t, &rs.PublicKey, &es.PublicKey, public),
		"JWKS": jwks(t, &rs.PublicKey, &es.PublicKey, public),
	} {
		keys, err := gateway.ReadKeys(data)
		if err != nil || len(keys) != 3 {
			t.Fatalf("%s: %d keys, %v", source, len(keys), err)
		}
		j := gateway.JWT{Claim: "sub", Keys: keys, Audience: "pay", Issuer: "https://id.example"}
		for name, tt := range map[string]struct {
			token string
			want  string
		}{
			"RS256":                {sign(t, head("RS256"), good, rs), "https://id.example ann"},
			"RS256 by kid":         {sign(t, head("RS256", "kid", "r"), good, rs), "https://id.example ann"},
			"ES256":                {sign(t, head("ES256", "kid", "s"), good, es), "https://id.example ann"},
			"EdDSA":                {sign(t, head("EdDSA", "kid", "d"), good, ed), "https://id.example ann"},
			"alg none":             {sign(t, head("none"), good, nil), ""},
			"alg None":             {sign(t, head("None"), good, nil), ""},
			"no alg":               {sign(t, head(""), good, rs), ""},
			"HMAC of the PEM":      {sign(t, head("HS256"), good, text), ""},
			"HMAC of the modulus":  {sign(t, head("HS256"), good, rs.N.Bytes()), ""},
			"RSA under ES256":      {sign(t, head("ES256"), good, rs), ""},
			"RSA under RS512":      {sign(t, head("RS512"), good, rs), ""},
			"ECDSA under RS256":    {sign(t, head("RS256"), good, es), ""},
			"a stranger's key":     {sign(t, head("ES256"), good, stranger), ""},
			"expired":              {sign(t, head("ES256"), but("exp", time.Now().Add(-time.Minute).Unix()), es), ""},
			"no end":               {sign(t, head("ES256"), but("exp", nil), es), ""},
			"end is text":          {sign(t, head("ES256"), but("exp", "tomorrow"), es), ""},
			"not yet":              {sign(t, head("ES256"), but("nbf", in), es), ""},
			"other audience":       {sign(t, head("ES256"), but("aud", "ship"), es), ""},
			"other audiences":      {sign(t, head("ES256"), but("aud", []string{"ship", "mail"}), es), ""},
			"one of the audiences": {sign(t, head("ES256"), but("aud", []string{"ship", "pay"}), es), "https://id.example ann"},
			"no audience":          {sign(t, head("ES256"), but("aud", nil), es), ""},
			"other issuer":         {sign(t, head("ES256"), but("iss", "https://evil.example"), es), ""},
			"no claim":             {sign(t, head("ES256"), but("sub", nil), es), ""},
			"claim is a number":    {sign(t, head("ES256"), but("sub", 7), es), ""},
			"critical extension":   {sign(t, map[string]any{"alg": "ES256", "crit": []string{"b64"}, "b64": false}, good, es), ""},
			"signature cut":        {sign(t, head("ES256"), good, es)[:100], ""},
			"claims swapped": {func() string {
				p := strings.Split(sign(t, head("ES256"), good, es), ".")
				return p[0] + "." + strings.Split(sign(t, head("ES256"), but("sub", "bob"), stranger), ".")[1] + "." + p[2]
			}(), ""},
		} {
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			r.Header.Set("Authorization", "Bearer "+tt.token)
			if got, err := j.Principal(r); got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("%s, %s: got %q, %v; want %q", source, name, got, err, tt.want)
			}
		}
	}
	// A kid that is another key's is refused although the key is in the set.
	keys, _ := gateway.ReadKeys(jwks(t, &rs.PublicKey, &es.PublicKey, public))
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set("Authorization", "Bearer "+sign(t, head("ES256", "kid", "r"), good, es))
	if got, err := (gateway.JWT{Claim: "sub", Keys: keys}).Principal(r); err == nil {
		t.Errorf("kid of another key: got %q", got)
	}
}

func TestReadKeysRefuses(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(curve)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"nothing":           "",
		"text":              "hello",
		"empty set":         `{"keys":[]}`,
		"not a set":         `{"keys":7}`,
		"short RSA":         string(publicPEM(t, &weak.PublicKey)),
		"another curve":     string(publicPEM(t, &curve.PublicKey)),
		"private":           string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
		"private in a set":  `{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA","d":"AA"}]}`,
		"shared key":        `{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}`,
		"not on the curve":  `{"keys":[{"kty":"EC","crv":"P-256","x":"AQ","y":"AQ"}]}`,
		"short RSA in set":  `{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}`,
		"RSA exponent 1":    `{"keys":[{"kty":"RSA","n":"AQAB","e":"AQ"}]}`,
		"garbage in a PEM":  "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
		"short Ed25519":     `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AQAB"}]}`,
		"too many":          `{"keys":[` + strings.TrimSuffix(strings.Repeat(`{"kty":"OKP","crv":"Ed25519","x":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},`, 65), ",") + `]}`,
		"larger than a set": strings.Repeat(" ", 1<<20+1),
	} {
		if keys, err := gateway.ReadKeys([]byte(data)); err == nil {
			t.Errorf("%s: got %d keys", name, len(keys))
		} else if strings.Contains(err.Error(), "c2VjcmV0") {
			t.Errorf("%s: the error shows the key: %v", name, err)
		}
	}
}

// FuzzReadKeys looks for a set of keys that makes the gateway panic.
func FuzzReadKeys(f *testing.F) {
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","x":"AQ","y":"AQ"}]}`))
	f.Add([]byte("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		keys, err := gateway.ReadKeys(data)
		if (err == nil) != (len(keys) > 0) {
			t.Errorf("%d keys, %v", len(keys), err)
		}
	})
}

// FuzzJWT looks for a token that is taken although nobody signed it.
func FuzzJWT(f *testing.F) {
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		f.Fatal(err)
	}
	j := gateway.JWT{Claim: "sub", Keys: []gateway.VerifyKey{{Key: public}}}
	f.Add("Bearer e30.e30.")
	f.Add("Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.")
	f.Fuzz(func(t *testing.T, value string) {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header["Authorization"] = []string{value}
		if got, err := j.Principal(r); err == nil {
			t.Errorf("%q is %q", value, got)
		}
	})
}
