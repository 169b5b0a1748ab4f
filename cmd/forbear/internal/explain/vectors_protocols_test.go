package explain

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/forbear-go/forbear/internal/testkit/vectors"
)

func TestVectorsClassifyGRPC(t *testing.T) {
	var file struct {
		About string `json:"about"`
		Cases []struct {
			ID    string `json:"id"`
			Input struct {
				Code                 int      `json:"code"`
				Name                 string   `json:"name"`
				Pushback             []string `json:"pushback"`
				AttemptsMade         *int     `json:"attempts_made"`
				MaxAttempts          int      `json:"max_attempts"`
				RemainingMS          *int64   `json:"remaining_ms"`
				CallerDeadlinePassed bool     `json:"caller_deadline_passed"`
				HeadersReceived      bool     `json:"headers_received"`
			} `json:"input"`
			Method  string   `json:"method"`
			Profile string   `json:"profile"`
			Expect  string   `json:"expect"`
			AlsoOK  []string `json:"also_ok"`
			Basis   string   `json:"basis"`
			Note    string   `json:"note"`
			WaitMS  *int64   `json:"wait_ms"`
		} `json:"cases"`
	}
	vectors.Load(t, "classify-grpc.json", &file)
	if len(file.Cases) == 0 {
		t.Fatal("no cases")
	}
	var situations []map[string]any
	for _, c := range file.Cases {
		s := map[string]any{"id": c.ID, "protocol": "grpc", "code": c.Input.Name, "method": c.Method, "profile": c.Profile}
		var trailers [][]string
		for _, v := range c.Input.Pushback {
			trailers = append(trailers, []string{"grpc-retry-pushback-ms", v})
		}
		if trailers != nil {
			s["trailers"] = trailers
		}
		if n := c.Input.AttemptsMade; n != nil {
			s["attempts_made"] = *n
		}
		if ms := c.Input.RemainingMS; ms != nil {
			s["remaining_ms"] = *ms
		}
		if c.Input.CallerDeadlinePassed {
			s["remaining_ms"] = -1
		}
		switch n := c.Input.MaxAttempts; {
		case n == 1:
			s["policy"] = map[string]any{"disabled": true}
		case n > 1:
			s["policy"] = map[string]any{"max_retries": n - 1}
		}
		if c.Input.HeadersReceived {
			s["replayable"] = false
		}
		situations = append(situations, s)
	}
	replies := ask(t, situations)
	for _, c := range file.Cases {
		judge(t, c.ID, replies[c.ID], c.Expect, c.AlsoOK)
		if c.WaitMS != nil && replies[c.ID].WaitMin != *c.WaitMS {
			t.Errorf("%s: waits from %d ms, want %d", c.ID, replies[c.ID].WaitMin, *c.WaitMS)
		}
	}
}

// TestVectorsForrst asks for the decision and the wait; what the clients do
// besides is tested with the package.
func TestVectorsForrst(t *testing.T) {
	type vector struct {
		ID           string          `json:"id"`
		Phase        []int           `json:"phase"`
		AttemptsMade int             `json:"attempts_made"`
		Message      json.RawMessage `json:"message"`
		RawBody      *string         `json:"raw_body"`
		Request      struct {
			HasKey     bool   `json:"has_idempotency_key"`
			ID         string `json:"id"`
			Idempotent bool   `json:"declared_idempotent"`
		} `json:"request"`
		Context struct {
			Kind              string `json:"kind"`
			RemainingMS       *int64 `json:"remaining_ms"`
			PolicyMaxAttempts int    `json:"policy_max_attempts"`
			CapMS             int64  `json:"cap_ms"`
		} `json:"context"`
		HTTP *struct {
			Status  int               `json:"status"`
			Headers map[string]string `json:"headers"`
		} `json:"http"`
		Expect struct {
			Outcome string `json:"outcome"`
			Retry   bool   `json:"retry"`
			WaitMin *int64 `json:"wait_min_ms"`
			WaitMax *int64 `json:"wait_max_ms"`
		} `json:"expect"`
	}
	var file struct {
		Cases []json.RawMessage `json:"cases"`
		About any               `json:"about"`
	}
	vectors.Load(t, "forrst.json", &file)
	kinds := map[string]string{"sync": "sync", "async": "event"}
	cases := map[string]vector{}
	var situations []map[string]any
	for _, raw := range file.Cases {
		var c vector
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		if c.Request.ID != "" {
			continue // explain sees the answer alone
		}
		for _, phase := range c.Phase {
			id := fmt.Sprintf("%s/phase%d", c.ID, phase)
			s := map[string]any{
				"id": id, "protocol": "forrst", "phase": phase, "kind": kinds[c.Context.Kind], "attempts_made": c.AttemptsMade,
				"message": c.Message,
				"policy":  map[string]any{"max_retries": c.Context.PolicyMaxAttempts, "backoff": map[string]any{"cap": fmt.Sprintf("%dms", c.Context.CapMS)}},
			}
			if c.Context.RemainingMS != nil {
				s["remaining_ms"] = *c.Context.RemainingMS
			}
			if c.RawBody != nil {
				s["message"] = *c.RawBody
			}
			if c.Request.HasKey {
				s["idempotency_key"] = "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2"
			}
			if c.Request.Idempotent {
				s["method"] = "idempotent"
			}
			if c.HTTP != nil {
				s["status"] = c.HTTP.Status
				var headers [][]string
				for k, v := range c.HTTP.Headers {
					headers = append(headers, []string{k, v})
				}
				if headers != nil {
					s["headers"] = headers
				}
			}
			cases[id] = c
			situations = append(situations, s)
		}
	}
	if len(situations) == 0 {
		t.Fatal("no cases")
	}
	for id, r := range ask(t, situations) {
		want := cases[id].Expect
		if r.Error != "" || (r.Decision == "retry") != want.Retry || (r.Decision == "success") != (want.Outcome == "success" || want.Outcome == "queued") {
			t.Errorf("%s: got %+v, want %+v", id, r, want)
			continue
		}
		if want.WaitMin != nil && r.WaitMin < *want.WaitMin || want.WaitMax != nil && r.WaitMax > *want.WaitMax {
			t.Errorf("%s: waits %d to %d ms, want otherwise", id, r.WaitMin, r.WaitMax)
		}
	}
}
