package faulttable

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"

	"github.com/forbear-go/forbear"
)

// responses are faults that come as a status, and responses that are none.
var responses = []fault{
	{name: "200", serve: ok},
	{name: "200, HEAD", method: http.MethodHead, serve: says(200)},
	{name: "500 once", serve: once(says(500)), why: "R-4"},
	{name: "502 once", serve: once(says(502)), why: "R-4"},
	{name: "503 once", serve: once(says(503)), why: "R-4"},
	{name: "504 once", serve: once(says(504)), why: "R-4"},
	{name: "408 once", serve: once(says(408, "Connection: close")), why: "R-4"},
	{name: "503 once, HEAD", method: http.MethodHead, serve: once(says(503)), want: "", why: "R-4"},
	{name: "503 once, PUT", method: http.MethodPut, body: payload, serve: once(says(503)), why: "R-4"},
	{name: "503 once, PUT of a streamed body", method: http.MethodPut, body: streamed, serve: once(says(503)), why: "kept for replay, up to 64 KiB"},
	{name: "503 once, POST", body: payload, serve: once(says(503)), why: "R-6: no key, no retry"},
	{name: "503 once, POST with a key", body: payload, key: true, serve: once(says(503)), why: "R-6"},
	{name: "503 for ever", serve: says(503), retried: true, why: "R-4; after the retries, the server's own response"},
	{name: "503 once, its body cut", serve: once(sendsAndCloses("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 100\r\n\r\nbusy")), why: "R-4; a response that is given up may be broken"},
	{name: "429 once, Retry-After: 0", serve: once(says(429, "Retry-After: 0")), why: "R-4, R-5"},
	{name: "503, Retry-After: 3600", serve: says(503, "Retry-After: 3600"), why: "R-5: what does not fit into the total ends the call at once"},
	{name: "429, x-ms-retry-after-ms: 3600000", serve: says(429, "x-ms-retry-after-ms: 3600000"), why: "R-5: Azure, in milliseconds; it does not fit"},
	{name: "503, x-amz-retry-after: 3600000", serve: says(503, "x-amz-retry-after: 3600000"), why: "R-5: AWS, in milliseconds; it does not fit"},
	{name: "429, X-RateLimit-Reset-After: 3600.5", serve: says(429, "X-RateLimit-Reset-After: 3600.5"), why: "R-5: Discord, in seconds; it does not fit"},
	{name: "503, x-ratelimit-reset-requests: 60m0s", serve: says(503, "x-ratelimit-reset-requests: 60m0s"), why: "R-5: OpenAI, a duration; it does not fit"},
	{name: "429, anthropic-ratelimit-tokens-reset: 2126-11-20T12:00:30Z", serve: says(429, "anthropic-ratelimit-tokens-reset: 2126-11-20T12:00:30Z"), why: "R-5: Anthropic, RFC 3339; it does not fit"},
	{
		name: "429 once, tokens left until an hour from now", why: "R-4: the other limit is the cause",
		serve: once(says(429, "x-ratelimit-reset-tokens: 60m0s", "x-ratelimit-remaining-tokens: 149984", "x-ratelimit-reset-requests: 1ms", "x-ratelimit-remaining-requests: 0")),
	},
	{name: "404", serve: says(404), why: "R-4: terminal"},
	{name: "409", serve: says(409), why: "R-4: terminal"},
	{name: "gzip", serve: sends(gzipped()), why: "decoded by net/http"},
	{name: "gzip after 503", serve: then(says(503), sends(gzipped())), why: "R-4"},
	{name: "trailers", serve: sends(chunked("X-Sum: 7\r\n", fine)), use: wantsTrailer},
	{name: "103 before 200", serve: sends("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine")},
	{
		name: "101, then an echo", serve: upgrades, header: http.Header{"Connection": {"Upgrade"}, "Upgrade": {"echo"}}, policy: brief, use: echoes,
		why: "the connection is the caller's; it is idle for longer than per_attempt",
	},
	{name: "307, POST", body: payload, serve: redirects},
	{name: "307, POST with a key", body: payload, key: true, serve: redirects},
	{name: "307 after 503, POST with a key", body: payload, key: true, serve: then(says(503), redirects), why: "R-6"},
	{name: "cookie of the last response, after 503", serve: then(says(503), sends("HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nContent-Length: 4\r\n\r\nfine")), use: keepsCookie},
	{
		name: "cookie of a 503 that is retried", serve: once(says(503, "Set-Cookie: a=1")), use: keepsCookie,
		why: "an http.Client gives its jar the last response only",
	},
	{name: "cookie of a 503 for ever", serve: says(503, "Set-Cookie: a=1"), use: keepsCookie, retried: true, why: "R-4"},
	{name: "header of 64 KiB after 503", serve: then(says(503), sends("HTTP/1.1 200 OK\r\nX-Long: "+strings.Repeat("x", 64<<10)+"\r\nContent-Length: 4\r\n\r\nfine")), why: "R-4"},
	{name: "429 for ever, no retries allowed", serve: says(429), policy: func(p *forbear.Policy) { p.Disabled = true }},
}

// chunked is a good response in chunks, with the lines of its trailer.
func chunked(trailer string, chunks ...string) string {
	var b strings.Builder
	b.WriteString("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n")
	if name, _, ok := strings.Cut(trailer, ":"); ok {
		b.WriteString("Trailer: " + name + "\r\n")
	}
	b.WriteString("\r\n")
	for _, chunk := range chunks {
		b.WriteString(chunkOf(chunk))
	}
	b.WriteString("0\r\n" + trailer + "\r\n")
	return b.String()
}

func gzipped() string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, fine)
	_ = z.Close()
	return "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: " + count(b.Len()) + "\r\n\r\n" + b.String()
}

// wantsTrailer looks at the trailer after the body.
func wantsTrailer(c *caller) response {
	resp, err := c.client.Do(c.request("/"))
	if err != nil {
		return response{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	r := response{status: resp.StatusCode, body: string(body), read: err, note: "with its trailer"}
	if resp.Trailer.Get("X-Sum") != "7" {
		r.note, r.flawed = "trailer lost", true
	}
	return r
}

// upgrades is a server that echoes lines once the connection is its own.
func upgrades(c *conn, req *http.Request, _ int) bool {
	if !c.take(req) || !c.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n") {
		return false
	}
	_, _ = io.Copy(c, c.r)
	return false
}

// echoes talks to it, with a pause that is longer than an attempt.
func echoes(c *caller) response {
	resp, err := c.client.Do(c.request("/"))
	if err != nil {
		return response{err: err}
	}
	defer resp.Body.Close()
	r := response{status: resp.StatusCode, note: "echoed"}
	duplex, ok := resp.Body.(io.ReadWriter)
	if !ok {
		r.note, r.flawed = "cannot be written to", true
		return r
	}
	for range 2 {
		if _, r.read = io.WriteString(duplex, fine); r.read != nil {
			return r
		}
		got := make([]byte, len(fine))
		if _, r.read = io.ReadFull(duplex, got); r.read != nil || string(got) != fine {
			return r
		}
		pause(pausing)
	}
	return r
}

// redirects sends the client from any path to another one.
func redirects(c *conn, req *http.Request, n int) bool {
	if req.URL.Path == "/moved" {
		return ok(c, req, n)
	}
	// The body is read but nothing is carried out here.
	_, _ = io.Copy(io.Discard, req.Body)
	return c.write("HTTP/1.1 307 Temporary Redirect\r\nLocation: /moved\r\nContent-Length: 0\r\n\r\n")
}

// keepsCookie looks for the cookie in the client's jar.
func keepsCookie(c *caller) response {
	jar, err := cookiejar.New(nil)
	if err != nil {
		c.Fatal(err)
	}
	c.client.Jar = jar
	r := c.once()
	r.note = "cookie kept"
	if len(jar.Cookies(&url.URL{Scheme: "http", Host: host, Path: "/"})) == 0 {
		r.note, r.flawed = "cookie lost", true
	}
	return r
}
