package idempotency

import (
	"bytes"
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

// smallDigest is how many bytes are put together before they are hashed, which
// costs no allocation.
const smallDigest = 512

// digest is [Digest] of texts and then of bytes, which may be many.
func digest(parts []string, rest ...[]byte) string {
	var small [smallDigest]byte
	text := small[:0]
	for _, p := range parts {
		text = append(binary.BigEndian.AppendUint64(text, uint64(len(p))), p...)
	}
	var sum [sha256.Size]byte
	size := len(text)
	for _, b := range rest {
		size += 8 + len(b)
	}
	if size <= smallDigest {
		for _, b := range rest {
			text = append(binary.BigEndian.AppendUint64(text, uint64(len(b))), b...)
		}
		sum = sha256.Sum256(text)
	} else {
		h := sha256.New()
		h.Write(bytes.Clone(text)) // what is handed to h leaves the stack
		for _, b := range rest {
			h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
			h.Write(b)
		}
		h.Sum(sum[:0])
	}
	var out [43]byte
	base64.RawURLEncoding.Encode(out[:], sum[:])
	return string(out[:])
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
	if plain(v) {
		return v
	}
	if m, _, err := mime.ParseMediaType(v); err == nil {
		return m
	}
	return strings.ToLower(strings.TrimSpace(v))
}

// plain reports whether a media type comes without parameters and in lower case,
// as most do: it then stands for itself.
func plain(v string) bool {
	for i := range len(v) {
		switch c := v[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '/', c == '-', c == '+', c == '.':
		default:
			return false
		}
	}
	return true
}
