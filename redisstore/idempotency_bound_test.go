package redisstore_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"net/http"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/redisstore"
	"github.com/forbear-go/forbear/sqlstore"
)

// sealedBefore returns what the first versions of the cipher have sealed, which bound
// nothing and sealed under the key itself.
func sealedBefore(t *testing.T, k sqlstore.Key, plain string) string {
	t.Helper()
	block, err := aes.NewCipher(k.Secret)
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		t.Fatal(err)
	}
	head := append([]byte{byte(len(k.ID))}, k.ID...)
	return string(aead.Seal(bytes.Clone(head), nil, []byte(plain), head))
}

// Who can write to the server, and has no key, cannot have a caller replay the response of
// another, and what he puts there in the clear is refused once all records are bound. What
// earlier versions have stored is read until then.
func TestResponsesAreBound(t *testing.T) {
	s := startRedis(t)
	emptied(t, s)
	k := sqlstore.NewKey("01ab23cd")
	ring, err := sqlstore.NewCipher(k)
	if err != nil {
		t.Fatal(err)
	}
	i := openKeys(t, s, redisstore.IdempotencyOptions{Cipher: ring})
	bound := openKeys(t, s, redisstore.IdempotencyOptions{Cipher: ring, Bound: true})
	c := client(t, s)
	name := func(key string) string {
		t.Helper()
		return c.Keys(t.Context(), "*:"+idempotency.Digest(key)).Val()[0]
	}
	put := func(key string, fields ...any) {
		t.Helper()
		if err := c.HSet(t.Context(), name(key), fields...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"mine", "yours"} {
		completed(t, i, key, idempotency.Response{Status: 201, Header: http.Header{"Location": {"/" + key}}, Body: []byte("of " + key)})
	}
	mine, yours := c.HGetAll(t.Context(), name("mine")).Val(), c.HGetAll(t.Context(), name("yours")).Val()
	box, err := ring.Seal([]byte("of before"))
	if err != nil {
		t.Fatal(err)
	}
	const refused = ""
	for _, tt := range []struct {
		what          string
		fields        []any
		want, inBound string
	}{
		{"as it was", nil, "of mine", "of mine"},
		{"another's body", []any{"body", yours["body"]}, refused, refused},
		{"another's headers", []any{"header", yours["header"]}, refused, refused},
		{"its headers as its body", []any{"body", mine["header"]}, refused, refused},
		{"all of another's", []any{"header", yours["header"], "body", yours["body"]}, refused, refused},
		{"changed", []any{"body", mine["body"][:len(mine["body"])-1] + "~"}, refused, refused},
		{"in the clear", []any{"sealed", "0", "header", "", "body", "of before"}, "of before", refused},
		{"by an earlier version", []any{"header", sealedBefore(t, k, ""), "body", sealedBefore(t, k, "of before")}, "of before", refused},
		{"without a place", []any{"body", string(box)}, "of before", refused},
	} {
		put("mine", "sealed", "1", "header", mine["header"], "body", mine["body"])
		if len(tt.fields) > 0 {
			put("mine", tt.fields...)
		}
		for of, want := range map[*redisstore.Idempotency]string{i: tt.want, bound: tt.inBound} {
			v, err := of.Claim(t.Context(), claim("mine"))
			got := ""
			if err == nil {
				got = string(v.Record.Response.Body)
			}
			if got != want || (err != nil) != (want == refused) {
				t.Errorf("%s, bound %v: got %q, %v, want %q", tt.what, of == bound, got, err, want)
			}
			if err != nil && strings.Contains(err.Error(), "of ") && strings.Contains(err.Error(), "yours") {
				t.Errorf("%s: the error quotes it: %v", tt.what, err)
			}
		}
	}
	if _, err := redisstore.NewIdempotency(t.Context(), c, redisstore.IdempotencyOptions{Bound: true}); err == nil {
		t.Error("bound without a cipher is taken")
	}
}
