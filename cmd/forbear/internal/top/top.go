// Package top is the command top: it watches a running serve through its admin
// endpoint. It keeps nothing between two looks but the counts of the last one, so
// that any number of operators can watch at once.
package top

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/gateway"
)

// defaultAdmin is where serve has its admin endpoint by default, on the port
// after the gateway's. It is loopback: an endpoint elsewhere has to be
// named.
const defaultAdmin = "http://127.0.0.1:8081"

// Command returns the command top.
func Command() *cli.Command {
	c := &cli.Command{
		Name:    "top",
		Summary: "watch a running forbear serve: rates, budget, breakers, what retries save",
		Usage:   "[--admin URL] [--interval 2s] [--count N] [-o text|json]",
		About: `
Top polls the admin endpoint of a running forbear serve. For each dependency it
shows the rates of first attempts and retries, the remaining retry budget, the
circuit breaker and the sends per call; and, by error_type, how many calls a retry
saved and how many failed anyway.

Outside a terminal each dependency has one line per interval. If the endpoint is
unreachable at the start, the exit code is 2; if it is lost later, top waits for it.`,
		Examples: `
forbear top
forbear top --admin http://127.0.0.1:9464 --interval 5s
forbear top --count 1 -o json
`,
	}
	c.Run = func(ctx context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		t := &top{out: std.Out, tty: cli.Terminal(std.Out), client: http.Client{Timeout: 5 * time.Second}} // what takes longer is out of date
		f.StringVar(&t.admin, "admin", defaultAdmin, "`URL` of the admin endpoint, which serve prints")
		tokenFile := f.String("admin-token-file", "", "`file` with its bearer token (default: $"+cli.EnvAdminToken+")")
		f.DurationVar(&t.interval, "interval", 2*time.Second, "`time` between two polls, at least 100ms")
		f.StringVar(&t.format, "o", "text", "output: text or json (a line for each poll)")
		f.IntVar(&t.count, "count", 0, "`number` of views; 0 means until interrupted")
		code, done := c.Parse(std, f, args, 0)
		if done {
			return code
		}
		err := t.check()
		if err == nil {
			t.token, err = cli.AdminToken(*tokenFile)
		}
		if err == nil {
			err = t.run(ctx)
		}
		if err != nil {
			return std.Fail("top: %v", err)
		}
		return cli.ExitOK
	}
	return c
}

// top is one run of the command.
type top struct {
	out      io.Writer
	tty      bool   // rewrite the view in place
	admin    string // the address of the admin endpoint
	token    string // "" without one
	interval time.Duration
	format   string // text or json
	count    int    // of views; 0: no end
	client   http.Client
}

// check judges the flags before the first look. An address with a user is refused: the
// password would show in the list of processes, and the token has a file or a variable
// of its own.
func (t *top) check() error {
	u, err := url.Parse(t.admin)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil:
		return errors.New("--admin is not an http or https address without a user, such as http://127.0.0.1:9464")
	case t.interval < 100*time.Millisecond:
		return fmt.Errorf("--interval %v is under 100ms", t.interval)
	case t.format != "text" && t.format != "json":
		return fmt.Errorf("-o is %q: want text or json", t.format)
	}
	t.admin = strings.TrimSuffix(u.Scheme+"://"+u.Host+u.Path, "/")
	return nil
}

// run looks until ctx ends or count views were shown. The first look must succeed: a
// wrong address would otherwise be waited for without end. A later one may fail, and
// counts as a view: serve is being restarted, and top is how an operator watches it
// come back. A rate needs two looks, so the first view comes after one interval.
func (t *top) run(ctx context.Context) error {
	before, err := t.status(ctx)
	if err != nil {
		return err
	}
	tick := time.NewTicker(t.interval)
	defer tick.Stop()
	for shown := 0; t.count == 0 || shown < t.count; shown++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, err := t.status(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			t.write(fmt.Sprintf("%s %v; waiting\n", time.Now().Format(time.TimeOnly), err))
			continue
		}
		if err := t.show(newView(before, now)); err != nil {
			return err
		}
		before = now
	}
	return nil
}

// maxStatus bounds what is read of a status, in bytes: another program than
// forbear may be at the address.
const maxStatus = 16 << 20

// status asks for the counts since serve began. What happened between two looks is
// their difference, so a failed look loses nothing.
func (t *top) status(ctx context.Context) (s gateway.Status, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.admin+"/admin/status", nil)
	if err != nil {
		return s, err
	}
	if t.token != "" {
		req.Header.Set("Authorization", "Bearer "+t.token)
	}
	resp, err := t.client.Do(req)
	if err != nil {
		return s, fmt.Errorf("%w: is forbear serve running? Give the admin address that it prints with --admin", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return s, fmt.Errorf("%s responded %s", t.admin, resp.Status)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxStatus)).Decode(&s); err != nil {
		return s, fmt.Errorf("%s is not the admin endpoint of forbear serve: %w", t.admin, err)
	}
	return s, nil
}

// show writes a view as it was asked for: JSON, a table on a terminal, or
// lines. An error is one of writing JSON, whose reader has gone.
func (t *top) show(v *view) error {
	switch {
	case t.format == "json":
		return json.NewEncoder(t.out).Encode(v)
	case t.tty:
		t.write(v.table())
	default:
		t.write(v.lines())
	}
	return nil
}

// write shows text: in place on a terminal, and appended elsewhere. The
// screen is not cleared first, which would flicker.
func (t *top) write(text string) {
	if t.tty {
		// Home, each line cleared behind its text, and the rest of the screen.
		text = "\x1b[H" + strings.ReplaceAll(text, "\n", "\x1b[K\n") + "\x1b[J"
	}
	_, _ = io.WriteString(t.out, text)
}
