package smuggling

// host begins the header section of a request that is otherwise in order.
const host = "Host: gateway.test\r\n"

const post = "POST /up/x HTTP/1.1\r\n" + host

// smuggled is what a probe hides. It must never reach the upstream.
const smuggled = "GET /up/smuggled HTTP/1.1\r\nHost: gateway.test\r\n\r\n"

// chunked is a body of hello.
const chunked = "5\r\nhello\r\n0\r\n\r\n"

const both = "9112 6.1, 6.3: a request framed twice is an attempt at smuggling, or as good as one"

var framing = []probe{
	{
		name: "Content-Length, then Transfer-Encoding", why: both, want: refused(400),
		send: post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
	},
	{
		name: "Content-Length alone", why: "9112 6.2", want: passed("POST /base/x HTTP/1.1", "Content-Length: 5", "-Transfer-Encoding").with("hello"),
		send: post + "Content-Length: 5\r\n\r\nhello",
	},
	{
		name: "chunked alone", why: "9112 7.1", want: passed("POST /base/x HTTP/1.1", "Transfer-Encoding: chunked", "-Content-Length").with("hello"),
		send: post + "Transfer-Encoding: chunked\r\n\r\n" + chunked,
	},
}
