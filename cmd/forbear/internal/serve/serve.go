// Package serve is the command serve: the gateway and the delivery of webhooks
// in one process. It wires the library's parts together by the command line and
// the policy file, starts them, and stops them again in an order that loses
// nothing. Each file is one of the parts:
//
//   - serve.go, server.go: the command, and the process from its start on
//   - listeners.go: the addresses of the gateway, and its own TLS
//   - gateway.go, dependency.go: routes, and what each dependency keeps across reloads
//   - idempotency.go: routes that honor idempotency keys
//   - delivery.go, delivery_flags.go: durable webhooks, their API and their alerts
//   - reload.go: another policy file takes charge
//   - warnings.go: what the log says of a policy file that is in charge
//   - shutdown.go, graceful.go: the end, the calls that it waits for, and readiness
//   - handover.go: another process takes over, and what systemd hears
//   - admin.go, console.go, metrics.go, telemetry.go: what an operator sees
//   - sample.go: what is served without a policy file
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/policyfile"
)

// defaultListen is the gateway's address where neither flag nor policy file
// names one. It is loopback: the gateway adds credentials to what it forwards,
// so other machines reach it only when the operator says so.
const defaultListen = "127.0.0.1:8080"

// Command returns the command serve.
func Command() *cli.Command {
	c := &cli.Command{
		Name:    "serve",
		Summary: "run the gateway, and deliver webhooks durably",
		Usage:   "[--config FILE] [--listen ADDRESS]... [--database DATABASE] [--admin ADDRESS]",
		About: `
Serve forwards the outgoing HTTP requests of services by the routes of the policy file,
and retries where the policy allows it. Without a policy file it serves a sample: an
upstream that fails on request, with three commands to try.

A route with idempotency: on protects a service instead: a POST or PATCH with an
Idempotency-Key runs once, and repeats get its response.

Serve also delivers webhooks, from POST /v1/messages or the outbox table. They are kept
in an SQLite file or in PostgreSQL, where any number of processes share the work. What
cannot be delivered becomes a dead letter: see forbear dlq --help. The API is described
at /v1/openapi.json. Deliveries are on if anything asks for them: one of their flags or
variables, such as --database, webhooks or idempotency keys in the policy file, or no
policy file at all. Otherwise there is no database, and no API.

Retries are logged to standard error. The admin endpoint has the console: pages that show
what retries do now and why calls stopped, messages, dead letters and held keys. On
loopback it only reads until you sign in with a token of the delivery API. Beside it are
/metrics for Prometheus, the status that forbear top shows, and the manual override of
circuit breakers. Beyond loopback it requires a token. --metrics serves /metrics, /health/live and /health/ready
at another address, without the override. With OTEL_EXPORTER_OTLP_ENDPOINT, metrics and
traces go to that collector too.

Warning: anyone who can reach a non-loopback address can call your dependencies with
your credentials.

The policy file is read again on SIGHUP and when it changes. If it has faults, the old
policy stays in charge, and the log lists them.

On SIGTERM /health/ready responds 503. After --drain-delay serve stops accepting,
finishes the current calls within --drain-timeout, and exits with code 0. SIGINT does
the same without the delay. A second signal ends the wait.

On SIGUSR2 serve starts its program again with the same arguments and sockets, and
drains when the new process is ready. If that fails, the old process stays. See
docs/guides/lifecycle.md, also for unix sockets and systemd.`,
		Examples: `
forbear serve
forbear serve --config policy.yaml
forbear serve --config policy.yaml --listen unix:/run/forbear/gateway.sock --listen 127.0.0.1:8080
forbear serve --config policy.yaml --log-format json --admin 127.0.0.1:9464
forbear serve --database postgres://forbear@db.example.com/forbear
forbear serve --allow-target 127.0.0.0/8
`,
	}
	c.Run = func(ctx context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		s := &server{out: std.Out, given: f}
		f.StringVar(&s.path, "config", "", "the policy `file`; without it, a sample is served")
		s.listen.register(f)
		s.delivery.register(f)
		s.ingress.register(f)
		format := f.String("log-format", "text", "the `format` of the log: text or json")
		s.admin.register(f)
		s.fleet.register(f)
		f.DurationVar(&s.every, "reload-every", 2*time.Second, "how often to check the policy file for changes; 0: only on SIGHUP")
		s.drain.register(f)
		if len(args) == 1 && args[0] != "" && args[0][0] != '-' {
			return std.Fail("serve: unexpected argument %q: name the policy file with --config %[1]s", args[0])
		}
		if code, done := c.Parse(std, f, args, 0); done {
			return code
		}
		var ok bool
		if s.log, ok = newLogger(std.Err, *format); !ok {
			return std.Fail("serve: --log-format is %q: want text or json", *format)
		}
		err := s.whole(ctx)
		if err == nil {
			return s.stay(cli.ExitOK)
		}
		_ = s.before.Failed(err.Error())
		if _, ok := errors.AsType[*policyfile.Error](err); ok {
			fmt.Fprintln(std.Err, err) // each line names its place
			return cli.ExitUsage
		}
		return std.Fail("serve: %v%s", err, s.remedy(err))
	}
	return c
}

// remedy says what to do about an error, or nothing.
func (s *server) remedy(err error) string {
	missing, _ := errors.AsType[*fs.PathError](err)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return ": stop the process that listens there, or choose another address with --listen, --admin, --metrics or --api"
	case missing != nil && missing.Path == s.path && errors.Is(err, fs.ErrNotExist):
		return ": write one with forbear init"
	}
	return ""
}

// whole is serve from the policy file to the end.
func (s *server) whole(ctx context.Context) error {
	if err := s.inherit(); err != nil {
		return err
	}
	defer s.close()
	if err := s.configure(ctx); err != nil {
		return errors.Join(err, s.sockets.Close())
	}
	room := reserve()
	defer func() { runtime.KeepAlive(room) }()
	return s.run(ctx)
}

// newLogger returns the log of serve, as text or JSON; false is another format.
func newLogger(w io.Writer, format string) (*slog.Logger, bool) {
	switch format {
	case "text":
		return slog.New(gateway.LogHandler(slog.NewTextHandler(w, nil))), true
	case "json":
		return slog.New(gateway.LogHandler(slog.NewJSONHandler(w, nil))), true
	default:
		return nil, false
	}
}

// heapFloor is what serve adds to its live heap in the eyes of the garbage
// collector, in bytes: the next collection comes at about twice this.
const heapFloor = 24 << 20

// reserve returns memory that is never touched, and so takes no room but in the
// collector's books: it waits until the heap has doubled. What lives in a
// gateway is a few megabytes, which it would go through many times a second
// under load, for about a tenth of the CPU. Keep it alive as long as serve runs.
//
// It is nothing where GOGC is set, as the operator has decided, and where GOMEMLIMIT
// leaves so little that these bytes would bring collections instead of sparing them.
func reserve() []byte {
	if os.Getenv("GOGC") != "" || debug.SetMemoryLimit(-1) < 4*heapFloor {
		return nil
	}
	return make([]byte, heapFloor)
}

// bodyShare returns the memory for the bodies of all requests that routes keep beyond 64
// KiB, in bytes: a quarter of GOMEMLIMIT, since what is freed takes room until the next
// collection and responses need some too; without GOMEMLIMIT 256 MiB.
func bodyShare() int64 {
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		return limit / 4
	}
	return 4 * policyfile.MaxBodyLimit
}
