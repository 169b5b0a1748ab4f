package faulttable

import "net/http"

// goAwayUnseen refuses the stream with the whole connection and hangs up.
func goAwayUnseen(c *h2, _ uint32, _ int) bool { c.goAway(0, 0); return false }

// goAwaySlowly keeps a client that repeats without a bound from taking the
// machine.
func goAwaySlowly(c *h2, stream uint32, n int) bool {
	pause(pausing / 20)
	return goAwayUnseen(c, stream, n)
}

// goAwayGraceful finishes the stream, and takes no other on this connection.
func goAwayGraceful(c *h2, stream uint32, _ int) bool {
	c.goAway(stream, 0)
	c.respond(stream)
	return true
}

func refusesStream(c *h2, stream uint32, _ int) bool {
	c.resetStream(stream, codeRefused)
	return true
}

// resetsStream carries the request out, perhaps, and gives the stream up.
func resetsStream(code uint32) streaming {
	return func(c *h2, stream uint32, _ int) bool {
		c.take(stream)
		c.resetStream(stream, code)
		return true
	}
}

func dropsConnection(c *h2, stream uint32, _ int) bool {
	c.take(stream)
	return false
}

func responds(c *h2, stream uint32, _ int) bool {
	c.respond(stream)
	return true
}

// streams are faults of HTTP/2, each under requests that can be repeated in
// different ways.
var streams = append([]fault{
	{name: "HTTP/2: 200", stream: responds},
	{name: "HTTP/2: 200, POST of a streamed body", body: streamed, stream: responds},
	{name: "HTTP/2: REFUSED_STREAM for ever, GET", stream: refusesStream, patience: patient, endless: true, why: "R-2"},
	{name: "HTTP/2: GOAWAY for ever, GET", stream: goAwaySlowly, patience: patient, endless: true, why: "R-2"},
},
	over(
		kindOfStream{"GOAWAY before the response, which comes", goAwayGraceful, ""},
		kindOfStream{"GOAWAY, not carried out, once", goAwayUnseen, "RFC 9113 section 6.8: certainly not carried out"},
		kindOfStream{"REFUSED_STREAM, once", refusesStream, "RFC 9113 section 8.7: certainly not carried out"},
		kindOfStream{"RST_STREAM CANCEL, once", resetsStream(codeCancel), "R-4"},
		kindOfStream{"RST_STREAM INTERNAL_ERROR, once", resetsStream(codeInternal), "R-4"},
		kindOfStream{"connection lost under the request, once", dropsConnection, "R-4"},
	)...)

type kindOfStream struct {
	name string
	do   streaming
	why  string
}

// over puts each kind under each request.
func over(kinds ...kindOfStream) (all []fault) {
	for _, k := range kinds {
		for _, f := range []fault{
			{name: "GET"},
			{name: "POST", body: payload},
			{name: "POST with a key", body: payload, key: true},
			{name: "PUT of a streamed body", method: http.MethodPut, body: streamed},
		} {
			f.stream, f.why = onceH2(k.do), k.why
			f.name = "HTTP/2: " + k.name + ", " + f.name
			all = append(all, f)
		}
	}
	return all
}
