package smuggling

import "strings"

const inChunks = post + "Transfer-Encoding: chunked\r\n\r\n"

const chunkRules = "9112 7.1: the caller's own fault, and no complete request"

// chunks are requests in chunks. What is wrong with one must be known to the caller,
// and the upstream must never take what came before it for the whole.
var chunks = []probe{
	{name: "chunks of one byte", why: "9112 7.1", want: hello(), send: inChunks + "1\r\nh\r\n1\r\ne\r\n1\r\nl\r\n1\r\nl\r\n1\r\no\r\n0\r\n\r\n"},
	{name: "no chunk but the last", why: "9112 7.1: empty content", want: passed(gotPOST), send: inChunks + "0\r\n\r\n"},
	{name: "a request after chunks", why: "9112 7.1", want: hello().and("GET /base/y HTTP/1.1"), send: inChunks + chunked + "GET /up/y HTTP/1.1\r\n" + host + "\r\n"},
	{name: "a request inside a chunk", why: "9112 7.1: content", want: passed(gotPOST).with(smuggled), send: inChunks + "31\r\n" + smuggled + "\r\n0\r\n\r\n"},
	{name: "a chunk size in capitals, with zeros before it", why: "9112 7.1: 1*HEXDIG", want: passed(gotPOST).with("0123456789"), send: inChunks + "000A\r\n0123456789\r\n0\r\n\r\n"},
	{name: "a last chunk of many zeros", why: "9112 7.1", want: hello(), send: inChunks + "5\r\nhello\r\n00000\r\n\r\n"},
	{name: "a chunk extension", why: "9112 7.1.1: not passed on", want: hello(), send: inChunks + "5;name=\"va;lue\"\r\nhello\r\n0;last\r\n\r\n"},
	{name: "a chunk extension with a bare line feed", why: "9112 7.1.1", want: refused(400), send: inChunks + "5;a\nhello\r\n0\r\n\r\n"},
	{name: "a chunk extension with a carriage return", why: "9112 7.1.1", want: refused(400), send: inChunks + "5;a\rb\r\nhello\r\n0\r\n\r\n"},
	{name: "a chunk extension without end", why: "9112 7.1.1: limited; by net/http to its 4 KiB of buffer", shown: "an extension of 64 KiB", want: refused(400), send: inChunks + "5;" + strings.Repeat("a", 64<<10) + "\r\nhello\r\n0\r\n\r\n"},
	{name: "extensions in many chunks", why: "9112 7.1.1: limited in total, by net/http", shown: "1,000 chunks of one byte, each with an extension of 100", want: refused(400), send: inChunks + strings.Repeat("1;"+strings.Repeat("a", 100)+"\r\nx\r\n", 1000) + "0\r\n\r\n"},
	{name: "a chunk size that is no number", why: chunkRules, want: refused(400), send: inChunks + "zz\r\nhello\r\n0\r\n\r\n"},
	{name: "a chunk size that is empty", why: chunkRules, want: refused(400), send: inChunks + "\r\nhello\r\n0\r\n\r\n"},
	{name: "a chunk size 0x5", why: chunkRules, want: refused(400), send: inChunks + "0x5\r\nhello\r\n0\r\n\r\n"},
	{name: "a chunk size +5", why: chunkRules, want: refused(400), send: inChunks + "+5\r\nhello\r\n0\r\n\r\n"},
	{name: "a chunk size -1", why: chunkRules, want: refused(400), send: inChunks + "-1\r\nhello\r\n0\r\n\r\n"},
	{name: "a chunk size 5 with a space before it", why: chunkRules, want: refused(400), send: inChunks + " 5\r\nhello\r\n0\r\n\r\n"},
	{name: "a chunk size 5 with a space after it", why: "9112 7.1.1 has white space before extensions only; net/http takes it for none, as old senders meant it", want: hello(), send: inChunks + "5 \r\nhello\r\n0\r\n\r\n"},
	{name: "a chunk size 5h", why: chunkRules, want: refused(400), send: inChunks + "5h\r\nhello\r\n0\r\n\r\n"},
	{name: "a chunk size over 2^64", why: "9112 7.1: overflows are to be anticipated", want: refused(400), send: inChunks + "10000000000000005\r\nhello\r\n0\r\n\r\n"},
	{name: "a chunk size near 2^63", why: chunkRules, half: true, want: verdict{conn: closed}, send: inChunks + "7fffffffffffffff\r\nhello\r\n0\r\n\r\n"},
	{name: "a chunk size ended by a line feed", why: "9112 7.1", want: refused(400), send: inChunks + "5\nhello\r\n0\r\n\r\n"},
	{name: "chunk data ended by a line feed", why: "9112 7.1", want: refused(400), send: inChunks + "5\r\nhello\n0\r\n\r\n"},
	{name: "chunk data without an end", why: "9112 7.1", want: refused(400), send: inChunks + "5\r\nhello0\r\n\r\n"},
	{name: "chunk data longer than its size", why: chunkRules, want: refused(400), send: inChunks + "3\r\nhello\r\n0\r\n\r\n"},
	{name: "chunk data shorter than its size", why: chunkRules, want: refused(400), send: inChunks + "6\r\nhello\r\n0\r\n\r\n" + smuggled},
	{name: "a bad chunk after a good one", why: chunkRules, want: refused(400), send: inChunks + "5\r\nhello\r\nzz\r\nworld\r\n0\r\n\r\n"},
	{name: "a bad chunk after 200 KiB of good ones", why: chunkRules, shown: "200 chunks of 1 KiB, then a size of zz", want: refused(400), send: inChunks + strings.Repeat("400\r\n"+strings.Repeat("x", 1024)+"\r\n", 200) + "zz\r\n\r\n"},
	{name: "chunks that break off", why: "9112 8: an incomplete message is none", half: true, want: verdict{conn: closed}, send: inChunks + "5\r\nhel"},
	{name: "chunks without a last one", why: "9112 8", half: true, want: verdict{conn: closed}, send: inChunks + "5\r\nhello\r\n"},
	{name: "a last chunk without an end", why: "9112 8", half: true, want: verdict{conn: closed}, send: inChunks + "5\r\nhello\r\n0\r\n"},
	{name: "a last chunk ended by a line feed", why: "9112 7.1", want: refused(400), send: inChunks + "5\r\nhello\r\n0\n\r\n" + smuggled},
}

// trailers are requests with trailer fields.
var trailers = []probe{
	{name: "a trailer field, announced", why: "9112 7.1.2", want: hello("Trailer: X-Sum").trailing("X-Sum: 42"), send: post + "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 42\r\n\r\n"},
	{name: "a trailer field, not announced", why: "9112 7.1.2 allows to drop it; and it is none of the header section", want: hello("-X-Sum").trailing("-X-Sum"), send: inChunks + "5\r\nhello\r\n0\r\nX-Sum: 42\r\n\r\n"},
	{name: "a trailer field announced that does not come", why: "9110 6.6.2: a hint only", want: hello().trailing("-X-Sum"), send: post + "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n" + chunked},
	{name: "trailer: Content-Length, announced", why: "9110 6.5.1", want: refused(400), send: withTrailer("Content-Length", "3")},
	{name: "trailer: Transfer-Encoding, announced", why: "9110 6.5.1", want: refused(400), send: withTrailer("Transfer-Encoding", "gzip")},
	{name: "trailer: Trailer, announced", why: "9110 6.5.1", want: refused(400), send: withTrailer("Trailer", "Host")},
	{name: "trailer: Content-Length", why: "9110 6.5.1: dropped", want: hello("-Content-Length").trailing("-Content-Length"), send: inChunks + "5\r\nhello\r\n0\r\nContent-Length: 3\r\n\r\n"},
	{name: "trailer: Transfer-Encoding", why: "9110 6.5.1: dropped", want: hello("Transfer-Encoding: chunked").trailing("-Transfer-Encoding"), send: inChunks + "5\r\nhello\r\n0\r\nTransfer-Encoding: gzip\r\n\r\n"},
	{name: "trailer: Host", why: "9110 6.5.1: routing is over; dropped", want: hello("Host: 127.0.0.1…").trailing("-Host"), send: withTrailer("Host", "evil.test")},
	{name: "trailer: Authorization", why: "9110 6.5.1: authentication is over; dropped", want: hello("-Authorization").trailing("-Authorization"), send: withTrailer("Authorization", "Bearer trailer")},
	{name: "trailer: Cookie", why: "9110 6.5.1, as above", want: hello("-Cookie").trailing("-Cookie"), send: withTrailer("Cookie", "session=trailer")},
	{name: "trailer: X-Forwarded-For", why: "the gateway's word, not the caller's: dropped", want: hello("X-Forwarded-For: 127.0.0.1").trailing("-X-Forwarded-For"), send: withTrailer("X-Forwarded-For", "192.0.2.7")},
	{name: "trailer: Connection", why: "9110 7.6.1: for one connection; dropped", want: hello("-Connection").trailing("-Connection"), send: withTrailer("Connection", "X-Sum")},
	{name: "trailer: Content-Encoding", why: "9110 6.5.1: how to read the content is said before it; dropped", want: hello("-Content-Encoding").trailing("-Content-Encoding"), send: withTrailer("Content-Encoding", "gzip")},
	{name: "trailer: Idempotency-Key", why: "9110 6.5.1: decided on before the content; dropped", want: hello("-Idempotency-Key").trailing("-Idempotency-Key"), send: withTrailer("Idempotency-Key", "9b1c")},
	{name: "a trailer line with a space before the colon", why: "9112 5.1: never passed on; net/http does not refuse it", want: hello().trailing("-X-Sum"), send: inChunks + "5\r\nhello\r\n0\r\nX-Sum : 42\r\n\r\n"},
	{name: "a trailer value with a NUL", why: "9110 5.5", want: refused(400), send: withTrailer("X-Sum", "4\x002")},
	{name: "a trailer line without a colon", why: "9112 5", want: refused(400), send: inChunks + "5\r\nhello\r\n0\r\nX-Sum\r\n\r\n"},
	{name: "a trailer section without an end", why: "bounded, by net/http to its 4 KiB of buffer", shown: "1 MiB of trailer fields", want: refused(400), send: inChunks + "5\r\nhello\r\n0\r\n" + strings.Repeat("X: "+strings.Repeat("a", 1021)+"\r\n", 1024) + "\r\n"},
}

// withTrailer is a request with a trailer field that it announces.
func withTrailer(name, value string) string {
	return post + "Transfer-Encoding: chunked\r\nTrailer: " + name + "\r\n\r\n5\r\nhello\r\n0\r\n" + name + ": " + value + "\r\n\r\n"
}
