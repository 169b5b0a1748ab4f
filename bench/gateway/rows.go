package main

import (
	"net/http"
	"time"
)

// row is one line of the table: an upstream, and those who call it.
type row struct {
	name, title string
	about       string // how it is to be read, where the title does not say
	lasts       time.Duration
	quick       time.Duration
	load        load
	script      func(lasts time.Duration) script
	refuses     func(at time.Duration) bool // when the upstream's port is closed
	streams     bool                        // setting.Streams
	measure     func(*trial) (tally, error) // nil: the load
	least       float64                     // of the bare proxy's good calls, what forbear must have in a full run
	group       int                         // a quick run plays neighbours of one group at once; 0 plays alone
}

// crowd are 200 callers who make a thousand calls a second.
var crowd = load{callers: 200, every: 200 * time.Millisecond}

const flap = 2 * time.Second

func is(p reply) func(time.Duration) script {
	return func(time.Duration) script { return always(p) }
}

func some(of float64, p reply) func(time.Duration) script {
	return func(time.Duration) script { return share(of, p) }
}

func posts(keyed bool) load {
	l := crowd
	l.request = func(id string) []byte { return post(id, keyed) }
	return l
}

var (
	good        = reply{}
	unavailable = reply{status: http.StatusServiceUnavailable}
)

// rows returns the table. Times are those of a full run and of a quick one.
func rows() []row {
	const s = time.Second
	return []row{
		{name: "well", title: "all is well", lasts: 10 * s, quick: 3 * s, load: crowd, script: is(good)},
		{name: "dead", group: 1, title: "connections are refused", lasts: 15 * s, quick: 3 * s, load: crowd, script: is(good), refuses: func(time.Duration) bool { return true }},
		{name: "hole", group: 1, title: "takes requests and never responds", lasts: 20 * s, quick: 4 * s, load: crowd, script: is(reply{hang: true})},
		{name: "503", title: "503 to all", lasts: 15 * s, quick: 3 * s, load: crowd, script: is(unavailable)},
		{name: "503-some", group: 2, title: "503 to 5 %", lasts: 15 * s, quick: 3 * s, load: crowd, script: some(0.05, unavailable)},
		{name: "reset", group: 2, title: "hangs up on 5 % before the first byte", lasts: 15 * s, quick: 3 * s, load: crowd, script: some(0.05, reply{hangup: true})},
		{name: "cut", group: 3, title: "breaks off in the header of 5 %", lasts: 15 * s, quick: 3 * s, load: crowd, script: some(0.05, reply{cut: true})},
		{
			name: "slow", group: 3, title: "a slow tenth: 2 s", about: "given up after 1 s",
			lasts: 15 * s, quick: 3 * s, load: crowd, script: some(0.1, reply{after: 2 * s}),
		},
		{
			name: "429", group: 4, title: "a limit of 200/s, 429", about: "of 1,000 calls a second",
			lasts: 20 * s, quick: 4 * s, load: crowd, script: func(time.Duration) script { return limited(steady(200), false) },
		},
		{
			name: "429-hint", group: 4, title: "the same with Retry-After: 1",
			lasts: 20 * s, quick: 4 * s, load: crowd, script: func(time.Duration) script { return limited(steady(200), true) },
		},
		{
			name: "429-moves", title: "a limit of 200, then 50, then 400/s", about: "ideally 217 good calls a second",
			lasts: 30 * s, quick: 6 * s, load: crowd,
			script: func(lasts time.Duration) script { return limited(thirds(lasts, [3]float64{200, 50, 400}), false) },
		},
		{
			name: "flap", group: 5, title: "2 s of 503, 2 s up, by turns", about: "ideally 500 good calls a second",
			lasts: 32 * s, quick: 14 * s, load: crowd, least: 0.5,
			script: func(time.Duration) script { return flapping(flap, unavailable) },
		},
		{
			name: "flap-refused", group: 5, title: "2 s of refused connections, 2 s up", about: "ideally 500 good calls a second",
			lasts: 32 * s, quick: 14 * s, load: crowd, least: 0.5, script: is(good), refuses: down(flap),
		},
		{
			name: "upload", group: 6, title: "50 callers beside 20 slow uploads", about: "1 MiB at 50 KiB/s each",
			lasts: 24 * s, quick: 7 * s, script: is(good), measure: (*trial).uploads,
		},
		{
			name: "sse", group: 6, title: "event streams, silent for longer than every timeout",
			lasts: 20 * s, quick: 4 * s, measure: (*trial).watches, script: func(lasts time.Duration) script {
				return silent("text/event-stream", "data: 1\n\n", lasts)
			},
		},
		{
			name: "ndjson", group: 6, title: "a watch as NDJSON, silent for longer than every timeout",
			lasts: 20 * s, quick: 4 * s, measure: (*trial).watches, script: func(lasts time.Duration) script {
				return silent("application/x-ndjson", "{\"n\":1}\n", lasts)
			},
		},
		{
			name: "sse-told", group: 6, title: "event streams, where the operator knows of them", about: "no timeout for the silence",
			lasts: 20 * s, quick: 4 * s, streams: true, measure: (*trial).watches, script: func(lasts time.Duration) script {
				return silent("text/event-stream", "data: 1\n\n", lasts)
			},
		},
		{
			name: "post", group: 7, title: "POST, and the server hangs up after reading 10 %", about: "duplicates are contents that arrived again without the key of the first time",
			lasts: 15 * s, quick: 3 * s, load: posts(false), script: some(0.1, reply{hangup: true}), measure: (*trial).orders,
		},
		{
			name: "post-keyed", group: 7, title: "the same with an Idempotency-Key",
			lasts: 15 * s, quick: 3 * s, load: posts(true), script: some(0.1, reply{hangup: true}), measure: (*trial).orders,
		},
	}
}

// batches returns what is played at once: in a full run each row alone.
func batches(all []row, quick bool) (found [][]row) {
	for i, r := range all {
		if quick && i > 0 && r.group > 0 && r.group == all[i-1].group {
			found[len(found)-1] = append(found[len(found)-1], r)
		} else {
			found = append(found, []row{r})
		}
	}
	return found
}
