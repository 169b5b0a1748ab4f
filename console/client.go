package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/forbear-go/forbear/internal/inbound"
	"github.com/forbear-go/forbear/internal/loopback"
)

// problem is what an API says is wrong (RFC 9457), or a page.
type problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

func (p *problem) Error() string { return cmp.Or(p.Detail, p.Title, http.StatusText(p.Status)) }

// The problems of pages.
var (
	errNoPage     = &problem{Status: http.StatusNotFound, Detail: "There is no such page."}
	errSignIn     = &problem{Status: http.StatusUnauthorized, Detail: "Sign in to go on: your session has ended, or a token is demanded."}
	errAdminToken = &problem{Status: http.StatusForbidden, Detail: "The admin token is not one of deliveries: sign in with a token that forbear token create made."}
	errReader     = &problem{Status: http.StatusForbidden, Detail: "You may only read: sign in with a token of scope admin."}
	errNoAPI      = &problem{Status: http.StatusNotFound, Detail: "Deliveries are off in this process: start forbear serve with --database."}
	errBusy       = &problem{Status: http.StatusServiceUnavailable, Detail: "Too many live pages are open: close one, or pause it."}
	errTooQuick   = &problem{Status: http.StatusTooManyRequests, Detail: "Too many sign-ins at once: try again in a moment."}
)

// call is a request to an API in this process, in the name of a page's reader.
type call struct {
	method, path string
	query        url.Values
	body         any // nil: none
}

// get reads from the delivery API.
func (c *Console) get(r *http.Request, s *session, path string, query url.Values, into any) error {
	return c.do(r, s, call{http.MethodGet, path, query, nil}, into)
}

// post writes to the delivery API. Only an operator may; someone who has not signed in is
// none, whatever the API itself would let programs on this machine do.
func (c *Console) post(r *http.Request, s *session, path string, query url.Values, body, into any) error {
	if !s.Write {
		return errReader
	}
	defer c.groups.forget()
	return c.do(r, s, call{http.MethodPost, path, query, body}, into)
}

func (c *Console) do(r *http.Request, s *session, q call, into any) error {
	api := c.api()
	if api == nil {
		return errNoAPI
	}
	err := serve(r, api, s, q, into)
	if s.token == "" && !s.Local && isProblem(err, http.StatusUnauthorized) {
		err = errAdminToken // to sign in again would lead here again
	}
	return err
}

// admin reads from the admin API. Each session may: it is behind the same door.
func (c *Console) admin(r *http.Request, path string, query url.Values, into any) error {
	return serve(r, c.Admin, &session{token: c.AdminToken}, call{http.MethodGet, path, query, nil}, into)
}

// whoami returns the token's name and scope, by the API's own word.
func (c *Console) whoami(r *http.Request, token string) (who struct{ Name, Scope, Application string }, err error) {
	err = c.do(r, &session{token: token, Local: token == ""}, call{http.MethodGet, "/v1/token", nil, nil}, &who)
	return who, err
}

// serve has a handler respond to a request that is like r in all that it is judged by: its
// host and whether there is a proxy. into is decoded from the response, unless it is nil.
func serve(r *http.Request, h http.Handler, s *session, q call, into any) error {
	var body io.Reader
	if q.body != nil {
		text, err := json.Marshal(q.body)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	target := q.path
	if len(q.query) > 0 {
		target += "?" + q.query.Encode()
	}
	in, err := http.NewRequestWithContext(r.Context(), q.method, target, body)
	if err != nil {
		return err
	}
	// An API that serves this machine without a token goes by the name that is asked for, which
	// anyone can write who reaches the console from elsewhere.
	if inbound.Forwarded(r) || !loopback.Host(r.RemoteAddr) {
		in.Header.Set("Via", "1.1 console") // and nothing else that a browser sent
	}
	in.Host, in.RemoteAddr, in.Proto, in.ProtoMajor, in.ProtoMinor = r.Host, r.RemoteAddr, r.Proto, r.ProtoMajor, r.ProtoMinor
	in.Header.Set("X-Forbear-Actor", "console")
	if body != nil {
		in.Header.Set("Content-Type", "application/json")
	}
	if s.token != "" {
		in.Header.Set("Authorization", "Bearer "+s.token)
	} else if s.Name != "" {
		in.Header.Set("X-Forbear-Actor", "console "+s.Name) // the API knows no token of it
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	out := &response{header: http.Header{}, Status: http.StatusOK}
	h.ServeHTTP(out, in)
	switch {
	case out.Status >= http.StatusBadRequest:
		p := &problem{}
		_ = json.Unmarshal(out.Bytes(), p) // what is not there stays empty
		p.Status = out.Status
		return p
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(out.Bytes(), into); err != nil {
		return fmt.Errorf("%s %s: %w", q.method, q.path, err)
	}
	return nil
}

// response is a response that is kept.
type response struct {
	bytes.Buffer
	Status int
	header http.Header
}

func (r *response) Header() http.Header    { return r.header }
func (r *response) WriteHeader(status int) { r.Status = status }

// isProblem reports whether an error is a problem of a status.
func isProblem(err error, status int) bool {
	p, ok := errors.AsType[*problem](err)
	return ok && p.Status == status
}
