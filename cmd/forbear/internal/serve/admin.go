package serve

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/handover"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/internal/loopback"
	"github.com/forbear-go/forbear/policyfile"
)

// adminFlags say where serve has its admin endpoint, and the metrics apart from
// it. The zero value puts it on loopback next to the gateway, without a token, and
// the metrics there alone.
type adminFlags struct {
	address      string
	tokenFile    string
	metrics      string // the address of /metrics alone, or ""
	metricsFile  string // of its token
	metricsToken string // once start has read it
	metricsBase  string // likewise, where metrics are apart

	ready func() (state string, ok bool) // for the probes at the address of the metrics

	api      func() http.Handler // of deliveries, or nil while there is none
	url      string              // of the console, by which others reach it
	instance string              // how the console calls this process, from start on
}

func (a *adminFlags) register(f *flag.FlagSet) {
	f.StringVar(&a.address, "admin", "", "the `address` of the admin endpoint, or \"off\" (default: the gateway's port + 1, on loopback)")
	f.StringVar(&a.tokenFile, "admin-token-file", "", "a `file` with the token of the admin endpoint (default: $"+cli.EnvAdminToken+"); needed beyond loopback")
	f.StringVar(&a.url, "console-url", "", "the `URL` by which others reach the console, for links between processes that share a database (default: the admin address)")
	f.StringVar(&a.metrics, "metrics", "", "a separate `address` for /metrics, /health/live and /health/ready, without the admin token")
	f.StringVar(&a.metricsFile, "metrics-token-file", "", "a `file` with a token that opens only /metrics (default: $"+cli.EnvMetricsToken+")")
}

// listen opens the admin endpoint's listener: at the address asked for, or next
// to the gateway's. A default address that is taken gives way to a free one: a
// second gateway on the machine must start all the same. Without an endpoint l
// is nil.
func (a *adminFlags) listen(ctx context.Context, sockets *handover.Sockets, main net.Addr, token string, log *slog.Logger) (net.Listener, error) {
	if a.address == "off" {
		return nil, nil
	}
	if a.address != "" {
		if err := gateway.CheckAdmin(a.address, token); err != nil {
			return nil, a.beyond(err)
		}
		l, err := sockets.One(ctx, "admin", a.address)
		if err != nil {
			return nil, fmt.Errorf("--admin: %w", err)
		}
		return l, nil
	}
	if tcp, ok := main.(*net.TCPAddr); ok && tcp.Port < 65535 {
		usual := net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port+1))
		l, err := sockets.One(ctx, "admin", usual)
		if err == nil {
			return l, nil
		}
		if l, other := sockets.One(ctx, "admin", "127.0.0.1:0"); other == nil {
			log.Warn("the admin endpoint and its metrics are not at their usual address, which is in use: choose one with --admin", slog.String("usual", usual), slog.String("address", l.Addr().String()))
			return l, nil
		}
		return nil, fmt.Errorf("admin address %s: %w: choose another one with --admin", usual, err)
	}
	return sockets.One(ctx, "admin", "127.0.0.1:0")
}

// beyond names the ways around a refused address. Only the override of breakers requires a
// token: metrics may have an address of their own.
func (a *adminFlags) beyond(err error) error {
	_, port, splitErr := net.SplitHostPort(a.address)
	if splitErr != nil {
		return fmt.Errorf("admin address %s: %w", a.address, err)
	}
	return fmt.Errorf("admin address %s: %w: give it one with --admin-token-file or %s, or use a loopback address with --admin 127.0.0.1:%s "+
		"and let Prometheus read /metrics alone with --metrics %s", a.address, err, cli.EnvAdminToken, port, a.address)
}

// start serves the admin endpoint, and returns its base URL, "" when it is off, and a
// function that ends it. main is the gateway's own address. The endpoint has another one: a
// caller that may send requests through the gateway may not force its breakers.
func (a *adminFlags) start(ctx context.Context, sockets *handover.Sockets, main net.Addr, w *watch) (base string, stop func(), err error) {
	if u, err := url.Parse(a.url); a.url != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil) {
		return "", nil, errors.New("--console-url: want an address such as https://forbear.example.com/, without a user")
	}
	token, err := cli.AdminToken(a.tokenFile)
	if err != nil {
		return "", nil, fmt.Errorf("reading the admin token: %w", err)
	}
	if a.metricsToken, err = cli.MetricsToken(a.metricsFile); err != nil {
		return "", nil, fmt.Errorf("reading the token of the metrics: %w", err)
	}
	stopMetrics, err := a.startMetrics(ctx, sockets, w)
	if err != nil {
		return "", nil, err
	}
	l, err := a.listen(ctx, sockets, main, token, w.log)
	if err != nil {
		stopMetrics()
		return "", nil, err
	}
	a.instance = instanceOf(main)
	if l == nil {
		a.url = ""
		return "", stopMetrics, nil
	}
	a.url = cmp.Or(a.url, addressOf(l.Addr()))
	admin := gateway.NewAdmin(gateway.AdminConfig{
		Stats: w.stats, Metrics: w.page(), Token: token, MetricsToken: a.metricsToken, Logger: w.log, Policy: policyfile.MarshalPolicy,
	})
	stopAdmin := serveBeside(l, w, "admin", a.pages(admin, token, w.log))
	return "http://" + l.Addr().String(), func() { stopAdmin(); stopMetrics() }, nil
}

// startMetrics serves /metrics at an address of its own, if one is named, and returns a
// function that ends it. The operator may open it to a network: nothing can be changed
// there. Probes may ask there whether the gateway is ready.
func (a *adminFlags) startMetrics(ctx context.Context, sockets *handover.Sockets, w *watch) (stop func(), err error) {
	page := w.page()
	switch {
	case a.metrics == "":
		return func() {}, nil
	case page == nil:
		return nil, fmt.Errorf("--metrics %s: the policy file switches metrics off (observability.metrics)", a.metrics)
	}
	l, err := sockets.One(ctx, "metrics", a.metrics)
	if err != nil {
		return nil, fmt.Errorf("--metrics: %w", err)
	}
	a.metricsBase = "http://" + l.Addr().String()
	h := gateway.Health(a.ready, gateway.NewMetrics(page, a.metricsToken, loopback.Host(a.metrics)))
	return serveBeside(l, w, "metrics", h), nil
}

// serveBeside serves an endpoint beside the gateway, and returns a function that ends it.
func serveBeside(l net.Listener, w *watch, what string, h http.Handler) (stop func()) {
	srv := gateway.NewServer(h)
	srv.ErrorLog = slog.NewLogLogger(w.log.Handler(), slog.LevelWarn)
	go func() {
		if err := srv.Serve(l); err != nil && !closedByUs(err) {
			w.log.Error("the "+what+" endpoint ended", slog.String("error", err.Error()))
		}
	}()
	return func() { _ = srv.Close() }
}

// greeting says where the metrics are, when they are apart.
func (a *adminFlags) greeting() string {
	if a.metricsBase == "" {
		return ""
	}
	return "metrics on " + a.metricsBase + "/metrics\n"
}
