package smuggling

import "strings"

const (
	names    = "9110 5.1, 9112 5.1: a field name is a token, and the colon follows at once"
	values   = "9110 5.5: refused"
	lineEnds = "9112 2.2: a line ends in CRLF, and a bare CR or LF is none of it. net/http would take it for an end"
)

// heads are about field lines.
var heads = []probe{
	{name: "a space before the colon", why: names, want: refused(400), send: get + "X-A : 1\r\n\r\n"},
	{name: "a tab before the colon", why: names, want: refused(400), send: get + "X-A\t: 1\r\n\r\n"},
	{name: "a space inside a name", why: names, want: refused(400), send: get + "X A: 1\r\n\r\n"},
	{name: "an empty name", why: names, want: refused(400), send: get + ": 1\r\n\r\n"},
	{name: "no colon", why: names, want: refused(400), send: get + "X-A\r\n\r\n"},
	{name: "a name with a control character", why: names, want: refused(400), send: get + "X-\x01A: 1\r\n\r\n"},
	{name: "a name with a NUL", why: names, want: refused(400), send: get + "X-\x00A: 1\r\n\r\n"},
	{name: "a name with DEL", why: names, want: refused(400), send: get + "X-\x7fA: 1\r\n\r\n"},
	{name: "a name beyond ASCII", why: names, want: refused(400), send: get + "X-\xc3\x84: 1\r\n\r\n"},
	{name: "a name with a slash", why: names, want: refused(400), send: get + "X/A: 1\r\n\r\n"},
	{name: "a name with an at sign", why: names, want: refused(400), send: get + "X@A: 1\r\n\r\n"},
	{name: "a name of odd but allowed characters", why: "9110 5.6.2: a token", want: passed(gotGET, "!#$%&'*+-.^_`|~0: 1"), send: get + "!#$%&'*+-.^_`|~0: 1\r\n\r\n"},
	{name: "a value with a NUL", why: values, want: refused(400), send: get + "X-A: a\x00b\r\n\r\n"},
	{name: "a value with a control character", why: values, want: refused(400), send: get + "X-A: a\x01b\r\n\r\n"},
	{name: "a value with DEL", why: values, want: refused(400), send: get + "X-A: a\x7fb\r\n\r\n"},
	{name: "a value with a vertical tab", why: values, want: refused(400), send: get + "X-A: a\vb\r\n\r\n"},
	{name: "a value with a tab", why: "9110 5.5: allowed", want: passed(gotGET, "X-A: a\tb"), send: get + "X-A: a\tb\r\n\r\n"},
	{name: "a value beyond ASCII", why: "9110 5.5: obs-text, passed on as it came", want: passed(gotGET, "X-A: \xc3\xa4\xff"), send: get + "X-A: \xc3\xa4\xff\r\n\r\n"},
	{name: "an empty value", why: "9110 5.5", want: passed(gotGET, "X-A: "), send: get + "X-A:\r\n\r\n"},
	{name: "a value with space around it", why: "9110 5.5: white space around a value is none of it", want: passed(gotGET, "X-A: 1"), send: get + "X-A: \t 1 \t\r\n\r\n"},
	{name: "a field twice", why: "9110 5.3: in the order that they came", want: passed(gotGET, "X-A: 2", "X-A: 1"), send: get + "X-A: 2\r\nX-A: 1\r\n\r\n"},
	{name: "a value with commas and quotes", why: "9110 5.6: byte for byte", want: passed(gotGET, `X-A: a,, "b,\"c" ; d`), send: get + `X-A: a,, "b,\"c" ; d` + "\r\n\r\n"},
	{name: "a folded value", why: "9112 5.2: refused", want: refused(400), send: get + "X-A: a\r\n b\r\n\r\n"},
	{name: "a value folded by a tab", why: "9112 5.2", want: refused(400), send: get + "X-A: a\r\n\tb\r\n\r\n"},
	{name: "a folded line that hides a field", why: "9112 5.2", want: refused(400), send: get + "X-A: a\r\n Content-Length: 5\r\n\r\nhello"},
	{name: "space before the first field", why: "9112 2.2", want: refused(400), send: "GET /up/x HTTP/1.1\r\n X-A: 1\r\n" + host + "\r\n"},
	{name: "an empty line with a space", why: "9112 5.2: a fold, not the end", want: refused(400), send: get + "X-A: a\r\n \r\n\r\n"},
	{name: "a line feed that ends a field", why: lineEnds, want: refused(400), send: get + "X-A: 1\nX-B: 2\r\n\r\n"},
	{name: "a line feed that ends the header section", why: lineEnds, want: refused(400), send: get + "X-A: 1\r\n\n" + smuggled},
	{name: "line feeds only", why: lineEnds, want: refused(400), send: strings.ReplaceAll(get+"\r\n", "\r\n", "\n")},
	{name: "a length behind a line feed", why: lineEnds, want: refused(400), send: post + "X-A: 1\nContent-Length: 49\r\n\r\n" + smuggled},
	{name: "a carriage return in a value", why: values, want: refused(400), send: get + "X-A: 1\rX-B: 2\r\n\r\n"},
	{name: "two carriage returns before the line feed", why: values, want: refused(400), send: get + "X-A: 1\r\r\n\r\n"},
	{name: "a carriage return that ends the header section", why: "9112 2.2: it ends nothing", want: refused(400), send: get + "X-A: 1\r\n\r" + "X: y\r\n\r\n"},
	{name: "header section of 200 KiB", why: "9110 5.4: within the limit of 256 KiB", shown: "200 fields of 1 KiB", want: passed(gotGET), send: get + strings.Repeat("X-A: "+strings.Repeat("a", 1017)+"\r\n", 200) + "\r\n"},
	{name: "header section over 256 KiB", why: "9110 5.4; 6585 5", shown: "400 fields of 1 KiB", want: refused(431), send: get + strings.Repeat("X-A: "+strings.Repeat("a", 1017)+"\r\n", 400) + "\r\n"},
	{name: "one field over 256 KiB", why: "9110 5.4; 6585 5", shown: "a field of 400 KiB", want: refused(431), send: get + "X-A: " + strings.Repeat("a", 400<<10) + "\r\n\r\n"},
	{name: "a thousand fields", why: "9110 5.4: the limit is one of bytes", shown: "1,000 fields", want: passed(gotGET), send: get + strings.Repeat("X-A: 1\r\n", 1000) + "\r\n"},
	{name: "fields without end", why: "9110 5.4; 6585 5", shown: "100,000 fields", want: refused(431), send: get + strings.Repeat("X: 1\r\n", 100000) + "\r\n"},
}

// requestLines are about the first line.
var requestLines = []probe{
	{name: "two spaces after the method", why: "9112 3: single spaces", want: refused(400), send: "GET  /up/x HTTP/1.1\r\n" + host + "\r\n"},
	{name: "two spaces after the target", why: "9112 3", want: refused(400), send: "GET /up/x  HTTP/1.1\r\n" + host + "\r\n"},
	{name: "a space at the end", why: "9112 3", want: refused(400), send: "GET /up/x HTTP/1.1 \r\n" + host + "\r\n"},
	{name: "a space at the beginning", why: "9112 3", want: refused(400), send: " GET /up/x HTTP/1.1\r\n" + host + "\r\n"},
	{name: "tabs for spaces", why: "9112 3", want: refused(400), send: "GET\t/up/x\tHTTP/1.1\r\n" + host + "\r\n"},
	{name: "a space in the target", why: "9112 3.2", want: refused(400), send: "GET /up/x HTTP/1.1 /y HTTP/1.1\r\n" + host + "\r\n"},
	{name: "a line feed at its end", why: lineEnds, want: refused(400), send: "GET /up/x HTTP/1.1\n" + host + "\r\n"},
	{name: "a carriage return in it", why: "9112 2.2", want: refused(400), send: "GET /up/x\rHTTP/1.1\r\n" + host + "\r\n"},
	{name: "a NUL in the target", why: "9112 3.2", want: refused(400), send: "GET /up/\x00x HTTP/1.1\r\n" + host + "\r\n"},
	{name: "no target", why: "9112 3", want: refused(400), send: "GET HTTP/1.1\r\n" + host + "\r\n"},
	{name: "no method", why: "9112 3", want: refused(400), send: " /up/x HTTP/1.1\r\n" + host + "\r\n"},
	{name: "an empty line before", why: "9112 2.2 asks a server to pass over one; net/http does after a POST only, where old clients sent it", want: refused(400), send: "\r\n" + get + "\r\n"},
	{name: "an empty line after a POST", why: "9112 2.2", want: hello().and("GET /base/y HTTP/1.1"), send: post + "Content-Length: 5\r\n\r\nhello\r\nGET /up/y HTTP/1.1\r\n" + host + "\r\n"},
	// Shorter ones wait for as long as a preface of HTTP/2 in clear may take to come.
	{name: "HTTP/0.9", why: "9112 appendix C.1: gone", want: refused(400), send: "GET /up/longer\r\n\r\n"},
	{name: "HTTP/1.0", why: "9112 9.3: closed after the response", want: passed(gotGET, "Host: 127.0.0.1…").then(closed), send: "GET /up/x HTTP/1.0\r\n" + host + "\r\n"},
	{name: "HTTP/1.0 without Host", why: "9112 3.2: no field is asked of it", want: passed(gotGET, "Host: 127.0.0.1…").then(closed), send: "GET /up/x HTTP/1.0\r\n\r\n"},
	{name: "HTTP/1.0 kept alive", why: "9112 9.3", want: passed(gotGET, "-Connection"), send: "GET /up/x HTTP/1.0\r\n" + host + "Connection: keep-alive\r\n\r\n"},
	{name: "HTTP/1.2", why: "9110 2.5: a higher minor version is spoken to as 1.1", want: passed(gotGET), send: "GET /up/x HTTP/1.2\r\n" + host + "\r\n"},
	{name: "HTTP/1.10", why: "9112 2.3: one digit", want: refused(400), send: "GET /up/x HTTP/1.10\r\n" + host + "\r\n"},
	{name: "HTTP/2.0", why: "9110 15.6.6", want: refused(505), send: "GET /up/x HTTP/2.0\r\n" + host + "\r\n"},
	{name: "HTTP/3.0", why: "9110 15.6.6", want: refused(505), send: "GET /up/x HTTP/3.0\r\n" + host + "\r\n"},
	{name: "http/1.1", why: "9112 2.3: the name has a case", want: refused(400), send: "GET /up/x http/1.1\r\n" + host + "\r\n"},
	{name: "HTTPS/1.1", why: "9112 2.3", want: refused(400), send: "GET /up/x HTTPS/1.1\r\n" + host + "\r\n"},
	{name: "a method in lower case", why: "9110 9.1: another method, passed on as it is", want: passed("get /base/x HTTP/1.1"), send: "get /up/x HTTP/1.1\r\n" + host + "\r\n"},
	{name: "an unknown method", why: "9110 9.1: the target knows its methods", want: passed("PURGE /base/x HTTP/1.1"), send: "PURGE /up/x HTTP/1.1\r\n" + host + "\r\n"},
	{name: "an unknown method with content", why: "9110 9.1", want: passed("QUERY /base/x HTTP/1.1").with("hello"), send: "QUERY /up/x HTTP/1.1\r\n" + host + "Content-Length: 5\r\n\r\nhello"},
	{name: "a method with a control character", why: "9110 9.1: a token", want: refused(400), send: "G\x01ET /up/x HTTP/1.1\r\n" + host + "\r\n"},
	{name: "a method with a colon", why: "9110 9.1: a token", want: refused(400), send: "GET: /up/x HTTP/1.1\r\n" + host + "\r\n"},
	{name: "CONNECT", why: "9110 9.3.6: the gateway is no tunnel", want: declined(405).having("Allow: …"), send: "CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\r\n"},
	{name: "CONNECT with a path", why: "9110 9.3.6", want: declined(405).having("Allow: …"), send: "CONNECT /up/x HTTP/1.1\r\n" + host + "\r\n"},
	{name: "TRACE", why: "9110 9.3.8: it would show what the gateway adds", want: declined(405).having("Allow: …"), send: "TRACE /up/x HTTP/1.1\r\n" + host + "\r\n"},
	{name: "OPTIONS *", why: "9110 9.3.7: for the server itself. net/http responds", want: declined(200), send: "OPTIONS * HTTP/1.1\r\n" + host + "\r\n"},
	{name: "GET *", why: "9112 3.2.4: with OPTIONS only", want: declined(400), send: "GET * HTTP/1.1\r\n" + host + "\r\n"},
	{name: "the preface of HTTP/2", why: "9113 3.3: not by HTTP/1", want: refused(505), send: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
}
