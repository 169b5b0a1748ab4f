// Package health is the command health: the health check of a gateway where there is no
// curl, as in a container.
package health

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/internal/resend"
)

// defaultURL is where serve reports whether it is ready.
const defaultURL = "http://127.0.0.1:8080/health/ready"

// Command returns the command health.
func Command() *cli.Command {
	c := &cli.Command{
		Name:    "health",
		Summary: "ask a running forbear serve whether it is ready",
		Usage:   "[--timeout 3s] [URL]",
		About: `
Health sends one request, and prints the status and the first 200 bytes of the
response. The exit code is 0 for a success (2xx), and 1 otherwise. Use it as the
health check of a container. The default URL is
` + defaultURL + `; unix:PATH is a unix socket.`,
		Examples: `
forbear health
forbear health http://127.0.0.1:9464/health/live
forbear health unix:/run/forbear/gateway.sock
`,
	}
	c.Run = func(ctx context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		timeout := f.Duration("timeout", 3*time.Second, "wait this `time` at most")
		if code, done := c.Parse(std, f, args, 1); done {
			return code
		}
		target := defaultURL
		if f.NArg() > 0 {
			target = f.Arg(0)
		}
		if u, err := url.Parse(target); err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "unix" {
			return std.Fail("health: %q: want an http:// or https:// URL, or unix:PATH", target)
		}
		ctx, cancel := context.WithTimeout(ctx, *timeout)
		defer cancel()
		said, ok, err := ask(ctx, target)
		if err != nil {
			fmt.Fprintf(std.Err, "forbear: health: %v: is forbear serve running there?\n", err)
			return cli.ExitFound
		}
		fmt.Fprintln(std.Out, said)
		if !ok {
			return cli.ExitFound
		}
		return cli.ExitOK
	}
	return c
}

// ask returns the beginning of the target's response, and whether it is a success.
func ask(ctx context.Context, target string) (said string, ok bool, err error) {
	t := &http.Transport{DisableKeepAlives: true}
	if path, unix := strings.CutPrefix(target, "unix:"); unix {
		target = "http://localhost/health/ready"
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return "", false, err
	}
	resp, err := resend.Once(t).RoundTrip(r)
	if err != nil {
		return "", false, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 200))
	if err != nil {
		return "", false, err
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, strings.TrimSpace(string(b))), resp.StatusCode/100 == 2, nil
}
