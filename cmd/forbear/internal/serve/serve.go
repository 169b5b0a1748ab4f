package serve

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/serve/flaky"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/policyfile"
)

//go:embed sample.yaml
var samplePolicy []byte

const defaultListen = "127.0.0.1:8080"

func Command() *cli.Command {
	c := &cli.Command{
		Name:    "serve",
		Summary: "run the gateway, and deliver webhooks durably",
		Usage:   "[--config FILE] [--listen ADDRESS] [--database DATABASE] [--admin ADDRESS]",
		About: `
Serve takes the outgoing HTTP requests of services, sends them on as the routes
of the policy file say, and retries where the policy allows it. Without a policy
file it serves a sample: a built-in upstream that fails on request, with three
commands to try.

A route that says idempotency: on is in front of a service instead: a POST or
PATCH with an Idempotency-Key is done once, and its answer given again.

Serve also delivers webhooks: messages that POST /v1/messages or the outbox
table brought in, kept in an SQLite file or in PostgreSQL, where any number of
processes share the work. What cannot be delivered becomes a dead letter: see
forbear dlq --help. The API is described at /v1/openapi.json.

Retries are logged to standard error. An admin endpoint beside the gateway has
/metrics for Prometheus, the status that forbear top shows, and the manual
override of the circuit breakers; beyond loopback it demands a token. Where the
environment names an OTLP collector (OTEL_EXPORTER_OTLP_ENDPOINT), metrics and
traces go there too.

The policy file is read again on SIGHUP and when it changes. A file with faults
leaves the old policy in charge, and the log says so.

On SIGINT or SIGTERM serve stops
accepting, lets the calls under way finish, and ends with exit code 0. Faults of
the policy file are listed all at once, and the exit code is 2.`,
		Examples: `
forbear serve
forbear serve --listen 127.0.0.1:9090
forbear serve --config policy.yaml
forbear serve --config policy.yaml --log-format json --admin 127.0.0.1:9464
forbear serve --config policy.yaml --fleet-budget redis://127.0.0.1:6379/0
forbear serve --database postgres://forbear@db.example.com/forbear
forbear serve --allow-target 127.0.0.0/8
`,
	}
	c.Run = func(ctx context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		config := f.String("config", "", "the policy `file`; without one, a sample is served")
		listen := f.String("listen", "", "the `address` to listen on (default: the policy file's, or "+defaultListen+")")
		deliver := newDelivery(f)
		format := f.String("log-format", "text", "the `format` of the log: text or json")
		var admin adminFlags
		admin.register(f)
		shared := &fleet{}
		shared.register(f)
		every := f.Duration("reload-every", 2*time.Second, "how often to look whether the policy file has changed; 0: only on SIGHUP")
		drain := f.Duration("drain", 20*time.Second, "how long calls under way may take after a signal")
		if code, done := c.Parse(std, f, args, 0); done {
			return code
		}
		log, ok := newLogger(std.Err, *format)
		if !ok {
			return std.Fail("serve: --log-format is %q: want text or json", *format)
		}
		s := &server{std: std, path: *config, every: *every, drain: *drain, delivery: deliver, log: log, admin: admin, fleet: shared}
		shared.log = log
		if err := s.configure(ctx, *config); err != nil {
			if _, ok := errors.AsType[*policyfile.Error](err); ok {
				fmt.Fprintln(std.Err, err) // each line names its place
				return cli.ExitUsage
			}
			return std.Fail("serve: %v", err)
		}
		defer s.close()
		room := reserve()
		defer func() { runtime.KeepAlive(room) }()
		if err := s.serve(ctx, cmp.Or(*listen, s.file.Gateway.Listen, defaultListen)); err != nil {
			return std.Fail("serve: %v", err)
		}
		return cli.ExitOK
	}
	return c
}

// server is one run of serve.
type server struct {
	std    *cli.Streams
	log    *slog.Logger
	drain  time.Duration
	path   string // of the policy file, or ""
	every  time.Duration
	seen   fileStamp // of the file that was read last
	file   *policyfile.File
	live   live
	kept   map[string]kept // by dependency, across reloads
	admin  adminFlags
	watch  *watch
	sample *http.Server // the flaky upstream, or nil

	delivery *delivery
	ingress  ingress
	fleet    *fleet
}

// configure reads the policy file, or readies the sample, and builds the
// gateway.
func (s *server) configure(ctx context.Context, path string) (err error) {
	if path == "" {
		err = s.startSample()
	} else {
		s.seen = s.stamp(fileStamp{})
		s.file, err = policyfile.Load(path)
	}
	if err != nil {
		return err
	}
	if len(s.file.Gateway.Routes) == 0 {
		return fmt.Errorf("%s has no gateway.routes: nothing to serve", s.file.Name)
	}
	if s.watch, err = newWatch(ctx, s.log, s.file.Service, !s.file.Observability.NoMetrics); err != nil {
		return err
	}
	return s.apply(s.file)
}

// routes builds one Retryer for each dependency, shared by its routes. One whose
// policy is what it was keeps its Retryer, and with it budget and breaker.
func (s *server) routes(file *policyfile.File) ([]gateway.Route, map[string]kept, error) {
	retryers := map[string]kept{}
	var routes []gateway.Route
	var errs []error
	for _, r := range file.Gateway.Routes {
		if err := s.delivery.clash(r.Prefix); err != nil {
			errs = append(errs, err)
		}
		dep, _ := file.Dependency(r.Dependency) // the file's own check
		target, err := url.Parse(dep.URL)
		if err != nil {
			errs = append(errs, fmt.Errorf("dependency %s: its url cannot be read", dep.Name))
			continue
		}
		if _, built := retryers[dep.Name]; !built {
			k, err := s.retryer(file, dep)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			retryers[dep.Name] = k
		}
		in, err := s.ingressOf(file, r)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		routes = append(routes, gateway.Route{Prefix: r.Prefix, Host: r.Host, Target: target, Retryer: retryers[dep.Name].retryer, Ingress: in})
		last := &routes[len(routes)-1]
		last.Credentials, last.Override = retryers[dep.Name].credentials, dep.Credentials.Override
	}
	return routes, retryers, errors.Join(errs...)
}

// startSample starts the flaky upstream and reads the sample policy.
func (s *server) startSample() (err error) {
	if s.file, err = policyfile.Parse("the sample policy", samplePolicy); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("starting the sample upstream: %w", err)
	}
	s.sample = gateway.NewServer(flaky.Handler())
	go func() { _ = s.sample.Serve(l) }()
	for i := range s.file.Dependencies {
		s.file.Dependencies[i].URL = "http://" + l.Addr().String()
	}
	return nil
}

func (s *server) close() {
	s.fleet.close()
	if s.sample != nil {
		_ = s.sample.Close()
	}
}

// serve runs the gateway until ctx ends, and then lets it drain.
func (s *server) serve(ctx context.Context, address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	if err := s.delivery.start(ctx, address, s.watch); err != nil {
		return errors.Join(err, l.Close())
	}
	defer func() {
		if err := s.delivery.stop(); err != nil {
			s.log.Error("delivery did not end well", slog.String("error", err.Error()))
		}
	}()
	defer func() {
		if err := s.ingress.stop(); err != nil {
			s.log.Error("the idempotency records were not closed well", slog.String("error", err.Error()))
		}
	}()
	if err := s.startIngress(ctx); err != nil {
		return errors.Join(err, l.Close())
	}
	adminBase, stopAdmin, err := s.admin.start(l.Addr(), s.watch)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer stopAdmin()
	go s.watch.flush(ctx)
	srv := gateway.NewServer(s.delivery.mount(s.watch.inbound(&s.live)))
	srv.ErrorLog = slog.NewLogLogger(s.log.Handler(), slog.LevelWarn)
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	hangups := make(chan os.Signal, 1)
	if s.path != "" {
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Stop(hangups)
	}
	s.greet("http://"+l.Addr().String(), adminBase)
	if s.path != "" {
		go s.follow(ctx, hangups)
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	s.live.drain()
	s.log.Info("stopping", slog.Duration("drain", s.drain))
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.drain)
	defer cancel()
	if err := srv.Shutdown(limited); err != nil {
		s.log.Warn("calls under way were cut off", slog.String("error", err.Error()))
		_ = srv.Close()
	}
	s.watch.close(limited)
	return nil
}

// greet says where the gateway is and, for the sample, what to try.
func (s *server) greet(base, admin string) {
	w := s.std.Out
	if s.sample == nil {
		fmt.Fprintf(w, "forbear gateway on %s\n", base)
		for _, r := range s.file.Gateway.Routes {
			fmt.Fprintf(w, "  %-24s -> %s\n", cmp.Or(r.Prefix, r.Host), r.Dependency)
		}
		if admin != "" {
			fmt.Fprintf(w, "admin on %[1]s: /metrics, forbear top --admin %[1]s\n", admin)
		}
		return
	}
	fmt.Fprintf(w, `forbear gateway on %[1]s, before a flaky upstream (a sample: see --config)

Try:

  # 503 twice, then an answer from attempt 3
  curl -i '%[1]s/flaky/status/503?times=2'

  # 429 with Retry-After: the second attempt comes 2 s later
  curl -i '%[1]s/flaky/retry-after/2'

  # a reset connection; a POST is retried only with a key, and with that same key
  curl -i -X POST -H 'Idempotency-Key: 7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2' '%[1]s/flaky/reset'

What else it can do: curl '%[1]s/'
`, base)
	if admin != "" {
		fmt.Fprintf(w, "Watch it: forbear top --admin %[1]s, or %[1]s/metrics\n", admin)
	}
}
