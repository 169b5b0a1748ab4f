// Package client calls the API of forbear's durable delivery. Types and calls are
// generated from its description, openapi.json: a [ClientWithResponses], made by
// [NewClientWithResponses], has a method for each operation, whose response has the
// decoded body in the field of its status. What is here makes three things short:
// the token, errors, and lists of many pages.
//
// A client is safe for concurrent use.
//
// Experimental: what this package exports may change in any version.
package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
)

// WithToken sends a token with each request. An empty one is not sent.
func WithToken(token string) ClientOption {
	return header("Authorization", "Bearer ", token)
}

// WithActor says in the audit trail who asks. An empty name is not sent.
func WithActor(name string) ClientOption {
	return header("X-Forbear-Actor", "", name)
}

// header sets a header of each request, unless its value is empty.
func header(name, prefix, value string) ClientOption {
	return WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		if value != "" {
			r.Header.Set(name, prefix+value)
		}
		return nil
	})
}

// Error implements error. Of what failed it has what the service says, and nothing of
// the request.
func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Title + ": " + p.Detail
}

// Failed returns a [*Problem] for a response that is an error, and nil for any other.
// Its arguments are the fields of that name of each response:
//
//	r, err := c.CancelMessageWithResponse(ctx, id, client.OneMessage{})
//	if err == nil {
//		err = client.Failed(r.HTTPResponse, r.Body)
//	}
func Failed(resp *http.Response, body []byte) error {
	if resp.StatusCode < http.StatusBadRequest {
		return nil
	}
	p := &Problem{}
	// What stands between may respond with something else.
	if json.Unmarshal(body, p) != nil || p.Title == "" {
		p = &Problem{Title: resp.Status, Status: resp.StatusCode}
	}
	return p
}

// Messages lists the messages that the parameters choose, page by page: params.After
// is where it begins, and params.Limit the size of a page. It ends with the first
// error.
func (c *ClientWithResponses) Messages(ctx context.Context, params ListMessagesParams) iter.Seq2[MessageInfo, error] {
	return func(yield func(MessageInfo, error) bool) {
		for {
			r, err := c.ListMessagesWithResponse(ctx, &params)
			if err == nil {
				err = Failed(r.HTTPResponse, r.Body)
			}
			if err != nil {
				yield(MessageInfo{}, err)
				return
			}
			for _, m := range r.JSON200.Messages {
				if !yield(m, nil) {
					return
				}
			}
			if r.JSON200.Next == "" {
				return
			}
			params.After = &r.JSON200.Next
		}
	}
}
