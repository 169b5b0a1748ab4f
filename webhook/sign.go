package webhook

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The prefixes of Standard Webhooks.
const (
	secretPrefix  = "whsec_" // a symmetric secret, 24 to 64 bytes
	privatePrefix = "whsk_"  // an ed25519 private key or its seed
	publicPrefix  = "whpk_"
)

// Signer makes the webhook-signature of an attempt, with all secrets of an
// endpoint: while a secret is rotated the receiver may know either. The zero
// value signs nothing. Sign is safe for concurrent use, Add is not.
type Signer struct {
	hmacKeys []*sync.Pool // of hash.Hash: one that was used before starts quicker
	keys     []ed25519.PrivateKey
}

// ParseSecret checks a signing secret. Its error does not show the secret.
func ParseSecret(secret string) error { return new(Signer).Add(secret) }

// NewSecret returns a random symmetric secret of 32 bytes.
func NewSecret() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(b)
}

// NewKeyPair returns a random ed25519 secret for the endpoint and the public
// key that its receiver verifies with.
func NewKeyPair() (secret, public string) {
	pub, key, _ := ed25519.GenerateKey(rand.Reader) // never fails
	return privatePrefix + base64.StdEncoding.EncodeToString(key), publicPrefix + base64.StdEncoding.EncodeToString(pub)
}

// NewSecretLike returns a random secret of the kind of another one.
func NewSecretLike(secret string) string {
	if strings.HasPrefix(secret, privatePrefix) {
		made, _ := NewKeyPair()
		return made
	}
	return NewSecret()
}

// PublicKey returns the public key of an ed25519 secret, which its receivers verify
// with; "" for any other.
func PublicKey(secret string) string {
	var s Signer
	if !strings.HasPrefix(secret, privatePrefix) || s.Add(secret) != nil {
		return ""
	}
	return publicPrefix + base64.StdEncoding.EncodeToString(s.keys[0].Public().(ed25519.PublicKey))
}

// secretRule is what errors about secrets say to write.
const secretRule = "want whsec_ and the base64 of 24 to 64 bytes, or whsk_ and an ed25519 key"

// letters are those that a random secret has some of, and a path or a phrase may not.
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// Add adds a secret to sign with. A text without a prefix is a symmetric secret, and
// padding may be missing, as in the libraries of Standard Webhooks; one without capitals
// and digits is a path or a phrase, and is refused. Its error matches [ErrInvalid] and
// does not show the secret.
func (s *Signer) Add(secret string) error {
	kind, text := secretPrefix, secret
	if name, after, found := strings.Cut(secret, "_"); found {
		kind, text = name+"_", after
	}
	raw, err := decode(text)
	switch {
	case kind != secretPrefix && kind != privatePrefix || err != nil:
		return fmt.Errorf("%w secret: %s", ErrInvalid, secretRule)
	case kind == secretPrefix && (len(raw) < 24 || len(raw) > 64):
		return fmt.Errorf("%w secret of %d bytes: %s", ErrInvalid, len(raw), secretRule)
	case text == secret && !strings.ContainsAny(text, letters):
		return fmt.Errorf("%w secret, a path or a phrase: %s", ErrInvalid, secretRule)
	case kind == secretPrefix:
		s.hmacKeys = append(s.hmacKeys, &sync.Pool{New: func() any { return hmac.New(sha256.New, raw) }})
	case len(raw) == ed25519.SeedSize || len(raw) == ed25519.PrivateKeySize: // which begins with its seed
		s.keys = append(s.keys, ed25519.NewKeyFromSeed(raw[:ed25519.SeedSize]))
	default:
		return fmt.Errorf("%w secret: an ed25519 key of %d bytes, want 32 or 64", ErrInvalid, len(raw))
	}
	return nil
}

// decode reads the base64 of a key, with its padding or without.
func decode(text string) ([]byte, error) {
	if strings.Contains(text, "=") {
		return base64.StdEncoding.DecodeString(text)
	}
	return base64.RawStdEncoding.DecodeString(text)
}

// Empty reports whether there is nothing to sign with.
func (s *Signer) Empty() bool { return len(s.hmacKeys) == 0 && len(s.keys) == 0 }

// Sign returns the value of webhook-signature: one signature for each secret,
// separated by spaces. What is signed is "id.timestamp.body", so that neither the
// id nor the time can be exchanged. An id that could be taken for more than one, with a
// dot or with an invisible character, gets no signature: the value is empty, and
// [Verify] refuses it. [Message.SentID] is never one.
func (s *Signer) Sign(id string, at time.Time, body []byte) string {
	if !signable(id) {
		return ""
	}
	head := make([]byte, 0, 160)
	head = append(append(head, id...), '.')
	head = append(strconv.AppendInt(head, at.Unix(), 10), '.')
	var sum [sha256.Size]byte
	out := make([]byte, 0, 64)
	for _, key := range s.hmacKeys {
		mac := key.Get().(hash.Hash)
		mac.Reset()
		mac.Write(head)
		mac.Write(body)
		out = appendSignature(out, "v1,", mac.Sum(sum[:0]))
		key.Put(mac)
	}
	for _, key := range s.keys {
		out = appendSignature(out, "v1a,", ed25519.Sign(key, append(head, body...)))
	}
	return string(out)
}

// signable reports whether an id ends where the text that is signed says so. With a
// dot in it, "id.timestamp.body" could be divided elsewhere: one signature would
// hold for another id, time and body (Standard Webhooks, signature scheme).
func signable(id string) bool { return visible(id, maxID) && !strings.Contains(id, ".") }

// appendSignature adds one signature to the header's value, behind its version.
func appendSignature(out []byte, version string, sum []byte) []byte {
	if len(out) > 0 {
		out = append(out, ' ')
	}
	return base64.StdEncoding.AppendEncode(append(out, version...), sum)
}

// ErrSignature is what errors of [Verify] match that are about the request.
var ErrSignature = errors.New("webhook signature refused")

// Tolerance is how far a timestamp may be from the receiver's clock. It bounds
// how long an attempt that was recorded on its way can be replayed.
const Tolerance = 5 * time.Minute

// Verify is for receivers in Go: it checks the three headers of an attempt
// against a secret ("whsec_...", or without the prefix) or a public key ("whpk_...").
// body has to be what arrived, byte for byte: JSON that was decoded and encoded again
// does not match.
// An id with a dot, or a timestamp that is not digits alone, is refused whatever its
// signature: the same signature would hold for another message.
//
// A request that is refused gets an error that matches [ErrSignature]: respond 401. A
// secret that cannot be used is the receiver's own fault and matches [ErrInvalid],
// whatever the request: respond 503, and the sender tries again.
func Verify(secret, id, timestamp, signature string, body []byte, now time.Time) error {
	content := []byte(id + "." + timestamp + "." + string(body))
	check, err := verifier(secret, content)
	if err != nil {
		return err
	}
	if id == "" || strings.Contains(id, ".") {
		return fmt.Errorf("%w: the id is empty or has a dot", ErrSignature)
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || strings.Trim(timestamp, "0123456789") != "" {
		return fmt.Errorf("%w: timestamp is not a number", ErrSignature)
	}
	if off := now.Sub(time.Unix(seconds, 0)); off > Tolerance || off < -Tolerance {
		return fmt.Errorf("%w: timestamp is more than %v off", ErrSignature, Tolerance)
	}
	for one := range strings.FieldsSeq(signature) {
		version, text, _ := strings.Cut(one, ",")
		if sum, err := base64.StdEncoding.DecodeString(text); err == nil && check(version, sum) {
			return nil
		}
	}
	return fmt.Errorf("%w: no signature matches", ErrSignature)
}

// verifier returns what checks one signature of content. Each version of the
// scheme belongs to one kind of key, so that a receiver cannot be made to take a
// public key for a symmetric secret.
func verifier(secret string, content []byte) (func(version string, sum []byte) bool, error) {
	if text, ok := strings.CutPrefix(secret, publicPrefix); ok {
		key, err := decode(text)
		if err != nil || len(key) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("%w public key: want %s and the base64 of 32 bytes", ErrInvalid, publicPrefix)
		}
		return func(version string, sum []byte) bool {
			return version == "v1a" && ed25519.Verify(key, content, sum)
		}, nil
	}
	var s Signer
	if err := s.Add(secret); err != nil || len(s.hmacKeys) != 1 {
		return nil, fmt.Errorf("%w secret: want whsec_ and the base64 of 24 to 64 bytes, or the public key, whpk_", ErrInvalid)
	}
	mac := s.hmacKeys[0].Get().(hash.Hash)
	mac.Write(content)
	want := mac.Sum(nil)
	return func(version string, sum []byte) bool { return version == "v1" && hmac.Equal(sum, want) }, nil
}
