package gateway

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/forbear-go/forbear"
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
	ended    time.Time // of the latest attempt, or of the call's beginning
	attempts int
	wait     time.Duration
	status   int
	sent     int64
	reason   forbear.Reason
}

// begin begins a call, and returns what its response is written to.
func (m *meter) begin(w http.ResponseWriter) *meter {
	now := time.Now()
	m.ResponseWriter, m.began, m.ended = w, now, now
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
	if m.reason != forbear.ReasonNone {
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
