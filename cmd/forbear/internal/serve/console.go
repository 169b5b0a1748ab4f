package serve

import (
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"

	"github.com/forbear-go/forbear/cmd/forbear/internal/explain"
	"github.com/forbear-go/forbear/cmd/forbear/internal/version"
	"github.com/forbear-go/forbear/console"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/sqlstore"
)

// instanceOf names this process among those of a fleet: by its machine, and the port of
// its gateway.
func instanceOf(main net.Addr) string {
	name, _ := os.Hostname()
	if tcp, ok := main.(*net.TCPAddr); ok {
		name = net.JoinHostPort(name, strconv.Itoa(tcp.Port))
	}
	return name
}

// addressOf is the address of a console that listens at a: by the machine's name where that
// is every address it has.
func addressOf(a net.Addr) string {
	host, port, _ := net.SplitHostPort(a.String())
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host, _ = os.Hostname()
	}
	return "http://" + net.JoinHostPort(host, port) + "/"
}

// shown is what other processes on the database show of this one.
func (a *adminFlags) shown() sqlstore.Instance {
	return sqlstore.Instance{Name: a.instance, Console: a.url, Version: version.Read().Version}
}

// pages puts the console beside the admin API. What it shows of deliveries it asks of
// their API, in the name of its reader.
func (a *adminFlags) pages(admin http.Handler, token string, log *slog.Logger) http.Handler {
	pages := console.New(console.Config{
		Admin: admin, AdminToken: token, API: a.api, Instance: a.instance, Reason: reasonOf, Logger: log,
	}).Handler()
	mux := http.NewServeMux()
	mux.Handle("/admin/", admin)
	mux.Handle("/metrics", admin)
	mux.Handle("/", pages)
	return mux
}

// ofLetters are the reasons that dead letters alone have.
var ofLetters = map[string]console.Reason{
	deadletter.ReasonGone:        {Means: "The receiver responded 410: it is gone, and its endpoint was disabled.", Change: "Ask the receiver for its new address, set it, enable the endpoint, and redrive."},
	deadletter.ReasonDeleted:     {Means: "The endpoint was deleted while the message waited for it.", Change: "Add the endpoint again under its id, and redrive."},
	deadletter.ReasonInvalid:     {Means: "The message could never have been sent: it was refused as it is.", Change: "Fix what sends it: a redrive is refused again."},
	deadletter.ReasonConflict:    {Means: "The id stands for another message, which was accepted earlier.", Change: "Give each message an id of its own: a redrive is refused again."},
	deadletter.ReasonUndecodable: {Means: "A consumer could not read the event.", Change: "Fix the consumer or the producer, and redrive."},
	deadletter.ReasonCrashLoop:   {Means: "Processes ended several times while they worked on it.", Change: "Find what it does to them by the stack in the log, and redrive."},
}

// reasonOf returns what forbear explain knows of a reason.
func reasonOf(name string) (r console.Reason, ok bool) {
	if r, ok = ofLetters[name]; ok {
		r.Name, r.Guide = name, explain.Docs+"guides/webhooks-dead-letters.md"
		return r, ok
	}
	for _, x := range explain.Reasons() {
		if x.Name == name {
			return console.Reason{Name: x.Name, Rule: x.Rule, Means: x.Means, Figures: x.Figures, Change: x.Change, Settings: x.Settings, Guide: x.Guide}, true
		}
	}
	return r, false
}
