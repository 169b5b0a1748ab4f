package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/reason"
)

// Record is what is known of a call when it is over: enough for a line of an access log
// and for the metrics of a route. It holds no path, no query and no header but the
// correlation id.
type Record struct {
	At         time.Time // when the request came
	Method     string
	Route      string // its prefix or host; "" where no route matched
	Dependency string // "" where no route matched
	Status     int    // of the response; 0 when the caller had gone before
	GRPC       string // the name of a gRPC call's code, such as "UNAVAILABLE"; else ""
	// Attempts is how many requests were sent on; 0 when the call was refused.
	Attempts int
	// Reason is why a failure was not retried (further), as in [HeaderStop], or "".
	Reason string
	// Broken is true when the response had begun and broke off before its end: the
	// dependency hung up or stood still, or the time of the route was over. The caller
	// has got Status all the same. One whose caller left is not broken.
	Broken bool
	// Wait is the part of Duration in which the call waited: for its turn, and between
	// attempts.
	Wait, Duration time.Duration
	// Received and Sent are the bytes of the request's and the response's body.
	Received, Sent int64
	CorrelationID  string
}

// Attrs returns the record as attributes of a log line.
func (c *Record) Attrs() []slog.Attr {
	attrs := []slog.Attr{
		slog.String("method", c.Method), slog.String("route", c.Route), slog.String("dependency", c.Dependency),
		slog.Int("status", c.Status), slog.Int("attempts", c.Attempts),
		slog.Int64("wait_ms", c.Wait.Milliseconds()), slog.Float64("duration_ms", milliseconds(c.Duration)),
		slog.Int64("bytes_in", c.Received), slog.Int64("bytes_out", c.Sent),
		slog.String("correlation_id", c.CorrelationID),
	}
	if c.GRPC != "" {
		attrs = append(attrs, slog.String("grpc_status", c.GRPC))
	}
	if c.Reason != "" {
		attrs = append(attrs, slog.String("reason", c.Reason))
	}
	if c.Broken {
		attrs = append(attrs, slog.Bool("broken", true))
	}
	return attrs
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond).Microseconds()) / 1000
}

// meter is what is counted of a call while it is under way.
type meter struct {
	http.ResponseWriter
	began    time.Time
	ended    time.Duration // when the latest attempt did, from began
	attempts int
	wait     time.Duration
	status   int
	sent     int64
	reason   forbear.Reason
}

// begin begins a call, and returns what its response is written to.
func (m *meter) begin(w http.ResponseWriter) *meter {
	m.ResponseWriter, m.began = w, time.Now()
	return m
}

// WriteHeader implements [http.ResponseWriter]. A 1xx is not the response yet.
func (m *meter) WriteHeader(status int) {
	if m.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		m.status = status
	}
	m.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (m *meter) Write(p []byte) (int, error) {
	if m.status == 0 {
		m.status = http.StatusOK
	}
	n, err := m.ResponseWriter.Write(p)
	m.sent += int64(n)
	return n, err
}

// Unwrap serves [http.ResponseController].
func (m *meter) Unwrap() http.ResponseWriter { return m.ResponseWriter }

// record sums the call up.
func (x *request) record() Record {
	m := &x.meter
	c := Record{
		At: m.began, Method: x.in.Method, Status: m.status, Attempts: m.attempts, Wait: m.wait,
		Duration: time.Since(m.began), Received: x.exchange.Received(), Sent: m.sent, CorrelationID: x.id[0],
	}
	if m.reason != reason.None {
		c.Reason = m.reason.String()
	}
	if x.rpc != nil && m.status != 0 {
		c.GRPC = codeSent(m.Header())
	}
	if x.route != nil {
		c.Route, c.Dependency = x.route.name, x.route.Retryer.Dependency()
	}
	return c
}

// LogHandler returns a handler that adds the method and the route of the call to what
// is logged under its context: by the gateway itself, and by the Retryers of its routes
// ([forbear.LogObserver]). Lines of other contexts are left as they are.
func LogHandler(next slog.Handler) slog.Handler { return logHandler{next} }

type logHandler struct{ slog.Handler }

// Handle implements [slog.Handler].
func (h logHandler) Handle(ctx context.Context, line slog.Record) error {
	if x := requestOf(ctx); x != nil && x.route != nil {
		line = line.Clone()
		line.AddAttrs(slog.String("method", x.in.Method), slog.String("route", x.route.name))
	}
	return h.Handler.Handle(ctx, line)
}

// WithAttrs and WithGroup implement [slog.Handler].
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}

func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.Handler.WithGroup(name)} }

// logFailure logs a call to which the gateway itself responds. A Retryer logs what it
// has retried or suppressed; what no retry could have fixed it leaves to its caller. A
// dependency that is gone must not fill the log twice.
func (x *request) logFailure(err error, status int) {
	kind, cause := "bad_response", ""
	if e, ok := errors.AsType[*forbear.Error](err); ok {
		switch e.Reason {
		case reason.Terminal, reason.Unknown, reason.Canceled:
		default:
			return
		}
		if e.Attempts == 0 {
			return
		}
		kind, cause = e.Type, e.Failure().Explain()
	}
	x.route.log.LogAttrs(x, slog.LevelWarn, "call failed",
		slog.String("dependency", x.route.Retryer.Dependency()), slog.Int("status", status),
		slog.String("error_type", kind), slog.String("cause", cause), slog.String("error", err.Error()),
		slog.String("correlation_id", x.id[0]))
}
