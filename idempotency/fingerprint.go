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
func Digest(parts ...string) string {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// Fingerprint is the default of [Options.Fingerprint]: method, path, query in
// any order of its names, media type and body. No other header is part of it,
// since traces, dates, attempt numbers and refreshed tokens differ between the
// attempts of one operation.
func Fingerprint(r *http.Request, body []byte) string {
	return Digest("1", r.Method, r.URL.EscapedPath(), sortedQuery(r.URL.RawQuery), mediaType(r.Header.Get("Content-Type")), string(body))
}

// sortedQuery keeps the order of a name's own values. What cannot be read
// stands for itself.
func sortedQuery(raw string) string {
	v, err := url.ParseQuery(raw)
	if err != nil {
		pairs := strings.Split(raw, "&")
		slices.Sort(pairs)
		return strings.Join(pairs, "&")
	}
	return v.Encode()
}

func mediaType(v string) string {
	if m, _, err := mime.ParseMediaType(v); err == nil {
		return m
	}
	return strings.ToLower(strings.TrimSpace(v))
}
