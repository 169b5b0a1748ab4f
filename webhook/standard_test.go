package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"
)

// What the libraries of Standard Webhooks (Go, JavaScript, Python, Ruby) test with, and
// the signature that all of them expect.
const (
	standardID     = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	standardBody   = `{"test": 2432232314}`
	standardTime   = 1614265330
	standardSecret = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	standardSum    = "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	standardOther  = "Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="
)

// standardSign signs as the specification says, without this package.
func standardSign(t *testing.T, secret, body string) string {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(secret)
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(standardID + "." + strconv.Itoa(standardTime) + "." + body))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// TestStandardWebhooks: requests that the libraries take or refuse.
func TestStandardWebhooks(t *testing.T) {
	good := "v1," + standardSum
	for _, tt := range []struct {
		name, id, stamp, signature, body string
		late                             time.Duration // the receiver's clock after the timestamp
		ok                               bool
	}{
		{name: "the published signature", signature: good, ok: true},
		{name: "the third of four", signature: "v1," + standardOther + " v2," + standardOther + " " + good + " v1," + standardOther, ok: true},
		{name: "an empty body", signature: standardSign(t, standardSecret, ""), body: "-", ok: true},
		{name: "five minutes old", signature: good, late: Tolerance, ok: true},
		{name: "five minutes early", signature: good, late: -Tolerance, ok: true},
		{name: "older", signature: good, late: Tolerance + time.Second},
		{name: "newer", signature: good, late: -Tolerance - time.Second},
		{name: "no id", id: "-", signature: good},
		{name: "no timestamp", stamp: "-", signature: good},
		{name: "a word as timestamp", stamp: "hello", signature: good},
		{name: "the timestamp of another day", stamp: "946684800", signature: good},
		{name: "no signature"},
		{name: "of another request", signature: "v1," + standardOther},
		{name: "one character differs", signature: good[:len(good)-2] + "A="},
		{name: "cut short", signature: good[:8]},
		{name: "a version alone", signature: "v1,"},
		{name: "no version", signature: standardSum},
		{name: "another version", signature: "v2," + standardSum},
		{name: "the version of public keys", signature: "v1a," + standardSum},
		{name: "not base64", signature: "v1,dawfeoifkpqwoekfpqoekf"},
		{name: "another end, without padding", signature: good[:len(good)-5] + "awdd"},
	} {
		field := func(given, standard string) string {
			return map[string]string{"": standard, "-": ""}[given] + strings.TrimPrefix(given, "-")
		}
		err := Verify(standardSecret, field(tt.id, standardID), field(tt.stamp, strconv.Itoa(standardTime)), tt.signature,
			[]byte(field(tt.body, standardBody)), time.Unix(standardTime, 0).Add(tt.late))
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, ErrSignature) {
			t.Errorf("%s: got %v, want it accepted: %v", tt.name, err, tt.ok)
		}
	}
}

// TestStandardWebhooksSecrets: the spellings of a secret that the libraries take. All
// of them sign and verify as the spelling of the specification does.
func TestStandardWebhooksSecrets(t *testing.T) {
	now := time.Unix(standardTime, 0)
	for _, padded := range []string{
		standardSecret,              // 24 bytes need no padding
		standardSecret + "Br==",     // 25
		standardSecret + "Bry=",     // 26, with bits beyond the last byte
		NewSecret()[len("whsec_"):], // 32
	} {
		want := standardSign(t, padded, standardBody)
		for _, secret := range []string{padded, "whsec_" + padded, strings.TrimRight(padded, "="), "whsec_" + strings.TrimRight(padded, "=")} {
			var s Signer
			if err := s.Add(secret); err != nil {
				t.Errorf("%s: %v", secret, err)
			} else if got := s.Sign(standardID, now, []byte(standardBody)); got != want {
				t.Errorf("%s: signed %s, want %s", secret, got, want)
			}
			if err := Verify(secret, standardID, strconv.Itoa(standardTime), want, []byte(standardBody), now); err != nil {
				t.Errorf("%s: %v", secret, err)
			}
		}
	}
	_, public := NewKeyPair()
	if _, err := verifier(strings.TrimRight(public, "="), nil); err != nil {
		t.Errorf("a public key without padding: %v", err)
	}
}

// TestUnusableSecret: a receiver can tell its own misconfigured secret from a forgery,
// whatever arrives. Python's library takes the one of 23 bytes; the specification wants
// 24 and more.
func TestUnusableSecret(t *testing.T) {
	private, public := NewKeyPair()
	for name, secret := range map[string]string{
		"empty":            "",
		"a prefix alone":   "whsec_",
		"a password":       "correct horse battery staple, twice",
		"a phrase":         "changemechangemechangemechangeme",
		"a path":           "/run/secrets/webhook/signing/key",
		"letters, short":   "hunter2hunter2",
		"23 bytes":         standardSecret[:31],
		"65 bytes":         base64.RawStdEncoding.EncodeToString(make([]byte, 65)),
		"wrong padding":    standardSecret + "=",
		"padding too long": "whsec_" + standardSecret + "Bry==",
		"base64url":        standardSecret[:30] + "-_",
		"another prefix":   "sk_" + standardSecret,
		"the private key":  private,
		"public, cut":      public[:len(public)-8],
		"public, bare":     "whpk_",
	} {
		for _, stamp := range []string{strconv.Itoa(standardTime), "1", ""} {
			err := Verify(secret, standardID, stamp, "v1,"+standardSum, []byte(standardBody), time.Unix(standardTime, 0))
			if !errors.Is(err, ErrInvalid) || errors.Is(err, ErrSignature) || !strings.Contains(err.Error(), ": want wh") {
				t.Errorf("%s, timestamp %q: got %v", name, stamp, err)
			} else if len(secret) > 6 && strings.Contains(err.Error(), secret[6:]) {
				t.Errorf("%s: the error shows the secret", name)
			}
		}
	}
}
