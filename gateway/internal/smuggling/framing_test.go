package smuggling

import "strings"

// host begins the header section of a request that is otherwise in order.
const host = "Host: gateway.test\r\n"

const (
	get     = "GET /up/x HTTP/1.1\r\n" + host
	post    = "POST /up/x HTTP/1.1\r\n" + host
	gotGET  = "GET /base/x HTTP/1.1"
	gotPOST = "POST /base/x HTTP/1.1"
)

// smuggled is what a probe hides. It must never reach the upstream.
const smuggled = "GET /up/smuggled HTTP/1.1\r\nHost: gateway.test\r\n\r\n"

// chunked is a body of hello.
const chunked = "5\r\nhello\r\n0\r\n\r\n"

// hello is what a well-framed probe passes on.
func hello(fields ...string) verdict { return passed(gotPOST, fields...).with("hello") }

const (
	both    = "9112 6.1, 6.3: a request framed twice is an attempt at smuggling, or as good as one"
	lengths = "9110 8.6, 9112 6.3: no single decimal number"
	codings = "9112 6.1: 501 for a coding that is not understood; by 6.3 a 400 where chunked is not the last. net/http decides"
)

// framed are requests that say the length of their content in more than one way.
var framed = []probe{
	{name: "Content-Length, then Transfer-Encoding", why: both, want: refused(400), send: post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled},
	{name: "Transfer-Encoding, then Content-Length", why: both, want: refused(400), send: post + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + smuggled},
	{name: "CL.TE, the classic", why: both, want: refused(400), send: post + "Content-Length: 54\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled},
	{name: "TE.CL, the classic", why: both, want: refused(400), send: post + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n31\r\n" + smuggled + "0\r\n\r\n"},
	{name: "both, in other cases", why: both, want: refused(400), send: post + "content-LENGTH: 5\r\ntRaNsFeR-eNcOdInG: CHUNKED\r\n\r\n0\r\n\r\n" + smuggled},
	{name: "both, far apart", why: both, shown: "as the first, with 200 fields between", want: refused(400), send: post + "Content-Length: 5\r\n" + strings.Repeat("X-Between: 1\r\n", 200) + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled},
	{name: "both, the length 0", why: both, want: refused(400), send: post + "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked},
	{name: "both, the length right", why: both, want: refused(400), send: post + "Content-Length: 15\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked},
	{name: "both, the coding empty", why: both, want: refused(400), send: post + "Content-Length: 5\r\nTransfer-Encoding:\r\n\r\nhello"},
	{name: "both, the coding unknown", why: both, want: refused(400), send: post + "Content-Length: 5\r\nTransfer-Encoding: xchunked\r\n\r\nhello"},
	{name: "both, with a GET", why: both, want: refused(400), send: get + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled},
	{name: "both, with a HEAD", why: both, want: refused(400), send: "HEAD /up/x HTTP/1.1\r\n" + host + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled},
	{name: "both, under HTTP/1.0", why: both, want: refused(400), send: "POST /up/x HTTP/1.0\r\n" + host + "Connection: keep-alive\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled},
	{name: "both, on the request after a body", why: both, want: verdict{status: []int{200, 400}, conn: closed, requests: hello().requests}, send: post + "Content-Length: 5\r\n\r\nhello" + post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled},
	{name: "both, on the request after chunks", why: both, want: verdict{status: []int{200, 400}, conn: closed, requests: hello().requests}, send: post + "Transfer-Encoding: chunked\r\n\r\n" + chunked + post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled},
	{name: "both, in a body only", why: "9112 6.3: content is no header section", want: passed(gotPOST).with("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"), send: post + "Content-Length: 49\r\n\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"},
}

// sized are requests with a Content-Length.
var sized = []probe{
	{name: "Content-Length", why: "9112 6.2", want: hello("Content-Length: 5", "-Transfer-Encoding"), send: post + "Content-Length: 5\r\n\r\nhello"},
	{name: "Content-Length: 0", why: "9112 6.2", want: passed(gotPOST, "Content-Length: 0"), send: post + "Content-Length: 0\r\n\r\n"},
	{name: "no content, and none declared", why: "9110 8.6: a POST says so", want: passed(gotPOST, "Content-Length: 0"), send: post + "\r\n"},
	{name: "two lengths that differ", why: lengths, want: refused(400), send: post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"},
	{name: "two lengths alike", why: "9110 8.6: refused or taken for one; net/http takes them for one, and one is passed on", want: hello("Content-Length: 5"), send: post + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"},
	{name: "two lengths, 5 and 05", why: lengths, want: refused(400), send: post + "Content-Length: 5\r\nContent-Length: 05\r\n\r\nhello"},
	{name: "a list of lengths alike", why: "9110 8.6: refused or taken for one", want: refused(400), send: post + "Content-Length: 5, 5\r\n\r\nhello"},
	{name: "a list of lengths that differ", why: lengths, want: refused(400), send: post + "Content-Length: 5, 6\r\n\r\nhello"},
	{name: "a length with a plus sign", why: lengths, want: refused(400), send: post + "Content-Length: +5\r\n\r\nhello"},
	{name: "a negative length", why: lengths, want: refused(400), send: post + "Content-Length: -5\r\n\r\nhello"},
	{name: "a hexadecimal length", why: lengths, want: refused(400), send: post + "Content-Length: 0x5\r\n\r\nhello"},
	{name: "a length with a fraction", why: lengths, want: refused(400), send: post + "Content-Length: 5.0\r\n\r\nhello"},
	{name: "a length with an underscore", why: lengths, want: refused(400), send: post + "Content-Length: 0_5\r\n\r\nhello"},
	{name: "a length with leading zeros", why: "9110 8.6: 1*DIGIT; passed on in its plain form", want: hello("Content-Length: 5"), send: post + "Content-Length: 005\r\n\r\nhello"},
	{name: "a length with space around it", why: "9110 5.5: white space around a value is none of it", want: hello("Content-Length: 5"), send: post + "Content-Length: \t 5 \t\r\n\r\nhello"},
	{name: "a length with a space in it", why: lengths, want: refused(400), send: post + "Content-Length: 5 5\r\n\r\nhello"},
	{name: "a length with a vertical tab", why: lengths, want: refused(400), send: post + "Content-Length: \v5\r\n\r\nhello"},
	{name: "an empty length", why: lengths, want: refused(400), send: post + "Content-Length:\r\n\r\nhello"},
	{name: "a length over 2^63", why: "9110 8.6: overflows are to be anticipated", want: refused(400), send: post + "Content-Length: 9223372036854775808\r\n\r\nhello"},
	{name: "a length over 2^64", why: "9110 8.6: it would wrap around to 5", want: refused(400), send: post + "Content-Length: 18446744073709551621\r\n\r\nhello"},
	{name: "less content than declared", why: "9112 8: an incomplete message is none", half: true, want: verdict{conn: closed}, send: post + "Content-Length: 10\r\n\r\nhello"},
	{name: "more content than declared", why: "9112 9.3: the rest is another request, and here none", want: verdict{status: []int{200, 400}, conn: closed, requests: hello().requests}, send: post + "Content-Length: 5\r\n\r\nhello, world\r\n\r\n"},
	{name: "a GET with content", why: "9110 9.3.1: passed on as content, never as a request", want: passed(gotGET, "Content-Length: 49").with(smuggled), send: get + "Content-Length: 49\r\n\r\n" + smuggled},
	{name: "a GET with chunks", why: "9110 9.3.1", want: passed(gotGET, "Transfer-Encoding: chunked").with("hello"), send: get + "Transfer-Encoding: chunked\r\n\r\n" + chunked},
	{name: "a HEAD with content", why: "9110 9.3.2", want: passed("HEAD /base/x HTTP/1.1", "Content-Length: 5").with("hello"), send: "HEAD /up/x HTTP/1.1\r\n" + host + "Content-Length: 5\r\n\r\nhello"},
	{name: "a DELETE with content", why: "9110 9.3.5", want: passed("DELETE /base/x HTTP/1.1", "Content-Length: 5").with("hello"), send: "DELETE /up/x HTTP/1.1\r\n" + host + "Content-Length: 5\r\n\r\nhello"},
	{name: "a request after a GET without content", why: "9112 6.3: without either field the content is empty", want: passed(gotGET).and("GET /base/y HTTP/1.1"), send: get + "\r\nGET /up/y HTTP/1.1\r\n" + host + "\r\n"},
}

// coded are requests with a Transfer-Encoding.
var coded = []probe{
	{name: "chunked", why: "9112 7.1", want: hello("Transfer-Encoding: chunked", "-Content-Length"), send: post + "Transfer-Encoding: chunked\r\n\r\n" + chunked},
	{name: "CHUNKED", why: "9112 7: names of codings have no case", want: hello("Transfer-Encoding: chunked"), send: post + "Transfer-Encoding: CHUNKED\r\n\r\n" + chunked},
	{name: "chunked, a tab after it", why: "9110 5.5: white space around a value is none of it; passed on without", want: hello("Transfer-Encoding: chunked"), send: post + "Transfer-Encoding: chunked\t\r\n\r\n" + chunked},
	{name: "chunked, a tab before it", why: "9110 5.5, as above", want: hello("Transfer-Encoding: chunked"), send: post + "Transfer-Encoding:\tchunked\r\n\r\n" + chunked},
	{name: "chunked, a vertical tab before it", why: "9110 5.5: no white space of HTTP", want: refused(400), send: post + "Transfer-Encoding: \vchunked\r\n\r\n" + chunked},
	{name: "chunked twice in a list", why: codings, want: refused(501), send: post + "Transfer-Encoding: chunked, chunked\r\n\r\n" + chunked},
	{name: "chunked in two fields", why: codings, want: refused(501), send: post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked},
	{name: "chunked, then identity", why: codings, want: refused(501), send: post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + chunked},
	{name: "identity", why: codings, want: refused(501), send: post + "Transfer-Encoding: identity\r\n\r\n" + smuggled},
	{name: "gzip, chunked", why: codings, want: refused(501), send: post + "Transfer-Encoding: gzip, chunked\r\n\r\n" + chunked},
	{name: "chunked, gzip", why: codings, want: refused(501), send: post + "Transfer-Encoding: chunked, gzip\r\n\r\n" + chunked},
	{name: "xchunked", why: codings, want: refused(501), send: post + "Transfer-Encoding: xchunked\r\n\r\n" + chunked},
	{name: "chunked with a parameter", why: "9112 7.1: chunked defines none, and one is an error. net/http decides on the status", want: refused(501), send: post + "Transfer-Encoding: chunked;q=1\r\n\r\n" + chunked},
	{name: "quoted chunked", why: codings, want: refused(501), send: post + "Transfer-Encoding: \"chunked\"\r\n\r\n" + chunked},
	{name: "an empty coding", why: codings, want: refused(501), send: post + "Transfer-Encoding:\r\n\r\n" + chunked},
	{name: "chunked behind an empty element", why: "9110 5.6.1 allows it; net/http refuses, which no client notices", want: refused(501), send: post + "Transfer-Encoding: ,chunked\r\n\r\n" + chunked},
	{name: "chunked on a folded line", why: "9112 5.2: refused", want: refused(400), send: post + "Transfer-Encoding:\r\n chunked\r\n\r\n" + chunked},
	{name: "chunked under HTTP/1.0", why: "9112 6.1: the framing is faulty", want: refused(400), send: "POST /up/x HTTP/1.0\r\n" + host + "Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n" + smuggled},
	{name: "Transfer-Encoding with a space before the colon", why: "9112 5.1", want: refused(400), send: post + "Transfer-Encoding : chunked\r\n\r\n" + chunked},
	{name: "Transfer-Encoding with a tab before the colon", why: "9112 5.1", want: refused(400), send: post + "Transfer-Encoding\t: chunked\r\n\r\n" + chunked},
	{name: "Transfer_Encoding", why: "9110 5.1: another name. It must not become the real one on the way", want: hello("Content-Length: 5", "-Transfer-Encoding"), send: post + "Content-Length: 5\r\nTransfer_Encoding: chunked\r\n\r\nhello"},
	{name: "X: Transfer-Encoding behind a line feed", why: "9112 2.2: a line is what ends in CRLF", want: refused(400), send: post + "X: a\nTransfer-Encoding: chunked\r\n\r\n" + chunked},
	{name: "X: Transfer-Encoding behind a carriage return", why: "9112 2.2", want: refused(400), send: post + "X: a\rTransfer-Encoding: chunked\r\n\r\n" + chunked},
}
