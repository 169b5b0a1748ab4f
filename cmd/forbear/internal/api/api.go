// Package api has the commands endpoints and applications. Their verbs are operations of
// the delivery API of a running serve, which looks the secrets of endpoints up, and knows
// which addresses may be reached.
package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/verb"
)

// Client calls the API for one run of a command.
type Client struct {
	*verb.Run

	flags                               *flag.FlagSet
	resource, address, token, tokenFile string
}

// New registers the flags of a command that works on a resource, such as endpoints:
// those are at /v1/endpoints.
func New(r *verb.Run, f *flag.FlagSet, resource string) *Client {
	c := &Client{Run: r, flags: f, resource: resource}
	f.StringVar(&c.address, "api", "http://127.0.0.1:8080", "the `URL` of the delivery API")
	f.StringVar(&c.tokenFile, "api-token-file", "", "a `file` with its bearer token (default: $"+cli.EnvAPIToken+")")
	r.FormatFlag(f, "output format: `text or json`")
	r.ActorFlag(f, "your `name`, for the audit")
	r.Open = c.open
	return c
}

// open checks where the API is, and reads the token.
func (c *Client) open(context.Context) (err error) {
	u, err := url.Parse(c.address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return errors.New("--api: want an address such as http://127.0.0.1:8080, without a user")
	}
	c.token, err = cli.APIToken(c.tokenFile)
	return err
}

// Request is an operation on what the operand names.
type Request struct {
	Method string
	Action string     // behind the id, such as "/enable"
	Body   func() any // the JSON object that it sends; nil: none
	New    bool       // only when it is not there yet
	Query  url.Values
}

// Call calls an operation, and returns the body of the response or what the API says is
// wrong.
func (c *Client) Call(ctx context.Context, q Request) ([]byte, error) {
	path := strings.TrimSuffix(c.address, "/") + "/v1/" + c.resource
	if c.ID != "" {
		path += "/" + url.PathEscape(c.ID)
	}
	path += q.Action
	if len(q.Query) > 0 {
		path += "?" + q.Query.Encode()
	}
	var body io.Reader = http.NoBody
	if q.Body != nil {
		text, err := json.Marshal(q.Body())
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, q.Method, path, body)
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"Content-Type":    map[bool]string{true: "application/merge-patch+json", false: "application/json"}[q.Method == http.MethodPatch],
		"If-None-Match":   map[bool]string{true: "*"}[q.New],
		"Authorization":   strings.TrimSuffix("Bearer "+c.token, "Bearer "),
		"X-Forbear-Actor": c.Actor,
	} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if errors.Is(err, syscall.ECONNREFUSED) {
		err = fmt.Errorf("%w: is forbear serve running there? name its delivery API with --api", err)
	}
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		err = failed(resp, text)
	}
	return text, err
}

// failed returns what the API says is wrong. What is not there, or is there already, is
// a negative result.
func failed(resp *http.Response, body []byte) error {
	var p struct{ Title, Detail string }
	// What stands between may respond with something else.
	if json.Unmarshal(body, &p) != nil || p.Title == "" {
		p.Title = resp.Status
	}
	text := p.Title
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	if slices.Contains([]int{http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed}, resp.StatusCode) {
		return verb.Negative("%s", text)
	}
	return errors.New(text)
}

// Shown calls an operation and writes the object of its response: as it is, or a line
// for each field.
func (c *Client) Shown(q Request) func(context.Context) error {
	return func(ctx context.Context) error {
		body, err := c.Call(ctx, q)
		if err != nil {
			return err
		}
		if c.Format == "json" {
			_, err := c.Out.Write(body)
			return err
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(body, &fields); err != nil {
			return err
		}
		w := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			value := string(fields[name])
			if text := ""; json.Unmarshal(fields[name], &text) == nil {
				value = text
			}
			fmt.Fprintf(w, "%s\t%s\n", cli.Printable(name), cli.Printable(value))
		}
		return w.Flush()
	}
}

// Added adds what is not there: as the JSON file says, "-" for standard input, or else
// with the fields of those flags. Without an id, the API makes one.
func (c *Client) Added(ctx context.Context, file string, flags ...string) error {
	var body any = c.Fields(flags...)
	if file != "" {
		var text json.RawMessage
		var err error
		if file == "-" && c.In != nil {
			text, err = io.ReadAll(c.In)
		} else {
			text, err = os.ReadFile(file)
		}
		if err != nil {
			return err
		}
		body = text
	}
	q := Request{Method: http.MethodPut, New: true, Body: func() any { return body }}
	if c.ID == "" {
		q.Method, q.New = http.MethodPost, false
	}
	return c.Shown(q)(ctx)
}

// Deleted calls the operation that deletes what the operand names.
func (c *Client) Deleted(ctx context.Context) error {
	_, err := c.Call(ctx, Request{Method: http.MethodDelete})
	if err == nil {
		fmt.Fprintf(c.Out, "%s is deleted\n", cli.Printable(c.ID))
	}
	return err
}

// Listed lists the resource page by page, each item by the cells of its row. The flags
// that are named choose items.
func Listed[T any](c *Client, head string, row func(T) []any, chosenBy ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		query, t := url.Values{}, c.Table(head)
		for name, value := range c.Fields(chosenBy...) {
			query.Set(name, fmt.Sprint(value))
		}
		for {
			body, err := c.Call(ctx, Request{Method: http.MethodGet, Query: query})
			if err != nil {
				return err
			}
			var page map[string]json.RawMessage
			var items []json.RawMessage
			var next string
			if err := cmp.Or(json.Unmarshal(body, &page), json.Unmarshal(page[c.resource], &items), json.Unmarshal(page["next"], &next)); err != nil {
				return err
			}
			for _, item := range items {
				var v T
				if err := json.Unmarshal(item, &v); err != nil {
					return err
				}
				t.Add(item, row(v)...)
			}
			t.Flush()
			if query.Set("after", next); next == "" {
				break
			}
		}
		if t.Rows == 0 {
			return verb.Negative("no %s: add one with forbear %[1]s add", c.resource)
		}
		return nil
	}
}

// Fields returns the values of those of the flags that are given, as fields of a JSON
// object: "type:types" is the flag --type as the field types.
func (c *Client) Fields(names ...string) map[string]any {
	fields := map[string]any{}
	for _, name := range names {
		name, field, other := strings.Cut(name, ":")
		if !other {
			field = name
		}
		if c.Given(name) {
			fields[field] = c.flags.Lookup(name).Value.(flag.Getter).Get()
		}
	}
	return fields
}

// List is the value of a flag that may be given several times.
type List []string

// String implements flag.Value.
func (l *List) String() string { return strings.Join(*l, ", ") }

// Set implements flag.Value: it adds a value.
func (l *List) Set(v string) error {
	*l = append(*l, v)
	return nil
}

// Get implements flag.Getter.
func (l *List) Get() any { return *l }
