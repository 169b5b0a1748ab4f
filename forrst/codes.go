package forrst

import (
	"net/http"
	"time"

	"github.com/forbear-go/forbear"
)

// Row is the protocol's default for an error code.
type Row struct {
	Code string
	// Status is the HTTP status of a response with this error alone.
	Status int
	// Strategy is "" for a code that is not retried.
	Strategy Strategy
	// After is the wait of Fixed, the base of Exponential.
	After time.Duration
	// MaxRetries is 0 where the table leaves the number to the client.
	MaxRetries int

	class forbear.Class
}

// retried are the codes with a default strategy: first the six of the
// protocol's decision, then those that the published protocol has added.
var retried = []Row{
	{"RATE_LIMITED", 429, Fixed, 60 * time.Second, 0, forbear.ClassThrottled},
	{"UNAVAILABLE", 503, Exponential, time.Second, 0, forbear.ClassTransient},
	{"DEADLINE_EXCEEDED", 504, Immediate, 0, 0, forbear.ClassTimeout},
	{"INTERNAL_ERROR", 500, Exponential, time.Second, 3, forbear.ClassTransient},
	{"DEPENDENCY_ERROR", 502, Exponential, 2 * time.Second, 0, forbear.ClassTransient},
	{"IDEMPOTENCY_PROCESSING", 409, Fixed, time.Second, 0, forbear.ClassTransient},

	{"SERVER_MAINTENANCE", 503, Fixed, 60 * time.Second, 1, forbear.ClassTransient},
	{"FUNCTION_MAINTENANCE", 503, Fixed, 60 * time.Second, 1, forbear.ClassTransient},
	{"FUNCTION_DISABLED", 503, Fixed, 30 * time.Second, 2, forbear.ClassTransient},
	{"LOCK_ACQUISITION_FAILED", 423, Exponential, time.Second, 3, forbear.ClassTransient},
	{"LOCK_TIMEOUT", 423, Exponential, time.Second, 3, forbear.ClassTransient},
}

// refused are the statuses of the codes that are not retried.
var refused = map[string]int{
	"PARSE_ERROR": 400, "INVALID_REQUEST": 400, "INVALID_PROTOCOL_VERSION": 400, "INVALID_ARGUMENTS": 400,
	"SCHEMA_VALIDATION_FAILED": 422, "EXTENSION_NOT_SUPPORTED": 400, "EXTENSION_NOT_APPLICABLE": 400,
	"FUNCTION_NOT_FOUND": 404, "VERSION_NOT_FOUND": 404, "UNAUTHORIZED": 401, "FORBIDDEN": 403,
	"NOT_FOUND": 404, "CONFLICT": 409, "GONE": 410, "IDEMPOTENCY_CONFLICT": 409, "ASYNC_QUOTA_EXCEEDED": 429,
	"ASYNC_OPERATION_NOT_FOUND": 404, "ASYNC_OPERATION_FAILED": 500, "ASYNC_CANNOT_CANCEL": 400,
	"REPLAY_NOT_FOUND": 404, "REPLAY_EXPIRED": 410, "REPLAY_ALREADY_COMPLETE": 409, "REPLAY_CANCELLED": 410,
	"CANCELLED": 499, "CANCELLATION_TOKEN_UNKNOWN": 404, "CANCELLATION_TOO_LATE": 409,
	"LOCK_NOT_FOUND": 404, "LOCK_OWNERSHIP_MISMATCH": 403, "LOCK_ALREADY_RELEASED": 409,
	"SIMULATION_NOT_SUPPORTED": 400, "SIMULATION_SCENARIO_NOT_FOUND": 404,
}

// rows has both tables by code, so that a lookup is one step.
var rows = func() map[string]Row {
	m := make(map[string]Row, len(retried)+len(refused))
	for _, r := range retried {
		m[r.Code] = r
	}
	for code, status := range refused {
		class := forbear.ClassTerminal
		if code == "UNAUTHORIZED" {
			class = forbear.ClassUnauthorized
		}
		m[code] = Row{Code: code, Status: status, class: class}
	}
	return m
}()

// Default returns the protocol's default for a code. ok is false for an
// unknown code, which is not retried: its author knew something that this
// table does not.
func Default(code string) (row Row, ok bool) {
	row, ok = rows[code]
	if !ok {
		row = Row{Code: code, Status: http.StatusBadRequest, class: forbear.ClassTerminal}
	}
	return row, ok
}

// Defaults returns the rows that are retried, in the order of the protocol's
// table.
func Defaults() []Row { return append([]Row(nil), retried...) }

// Retry returns the row as a server announces it.
func (r Row) Retry() Retry {
	if r.Strategy == "" {
		return Retry{}
	}
	e := Retry{Allowed: true, Strategy: r.Strategy, MaxAttempts: r.MaxRetries}
	if r.After > 0 {
		e.After = new(DurationOf(r.After))
	}
	return e
}

// label returns the error_type of a code. Codes are free text from the wire,
// and a label of a metric must have few values: only the known codes keep
// their names.
func label(code string) string {
	if _, ok := rows[code]; ok {
		return "forrst_" + code
	}
	return "forrst_other"
}
