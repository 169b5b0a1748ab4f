package gateway

import (
	"context"
	"errors"
	"log/slog"

	"github.com/forbear-go/forbear"
)

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
		case forbear.ReasonTerminal, forbear.ReasonUnknown, forbear.ReasonCanceled:
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
