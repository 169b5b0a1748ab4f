package idemfixture

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/forbear-go/forbear/internal/testkit/vectors"
)

// eventScenario is one of the events section: a broker, consumers, and a
// dead-letter queue.
type eventScenario struct {
	ID     string           `json:"id"`
	Name   string           `json:"name"`
	Rules  []string         `json:"rules"`
	Level  string           `json:"level"`
	Stores stores           `json:"stores"` // none: all
	Steps  []eventStep      `json:"steps"`
	Expect eventExpectation `json:"expect"`
	Note   string           `json:"note"`
	Basis  string           `json:"basis"`
}

// eventJSON is an event as scenarios write it.
type eventJSON struct {
	ID      string          `json:"id"`
	Source  string          `json:"source"`
	Type    string          `json:"type"`
	Subject string          `json:"subject"`
	Key     string          `json:"key"`
	Data    json.RawMessage `json:"data"`
}

// eventStep does what its verb says, modified by the other fields.
type eventStep struct {
	verb string

	Deliver     *eventJSON      `json:"deliver"`
	DeliverRaw  json.RawMessage `json:"deliver_raw"`
	DeliverMany int             `json:"deliver_many"`
	Redeliver   string          `json:"redeliver"`
	Restart     bool            `json:"restart"`
	Advance     duration        `json:"advance"`
	Sweep       bool            `json:"sweep"`
	Configure   *struct {
		Window     duration `json:"dedup_window"`
		MaxRetries int      `json:"max_retries"`
		Ordered    bool     `json:"ordered"`
	} `json:"configure"`
	DLQ     string `json:"dlq"`
	FillDLQ int    `json:"fill_dlq"`
	Redrive string `json:"redrive"`

	Handler     string            `json:"handler"` // alone: of all events from here on
	Group       string            `json:"group"`
	Key         string            `json:"key"`
	Headers     map[string]string `json:"headers"`
	Crash       crashPoint        `json:"crash"`
	Parallel    int               `json:"parallel"`
	ExpectError bool              `json:"expect_error"`
	Times       int               `json:"times"`
	Rate        float64           `json:"rate_per_s"`
	StopAfter   int               `json:"stop_after_failures"`
}

// verbs are what a step can do, each with the fields that may modify it.
var verbs = map[string][]string{
	"deliver":      {"handler", "group", "key", "headers", "crash", "parallel"},
	"deliver_raw":  {"handler", "group", "headers"},
	"deliver_many": {"handler", "group"},
	"redeliver":    {"handler", "group", "crash", "parallel"},
	"restart":      {},
	"advance":      {},
	"sweep":        {},
	"configure":    {"expect_error"},
	"dlq":          {},
	"fill_dlq":     {"group"},
	"redrive":      {"times", "rate_per_s", "stop_after_failures"},
}

// UnmarshalJSON refuses steps and modifiers that nobody knows.
func (s *eventStep) UnmarshalJSON(b []byte) error {
	var present map[string]json.RawMessage
	if err := json.Unmarshal(b, &present); err != nil {
		return err
	}
	verb := ""
	for name := range present {
		if verbs[name] == nil {
			continue
		}
		if verb != "" {
			return fmt.Errorf("a step does both %s and %s", verb, name)
		}
		verb = name
	}
	if verb == "" && len(present) == 1 && present["handler"] != nil {
		verb = "handler"
	}
	if verb == "" {
		return fmt.Errorf("step %s is not understood", b)
	}
	for name := range present {
		if name != verb && !slices.Contains(verbs[verb], name) {
			return fmt.Errorf("field %q of step %s is not understood", name, verb)
		}
	}
	type plain eventStep
	err := vectors.Decode(b, (*plain)(s))
	s.verb = verb
	return err
}

// crashPoint is where a consumer's process dies.
type crashPoint string

const (
	crashBeforeEffect crashPoint = "before_effect"
	crashAfterEffect  crashPoint = "after_effect"
	crashBeforeAck    crashPoint = "before_ack"
)

// UnmarshalJSON reads a point by any of its names. true is in the handler,
// before its effect.
func (c *crashPoint) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "true", `"before_effect"`, `"before_handler"`, `"in_handler"`:
		*c = crashBeforeEffect
	case `"after_effect"`, `"after_handler"`, `"before_done"`:
		*c = crashAfterEffect
	case `"before_ack"`, `"after_done"`:
		*c = crashBeforeAck
	default:
		return fmt.Errorf("crash %s is not understood", b)
	}
	return nil
}

// eventExpectation is what must have come of a scenario.
type eventExpectation struct {
	Effects     anyOf    `json:"effects"`
	Attempts    anyOf    `json:"attempts"`
	Acks        anyOf    `json:"acks"`
	DLQ         anyOf    `json:"dlq"`
	DLQHas      []string `json:"dlq_has"`
	Alerts      anyOf    `json:"alerts"`
	AlertsMin   int      `json:"alerts_min"`
	Metric      string   `json:"metric"`
	P99WaitMS   int      `json:"p99_wait_ms_max"`
	MaxRate     float64  `json:"max_rate_per_s"`
	Redriven    anyOf    `json:"redriven"`
	RedrivenMax *int     `json:"redriven_max"`
}
