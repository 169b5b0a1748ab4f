package export

import (
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
)

// nginx writes an upstream and a location. Without a budget and a wait, one retry
// at another server is all that is safe.
func nginx(w *writer, t *target) {
	const tries = 2
	w.line("upstream %s {", t.name)
	for _, server := range t.servers {
		w.line("    server %s max_fails=0;", server)
	}
	w.line("}")
	w.line("")
	w.line("server {")
	w.line("    listen 127.0.0.1:10000;")
	w.line("    location / {")
	scheme := "http"
	if t.tls {
		scheme = "https"
		w.line("        proxy_ssl_verify on;")
		w.line("        proxy_ssl_name %s;", t.serverName)
		w.line("        proxy_ssl_server_name on;")
		w.line("        proxy_ssl_trusted_certificate %s;", path(t.authorities()))
		if t.minTLS == "" {
			w.line("        proxy_ssl_protocols TLSv1.2 TLSv1.3;")
		} else {
			w.line("        proxy_ssl_protocols TLSv1.3;")
		}
		if t.cert != "" {
			w.line("        proxy_ssl_certificate %s;", path(t.cert))
			w.line("        proxy_ssl_certificate_key %s;", path(t.key))
		}
	}
	w.line("        proxy_http_version 1.1;") // there are servers that refuse 1.0
	w.line("        proxy_set_header Host %s;", t.authority)
	w.line("        proxy_connect_timeout %s;", milliseconds(t.p.Connect))
	w.line("        proxy_send_timeout %s;", milliseconds(t.attempt))
	w.line("        proxy_read_timeout %s;", milliseconds(t.attempt))
	if t.retries == 0 {
		w.line("        proxy_next_upstream off;")
	} else {
		known, dropped := only(t.statuses, 403, 404, 429, 500, 502, 503, 504)
		words := []string{"error", "timeout"}
		if t.p.Idempotent {
			words = append(words, "non_idempotent")
		}
		for _, status := range known {
			words = append(words, "http_"+strconv.Itoa(status))
		}
		w.line("        proxy_next_upstream %s;", strings.Join(words, " "))
		w.line("        proxy_next_upstream_tries %d;", tries)
		w.line("        proxy_next_upstream_timeout %s;", milliseconds(t.p.Total))
		w.lose("R-1", "no wait between tries", "one retry, at the next server")
		if len(t.servers) == 1 {
			w.lose("R-2", "no retry at the same address", "none until the upstream has several")
		}
		if t.retries > tries-1 {
			w.lose("R-2", "a count without a budget multiplies an outage", "one retry instead of the policy's count")
		}
		if len(dropped) > 0 {
			w.lose("R-4", "it cannot retry "+join(dropped, ", "), "these go to the caller")
		}
		w.lose("R-5", "Retry-After is not read", "the next server is called")
		if t.p.Idempotent {
			w.writes(t)
		} else {
			w.lose("R-6", "idempotency keys are invisible", "POST, LOCK and PATCH are retried only if they were not sent, all other methods always")
		}
		w.lose("R-7", "no retry budget", "one retry at most: twice the load in an outage")
		w.lose("R-9", "a failed TLS handshake is an error like any other", "it is tried at the next server; certificates are verified")
	}
	w.lose("R-3", "its timeout bounds when the last try starts, not when it ends", "each try has a timeout between two reads")
	uri := ""
	if t.path != "" {
		uri = t.path + "$request_uri" // as it came: nginx would decode what it puts a path before
	}
	w.line("        proxy_pass %s://%s%s;", scheme, t.name, uri)
	w.line("    }")
	w.line("}")
}

// haproxy writes a listener with its server. It sees keys, so that writes with one are retried.
func haproxy(w *writer, t *target) {
	retries := min(t.retries, 1)
	w.line("listen %s", t.name)
	w.line("    bind 127.0.0.1:10000")
	w.line("    mode http")
	w.line("    timeout client %s", milliseconds(t.p.Total))
	w.line("    timeout connect %s", milliseconds(t.p.Connect))
	w.line("    timeout server %s", milliseconds(t.attempt))
	w.line("    retries %d", retries)
	if t.retries > 0 {
		known, dropped := only(t.statuses, 401, 403, 404, 408, 425, 500, 501, 502, 503, 504)
		w.line("    option redispatch")
		w.line("    retry-on conn-failure empty-response response-timeout %s", join(known, " "))
		haproxyWrites(w, t)
		w.lose("R-1", "no backoff", "one retry, at once, or within a second if the connection failed")
		if t.retries > retries {
			w.lose("R-2", "a count without a budget multiplies an outage", "one retry instead of the policy's count")
		}
		if len(dropped) > 0 {
			w.lose("R-4", "it cannot retry "+join(dropped, ", "), "these go to the caller")
		}
		w.lose("R-4", "a request larger than a buffer (16 KiB by default) is not kept", "its failure goes to the caller")
		w.lose("R-5", "Retry-After is not read", "the retry is sent all the same")
		w.lose("R-7", "no retry budget", "one retry at most: twice the load in an outage")
		w.lose("R-9", "a failed TLS handshake is a failed connection like any other", "it is retried; certificates are verified")
	}
	w.lose("R-3", "nothing bounds a request and its retries together", "the timeout of each attempt")
	w.line("    http-request set-header Host %s", t.authority)
	if t.path != "" {
		w.line("    http-request set-path %s%%[path]", strings.ReplaceAll(t.path, "%", "%%"))
	}
	rest := haproxyTLS(t)
	for i, server := range t.servers {
		name := t.name
		if i > 0 {
			name += "-" + strconv.Itoa(i+1)
		}
		w.line("    server %s %s init-addr last,libc,none%s", name, server, rest)
	}
}

// haproxyTLS is what a line of a server has of TLS and HTTP/2.
func haproxyTLS(t *target) string {
	switch {
	case !t.tls && t.http2:
		return " proto h2"
	case !t.tls:
		return ""
	}
	words := " ssl verify required ca-file " + path(t.authorities()) + " sni str(" + t.serverName + ") verifyhost " + t.serverName
	if t.minTLS == "" {
		words += " ssl-min-ver TLSv1.2"
	} else {
		words += " ssl-min-ver TLSv1.3"
	}
	if t.cert != "" {
		words += " crt " + path(t.cert)
	}
	if t.http2 {
		words += " alpn h2"
	}
	return words
}

// haproxyWrites keeps writes without a key from being repeated. One that could not be
// sent goes out again whatever is written: disable-l7-retry spares failed connections.
func haproxyWrites(w *writer, t *target) {
	if t.p.Idempotent {
		w.writes(t)
		return
	}
	unless := ""
	w.line("    acl repeatable method %s", strings.ReplaceAll(idempotent, "|", " "))
	if t.keyed() {
		unless = " !keyed"
		w.line("    acl keyed req.hdr(idempotency-key) -m len 1:64")
	}
	w.line("    http-request disable-l7-retry if !repeatable%s", unless)
	if t.p.Keys == forbear.KeyGenerate {
		w.lose("R-6", "no idempotency key is made", "writes are retried if their callers send one")
	}
	if !t.unsent {
		w.lose("R-6", "failed connections are retried for every method", "writes without a key are retried, but only if they were not sent")
	}
}

// path writes the name of a file as a word of nginx or HAProxy.
func path(name string) string {
	if isName(strings.ReplaceAll(name, "/", "")) {
		return name
	}
	return strconv.Quote(name)
}

// milliseconds writes a duration as nginx, HAProxy and Linkerd read it.
func milliseconds(d time.Duration) string {
	if d%time.Second == 0 {
		return seconds(d)
	}
	return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
}
