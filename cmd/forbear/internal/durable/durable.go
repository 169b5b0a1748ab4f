// Package durable puts durable delivery together for serve: the database, the
// dispatcher, redrives, alerts, retention, and their HTTP API under /v1/, which
// openapi.json describes. The parts are the library's; here is how they fit:
//
//   - durable.go: which store each part works on, what runs, and in which order it ends
//   - api.go: the routes, and who may call them
//   - access.go, tokens.go: callers and their rights
//   - admission.go, deadlines.go, refusals.go: bounds for callers
//   - query.go, decode.go: what a request says, in its query and in its body
//   - response.go, encode.go: what a response says, and whose fault an error is
//   - patch.go, write.go: what several resources share
//   - a file for each resource: messages, endpoints, applications, letters, redrives, stats,
//     audit with alerts, keys, instances
//   - collector.go: metrics
package durable

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
)

// Options say how delivery is run. Database is needed; the zero value of the rest
// delivers to public addresses, without encryption, token or alerts but the log's.
//
// Durations of 0 mean the defaults of the parts they go to.
type Options struct {
	Database   string          // a postgres:// URL or the path of an SQLite file
	Shared     bool            // forbear's tables may be added to an SQLite file of an application
	Allow      []netip.Prefix  // addresses that webhooks may reach besides public ones
	SecretsDir string          // where file: references are looked up
	ExportDir  string          // where expired dead letters go
	Retention  time.Duration   // of dead letters
	MaxPayload int             // of a message, in bytes: see dispatch.Config
	History    time.Duration   // of finished deliveries: see dispatch.Config.Retention
	Bodies     time.Duration   // of what they carried: see dispatch.Config.BodyRetention
	Cipher     sqlstore.Cipher // encryption at rest; nil: off
	Notifiers  []queue.Notifier
	// Alerts is where alerts are delivered as webhooks; nil: nowhere.
	Alerts *webhook.Endpoint
	// Observers are what each endpoint's Retryer is built with: the log, metrics,
	// traces. None: the log.
	Observers []forbear.Option
	Token     string // that the API demands; empty: none
	// Open says that the API listens beyond loopback.
	Open bool
	// Beside says that a process of a former version works on the database, which
	// must not be changed under it.
	Beside bool
	// Instance is what the other processes on the database, and their consoles, show of
	// this one: the name (default: its owner in leases, with the host's name), the address of its
	// console as a browser reaches it ("" where it has none), and forbear's version. Owner and
	// Seen are set here.
	Instance sqlstore.Instance
	Logger   *slog.Logger
	// Wrap goes around the transport of the attempts, for traces.
	Wrap      func(http.RoundTripper) http.RoundTripper
	Transport http.RoundTripper // for tests
	Now       func() time.Time
	Poll      time.Duration // how often to look for work that no notification announced; default 1 s
}

// SecretPrefix begins the names of environment variables that env: references
// may name. Without it an endpoint's configuration could send any variable of the
// process, such as the database's password, to a stranger.
const SecretPrefix = "FORBEAR_SECRET_"

// Service is durable delivery. Between New and Run it accepts messages and sends
// none. Its parts are safe for concurrent use.
type Service struct {
	DB         *database.DB
	Dispatcher *dispatch.Dispatcher
	Redriver   *queue.Redriver
	Alerter    *queue.Alerter
	Handler    http.Handler

	tokens    tokenCache
	queries   queries
	admission *admission
	deadlines deadlines
	refusals  refusals
	retention *queue.Retention
	path      string
	instance  sqlstore.Instance
	// maxRequest bounds a request to the API, in bytes.
	maxRequest int64
	log        *slog.Logger
}

// New opens the database and brings its schema up to date. An API that other
// machines reach needs a token. After an error nothing is left open. The
// schema is migrated before anything reads it. Several processes may start at once.
func New(ctx context.Context, o Options) (*Service, error) {
	o.Logger = cmp.Or(o.Logger, slog.Default())
	opts := []sqlstore.Option{sqlstore.WithCipher(o.Cipher)}
	if o.Now != nil {
		opts = append(opts, sqlstore.WithClock(o.Now))
	}
	db, err := database.OpenFor(ctx, o.Database, database.Use{Writes: true, Shared: o.Shared}, opts...)
	if err != nil {
		return nil, err
	}
	s, err := build(ctx, db, o)
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	return s, nil
}

// build puts the parts together on an open database. The endpoints are loaded
// before the API can be called: a message to one of them must find it. On an error
// the caller closes the database; nothing else has been started yet.
func build(ctx context.Context, db *database.DB, o Options) (*Service, error) {
	if err := db.Update(ctx, o.Logger, o.Beside); err != nil {
		return nil, err
	}
	s := &Service{
		DB: db, tokens: tokenCache{store: db.Tokens(), log: o.Logger}, log: o.Logger, path: o.Database, maxRequest: maxRequest(o.MaxPayload),
		admission: newAdmission(db.Readers()), deadlines: deadlines{idle: standstill, whole: bodyTime}, instance: o.Instance,
	}
	if o.Open && o.Token == "" {
		if some, err := s.tokens.any(ctx); err != nil || !some {
			return nil, cmp.Or(err, ErrNoToken)
		}
	}
	if err := s.sayOpen(ctx, o); err != nil {
		return nil, err
	}
	var err error
	guard := webhook.Guard{Allow: o.Allow, Flag: "--allow-target"}
	var resolve func(context.Context, string) error
	if o.Transport == nil {
		o.Transport, resolve = guard.Transport(httpretry.DefaultConnect), dispatch.Resolve
	}
	if o.Wrap != nil {
		o.Transport = o.Wrap(o.Transport)
	}
	s.Dispatcher, err = dispatch.New(dispatch.Config{
		Store: db.Webhooks(), Alerts: db.DeadLetters(), Guard: guard, Secrets: dispatch.LocalSecrets(SecretPrefix, o.SecretsDir),
		Options: o.Observers, Logger: o.Logger, Transport: o.Transport, Lookup: resolve, Wrap: o.Wrap, Now: o.Now, Poll: o.Poll,
		MaxPayload: o.MaxPayload, Retention: o.History, BodyRetention: o.Bodies,
	})
	if err != nil {
		return nil, err
	}
	s.instance.Owner = s.Dispatcher.Owner()
	s.instance.Name = cmp.Or(s.instance.Name, s.instance.Owner)
	if err := s.Dispatcher.Load(ctx); err != nil {
		return nil, err
	}
	// Alerts that could not be delivered are redriven like messages.
	targets := map[string]queue.Target{webhook.Queue: s.redrive, webhook.AlertQueue: s.redrive}
	s.Redriver = queue.NewRedriver(db.DeadLetters(), webhook.NewID("w"), targets, o.Logger)
	if o.Alerts != nil {
		n, err := dispatch.NewNotifier(ctx, s.Dispatcher, *o.Alerts)
		if err != nil {
			return nil, err
		}
		o.Notifiers = append(o.Notifiers, n)
	}
	s.Alerter = queue.NewAlerter(db.DeadLetters(), o.Logger, o.Notifiers...)
	s.Redriver.Poll, s.Alerter.Poll = o.Poll, o.Poll
	s.retention = &queue.Retention{Store: db.DeadLetters(), Age: o.Retention, Dir: o.ExportDir, Cipher: o.Cipher, Log: o.Logger}
	if s.queries, err = readQueries(); err != nil {
		return nil, err
	}
	s.Handler = s.handler(o)
	return s, nil
}

// Run delivers until ctx ends, and then lets what is under way finish. The
// dispatcher's error is the one that counts: the other parts retry by themselves,
// and log. It may be called once.
func (s *Service) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { s.Redriver.Run(ctx) })
	wg.Go(func() { s.Alerter.Run(ctx) })
	wg.Go(func() { s.retention.Run(ctx) })
	wg.Go(func() { s.beSeen(ctx) })
	err := s.Dispatcher.Run(ctx)
	wg.Wait()
	return err
}

// Close closes the database, after Run. Before Run has returned it would take the
// database from attempts under way.
func (s *Service) Close() error { return s.DB.Close() }
