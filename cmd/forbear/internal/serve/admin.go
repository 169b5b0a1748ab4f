package serve

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"strconv"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/listen"
	"github.com/forbear-go/forbear/gateway"
)

// adminFlags say where serve has its admin endpoint. The zero value puts it on
// loopback next to the gateway, without a token.
type adminFlags struct {
	address   string
	tokenFile string
}

func (a *adminFlags) register(f *flag.FlagSet) {
	f.StringVar(&a.address, "admin", "", "the `address` of the admin endpoint and /metrics, or \"off\" (default: the gateway's port + 1, on loopback)")
	f.StringVar(&a.tokenFile, "admin-token-file", "", "a `file` with the bearer token of the admin endpoint (default: $"+cli.EnvAdminToken+"); needed beyond loopback")
}

// listen opens the admin endpoint's listener: at the address asked for, or next
// to the gateway's. A default address that is taken gives way to a free one: a
// second gateway on the machine must start all the same. Without an endpoint l
// is nil.
func (a *adminFlags) listen(ctx context.Context, sockets *listen.Sockets, main net.Addr, token string) (net.Listener, error) {
	if a.address == "off" {
		return nil, nil
	}
	if a.address != "" {
		if err := gateway.CheckAdmin(a.address, token); err != nil {
			return nil, fmt.Errorf("admin address %s: %w", a.address, err)
		}
		return sockets.One(ctx, "admin", a.address)
	}
	if tcp, ok := main.(*net.TCPAddr); ok && tcp.Port < 65535 {
		if l, err := sockets.One(ctx, "admin", net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port+1))); err == nil {
			return l, nil
		}
	}
	return sockets.One(ctx, "admin", "127.0.0.1:0")
}

// start serves the admin endpoint, and returns its base URL, "" when it is off,
// and what ends it. main is the gateway's own address. The endpoint is apart
// from the gateway's address: a caller that may send requests through
// the gateway may not for that reason force its breakers.
func (a *adminFlags) start(ctx context.Context, sockets *listen.Sockets, main net.Addr, w *watch) (base string, stop func(), err error) {
	token, err := cli.AdminToken(a.tokenFile)
	if err != nil {
		return "", nil, fmt.Errorf("reading the admin token: %w", err)
	}
	l, err := a.listen(ctx, sockets, main, token)
	if err != nil || l == nil {
		return "", func() {}, err
	}
	srv := gateway.NewServer(gateway.NewAdmin(gateway.AdminConfig{
		Stats: w.stats, Metrics: w.page(), Token: token, Logger: w.log,
	}))
	srv.ErrorLog = slog.NewLogLogger(w.log.Handler(), slog.LevelWarn)
	go func() {
		if err := srv.Serve(l); err != nil && !closedByUs(err) {
			w.log.Error("the admin endpoint ended", slog.String("error", err.Error()))
		}
	}()
	return "http://" + l.Addr().String(), func() { _ = srv.Close() }, nil
}
