package main

import (
	"context"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"
)

// direct returns a trial without a proxy: what it finds is what the script did.
func direct(t *testing.T, r row) *trial {
	t.Helper()
	up, err := newScripted()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.close)
	return &trial{ctx: t.Context(), row: r, lasts: 300 * time.Millisecond, quick: true, up: up, addr: up.addr, extra: map[string]float64{}}
}

var few = load{callers: 20, every: 5 * time.Millisecond}

// TestWhatCallersSee: each fault is seen, and counted, as what it is.
func TestWhatCallersSee(t *testing.T) {
	for _, tt := range []struct {
		name   string
		reply  reply
		closed bool
		want   string
	}{
		{"well", reply{}, false, "200"},
		{"503", unavailable, false, "503"},
		{"hangs up", reply{hangup: true}, false, "broken off"},
		{"breaks off in the header", reply{cut: true}, false, "broken off"},
		{"refuses", reply{}, true, "broken off"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := row{load: few, script: is(tt.reply)}
			if tt.closed {
				r.refuses = func(time.Duration) bool { return true }
			}
			x := direct(t, r)
			got, err := x.run(&contender{})
			if err != nil {
				t.Fatal(err)
			}
			if got.Calls == 0 || !maps.Equal(got.Seen, map[string]int{tt.want: got.Calls}) {
				t.Errorf("%d calls saw %v, want %s alone", got.Calls, got.Seen, tt.want)
			}
			want := 1.0
			if tt.closed {
				want = 0
			}
			if got.SendsPerCall != want || (got.GoodShare == 1) != (tt.want == "200") {
				t.Errorf("%v sends a call, %v good; want %v sends", got.SendsPerCall, got.GoodShare, want)
			}
		})
	}
}

// TestShareAndTimes: the scripts that depend on luck and on time.
func TestShareAndTimes(t *testing.T) {
	count := func(s script, n int, every time.Duration) (bad int) {
		for i := range n {
			if r := s(sent{n: i, at: time.Duration(i) * every}); r.status != 0 {
				bad++
			}
		}
		return bad
	}
	if got := count(share(0.05, unavailable), 10_000, 0); got < 400 || got > 600 {
		t.Errorf("5 %% of 10,000 are %d", got)
	}
	if got := count(flapping(flap, unavailable), 12_000, time.Millisecond); got != 6_000 {
		t.Errorf("in 12 s of 1,000/s %d fail, want half", got)
	}
	if got := 10_000 - count(limited(steady(200), false), 10_000, time.Millisecond); got < 2_000 || got > 2_060 {
		t.Errorf("a limit of 200/s lets %d through in 10 s", got)
	}
	moves := limited(thirds(9*time.Second, [3]float64{200, 50, 400}), false)
	if got := 9_000 - count(moves, 9_000, time.Millisecond); got < 1_940 || got > 2_050 {
		t.Errorf("limits of 200, 50 and 400/s for 3 s each let %d through", got)
	}
	if r := limited(steady(0), true)(sent{}); r.status != http.StatusTooManyRequests || r.header != "Retry-After: 1\r\n" {
		t.Errorf("a limiter with a hint says %+v", r)
	}
}

// TestDuplicates: the same content again is a duplicate, unless it comes under the
// key that it had at first.
func TestDuplicates(t *testing.T) {
	for _, tt := range []struct {
		name string
		keys []string
		want int
	}{
		{"once", []string{""}, 0},
		{"again without a key", []string{"", "", ""}, 2},
		{"again with its key", []string{"a", "a", "a"}, 0},
		{"again with another", []string{"a", "b"}, 1},
		{"again without its key", []string{"a", ""}, 1},
		{"a key only later", []string{"", "a"}, 1},
	} {
		u := &scripted{bodies: map[string]*arrivals{}}
		for _, key := range tt.keys {
			u.arrived("content", key)
		}
		if a := u.bodies["content"]; a.again != tt.want || a.sends != len(tt.keys) {
			t.Errorf("%s: %d duplicates of %d sends, want %d of %d", tt.name, a.again, a.sends, tt.want, len(tt.keys))
		}
	}
}

// TestOrdersAreCounted: the receiver sees each call's content.
func TestOrdersAreCounted(t *testing.T) {
	l := few
	l.request = func(id string) []byte { return post(id, true) }
	x := direct(t, row{load: l, script: some(0.2, reply{hangup: true}), measure: (*trial).orders})
	got, err := x.run(&contender{})
	if err != nil {
		t.Fatal(err)
	}
	if len(x.up.bodies) != got.Calls || got.Extra["duplicates"] != 0 || got.Seen["200"]+got.Seen["broken off"] != got.Calls {
		t.Errorf("%d contents of %d calls, which saw %v, %v", len(x.up.bodies), got.Calls, got.Seen, got.Extra)
	}
}

// TestStreams: what comes through is told from what is cut.
func TestStreams(t *testing.T) {
	for want, body := range map[string]string{whole: last, "ended as if complete": "data: 2\n\n"} {
		x := direct(t, row{measure: (*trial).watches, script: is(reply{stream: func(w io.Writer) {
			_, _ = io.WriteString(w, "data: 1\n\n"+body)
		}})})
		got, err := x.run(&contender{})
		if err != nil {
			t.Fatal(err)
		}
		if got.Seen[want] != watchers || (got.Good == watchers) != (want == whole) {
			t.Errorf("%v, %d good; want %s of all %d", got.Seen, got.Good, want, watchers)
		}
	}
}

// TestUploadArrives: the slow ones are counted apart from the others.
func TestUploadArrives(t *testing.T) {
	x := direct(t, row{})
	if got := upload(x.addr, "u", trickle/4); got != "200" {
		t.Errorf("an upload ended with %s", got)
	}
}

// TestRows: names are what -row takes, and a quick run plays each row once.
func TestRows(t *testing.T) {
	all, names := rows(), map[string]bool{}
	for _, r := range all {
		if r.name == "" || r.title == "" || names[r.name] || r.quick > r.lasts || r.script == nil {
			t.Errorf("row %q is incomplete, or there twice", r.name)
		}
		names[r.name] = true
	}
	for _, quick := range []bool{true, false} {
		n := 0
		for _, b := range batches(all, quick) {
			if n += len(b); !quick && len(b) != 1 {
				t.Errorf("%d rows at once in a full run", len(b))
			}
			for _, r := range b[1:] {
				if r.group == 0 || r.group != b[0].group {
					t.Errorf("%s of group %d is played with %s of group %d", r.name, r.group, b[0].name, b[0].group)
				}
			}
		}
		if n != len(all) {
			t.Errorf("quick %v: %d rows are played, want %d", quick, n, len(all))
		}
	}
	if _, err := selected(options{row: "flap,nonsense"}); err == nil || !strings.Contains(err.Error(), "flap-refused") {
		t.Errorf("an unknown row is %v, want an error that lists them", err)
	}
}

// TestTemplates: each configuration says what the shared times are.
func TestTemplates(t *testing.T) {
	s := times()
	s.Upstream, s.Listen = "127.0.0.1:1", "127.0.0.1:2"
	for name, want := range map[string][]string{
		"forbear.yaml.tmpl": {"connect: 500ms", "per_attempt: 1s", "total: 5s", "body_idle: 2s", "url: http://127.0.0.1:1"},
		"haproxy.cfg.tmpl":  {"timeout connect 500ms", "timeout server 1000ms", "retries 3"},
		"nginx.conf.tmpl":   {"proxy_connect_timeout 500ms", "proxy_read_timeout 1000ms", "proxy_next_upstream_tries 4", "proxy_next_upstream_timeout 5000ms"},
		"Caddyfile.tmpl":    {"dial_timeout 500ms", "response_header_timeout 1s", "lb_retries 3"},
	} {
		var b strings.Builder
		if err := templates.ExecuteTemplate(&b, name, s); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(b.String(), w) {
				t.Errorf("%s lacks %q:\n%s", name, w, b.String())
			}
		}
	}
}

// TestGoals: forbear's misses are what makes a run fail.
func TestGoals(t *testing.T) {
	r, bare := row{name: "flap", least: 0.5}, result{GoodPerSecond: 500}
	for _, tt := range []struct {
		x     result
		quick bool
		want  int
	}{
		{result{GoodPerSecond: 250, SendsPerCall: 1.25}, false, 0},
		{result{GoodPerSecond: 249, SendsPerCall: 1.26}, false, 2},
		{result{GoodPerSecond: 249, SendsPerCall: 1.26}, true, 0},
		{result{GoodPerSecond: 250, Extra: map[string]float64{"duplicates": 1}}, true, 1},
	} {
		if got := r.misses(tt.x, bare, tt.quick); len(got) != tt.want {
			t.Errorf("%+v: %v, want %d misses", tt.x, got, tt.want)
		}
	}
}

// TestStoppedLoad: an interrupted run ends soon.
func TestStoppedLoad(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if got := few.run(ctx, "127.0.0.1:1", time.Hour, true); len(got.took) != 0 {
		t.Errorf("%d calls after the end", len(got.took))
	}
}
