package deadletter_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/edge"
)

// A cause has the text of the error, the types of what it wraps, and nothing that
// a log may not have.
func TestCauseOf(t *testing.T) {
	inner := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	err := forbear.Terminal(fmt.Errorf("charging ann@example.com: %w", inner))
	c := deadletter.CauseOf(forbear.Failure{Class: forbear.ClassTransient, Type: "connection_refused", Err: err})
	want := deadletter.Cause{
		Class: "transient", Type: "connection_refused", Error: "charging [redacted]: dial tcp: connect: connection refused",
		Chain: []string{"*fmt.wrapError", "*net.OpError", "*os.SyscallError", "syscall.Errno"},
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v, want %+v", c, want)
	}
	joined := deadletter.CauseOf(forbear.Failure{Err: errors.Join(inner, errors.ErrUnsupported)})
	if got := fmt.Sprint(joined.Chain); got != "[*errors.joinError *net.OpError *os.SyscallError syscall.Errno *errors.errorString]" {
		t.Errorf("joined: %s", got)
	}
	if got := deadletter.CauseOf(forbear.Failure{}); !reflect.DeepEqual(got, deadletter.Cause{}) {
		t.Errorf("no failure: %+v", got)
	}
}

// wraps is an error that wraps itself; panics does so when it is asked for its text.
type (
	wraps  struct{}
	panics struct{}
)

func (w wraps) Error() string { return strings.Repeat("long ", 10_000) }
func (w wraps) Unwrap() error { return w }
func (panics) Error() string  { panic("planted") }

// An error cannot make a cause large, endless, or the end of the process.
func TestCauseIsBounded(t *testing.T) {
	c := deadletter.CauseOf(forbear.Failure{Err: wraps{}})
	if len(c.Chain) != deadletter.MaxChain || len(c.Error) > deadletter.MaxError {
		t.Errorf("%d types, %d bytes", len(c.Chain), len(c.Error))
	}
	if a := c.Failed(); len(a.Error) > deadletter.MaxAttemptError {
		t.Errorf("%d bytes for an attempt", len(a.Error))
	}
	if c := deadletter.CauseOf(forbear.Failure{Err: panics{}}); c.Error != "(its text panicked: string)" {
		t.Errorf("got %+v", c)
	}
}

// A panic's value is kept where it is text or a number, and its type otherwise: its
// fields are data.
func TestCauseOfAPanic(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{"password=planted is wrong", "password=[redacted] is wrong"},
		{errors.New("boom"), "boom"},
		{panics{}, "(its text panicked: string)"},
		{7, "7"},
		{struct{ Name string }{"planted"}, "a value of type struct { Name string }"},
	} {
		got := deadletter.CauseOf(forbear.Failure{Err: forbear.Terminal(&edge.PanicError{Value: c.value, Stack: []byte("goroutine 1 [running]:\nruntime/debug.Stack()\npanic({0x1, 0x2})\n\t/go/panic.go:1\nmain.charge(0xc000)\n\t/app/main.go:7\n")})})
		if got.Panic != c.want || got.Stack != "main.charge(0xc000)\n\t/app/main.go:7\n" {
			t.Errorf("%v: got %+v", c.value, got)
		}
		if got.Error != fmt.Sprintf("panicked: %T", c.value) || strings.Contains(got.Error, "planted") {
			t.Errorf("%v: the error says %q", c.value, got.Error)
		}
	}
	got := deadletter.CauseOf(forbear.Failure{Err: &edge.PanicError{Stack: []byte(strings.Repeat("main.recurse()\n", 10_000))}})
	if len(got.Stack) > deadletter.MaxStack {
		t.Errorf("%d bytes of a stack", len(got.Stack))
	}
}

// Failures of one cause have one fingerprint, whatever varies in them; others have
// another.
func TestFingerprint(t *testing.T) {
	letter := func(change func(*deadletter.Letter)) string {
		l := deadletter.Letter{
			Queue: "orders", Destination: "ledger", Reason: "exhausted", ErrorType: "timeout", Chain: []string{"*fmt.wrapError", "*net.OpError"},
			Error: `booking order-17 of "Ann": read tcp 10.0.0.1:4242: i/o timeout`, Attempts: 4, ID: "a", DeadAt: time.Unix(1, 0),
		}
		change(&l)
		return l.Fingerprint()
	}
	first := letter(func(*deadletter.Letter) {})
	if len(first) != 12 || first != "de45fe482393" {
		t.Errorf("got %q: fingerprints are stored, and must not change", first)
	}
	for name, change := range map[string]func(*deadletter.Letter){
		"ids, ports and quotes": func(l *deadletter.Letter) {
			l.Error = `booking order-9918 of "Bob \"B\"": read tcp 10.9.8.7:1: i/o timeout`
		},
		"attempts and times": func(l *deadletter.Letter) { l.Attempts, l.ID, l.DeadAt = 6, "b", time.Unix(2, 0) },
		"an outer type":      func(l *deadletter.Letter) { l.Chain = []string{"*net.OpError"} },
		"masked":             func(l *deadletter.Letter) { *l = l.Mask() },
	} {
		if got := letter(change); got != first {
			t.Errorf("%s: another cause", name)
		}
	}
	for name, change := range map[string]func(*deadletter.Letter){
		"destination": func(l *deadletter.Letter) { l.Destination = "shop" },
		"error_type":  func(l *deadletter.Letter) { l.ErrorType = "http_503" },
		"text":        func(l *deadletter.Letter) { l.Error = "no such account" },
		"inner type":  func(l *deadletter.Letter) { l.Chain = []string{"*fmt.wrapError", "*os.PathError"} },
		"panic":       func(l *deadletter.Letter) { l.Panic = "nil map" },
	} {
		if letter(change) == first {
			t.Errorf("%s: the same cause", name)
		}
	}
}

// A history keeps the latest attempts, and a letter learns from it why it is dead.
func TestHistoryIsBounded(t *testing.T) {
	var list []deadletter.Attempt
	for i := range 50 {
		list = deadletter.Append(list, deadletter.Attempt{Number: i, At: time.Unix(int64(i), 0), Error: fmt.Sprint("error ", i), Chain: []string{"*x"}})
	}
	if len(list) != deadletter.MaxHistory || list[0].Number != 30 || list[19].Number != 49 {
		t.Errorf("%d attempts, from %d", len(list), list[0].Number)
	}
	var l deadletter.Letter
	l.SetHistory(append(list, deadletter.Attempt{Number: 50, At: time.Unix(50, 0), ErrorType: "interrupted"}))
	if len(l.History) != deadletter.MaxHistory || l.Error != "error 49" || len(l.Chain) != 1 || l.FirstAttempt.Unix() != 30 || l.LastAttempt.Unix() != 50 {
		t.Errorf("got %+v", l)
	}
}

// Masked, a letter shows why it is dead and not what its errors quote.
func TestMaskOfCauses(t *testing.T) {
	l := deadletter.Letter{
		Error: `unknown field "planted" in {Name:planted}`, Panic: "bad map[Name:planted]", Stack: "main.charge()",
		History: []deadletter.Attempt{{Error: "key 'planted' isn't there"}},
	}
	m := l.Mask()
	if m.Error != `unknown field "***" in {***}` || m.Panic != "bad map[***]" || m.Stack != "main.charge()" || m.History[0].Error != "key '***' isn't there" {
		t.Errorf("got %+v", m)
	}
}

// The trace is found where each protocol has it.
func TestTraceID(t *testing.T) {
	const id = "0af7651916cd43dd8448eb211c80319c"
	for name, c := range map[string]struct{ header, value, correlation, want string }{
		"header":      {"Traceparent", "00-" + id + "-b7ad6b7169203331-01", "", id},
		"attribute":   {"ce-traceparent", "00-" + id + "-b7ad6b7169203331-01", "c", id},
		"kafka":       {"ce_traceparent", "00-" + id + "-b7ad6b7169203331-01", "", id},
		"amqp":        {"cloudEvents:traceparent", "00-" + id + "-b7ad6b7169203331-01", "", id},
		"correlation": {"x", "", id, id},
		"unreadable":  {"traceparent", "00-zz\n-b7ad6b7169203331-01", "", ""},
		"none":        {"x", "", "order-17", ""},
	} {
		if got := deadletter.TraceID([]deadletter.Header{{Name: c.header, Value: c.value}}, c.correlation); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
