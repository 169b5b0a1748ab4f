package smuggling

import "strings"

const (
	asCame  = "9110 7.7: byte for byte"
	dotted  = "3986 6.2.2.3: a server would resolve it, out of the route's base path"
	noURI   = "9112 3.2: refused and not mended"
	hostful = "9112 3.2"
)

// at is a GET of a target, and came the line under which it must arrive.
func at(target string) string    { return "GET " + target + " HTTP/1.1\r\n" + host + "\r\n" }
func came(target string) verdict { return passed("GET " + target + " HTTP/1.1") }

// targets are about paths and queries.
var targets = []probe{
	{name: "%2F", why: asCame, want: came("/base/a%2Fb"), send: at("/up/a%2Fb")},
	{name: "%2F after the prefix", why: asCame, want: came("/base/%2Fa"), send: at("/up/%2Fa")},
	{name: "%2f in lower case", why: asCame, want: came("/base/a%2fb"), send: at("/up/a%2fb")},
	{name: "%65", why: asCame, want: came("/base/%65"), send: at("/up/%65")},
	{name: "%41%2D%7e", why: asCame, want: came("/base/%41%2D%7e"), send: at("/up/%41%2D%7e")},
	{name: "an escape in the prefix", why: "3986 6.2.2.2: the same path", want: came("/base/x"), send: at("/%75p/x")},
	{name: "an escaped slash for the prefix's end", why: "the segment is another one: no route, or refused", want: declined(400), send: at("/up%2Fx")},
	{name: "%25", why: asCame, want: came("/base/%252e%252e/x"), send: at("/up/%252e%252e/x")},
	{name: "%20", why: asCame, want: came("/base/a%20b+c"), send: at("/up/a%20b+c")},
	{name: "%00", why: "an escape like any other", want: came("/base/a%00b"), send: at("/up/a%00b")},
	{name: "%0d%0a", why: "an escape like any other: it splits no line", want: came("/base/a%0d%0aX-A:%201"), send: at("/up/a%0d%0aX-A:%201")},
	{name: "%ff", why: asCame, want: came("/base/%ff%C3%A4"), send: at("/up/%ff%C3%A4")},
	{name: "%zz", why: "3986 2.1", want: refused(400), send: at("/up/%zz")},
	{name: "% at the end", why: "3986 2.1", want: refused(400), send: at("/up/a%")},
	{name: "%u002e", why: "3986 2.1", want: refused(400), send: at("/up/%u002e%u002e/x")},
	{name: "..", why: dotted, want: declined(400), send: at("/up/../admin")},
	{name: ".. at the end", why: dotted, want: declined(400), send: at("/up/a/..")},
	{name: "..  that stays within", why: dotted + "; refused wherever it leads", want: declined(400), send: at("/up/a/../b")},
	{name: ".", why: dotted, want: declined(400), send: at("/up/./a")},
	{name: "%2e%2e", why: dotted, want: declined(400), send: at("/up/%2e%2e/admin")},
	{name: "%2E.", why: dotted, want: declined(400), send: at("/up/%2E./admin")},
	{name: "..%2f", why: dotted, want: declined(400), send: at("/up/..%2fadmin")},
	{name: "%2e%2e%2f", why: dotted, want: declined(400), send: at("/up/a%2f%2e%2e%2f%2e%2e%2fadmin")},
	{name: "..;", why: dotted + "; servers of Java take off the parameter first", want: declined(400), send: at("/up/..;/admin")},
	{name: "..;a=b", why: dotted + ", as above", want: declined(400), send: at("/up/..;a=b/admin")},
	{name: "..%3b", why: dotted + ", as above", want: declined(400), send: at("/up/..%3b/admin")},
	{name: `..\`, why: dotted + "; to some servers a backslash is a slash", want: declined(400), send: at(`/up/..\admin`)},
	{name: "..%5c", why: dotted + ", as above", want: declined(400), send: at("/up/..%5cadmin")},
	{name: "three dots", why: "no dot segment", want: came("/base/.../x"), send: at("/up/.../x")},
	{name: "dots in a name", why: "no dot segment", want: came("/base/..a/b../.c"), send: at("/up/..a/b../.c")},
	{name: "//", why: asCame, want: came("/base//a//b//"), send: at("/up//a//b//")},
	{name: "// at the beginning", why: "9112 3.2.1: a path, not a host; no route has it", want: declined(404), send: at("//up/x")},
	{name: ";", why: asCame, want: came("/base/a;v=1;w=2/b;c"), send: at("/up/a;v=1;w=2/b;c")},
	{name: "reserved characters", why: asCame, want: came("/base/!$&'()*+,;=:@-._~"), send: at("/up/!$&'()*+,;=:@-._~")},
	{name: "characters that no URI has", why: "passed on as they came: an escape would be another path", want: came("/base/a|b^{c}\"<d>`"), send: at("/up/a|b^{c}\"<d>`")},
	{name: "a backslash", why: "passed on as it came, where it makes no dot segment", want: came(`/base/a\b`), send: at(`/up/a\b`)},
	{name: "a path beyond ASCII", why: "passed on as it came: an escape would be another path", want: came("/base/\xc3\xa4\xff"), send: at("/up/\xc3\xa4\xff")},
	{name: "a path with DEL", why: noURI, want: refused(400), send: at("/up/a\x7fb")},
	{name: "a path with a tab", why: noURI, want: refused(400), send: at("/up/a\tb")},
	{name: "a query", why: asCame, want: came("/base/x?a=%41&b=;&c=%zz&d=/../?&a=+"), send: at("/up/x?a=%41&b=;&c=%zz&d=/../?&a=+")},
	{name: "a query of characters that no URI has", why: "passed on as it came", want: came("/base/x?f[a]=b|c^{d}\"<e>\xc3\xa4\\`"), send: at("/up/x?f[a]=b|c^{d}\"<e>\xc3\xa4\\`")},
	{name: "an empty query", why: asCame, want: came("/base/x?"), send: at("/up/x?")},
	{name: "a query on the prefix", why: asCame, want: came("/base?x"), send: at("/up?x")},
	{name: "two question marks", why: asCame, want: came("/base/x??a?b"), send: at("/up/x??a?b")},
	{name: "a fragment", why: "9112 3.2: a target has none", want: declined(400), send: at("/up/x#y")},
	{name: "a fragment after a query", why: "9112 3.2", want: declined(400), send: at("/up/x?a#y")},
	{name: "a path of 100 KiB", why: "9112 3: at least 8,000 octets", shown: "a path of 100 KiB", want: came("/base/" + strings.Repeat("a", 100<<10)), send: at("/up/" + strings.Repeat("a", 100<<10))},
	{name: "a path of 400 KiB", why: "9112 3 asks for 414; net/http's limit is one for the line and the fields", shown: "a path of 400 KiB", want: refused(431), send: at("/up/" + strings.Repeat("a", 400<<10))},
	{name: "a path without a slash", why: noURI, want: refused(400), send: at("up/x")},
	{name: "an empty target", why: noURI, want: refused(400), send: "GET  HTTP/1.1\r\n" + host + "\r\n"},
}

// hosts are about Host and the absolute form.
var hosts = []probe{
	{name: "a host's route", why: "9110 7.2", want: passed("GET /x HTTP/1.1", "Host: 127.0.0.1…", "X-Forwarded-Host: api.test"), send: "GET /x HTTP/1.1\r\nHost: api.test\r\n\r\n"},
	{name: "a host in capitals, with a port", why: "9110 4.2.3", want: passed("GET /x HTTP/1.1"), send: "GET /x HTTP/1.1\r\nHost: API.test:8080\r\n\r\n"},
	{name: "no Host", why: hostful, want: refused(400), send: "GET /up/x HTTP/1.1\r\n\r\n"},
	{name: "two Hosts", why: hostful, want: refused(400), send: get + "Host: api.test\r\n\r\n"},
	{name: "two Hosts alike", why: hostful, want: refused(400), send: get + host + "\r\n"},
	{name: "a Host with a space before the colon", why: "9112 5.1", want: refused(400), send: "GET /up/x HTTP/1.1\r\nHost : api.test\r\n\r\n"},
	{name: "an empty Host", why: "9112 3.2 allows it where the target has no authority", want: passed(gotGET, "Host: 127.0.0.1…"), send: "GET /up/x HTTP/1.1\r\nHost:\r\n\r\n"},
	{name: "a Host with a user", why: hostful, want: refused(400), send: "GET /up/x HTTP/1.1\r\nHost: api.test@evil.test\r\n\r\n"},
	{name: "a Host with a path", why: hostful, want: refused(400), send: "GET /up/x HTTP/1.1\r\nHost: api.test/up\r\n\r\n"},
	{name: "a Host with a space", why: hostful, want: refused(400), send: "GET /up/x HTTP/1.1\r\nHost: api.test evil.test\r\n\r\n"},
	{name: "a Host with a backslash", why: hostful, want: refused(400), send: "GET /up/x HTTP/1.1\r\nHost: api.test\\evil\r\n\r\n"},
	{name: "a Host with a question mark", why: hostful, want: refused(400), send: "GET /up/x HTTP/1.1\r\nHost: api.test?x\r\n\r\n"},
	{name: "a Host with a NUL", why: hostful, want: refused(400), send: "GET /up/x HTTP/1.1\r\nHost: api.test\x00\r\n\r\n"},
	{name: "the absolute form", why: "9112 3.2.2: its host, not the field's", want: passed("GET /x?y HTTP/1.1", "Host: 127.0.0.1…", "X-Forwarded-Host: api.test"), send: "GET http://api.test/x?y HTTP/1.1\r\nHost: evil.test\r\n\r\n"},
	{name: "the absolute form of another host", why: "9112 3.2.2: by the path, since no route has the host. It is never dialed", want: passed(gotGET, "Host: 127.0.0.1…", "X-Forwarded-Host: evil.test"), send: "GET http://evil.test/up/x HTTP/1.1\r\nHost: api.test\r\n\r\n"},
	{name: "the absolute form with a user", why: "9110 4.2.4", want: declined(400), send: "GET http://user:secret@api.test/x HTTP/1.1\r\nHost: api.test\r\n\r\n"},
	{name: "the absolute form of another scheme", why: "9112 3.2.2: no http", want: declined(400), send: "GET ftp://api.test/x HTTP/1.1\r\nHost: api.test\r\n\r\n"},
	{name: "the absolute form without Host", why: hostful, want: refused(400), send: "GET http://api.test/x HTTP/1.1\r\n\r\n"},
	{name: "an opaque target", why: "9112 3.2", want: declined(400), send: "GET mailto:x HTTP/1.1\r\n" + host + "\r\n"},
	{name: "the authority form", why: "9112 3.2.3: with CONNECT only", want: declined(400), send: "GET api.test:80 HTTP/1.1\r\nHost: api.test:80\r\n\r\n"},
}
