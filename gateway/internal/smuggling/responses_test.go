package smuggling

import (
	"slices"
	"strings"
)

// replied is a probe in which the upstream replies to a GET.
func replied(name, why string, want verdict, replies ...string) probe {
	return probe{name: name, why: why, send: get + "\r\n", replies: replies, want: want}
}

// bad is what a caller gets for a response that breaks the rules.
func bad() verdict { return sees(502).having("Content-Type: application/problem+json") }

// sized5 ends a header section before five bytes.
const sized5 = "Content-Length: 5\r\n\r\nhello"

const (
	statusLine = "9112 4"
	incomplete = "9112 8: it must not look complete"
	leftover   = "9112 9.3, 11.1: what comes after a response belongs to none; the connection is not used again"
)

// statuses are about status lines and header sections of responses.
var statuses = []probe{
	replied("a response", "9112 4", sees(200).having("Content-Length: 5", "X-A: 1").reading("hello"), "HTTP/1.1 200 OK\r\nX-A: 1\r\n"+sized5),
	replied("a status without a reason", "9112 4: it may be empty", sees(200).reading("hello"), "HTTP/1.1 200 \r\n"+sized5),
	replied("a status without a reason and space", "9112 4 has a space; net/http does without", sees(200).reading("hello"), "HTTP/1.1 200\r\n"+sized5),
	replied("a status of 299", "9110 15: taken for 200, passed on as it is", sees(299).reading("hello"), "HTTP/1.1 299 Odd\r\n"+sized5),
	replied("a status of 799", "9110 15: passed on as it is", sees(799).reading("hello"), "HTTP/1.1 799 Odd\r\n"+sized5),
	replied("a status of 099", statusLine, bad(), "HTTP/1.1 099 Odd\r\n"+sized5),
	replied("a status of 1000", statusLine, bad(), "HTTP/1.1 1000 Odd\r\n"+sized5),
	replied("a status of abc", statusLine, bad(), "HTTP/1.1 abc Odd\r\n"+sized5),
	replied("a status of -20", statusLine, bad(), "HTTP/1.1 -20 Odd\r\n"+sized5),
	replied("a status of +20", statusLine, bad(), "HTTP/1.1 +20 Odd\r\n"+sized5),
	replied("a reason with a script", "the caller gets the gateway's own phrase for a status that it knows", sees(200).reading("hello"), "HTTP/1.1 200 <script>\r\n"+sized5),
	replied("no HTTP", statusLine, bad(), "SSH-2.0-OpenSSH_9.2\r\n"+hangUp),
	replied("HTTP/0.9", "9112 appendix C.1: gone", bad(), "<html>hello</html>"+hangUp),
	replied("HTTP/1.0", "9112 9.3: up to the connection's end", sees(200).reading("hello"), "HTTP/1.0 200 OK\r\n\r\nhello"+hangUp),
	replied("HTTP/2.0 in a status line", "9110 2.5; net/http passes over it, and over HTTP/1.1 nothing else can be meant", sees(200).reading("hello"), "HTTP/2.0 200 OK\r\n"+sized5),
	replied("nothing at all", "9110 15.6.3", bad(), hangUp),
	replied("half a status line", "9112 8", bad(), "HTTP/1.1 2"+hangUp),
	replied("half a header section", "9112 8", bad(), "HTTP/1.1 200 OK\r\nContent-Le"+hangUp),
	replied("a header section without its last line", "9112 8", bad(), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"+hangUp),
	replied("line feeds only", "9112 2.2 allows to take them for line ends; the caller gets CRLF", sees(200).having("X-A: 1").reading("hello"), "HTTP/1.1 200 OK\nX-A: 1\nContent-Length: 5\n\nhello"),
	replied("a folded field", "9112 5.2: a space in its place", sees(200).having("X-A: a b").reading("hello"), "HTTP/1.1 200 OK\r\nX-A: a\r\n  b\r\n"+sized5),
	replied("a field without a colon", "9112 5", bad(), "HTTP/1.1 200 OK\r\nX-A\r\n"+sized5),
	replied("a field name with a space before the colon", "9112 5.1 has a proxy take the space off; refused, as below", bad(), "HTTP/1.1 200 OK\r\nX-A : 1\r\n"+sized5),
	replied("Content-Length with a space before the colon", "9112 5.1: refused, since its content was framed without it", bad(), "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello"+hangUp),
	replied("a field name with a control character", "9110 5.1", bad(), "HTTP/1.1 200 OK\r\nX-\x01A: 1\r\n"+sized5),
	replied("a field value with a NUL", "9110 5.5", bad(), "HTTP/1.1 200 OK\r\nX-A: a\x00b\r\n"+sized5),
	replied("a field value with a carriage return", "9110 5.5: refused, or a space in its place", bad(), "HTTP/1.1 200 OK\r\nX-A: a\rX-B: b\r\n"+sized5),
	replied("a field value beyond ASCII", "9110 5.5: passed on as it came", sees(200).having("X-A: \xc3\xa4\xff"), "HTTP/1.1 200 OK\r\nX-A: \xc3\xa4\xff\r\n"+sized5),
	{name: "a header section of 300 KiB", why: "9110 5.4: the gateway's limit is above it", shown: "a field of 300 KiB", send: get + "\r\n", want: sees(200).reading("hello"), replies: []string{"HTTP/1.1 200 OK\r\nX-A: " + strings.Repeat("a", 300<<10) + "\r\n" + sized5}},
	{name: "a header section of 12 MiB", why: "9110 5.4: bounded, by net/http to 10 MiB", shown: "a field of 12 MiB", send: get + "\r\n", want: bad(), replies: []string{"HTTP/1.1 200 OK\r\nX-A: " + strings.Repeat("a", 12<<20) + "\r\n" + sized5}},
	replied("no Content-Type", "9110 8.3: the gateway guesses none", sees(200).having("-Content-Type").reading("<html>"), "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>"),
	replied("no Content-Type, in chunks", "9110 8.3", sees(200).having("-Content-Type").reading("hello"), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"+chunked),
	replied("an empty Content-Type", "9110 5.5: passed on as it came", sees(200).having("Content-Type: ").reading("hello"), "HTTP/1.1 200 OK\r\nContent-Type:\r\n"+sized5),
	replied("no Date", "9110 6.6.1: one is added", sees(200).having("Date: …"), "HTTP/1.1 200 OK\r\n"+sized5),
	replied("a Date", "9110 6.6.1: passed on as it came", sees(200).having("Date: Tue, 15 Nov 1994 08:12:31 GMT"), "HTTP/1.1 200 OK\r\nDate: Tue, 15 Nov 1994 08:12:31 GMT\r\n"+sized5),
	replied("Set-Cookie, many", "6265 3: never joined, in their order", sees(200).having("Set-Cookie: a=1, 2", "Set-Cookie: b=2; Path=/", "Set-Cookie: a=3"), "HTTP/1.1 200 OK\r\nSet-Cookie: a=1, 2\r\nX-A: 1\r\nSet-Cookie: b=2; Path=/\r\nset-cookie: a=3\r\n"+sized5),
	replied("Connection: X-Hop", hop, sees(200).having("-Connection", "-X-Hop", "-Keep-Alive", "-Proxy-Connection", "X-End: 2"), "HTTP/1.1 200 OK\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nProxy-Connection: x\r\nX-End: 2\r\n"+sized5),
	replied("Connection: close of the upstream", "9112 9.6: that connection only", sees(200).having("-Connection").reading("hello"), "HTTP/1.1 200 OK\r\nConnection: close\r\n"+sized5+hangUp),
	replied("Upgrade in a response", "9110 7.8: for one connection", sees(200).having("-Upgrade", "-Connection"), "HTTP/1.1 200 OK\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n"+sized5),
	replied("Proxy-Authenticate with a 407", "9110 11.7.1: the upstream is no proxy of the caller's", sees(407).having("-Proxy-Authenticate"), "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\n"+sized5),
	replied("X-Correlation-ID", "the gateway's, under which it has logged the call", sees(200).having("X-Correlation-Id: …"), "HTTP/1.1 200 OK\r\nX-Correlation-ID: a\r\nX-Correlation-ID: b\r\n"+sized5),
}

// bodies are about the framing of responses.
var bodies = []probe{
	replied("Content-Length: 0", "9112 6.2", sees(200).having("Content-Length: 0", "-Transfer-Encoding").reading(""), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
	replied("chunks", "9112 7.1: framed anew for the caller", sees(200).reading("hello"), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"+chunked),
	replied("neither length nor chunks", "9112 6.3: up to the connection's end; in chunks to the caller", sees(200).having("Transfer-Encoding: chunked").reading("hello"), "HTTP/1.1 200 OK\r\n\r\nhello"+hangUp),
	replied("a length and chunks", "9112 6.3: the length goes; net/http lets the chunks stand", sees(200).reading("hello"), "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"+chunked),
	replied("two lengths that differ", "9112 6.3", bad(), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"),
	replied("two lengths alike", "9110 8.6: one goes on", sees(200).having("Content-Length: 5").reading("hello"), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"+sized5),
	replied("a list of lengths", "9110 8.6: refused or taken for one", bad(), "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello"),
	replied("a negative length", "9112 6.3", bad(), "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello"),
	replied("a length with a plus sign", "9112 6.3", bad(), "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello"),
	replied("a length over 2^63", "9112 6.3", bad(), "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\nhello"),
	replied("an empty length", "9112 6.3", bad(), "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nhello"+hangUp),
	replied("an unknown coding", "9112 6.1, 6.3: its end is not known", bad(), "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"+chunked),
	replied("identity", "9112 6.3", bad(), "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nhello"+hangUp),
	replied("chunked in two fields", "9112 6.1", bad(), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"+chunked),
	replied("chunks under HTTP/1.0", "9112 6.1: faulty; net/http takes all up to the connection's end for content, and uses it no more", sees(200).reading(chunked), "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"+chunked+hangUp),
	replied("nothing of the declared length", "9112 8: nothing has gone to the caller yet", bad(), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"+hangUp),
	replied("less than the declared length", incomplete, sees(200).breaking(), "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"+hangUp),
	replied("chunks that break off in data", incomplete, sees(200).breaking(), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nhel"+hangUp),
	replied("chunks without a last one", incomplete, sees(200).breaking(), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"+hangUp),
	replied("a last chunk without an end", incomplete, sees(200).breaking(), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"+hangUp),
	replied("a bad chunk after a good one", incomplete, sees(200).breaking(), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\nhello\r\n0\r\n\r\n"),
	replied("chunk data without an end", incomplete, sees(200).breaking(), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello0\r\n\r\n"),
	replied("trailer fields, announced", "9110 6.6.2", sees(200).having("Trailer: X-Sum", "-X-Sum").reading("hello").ending("X-Sum: 42"), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 42\r\n\r\n"),
	replied("trailer fields, not announced", "9110 6.5", sees(200).having("-X-Sum").reading("hello").ending("X-Sum: 42"), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 42\r\n\r\n"),
	replied("trailer: Content-Length", "9110 6.5.1: dropped", sees(200).having("-Content-Length").reading("hello").ending("-Content-Length"), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nContent-Length: 3\r\n\r\n"),
	replied("trailer: Transfer-Encoding", "9110 6.5.1: dropped", sees(200).reading("hello").ending("-Transfer-Encoding"), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nTransfer-Encoding: gzip\r\n\r\n"),
	replied("trailer: Connection", hop+": dropped", sees(200).reading("hello").ending("-Connection", "-Keep-Alive"), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Connection, Keep-Alive\r\n\r\n5\r\nhello\r\n0\r\nConnection: X-Hop\r\nKeep-Alive: 5\r\n\r\n"),
	replied("trailer: Set-Cookie", "9110 6.5.1: dropped", sees(200).having("-Set-Cookie").reading("hello").ending("-Set-Cookie"), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Set-Cookie\r\n\r\n5\r\nhello\r\n0\r\nSet-Cookie: a=1\r\n\r\n"),
	replied("gzip as it is", "9110 7.7: neither decoded nor measured anew", sees(200).having("Content-Encoding: gzip", "Content-Length: 5").reading("\x1f\x8b\x00\xff\n"), "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\n\x1f\x8b\x00\xff\n"),
	replied("204", "9110 15.3.5", sees(204).having("-Content-Length", "-Transfer-Encoding"), "HTTP/1.1 204 No Content\r\n\r\n"),
	replied("204 with a body", leftover, sees(204).having("-Transfer-Encoding"), "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"),
	replied("204 with a length and a body", leftover, sees(204).having("-Transfer-Encoding", "-Content-Length"), "HTTP/1.1 204 No Content\r\nContent-Length: 42\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"),
	replied("304 with a length", "9110 8.6 allows it; net/http's server sends none", sees(304).having("-Content-Length", `Etag: "a"`), "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 42\r\n\r\n"),
	replied("304 with a body", leftover, sees(304), "HTTP/1.1 304 Not Modified\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"),
	replied("more than the declared length", leftover, sees(200).reading("hello"), "HTTP/1.1 200 OK\r\n"+sized5+"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"),
	replied("more than the last chunk", leftover, sees(200).reading("hello"), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"+chunked+"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"),
	head("HEAD with a length", "9110 9.3.2: that of the GET", verdict{status: []int{200}, fields: []string{"Content-Length: 42", "-Transfer-Encoding"}}, "HTTP/1.1 200 OK\r\nContent-Length: 42\r\n\r\n"),
	head("HEAD with chunks", "9110 9.3.2", verdict{status: []int{200}, fields: []string{"-Content-Length"}}, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
	head("HEAD with a body", leftover, verdict{status: []int{200}}, "HTTP/1.1 200 OK\r\nContent-Length: 42\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"),
}

// head is a probe in which the upstream replies to a HEAD.
func head(name, why string, want verdict, replies ...string) probe {
	want.requests = []request{{line: "HEAD /base/x HTTP/1.1"}}
	return probe{name: name, why: why, send: "HEAD /up/x HTTP/1.1\r\n" + host + "\r\n", replies: replies, want: want}
}

// interim are about responses before the response, and about those to upgrades.
var interim = []probe{
	replied("103", "9110 15.2, 8297", sees(103, 200).having("-Link").reading("hello"), "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\n"+sized5),
	replied("103, its header section", "9110 15.2", verdict{status: []int{103}, fields: []string{"Link: </a.css>", "-Connection", "-X-Hop", "-Content-Length", "-Transfer-Encoding"}, requests: sees().requests, conn: either}, "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nConnection: X-Hop\r\nX-Hop: 1\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\n"+sized5),
	replied("102 and 103", "9110 15.2", sees(102, 103, 200).reading("hello"), "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n"+sized5),
	replied("100 that no one asked for", "9110 15.2.1: dropped", sees(200).reading("hello"), "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"+sized5),
	{name: "103 for a caller of HTTP/1.0", why: "9110 15.2: it gets none", send: "GET /up/x HTTP/1.0\r\n" + host + "\r\n", want: sees(200).reading("hello").then(closed), replies: []string{"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\n" + sized5}},
	{name: "interim responses without end", why: "bounded", shown: "40 times 103, then 200", send: get + "\r\n", want: sees(append(slices.Repeat([]int{103}, 16), 502)...), replies: []string{strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 40) + "HTTP/1.1 200 OK\r\n" + sized5}},
	replied("103, then nothing", "9112 8", verdict{status: []int{103, 502}, requests: sees().requests}, "HTTP/1.1 103 Early Hints\r\n\r\n"+hangUp),
	replied("101 that no one asked for", "9110 15.2.2", bad(), "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
	upgrading("101 to another protocol than was asked for", bad().requests, verdict{status: []int{502}}, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"),
	upgrading("101 without Upgrade", bad().requests, verdict{status: []int{502}}, "HTTP/1.1 101 Switching Protocols\r\n\r\n"),
	upgrading("101 that was asked for", bad().requests, verdict{status: []int{101}, fields: []string{"Upgrade: websocket", "Connection: Upgrade"}, conn: either}, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
}

// upgrading is a probe in which the upstream replies to an upgrade to websocket.
func upgrading(name string, requests []request, want verdict, reply string) probe {
	want.requests = requests
	return probe{name: name, why: "9110 7.8, 15.2.2", send: get + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", replies: []string{reply}, want: want}
}
