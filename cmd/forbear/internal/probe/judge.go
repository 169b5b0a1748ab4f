package probe

import (
	"fmt"
	"strings"
	"time"
)

func holds(format string, args ...any) Verdict { return Verdict{Holds, fmt.Sprintf(format, args...)} }

func fails(format string, args ...any) Verdict { return Verdict{Fails, fmt.Sprintf(format, args...)} }

func notJudged(format string, args ...any) Verdict {
	return Verdict{NotJudged, fmt.Sprintf(format, args...)}
}

func tells(format string, args ...any) Verdict { return Verdict{Told, fmt.Sprintf(format, args...)} }

// short writes a duration as people say it.
func short(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

// stuck says why a run that shows one request alone cannot be judged; "" where it can.
func stuck(r *run) string {
	switch {
	case r.Fault != "":
		return r.Fault
	case r.sends() == 0 && len(r.Conns) == 0:
		return "it never called" + r.said()
	case r.sends() == 0:
		return "no request arrived" + r.said()
	case r.watched() && r.sends() == 1:
		return "it neither ended nor came again within " + short(r.Took)
	}
	return ""
}

// said is the last line that a program has written; "" where it wrote nothing.
func (r *run) said() string {
	lines := strings.Split(strings.TrimSpace(r.Output), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return fmt.Sprintf(": it says %.120q", last)
	}
	return ""
}

// unseen says why a case cannot be judged that needs the failure of an outage to be sent
// again; "" where it can.
func (k *known) unseen(r *run) string {
	switch {
	case r.sends() == 0:
		return stuck(r)
	case !k.sentAgain:
		return "nothing is sent again"
	}
	return ""
}

// judgeHealthy learns what the client is.
func judgeHealthy(k *known, runs []run) Verdict {
	r := &runs[0]
	if why := stuck(r); why != "" {
		return notJudged("%s", why)
	}
	a := r.Arrivals[0]
	k.method, k.agent, k.header, k.ok = a.Method, a.Header.Get("User-Agent"), a.Header, r.Exit
	switch {
	case k.protocol == overGRPC && a.Proto != "HTTP/2.0":
		return notJudged("it speaks %s, and gRPC is spoken over HTTP/2", a.Proto)
	case r.sends() > 1:
		return fails("a call that succeeds was sent %d times", r.sends())
	case r.Exit != 0:
		return notJudged("it ended with exit code %d after a healthy response", r.Exit)
	}
	return tells("%s, one request", a.Method)
}
