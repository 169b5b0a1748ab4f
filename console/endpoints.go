package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/forbear-go/forbear/webhook/store"
)

// endpointsPage is a page of endpoints.
type endpointsPage struct {
	Endpoints []endpoint `json:"endpoints"`
	Next      string     `json:"next"`
}

// endpoint is a receiver of webhooks, and how it fares. Durations are in words.
type endpoint struct {
	store.EndpointStats
	URL          string       `json:"url"`
	State        string       `json:"state"`
	DisabledBy   string       `json:"disabled_by,omitempty"`
	Reason       string       `json:"reason,omitempty"`
	Since        time.Time    `json:"since,omitzero"`
	FailingSince time.Time    `json:"failing_since,omitzero"`
	Error        string       `json:"error,omitempty"`
	OldestAge    string       `json:"oldest_age"`
	Hour         attemptStats `json:"last_hour"`
	Day          attemptStats `json:"last_day"`
	Process      struct {
		Breaker     string    `json:"breaker"`
		FailureRate float64   `json:"failure_rate"`
		Held        string    `json:"held,omitempty"`
		NextProbe   time.Time `json:"next_probe,omitzero"`
	} `json:"process"`
}

type attemptStats struct {
	Delivered int64            `json:"delivered"`
	Failed    int64            `json:"failed"`
	Responses map[string]int64 `json:"responses"`
	P50       string           `json:"p50"`
	P99       string           `json:"p99"`
}

// endpoints lists endpoints in the order of their ids. Those in trouble come first on the
// page of what happens now.
func (c *Console) endpoints(r *http.Request, s *session) (*view, error) {
	f, err := filter(r.URL.Query(), "q", "state", "application")
	if err != nil {
		return nil, err
	}
	var p endpointsPage
	err = c.get(r, s, "/v1/stats", paged(f, r.URL.Query()), &p)
	return &view{Title: "Endpoints", Tab: "/messages", Template: "endpoints", Data: p}, err
}

// endpointPage is one endpoint with all that is set for it.
type endpointPage struct {
	endpoint
	Config json.RawMessage `json:"configuration"`
	Text   string          `json:"-"` // of Config
	Test   *testResult     `json:"test,omitempty"`
}

// testResult is what a test message has shown.
type testResult struct {
	OK        bool   `json:"ok"`
	Status    int    `json:"status,omitempty"`
	ErrorType string `json:"error_type,omitempty"`
	Response  string `json:"response,omitempty"`
	Enabled   bool   `json:"enabled"`
}

// endpoint shows one endpoint.
func (c *Console) endpoint(r *http.Request, s *session) (*view, error) {
	return c.showEndpoint(r, s, nil)
}

func (c *Console) showEndpoint(r *http.Request, s *session, test *testResult) (*view, error) {
	at, p := "/v1/endpoints/"+url.PathEscape(r.PathValue("id")), endpointPage{Test: test}
	if err := c.get(r, s, at, nil, &p.Config); err != nil {
		return nil, err
	}
	if err := c.get(r, s, at+"/stats", nil, &p.endpoint); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	_ = json.Indent(&text, p.Config, "", "  ") // it has just been read
	p.Text = text.String()
	return &view{Title: p.Endpoint, Tab: "/messages", Template: "endpoint", Data: p}, nil
}

// actOnEndpoint enables, disables or tests an endpoint.
func (c *Console) actOnEndpoint(r *http.Request, s *session) (*view, error) {
	id, do := r.PathValue("id"), r.PathValue("do")
	at, body := "/v1/endpoints/"+url.PathEscape(id)+"/"+do, any(nil)
	said := map[string]string{"enable": "Enabled. What waits is sent now.", "disable": "Disabled. Its messages are kept and wait."}[do]
	switch do {
	case "test", "test-and-enable":
		test := &testResult{}
		if err := c.post(r, s, at, nil, nil, test); err != nil {
			return nil, err
		}
		return c.showEndpoint(r, s, test)
	case "disable":
		body = map[string]string{"reason": r.PostFormValue("reason")}
	case "enable":
	default:
		return nil, errNoPage
	}
	err := c.post(r, s, at, nil, body, nil)
	return &view{Location: "/endpoints/" + url.PathEscape(id), Said: fmt.Sprintf("%s: %s", id, said)}, err
}

// took shortens a duration that the API has written in words.
func took(text string) string {
	d, err := time.ParseDuration(cmp.Or(text, "0s"))
	if err != nil {
		return text
	}
	return short(d)
}

// capped writes a number that was counted up to a bound.
func capped(n int, some bool, most int) string {
	if some && n >= most {
		return count(int64(n)) + "+"
	}
	return count(int64(n))
}
