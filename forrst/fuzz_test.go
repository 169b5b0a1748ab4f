package forrst_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/forrst"
)

// FuzzAdvise reads any answer: it must not fail, not wait less than nothing,
// and not retry what it could not read.
func FuzzAdvise(f *testing.F) {
	for _, seed := range []string{
		`{"protocol":{"name":"forrst","version":"0.1.0"},"id":"r","result":null,"errors":[{"code":"RATE_LIMITED","message":"m"}],"extensions":[{"urn":"urn:forrst:ext:retry","data":{"allowed":true,"after":{"value":5,"unit":"second"},"strategy":"fixed","max_attempts":3}}]}`,
		`{"protocol":"forrst/0.1","id":null,"errors":[{"code":"PARSE_ERROR"}]}`,
		`{"protocol":{"name":"forrst"},"id":"r","errors":[]}`,
		`{"protocol":{"name":"forrst"},"id":"r","result":1,"extensions":[{"urn":"urn:cline:forrst:ext:replay","data":{"status":"queued"}}]}`,
		`{"protocol":{"name":"forrst"},"id":"r","errors":[{"code":"X","retryable":"yes","details":{"retry_after":{"value":1e99,"unit":"day"}}}]}`,
		`{"protocol":{"name":"forrst"},"id":"r","errors":[{"code":"X"}],"extensions":[{"urn":"urn:forrst:ext:retry","data":{"allowed":true,"after":{"value":99999999999999999999,"unit":"day"},"max_attempts":99999999999999999999}}]}`,
		`<html>`, ``, `null`, `[]`,
	} {
		f.Add([]byte(seed), 503, "5")
	}
	f.Fuzz(func(t *testing.T, body []byte, status int, retryAfter string) {
		x := forrst.Message{Status: status, Header: http.Header{"Retry-After": {retryAfter}}, Body: body, Now: time.Unix(1000, 0)}
		for phase := forrst.Phase1; phase <= forrst.Phase3; phase++ {
			a := phase.Advise(x)
			h := a.Failure.Hint
			if h.Floor < 0 || h.Spread < 0 || h.Base < 0 || h.MaxRetries < 0 || h.MaxRetries > math.MaxInt32 {
				t.Fatalf("hint %+v", h)
			}
			if (a.Outcome == forrst.Malformed || a.Outcome == forrst.IDMismatch) && a.Failure.Class.Retryable() {
				t.Fatalf("unreadable, and to be retried: %+v", a)
			}
			if (a.Failure.Class == forbear.ClassSuccess) != (a.Outcome == forrst.Success || a.Outcome == forrst.Queued) {
				t.Fatalf("outcome %v of class %v", a.Outcome, a.Failure.Class)
			}
			if strings.ContainsAny(a.Failure.Type, "\n \"") || len(a.Failure.Type) > 64 {
				t.Fatalf("label %q", a.Failure.Type)
			}
		}
	})
}

// FuzzTransport sends any request and gets any answers: the first attempt is
// the request as it came, later ones differ in their ids alone.
func FuzzTransport(f *testing.F) {
	f.Add([]byte(keyed), []byte(`{"protocol":{"name":"forrst"},"id":"req_1","result":null,"errors":[{"code":"DEADLINE_EXCEEDED","message":""}]}`))
	f.Add([]byte(unkeyed), []byte(`{"protocol":{"name":"forrst"},"id":"req_1","result":{}}`))
	f.Add([]byte(`{"id":"x","id":"y","protocol":{"name":"forrst"},"call":{"function":"f"},"extensions":null}`), []byte(`{}`))
	p := forbear.Policy{Keys: forbear.KeyGenerate, MaxRetries: 1, Backoff: forbear.Backoff{Base: 1, Cap: 1}, Breaker: breaker.Policy{Disabled: true}}
	f.Fuzz(func(t *testing.T, request, answer []byte) {
		r := forbear.Must(forbear.New("billing", p, forbear.WithoutLog(), forbear.WithBudget(budget.NewTokenBucket(100, 1))))
		n := 0
		next := roundTripper(func(req *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(req.Body)
			if err != nil {
				t.Fatal(err)
			}
			if n++; json.Valid(request) && !json.Valid(body) {
				t.Fatalf("attempt %d is no JSON: %s", n, body)
			}
			var asked, sent map[string]json.RawMessage
			_, _ = json.Unmarshal(request, &asked), json.Unmarshal(body, &sent)
			for name, v := range asked {
				var want bytes.Buffer
				_ = json.Compact(&want, v)
				if name != "id" && name != "extensions" && !bytes.Equal(sent[name], v) && !bytes.Equal(sent[name], want.Bytes()) {
					t.Fatalf("attempt %d has another %s: %s", n, name, body)
				}
			}
			return &http.Response{StatusCode: 503, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(answer)), Request: req}, nil
		})
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://billing.test/", bytes.NewReader(request))
		resp, err := forrst.NewTransport(next, r, forrst.Options{MaxBody: 1 << 16}).RoundTrip(req)
		if err != nil {
			return
		}
		defer resp.Body.Close()
		got, err := io.ReadAll(resp.Body)
		if err != nil || json.Valid(answer) && !json.Valid(got) {
			t.Fatalf("answer %q became %q (%v)", answer, got, err)
		}
	})
}
