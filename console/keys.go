package console

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/webhook"
)

// keysPage is a page of records.
type keysPage struct {
	Keys []idempotency.Evidence `json:"keys"`
	// Next continues the list; it is empty on the last page.
	Next   string   `json:"next,omitempty"`
	States []string `json:"-"`
	Off    bool     `json:"-"` // there is no API to ask
}

// keys lists records, by default those that an operator has to settle.
func (c *Console) keys(r *http.Request, s *session) (*view, error) {
	q := r.URL.Query()
	p := keysPage{Off: c.api() == nil, States: []string{string(idempotency.Held), string(idempotency.Started), string(idempotency.Released), string(idempotency.Completed), "all"}}
	v := &view{Title: "Keys held", Tab: "/keys", Template: "keys"}
	if !p.Off {
		f, err := filter(q, "scope", "key")
		if err != nil {
			return nil, err
		}
		if state := cmp.Or(q.Get("state"), string(idempotency.Held)); state != "all" {
			f.Set("state", state)
		}
		if err := c.get(r, s, "/v1/keys", paged(f, q), &p); err != nil {
			return nil, err
		}
	}
	v.Data = p
	return v, nil
}

// findKey leads from a key as the customer has it to its records. No address has the key,
// which may be worth as much as the request: it has the digest.
func (c *Console) findKey(r *http.Request, s *session) (*view, error) {
	var found keysPage
	ask := map[string]string{"key": r.PostFormValue("key"), "source": r.PostFormValue("source")}
	if err := c.post(r, s, "/v1/keys/find", nil, ask, &found); err != nil {
		return nil, err
	}
	if len(found.Keys) == 0 {
		return nil, &problem{Status: http.StatusNotFound, Detail: "No record has this key. Records that have expired are gone."}
	}
	return &view{Location: "/keys?" + url.Values{"state": {"all"}, "key": {found.Keys[0].Key}}.Encode()}, nil
}

// keyPage is one record, and what was typed to settle it.
type keyPage struct {
	idempotency.Evidence
	Dependency string     `json:"dependency,omitempty"` // that its scope names
	Event      bool       `json:"event"`                // an event has no response
	Typed      settlement `json:"-"`
	Error      string     `json:"-"`
}

// settlement is the form by which a record is settled.
type settlement struct{ Outcome, Why, Status, Headers, Body string }

// key shows the evidence of a record, and the two ways to settle it.
func (c *Console) key(r *http.Request, s *session) (*view, error) {
	return c.record(r, s, r.FormValue("scope"), r.FormValue("key"), settlement{}, nil)
}

func (c *Console) record(r *http.Request, s *session, scope, digest string, typed settlement, wrong error) (*view, error) {
	var found keysPage
	if err := c.get(r, s, "/v1/keys", url.Values{"scope": {scope}, "key": {digest}, "limit": {"1"}}, &found); err != nil {
		return nil, err
	}
	if len(found.Keys) == 0 || scope == "" || digest == "" {
		return nil, &problem{Status: http.StatusNotFound, Detail: "There is no such record. It may have expired."}
	}
	p := keyPage{Evidence: found.Keys[0], Event: strings.HasPrefix(scope, idempotency.EventScope), Typed: typed}
	// The gateway's scopes begin with the dependency. Others are an application's own.
	if name, _, ok := strings.Cut(scope, "/"); ok {
		if name, err := url.PathUnescape(name); err == nil && c.admin(r, "/admin/dependencies/"+url.PathEscape(name), nil, nil) == nil {
			p.Dependency = name
		}
	}
	v := &view{Title: "A key held", Tab: "/keys", Template: "key"}
	if wrong, ok := errors.AsType[*problem](wrong); ok {
		v.Status, p.Error = wrong.Status, wrong.Error()
		if wrong.Status == http.StatusConflict && p.State == idempotency.Held {
			p.Error = "It has run again since you looked. This is the evidence of its latest run."
		}
	}
	v.Data = p
	return v, nil
}

// settleKey settles a record in one of the two ways. After a mistake the form is there
// again, with all that was typed; a script leaves the page as it is.
func (c *Console) settleKey(r *http.Request, s *session) (*view, error) {
	scope, digest := r.PostFormValue("scope"), r.PostFormValue("key")
	typed := settlement{r.PostFormValue("outcome"), r.PostFormValue("why"), r.PostFormValue("status"), r.PostFormValue("headers"), r.PostFormValue("body")}
	body, err := typed.request()
	if err == nil {
		body["scope"], body["key"], body["why"] = scope, digest, typed.Why
		// The run that was shown, or a later one would be settled unseen.
		body["fence"], err = strconv.ParseInt(r.PostFormValue("fence"), 10, 64)
	}
	if err != nil {
		err = &problem{Status: http.StatusBadRequest, Detail: err.Error()}
	} else {
		err = c.post(r, s, "/v1/keys/settle", nil, body, nil)
	}
	switch {
	case err == nil:
		return &view{Location: "/keys/record?" + url.Values{"scope": {scope}, "key": {digest}}.Encode(), Said: "Settled."}, nil
	case r.Header.Get("HX-Request") == "" && !wantsJSON(r) && (isProblem(err, http.StatusBadRequest) || isProblem(err, http.StatusConflict)):
		return c.record(r, s, scope, digest, typed, err)
	}
	return nil, err
}

// request is the body of the API's call. There is no default: either way does harm where
// it is wrong.
func (t settlement) request() (map[string]any, error) {
	switch t.Outcome {
	case "undone":
		return map[string]any{"undone": true}, nil
	case "done":
	default:
		return nil, errors.New("say whether it was done or not")
	}
	status, err := strconv.Atoi(t.Status)
	if err != nil {
		return nil, fmt.Errorf("status %.20q is not a number", t.Status)
	}
	var headers []webhook.Header
	for line := range strings.Lines(t.Headers) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, errors.New("a header is not a line Name: value")
		}
		headers = append(headers, webhook.Header{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)})
	}
	// Browsers send each end of a line as CRLF, whatever was pasted.
	body := []byte(strings.ReplaceAll(t.Body, "\r\n", "\n"))
	return map[string]any{"done": map[string]any{"status": status, "headers": headers, "body_base64": body}}, nil
}
