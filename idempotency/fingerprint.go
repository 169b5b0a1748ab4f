package idempotency

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Digest returns SHA-256 over parts, each with its length, in 43 characters.
func Digest(parts ...string) string { return digest(parts) }

// digest is [Digest] of texts and then of bytes, which may be many.
func digest(parts []string, rest ...[]byte) string {
	h := sha256.New()
	write := func(part []byte) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	for _, p := range parts {
		write([]byte(p))
	}
	for _, b := range rest {
		write(b)
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// Fingerprint is the default of [Options.Fingerprint]: method, path, query in
// any order of its names, media type and body. No other header is part of it,
// since traces, dates, attempt numbers and refreshed tokens differ between the
// attempts of one operation.
func Fingerprint(r *http.Request, body []byte) string {
	return digest([]string{"1", r.Method, r.URL.EscapedPath(), sortedQuery(r.URL.RawQuery), mediaType(r.Header.Get("Content-Type"))}, body)
}

// matches reports whether a record is of the request that c is for. A known key with
// another body, query or path is refused: [Mismatch], which is a 422.
func (c Claim) matches(r *Record) bool { return c.Fingerprint == r.Fingerprint }

// sortedQuery keeps the order of a name's own values. What cannot be read
// stands for itself.
func sortedQuery(raw string) string {
	if raw == "" {
		return ""
	}
	v, err := url.ParseQuery(raw)
	if err != nil {
		pairs := strings.Split(raw, "&")
		slices.Sort(pairs)
		return strings.Join(pairs, "&")
	}
	return v.Encode()
}

// mediaType leaves out the parameters: a client's attempts may differ in charset or
// boundary, and the body distinguishes them where it matters.
func mediaType(v string) string {
	if m, _, err := mime.ParseMediaType(v); err == nil {
		return m
	}
	return strings.ToLower(strings.TrimSpace(v))
}
