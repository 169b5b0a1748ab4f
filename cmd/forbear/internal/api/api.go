// Package api is how commands call the delivery API of a running serve. Endpoints and
// applications are changed there, where their secrets are looked up and the addresses
// are known that may be reached.
package api

import (
	"bytes"
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
	"text/tabwriter"

	"github.com/forbear-go/forbear/client"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
)

// Caller is who calls the API, and in which form its responses are written. Its
// fields are set by the flags that Register adds.
type Caller struct {
	Std    *cli.Streams
	Format string // text or json

	name, address, tokenFile, who string
}

// Register adds the flags of a command of that name.
func (c *Caller) Register(f *flag.FlagSet, name string) {
	c.name = name
	f.StringVar(&c.address, "api", "http://127.0.0.1:8080", "the `URL` of the delivery API")
	f.StringVar(&c.tokenFile, "api-token-file", "", "a `file` with its bearer token (default: $"+cli.EnvAPIToken+")")
	f.StringVar(&c.Format, "o", "text", "output format: `text or json`")
	cli.ActorFlag(f, &c.who, "your `name`, for the audit")
}

// Client returns the client that the flags ask for.
func (c *Caller) Client() (*client.ClientWithResponses, error) {
	u, err := url.Parse(c.address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil:
		return nil, errors.New("--api is no http or https address without a user")
	case c.Format != "text" && c.Format != "json":
		return nil, fmt.Errorf("unknown format %q: want text or json", c.Format)
	}
	token, err := cli.APIToken(c.tokenFile)
	if err != nil {
		return nil, err
	}
	return client.NewClientWithResponses(c.address, client.WithToken(token), client.WithActor(c.who))
}

// Response is one of those of the generated client.
type Response interface {
	GetBody() []byte
	StatusCode() int
	Status() string
}

// Body returns the body of what a call of the client returned, or its error: that it
// could not be made, or what the API says.
func Body(r Response, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return r.GetBody(), client.Failed(&http.Response{StatusCode: r.StatusCode(), Status: r.Status()}, r.GetBody())
}

// Exit writes an error and returns the exit code that it means: what is not there, or
// is there already, is a negative answer.
func (c *Caller) Exit(err error) int {
	if err == nil {
		return cli.ExitOK
	}
	if p, ok := errors.AsType[*client.Problem](err); ok && (p.Status == http.StatusNotFound || p.Status == http.StatusConflict || p.Status == http.StatusPreconditionFailed) {
		fmt.Fprintf(c.Std.Err, "%s: %v\n", c.name, err)
		return cli.ExitFound
	}
	return c.Std.Fail("%s: %v", c.name, err)
}

// Shown writes the JSON object of what a call of the client returned, or its error, and
// returns the exit code.
func (c *Caller) Shown(r Response, err error) int {
	body, err := Body(r, err)
	if err == nil {
		err = c.Show(body)
	}
	return c.Exit(err)
}

// Show writes the JSON object of a response: as it is, or a line for each field.
func (c *Caller) Show(body []byte) error {
	if c.Format == "json" {
		_, err := c.Std.Out.Write(body)
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return err
	}
	w := tabwriter.NewWriter(c.Std.Out, 0, 0, 2, ' ', 0)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := string(fields[name])
		if text := ""; json.Unmarshal(fields[name], &text) == nil {
			value = text
		}
		fmt.Fprintf(w, "%s\t%s\n", cli.Printable(name), cli.Printable(value))
	}
	return w.Flush()
}

// Line writes a JSON object as a line.
func (c *Caller) Line(v any) error { return json.NewEncoder(c.Std.Out).Encode(v) }

// File returns the configuration in a JSON file, "-" for standard input.
func (c *Caller) File(file string) (io.Reader, error) {
	if file == "-" && c.Std.In != nil {
		return c.Std.In, nil
	}
	text, err := os.ReadFile(file)
	return bytes.NewReader(text), err
}

// List adds each value of a flag to a list.
func List(list *[]string) func(string) error {
	return func(v string) error {
		*list = append(*list, v)
		return nil
	}
}
