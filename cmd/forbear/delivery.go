package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/cmd/forbear/internal/durable"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/internal/loopback"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
)

// delivery is serve's durable side: its flags, and the service that they make.
type delivery struct {
	taken atomic.Pointer[map[string]bool] // hosts that the gateway's routes take whole; "*" is all

	off       bool
	listen    string
	options   durable.Options
	slack     string
	manager   string
	hook      string
	hookKey   string // reference of its signing secret
	reach     []netip.Prefix
	command   string
	keyFile   string
	tokenFile string

	service *durable.Service
	server  *http.Server // when the API has an address of its own
	done    chan error
	cancel  context.CancelFunc
}

// databaseFlag is shared by all commands that work on the database.
func databaseFlag(f *flag.FlagSet) *string {
	return f.String("database", cmp.Or(os.Getenv("FORBEAR_DATABASE"), database.Default), "an SQLite `file` or a postgres:// URL (also from FORBEAR_DATABASE)")
}

func newDelivery(f *flag.FlagSet) *delivery {
	d := &delivery{}
	o := &d.options
	f.BoolVar(&d.off, "no-delivery", false, "do not deliver webhooks")
	f.StringVar(&o.Database, "database", cmp.Or(os.Getenv("FORBEAR_DATABASE"), database.Default), "where deliveries are kept: an SQLite `file` or a postgres:// URL (also from FORBEAR_DATABASE)")
	f.StringVar(&d.listen, "api", "", "an `address` of its own for the delivery API (default: /v1/ on the gateway's)")
	f.StringVar(&d.tokenFile, "api-token-file", "", "the `file` with the token that the API demands (also from FORBEAR_API_TOKEN); needed beyond loopback")
	f.Func("allow-target", "a private `prefix` that webhooks may reach all the same, such as 127.0.0.0/8; may be repeated", func(v string) error {
		p, err := netip.ParsePrefix(v)
		o.Allow = append(o.Allow, p)
		return err
	})
	f.StringVar(&o.SecretsDir, "secrets-dir", "", "the `folder` that endpoints' file: references are in")
	f.StringVar(&d.keyFile, "encryption-key-file", os.Getenv("FORBEAR_ENCRYPTION_KEY_FILE"), "encrypt payloads at rest, and exports, under the key in this `file` (also from FORBEAR_ENCRYPTION_KEY_FILE)")
	f.DurationVar(&o.Retention, "dlq-retention", deadletter.DefaultRetention, "how long dead letters are kept")
	f.StringVar(&o.ExportDir, "dlq-export-dir", "", "the `folder` that expired dead letters are written to, see forbear dlq read; without one they are kept")
	f.StringVar(&d.slack, "alert-slack", "", "send alerts to this Slack-compatible `URL`")
	f.StringVar(&d.manager, "alert-alertmanager", "", "send alerts to this Alertmanager `URL`")
	f.StringVar(&d.hook, "alert-webhook", "", "deliver alerts to this `URL`, durably, as signed webhooks")
	f.StringVar(&d.hookKey, "alert-webhook-secret", "", "the secret that signs them, as a `reference`: env:NAME or file:NAME")
	f.Func("alert-allow-target", "a private `prefix` that --alert-slack and --alert-alertmanager may be in; may be repeated", func(v string) error {
		p, err := netip.ParsePrefix(v)
		d.reach = append(d.reach, p)
		return err
	})
	f.StringVar(&d.command, "alert-command", "", "run this `command` with each alert as JSON on its standard input")
	return d
}

// start opens the database and begins to deliver. address is the gateway's.
func (d *delivery) start(ctx context.Context, address string, w *watch) (err error) {
	if d.off || ctx.Err() != nil {
		return nil
	}
	o := d.options
	o.Logger, o.Observers, o.Wrap = w.log, w.options(), w.telemetry.wrap
	if o.Token, err = d.token(); err != nil {
		return err
	}
	if o.Keys, err = d.keys(); err != nil {
		return err
	}
	o.Open = !loopback.Host(cmp.Or(d.listen, address))
	if o.Notifiers, err = d.notifiers(); err != nil {
		return err
	}
	if o.Alerts, err = d.alerts(); err != nil {
		return err
	}
	if d.service, err = durable.New(ctx, o); err != nil {
		return err
	}
	if w.registry != nil {
		w.registry.MustRegister(d.service)
	}
	if d.listen != "" {
		l, err := net.Listen("tcp", d.listen)
		if err != nil {
			_ = d.service.Close()
			return err
		}
		d.server = &http.Server{Handler: d.service.Handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 120 * time.Second}
		go func() { _ = d.server.Serve(l) }()
	}
	// Deliveries end after the gateway's calls, which may still add some.
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d.cancel, d.done = cancel, make(chan error, 1)
	go func() { d.done <- d.service.Run(run) }()
	return nil
}

// stop lets the attempts under way finish and closes the database.
func (d *delivery) stop() error {
	if d.service == nil {
		return nil
	}
	if d.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = d.server.Shutdown(ctx)
	}
	d.cancel()
	err := <-d.done
	return cmp.Or(err, d.service.Close())
}

// mount puts the API before the gateway.
func (d *delivery) mount(next http.Handler) http.Handler {
	if d.service == nil || d.listen != "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/") && !d.claimed(r.Host) {
			d.service.Handler.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// claims notes what the gateway's routes take as a whole: everything, by the
// prefix "/", or a host. There the API steps back, for a request to /v1 of an
// upstream must not end here; --api gives the API an address of its own.
func (d *delivery) claims(routes []policyfile.Route, log *slog.Logger) {
	taken := map[string]bool{}
	for _, r := range routes {
		if r.Prefix == "/" {
			taken["*"] = true
		}
		if r.Host != "" {
			taken[strings.ToLower(r.Host)] = true
		}
	}
	d.taken.Store(&taken)
	if taken["*"] && !d.off && d.listen == "" {
		log.Info("the route / takes /v1 too: the delivery API is reached by an address of its own, see --api")
	}
}

func (d *delivery) claimed(host string) bool {
	taken := d.taken.Load()
	if taken == nil || len(*taken) == 0 {
		return false
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return (*taken)["*"] || (*taken)[strings.ToLower(host)]
}

// clash refuses a route of the gateway that the API would hide.
func (d *delivery) clash(prefix string) error {
	if d.off || d.listen != "" || prefix != "/v1" && !strings.HasPrefix(prefix, "/v1/") {
		return nil
	}
	return fmt.Errorf("the route %s is where the delivery API is: give the API an address of its own with --api, or switch it off with --no-delivery", prefix)
}

func (d *delivery) token() (string, error) {
	if d.tokenFile == "" {
		return os.Getenv("FORBEAR_API_TOKEN"), nil
	}
	b, err := os.ReadFile(d.tokenFile)
	if err == nil && len(strings.TrimSpace(string(b))) < 16 {
		err = fmt.Errorf("%s: a token has at least 16 characters", d.tokenFile)
	}
	return strings.TrimSpace(string(b)), err
}

func (d *delivery) keys() ([]sqlstore.Key, error) { return readKeys(d.keyFile) }

// readKeys reads the encryption key: any 32 bytes or more, of which a digest is
// the key. Without a file there is none.
func readKeys(file string) ([]sqlstore.Key, error) {
	if file == "" {
		return nil, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if len(b) < 32 {
		return nil, fmt.Errorf("%s: a key has at least 32 bytes", file)
	}
	sum := sha256.Sum256(b)
	id := sha256.Sum256(sum[:])
	return []sqlstore.Key{{ID: fmt.Sprintf("%x", id[:4]), Secret: sum[:]}}, nil
}

// notifiers returns those that are told directly. They reach public addresses,
// and what was allowed: an address in a flag is the operator's, and a name may
// still resolve to where nobody meant it to.
func (d *delivery) notifiers() (list []deadletter.Notifier, err error) {
	guard := webhook.Guard{Allow: slices.Concat(d.options.Allow, d.reach)}
	client := &http.Client{Transport: guard.Transport(forbear.DefaultConnect), Timeout: 10 * time.Second}
	for _, n := range []struct {
		label, url string
		format     deadletter.AlertFormat
	}{{"slack", d.slack, deadletter.FormatSlack}, {"alertmanager", alertmanager(d.manager), deadletter.FormatAlertmanager}} {
		if n.url == "" {
			continue
		}
		if err := guard.CheckURL(n.url); err != nil {
			return nil, fmt.Errorf("--alert-%s: %w (see --alert-allow-target)", n.label, err)
		}
		list = append(list, &deadletter.HTTPNotifier{Label: n.label, URL: n.url, Format: n.format, Client: client})
	}
	if args := strings.Fields(d.command); len(args) > 0 {
		list = append(list, &deadletter.CommandNotifier{Label: "command", Args: args})
	}
	return list, nil
}

// alertmanager completes an address without a path.
func alertmanager(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" && strings.Trim(u.Path, "/") == "" {
		return u.JoinPath("/api/v2/alerts").String()
	}
	return address
}

// alerts returns the endpoint that alerts are delivered to, or nil.
func (d *delivery) alerts() (*webhook.Endpoint, error) {
	switch {
	case d.hook == "" && d.hookKey == "":
		return nil, nil
	case d.hook == "":
		return nil, errors.New("--alert-webhook-secret is of no use without --alert-webhook")
	case d.hookKey == "":
		return nil, fmt.Errorf("--alert-webhook needs --alert-webhook-secret: env:ALERTS, for instance, is the variable %sALERTS", durable.SecretPrefix)
	}
	return &webhook.Endpoint{URL: d.hook, Secrets: []string{d.hookKey}}, nil
}
