package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

// This file holds the scripts: what an upstream can be like.

// always is the same reply to everything.
func always(p reply) script { return func(sent) reply { return p } }

// share is a reply to so many of the requests, at random, and 200 to the others.
// All contenders of a row have the same luck.
func share(of float64, p reply) script {
	luck := rand.New(rand.NewPCG(1, 2))
	return func(sent) reply {
		if luck.Float64() < of {
			return p
		}
		return reply{}
	}
}

// flapping is up for one half of the time and then gives a reply for the other.
func flapping(half time.Duration, p reply) script {
	return func(s sent) reply {
		if down(half)(s.at) {
			return p
		}
		return reply{}
	}
}

// down says when a flapping upstream is down: first.
func down(half time.Duration) func(time.Duration) bool {
	return func(at time.Duration) bool { return at/half%2 == 0 }
}

// limited is a token bucket, which responds with 429 to what is too much. Its rate,
// in requests a second, may depend on the time; it holds a quarter of a second's.
func limited(rate func(at time.Duration) float64, retryAfter bool) script {
	refusal := reply{status: http.StatusTooManyRequests}
	if retryAfter {
		refusal.header = "Retry-After: 1\r\n"
	}
	tokens, last := rate(0)/4, time.Duration(0)
	return func(s sent) reply {
		perSecond := rate(s.at)
		tokens = min(tokens+perSecond*(s.at-last).Seconds(), perSecond/4)
		if last = s.at; tokens < 1 {
			return refusal
		}
		tokens--
		return reply{}
	}
}

// steady is a rate that does not change.
func steady(perSecond float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return perSecond }
}

// thirds is a rate that changes twice in a row that lasts for so long.
func thirds(lasts time.Duration, rates [3]float64) func(time.Duration) float64 {
	return func(at time.Duration) float64 { return rates[min(max(3*at/lasts, 0), 2)] }
}

// silent streams one event, and another after a silence.
func silent(kind, event string, silence time.Duration) script {
	return always(reply{
		header: fmt.Sprintf("Content-Type: %s\r\nCache-Control: no-cache\r\n", kind),
		stream: func(w io.Writer) {
			if _, err := io.WriteString(w, event); err != nil {
				return
			}
			time.Sleep(silence)
			_, _ = io.WriteString(w, event+last)
		},
	})
}

// last ends a stream that has come through.
const last = "\n: the end\n"
