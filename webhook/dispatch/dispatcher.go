package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/rate"
	"github.com/forbear-go/forbear/internal/resend"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// Alerter takes what an operator has to know, durably. A [queue.Store] is one.
type Alerter interface {
	Raise(ctx context.Context, a queue.Alert) error
}

// Config says how a dispatcher works. Store and Alerts are required.
type Config struct {
	Store  store.Store
	Alerts Alerter

	// Owner names this process in leases and histories. Default: the host's
	// name and the process id.
	Owner string
	// Guard says which addresses may be reached.
	Guard webhook.Guard
	// Transport sends the attempts; default Guard.Transport. It has to refuse
	// what Guard would.
	Transport http.RoundTripper
	// Lookup resolves the name of an endpoint's host, while attempts fail for it.
	// Default [Resolve], and with a Transport of one's own, which may resolve names
	// elsewhere, nothing: a single message finds out.
	Lookup func(ctx context.Context, host string) error
	// Wrap goes around the transports that endpoints with TLS settings of their own get,
	// as the caller has wrapped Transport: for traces. Nil: nothing.
	Wrap func(http.RoundTripper) http.RoundTripper
	// Secrets finds what endpoints refer to. Default: none.
	Secrets Secrets
	// Options are what each endpoint's [forbear.Retryer] is built with, such as
	// observers: metrics, traces, the log. The dependency is "webhook:" and the
	// endpoint's id. Without any, R-10's lines go to Logger.
	Options []forbear.Option
	// Logger is for what concerns no single retry. Default slog.Default().
	Logger *slog.Logger
	// Now is the wall clock, for tests of clocks that jump. Default time.Now.
	Now func() time.Time
	// Poll is how often the dispatcher looks at the store without an occasion,
	// and a quarter of it how often it empties the outbox. Default 1 s.
	Poll time.Duration
	// MaxPayload bounds the body of a message, in bytes, whichever way it comes.
	// Default [webhook.DefaultMaxPayload], at most [webhook.MaxPayload]. What a process
	// needs of memory grows with it.
	MaxPayload int
	// Retention is how long finished deliveries are kept, and with them what makes
	// the same message again a duplicate. Default and least [MinRetention].
	Retention time.Duration
	// BodyRetention is how long bodies are kept of messages that have arrived, and
	// what was responded to them: at least [MinBodyRetention], at most Retention.
	// Default Retention. Dead letters have payloads of their own.
	BodyRetention time.Duration
}

// The least that is kept of what is finished.
const (
	MinRetention     = 7 * 24 * time.Hour // R-6's window: how long an id stands for its message
	MinBodyRetention = time.Hour
)

// Dispatcher delivers messages. Make it with [New], start it with
// [Dispatcher.Run]. It is safe for concurrent use.
type Dispatcher struct {
	cfg    Config
	log    *slog.Logger
	client *http.Client // for tokens; attempts use the transport itself
	inside *http.Client // for tokens that are fetched in clear
	now    func() time.Time
	outbox *forbear.Retryer // reports the outbox's dead letters to the observers

	receivers  receivers
	agenda     agenda
	limits     rate.Limits // of what applications send, and of what is said again and again
	unreadable unreadable
	members    atomic.Pointer[members]
	joins      chan struct{} // an endpoint has a rate

	ledger   ledger
	finds    chan struct{} // it has findings
	heard    int64         // the mark of what others have found; the scout's
	heardAll time.Time     // when all of it was read

	// loading has one place, which guards mark, compared and loadErr. Only one Load runs at
	// a time, or the one that read an older list could install it last.
	loading  chan struct{}
	mark     int64        // of the changes that are known
	compared time.Time    // when all endpoints were read
	loadErr  error        // of the latest Load
	loads    atomic.Int64 // that have begun
	paused   atomic.Bool  // nothing is claimed any more
	lease    atomic.Int64 // a [time.Duration], for the slowest endpoint

	wakes    chan struct{}        // a receiver may want work
	looks    chan struct{}        // the store may hold work that the receivers do not know of
	outcomes chan store.WriteBack // from the jobs to the main loop
	chores   chan func(context.Context)

	workers   sync.WaitGroup  // each makes attempts for one receiver
	rewriting sync.WaitGroup  // of outcomes that the store did not take at first
	stop      chan struct{}   // closed when Run is to end
	sendCtx   context.Context //nolint:containedctx // of all sends, ended when a stop takes too long
	abort     context.CancelFunc

	stats counters
	parts parts
}

// New returns a dispatcher. It does nothing until Run, but accepts messages
// once [Dispatcher.Load] has read the endpoints. Many may share one store, in one
// process or in many.
func New(cfg Config) (*Dispatcher, error) {
	if cfg.Store == nil || cfg.Alerts == nil {
		return nil, errors.New("webhook: want a Store and Alerts in the dispatcher's Config")
	}
	if cfg.Owner == "" {
		host, _ := os.Hostname()
		cfg.Owner = fmt.Sprintf("%s-%d-%s", cmp.Or(host, "host"), os.Getpid(), webhook.NewID("w")[20:])
	}
	if cfg.Secrets == nil {
		cfg.Secrets = LocalSecrets("", "")
	}
	if cfg.Transport == nil {
		cfg.Transport = cfg.Guard.Transport(httpretry.DefaultConnect)
		if cfg.Lookup == nil {
			cfg.Lookup = Resolve
		}
	}
	if cfg.Lookup == nil {
		cfg.Lookup = func(context.Context, string) error { return nil }
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if len(cfg.Options) == 0 {
		cfg.Options = []forbear.Option{forbear.WithObserver(forbear.LogObserver(cfg.Logger, nil))}
	}
	cfg.Poll = cmp.Or(cfg.Poll, time.Second)
	if cfg.Retention = cmp.Or(cfg.Retention, MinRetention); cfg.Retention < MinRetention {
		return nil, fmt.Errorf("webhook: retention %v is below %v, the time for which an id identifies its message (R-6)", cfg.Retention, MinRetention)
	}
	if cfg.BodyRetention = cmp.Or(cfg.BodyRetention, cfg.Retention); cfg.BodyRetention < MinBodyRetention || cfg.BodyRetention > cfg.Retention {
		return nil, fmt.Errorf("webhook: body retention %v is outside %v to %v (the retention)", cfg.BodyRetention, MinBodyRetention, cfg.Retention)
	}
	if cfg.MaxPayload < 0 || cfg.MaxPayload > webhook.MaxPayload {
		return nil, fmt.Errorf("webhook: payload limit %d is outside 1 to %d bytes", cfg.MaxPayload, webhook.MaxPayload)
	}
	outbox, err := forbear.New("outbox", forbear.Policy{Kind: forbear.Webhook}, append([]forbear.Option{forbear.WithCallerDeadLetter()}, cfg.Options...)...)
	if err != nil {
		return nil, err
	}
	inside := http.RoundTripper(cfg.Guard.Inside().Transport(httpretry.DefaultConnect))
	if cfg.Wrap != nil {
		inside = cfg.Wrap(inside)
	}
	d := &Dispatcher{
		cfg: cfg, log: cmp.Or(cfg.Logger, slog.Default()), now: cfg.Now, outbox: outbox,
		client:  &http.Client{Transport: resend.Once(cfg.Transport), CheckRedirect: noRedirect},
		inside:  &http.Client{Transport: resend.Once(inside), CheckRedirect: noRedirect},
		loading: make(chan struct{}, 1), wakes: make(chan struct{}, 1), looks: make(chan struct{}, 1), joins: make(chan struct{}, 1), finds: make(chan struct{}, 1), stop: make(chan struct{}),
		outcomes: make(chan store.WriteBack, 1024), chores: make(chan func(context.Context), 256),
	}
	d.members.Store(&members{})
	d.parts.begin(cfg.Poll)
	d.lease.Store(int64(leaseTime(nil)))
	d.sendCtx, d.abort = context.WithCancel(context.Background())
	return d, nil
}

// stopping reports whether Run is about to end: nothing new is sent then.
func (d *Dispatcher) stopping() bool {
	select {
	case <-d.stop:
		return true
	default:
		return false
	}
}

// wake makes the main loop ask the receivers what they want.
func (d *Dispatcher) wake() { signal(d.wakes) }

// look makes the scout read the store soon.
func (d *Dispatcher) look() { signal(d.looks) }

// signal sends on a channel with one place. When that is taken, the receiver has
// a signal to come already, and one is enough.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// noRedirect keeps a client from following redirects: an endpoint is an
// address, not a suggestion of one, and each hop would be another way in.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
