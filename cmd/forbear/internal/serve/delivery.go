package serve

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/cmd/forbear/internal/durable"
	"github.com/forbear-go/forbear/cmd/forbear/internal/handover"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/internal/loopback"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
)

// delivery is serve's durable side: its flags, and the service that they make.
// The zero value delivers nothing: see decide. It has no service until start.
type delivery struct {
	off        bool        // by its flag
	why        string      // deliveries are on, or ""
	alone      bool        // and nothing else needs the database
	made       bool        // by this process: an SQLite file that was not there
	flags      []string    // the names of those that ask for deliveries
	listen     string      // of the API; "" puts it on the gateway's address
	tls        gateway.TLS // of the API's own address
	api        string      // where that is, once start has opened it
	options    durable.Options
	alert      alertFlags
	keys       database.KeyFiles
	tokenFile  string
	maxPayload policyfile.Size

	routes  atomic.Pointer[[]policyfile.Route] // of the gateway: see claims
	service *durable.Service                   // nil where nothing is delivered
	served  atomic.Pointer[durable.Service]    // the same, for other goroutines
	server  *graceful                          // when the API has an address of its own
	own     net.Listener                       // there
	done    chan error
	cancel  context.CancelFunc
}

// start opens the database and begins to deliver. address is the gateway's: the
// API is there unless it has one of its own, and what listens beyond loopback
// demands a token. A process that is already asked to end opens nothing. After
// an error stop need not be called.
func (d *delivery) start(ctx context.Context, sockets *handover.Sockets, address string, w *watch) (err error) {
	if !d.on() || ctx.Err() != nil {
		return nil
	}
	o := d.options
	o.Logger, o.Observers, o.Wrap = w.log, w.options(), w.telemetry.wrap
	if o.Token, err = cli.APIToken(d.tokenFile); err != nil {
		return err
	}
	if err = checkRetention(&o); err != nil {
		return err
	}
	if o.MaxPayload = int(d.maxPayload); o.MaxPayload > webhook.MaxPayload {
		return fmt.Errorf("--max-payload %d is above %d bytes, 1MiB", o.MaxPayload, webhook.MaxPayload)
	}
	if o.Cipher, err = d.keys.Cipher(); err != nil {
		return err
	}
	if is, err := os.Stat(o.SecretsDir); o.SecretsDir != "" && (err != nil || !is.IsDir()) {
		return fmt.Errorf("--secrets-dir %s is not a folder: make it, or name the one with the files of file: references", o.SecretsDir)
	}
	secure, err := d.secured(w.log)
	if err != nil {
		return err
	}
	where := cmp.Or(d.listen, address)
	o.Open = !loopback.Host(where)
	if o.Notifiers, err = d.alert.notifiers(o.Allow); err != nil {
		return err
	}
	if o.Alerts, err = d.alert.endpoint(); err != nil {
		return err
	}
	// What may refuse to start comes before the database is opened.
	before := present(o.Database)
	if d.service, err = durable.New(ctx, o); err != nil {
		if errors.Is(err, durable.ErrNoToken) {
			err = fmt.Errorf("%w (on %s): make one with forbear token create, or give it one with --api-token-file or FORBEAR_API_TOKEN, "+
				"or use a loopback address with --api 127.0.0.1:8082, or switch deliveries off with --no-delivery (they are on because of %s)", err, where, d.why)
		}
		if d.alone && errors.Is(err, database.ErrPlace) {
			err = fmt.Errorf("%w; or add --no-delivery, which needs no database", err)
		}
		return err
	}
	d.served.Store(d.service)
	d.made = !before && present(o.Database)
	w.stats.SetDeliveries(d.service.Status, d.service.Held)
	if w.registry != nil {
		w.registry.MustRegister(d.service)
	}
	if d.listen != "" {
		l, err := sockets.One(ctx, "api", d.listen)
		if err != nil {
			_ = d.service.Close()
			return fmt.Errorf("--api: %w", err)
		}
		d.api = map[bool]string{false: "http://", true: "https://"}[secure != nil] + l.Addr().String()
		d.server, d.own = newGraceful(d.service.Handler, w.log), l
		ended := make(chan error, 1)
		d.server.accept(l, secure, ended)
		go func() {
			if err := <-ended; !closedByUs(err) {
				w.log.Error("the listener of the delivery API ended", slog.String("error", err.Error()))
			}
		}()
	}
	// Deliveries end after the gateway's calls, which may still add some.
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d.cancel, d.done = cancel, make(chan error, 1)
	go func() { d.done <- d.service.Run(run) }()
	return nil
}

// present reports whether a database is a file that is there.
func present(name string) bool {
	_, err := os.Lstat(database.Name(name))
	return err == nil
}

// secured returns the TLS of the API's own address, or nil.
func (d *delivery) secured(log *slog.Logger) (*tls.Config, error) {
	c := d.tls
	switch {
	case c == gateway.TLS{}:
		return nil, nil
	case d.listen == "":
		return nil, errors.New("--api-tls-cert needs --api; the gateway's own TLS is gateway.tls in the policy file")
	}
	c.Key, c.Logger = cmp.Or(c.Key, c.Cert), log
	config, err := c.Config()
	if err != nil {
		return nil, fmt.Errorf("--api-tls-cert: %w", err)
	}
	return config, nil
}

// pause leaves the deliveries that are due to the process that has taken over, and still
// accepts messages over connections to this one.
func (d *delivery) pause() {
	if d.service != nil {
		d.service.Dispatcher.Pause()
	}
}

// stop lets the attempts under way finish and closes the database. The API ends first, so
// that it acknowledges nothing that the closed database cannot keep. stop may be called
// without a start.
func (d *delivery) stop() error {
	if d.service == nil {
		return nil
	}
	if d.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = d.own.Close()
		_ = d.server.end(ctx)
	}
	d.cancel()
	err := <-d.done
	return cmp.Or(err, d.service.Close())
}

// handler returns the API, or nil while there is none.
func (d *delivery) handler() http.Handler {
	if s := d.served.Load(); s != nil {
		return s.Handler
	}
	return nil
}

// database returns the database of the deliveries, or nil without any. Other parts store
// their records there, so that one process needs one database.
func (d *delivery) database() *database.DB {
	if d.service == nil {
		return nil
	}
	return d.service.DB
}

// openOwn opens the database that deliveries would be kept in, for a gateway
// that delivers nothing and still honors idempotency keys.
func (d *delivery) openOwn(ctx context.Context, log *slog.Logger) (*database.DB, error) {
	c, err := d.keys.Cipher()
	if err != nil {
		return nil, err
	}
	db, err := database.OpenFor(ctx, d.options.Database, database.Use{Writes: true, Shared: d.options.Shared}, sqlstore.WithCipher(c))
	if err != nil {
		return nil, err
	}
	if err := db.Update(ctx, log, d.options.Beside); err != nil {
		_ = db.Close()
		return nil, err
	}
	return db, nil
}
