// Package listen is the command listen: a receiver that shows what arrives, so that
// webhooks and the gateway can be tried without a service of one's own.
package listen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/durable"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/webhook"
)

// Command returns the command listen.
func Command() *cli.Command {
	c := &cli.Command{
		Name:    "listen",
		Summary: "show the webhooks and requests that arrive, and fail on demand",
		Usage:   "[--listen ADDRESS] [--secret SECRET]... [--fail N]",
		About: `
Listen is a receiver for trying things out. It responds 200 to every request at
any path, and prints each one: method, path, webhook id, attempt, whether the
signature is valid, and the beginning of the body. With --fail 2 the first two
attempts of each call get 503, so that retries can be seen. Attempts are counted
by the header X-Retry-Attempt, which forbear sends.

Stop it with Ctrl-C.`,
		Examples: `
forbear listen
forbear listen --secret env:ACME     # the secret is in FORBEAR_SECRET_ACME
forbear listen --listen 127.0.0.1:9001 --fail 2
`,
	}
	c.Run = func(ctx context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		r := receiver{out: std.Out, now: time.Now}
		address := f.String("listen", "127.0.0.1:9000", "the `address` to listen on")
		var secrets []string // resolved after Parse, whose errors quote what was given
		f.Func("secret", "check signatures with this `secret` or public key, env:NAME or file:PATH; may be repeated", func(given string) error {
			secrets = append(secrets, given)
			return nil
		})
		f.IntVar(&r.fail, "fail", 0, "fail this `number` of attempts of each call")
		f.IntVar(&r.status, "status", http.StatusServiceUnavailable, "the `status` of attempts that fail")
		if code, done := c.Parse(std, f, args, 0); done {
			return code
		}
		for _, given := range secrets {
			secret, err := resolve(given)
			if err != nil {
				return std.Fail("listen: --secret: %v", err)
			}
			r.secrets = append(r.secrets, secret)
		}
		if r.status < 200 || r.status > 599 {
			return std.Fail("listen: --status is %d: want 200 to 599", r.status)
		}
		if !strings.Contains(*address, ":") {
			return std.Fail("listen: --listen is %q: want HOST:PORT, such as 127.0.0.1:9001", *address)
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *address)
		if errors.Is(err, syscall.EADDRINUSE) {
			return std.Fail("listen: %v: choose another address with --listen", err)
		} else if err != nil {
			return std.Fail("listen: %v", err)
		}
		fmt.Fprintf(std.Out, "listening on http://%s: requests to any path are shown\n", l.Addr())
		server := gateway.NewServer(&r)
		stop := context.AfterFunc(ctx, func() { _ = server.Close() })
		defer stop()
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return std.Fail("listen: %v", err)
		}
		return cli.ExitOK
	}
	return c
}

// resolve returns the secret that a flag stands for, and checks that it is one.
func resolve(given string) (string, error) {
	secret := given
	if name, ok := strings.CutPrefix(given, "env:"); ok {
		variable := durable.SecretPrefix + name
		if secret = os.Getenv(variable); secret == "" {
			return "", fmt.Errorf("%s is not set: export it in this terminal", variable)
		}
	} else if path, ok := strings.CutPrefix(given, "file:"); ok {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		secret = strings.TrimSpace(string(text))
	}
	// A request without headers is refused as such, unless the secret is unusable.
	if err := webhook.Verify(secret, "", "", "", nil, time.Now()); errors.Is(err, webhook.ErrInvalid) {
		return "", fmt.Errorf("%w, or env:NAME or file:PATH", err)
	}
	return secret, nil
}
