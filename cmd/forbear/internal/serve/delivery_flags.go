package serve

import (
	"cmp"
	"flag"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"

	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/cmd/forbear/internal/durable"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
)

// register registers the flags of delivery. All of them are read before the database
// is opened, so that a mistake leaves nothing behind.
func (d *delivery) register(all *flag.FlagSet) {
	o := &d.options
	all.BoolVar(&d.off, "no-delivery", false, "do not deliver webhooks")
	f := flag.NewFlagSet("", flag.ContinueOnError)
	defer func() {
		f.VisitAll(func(g *flag.Flag) {
			d.flags = append(d.flags, g.Name)
			all.Var(g.Value, g.Name, g.Usage)
			all.Lookup(g.Name).DefValue = g.DefValue // the value's own text may have a password
		})
	}()
	database.Flag(f, &o.Database, "keep deliveries in this SQLite `file` or postgres:// URL (also from FORBEAR_DATABASE)")
	f.BoolVar(&o.Shared, "shared-database", false, "add forbear's tables to an application's SQLite file and switch it to WAL mode")
	f.StringVar(&d.listen, "api", "", "a separate `address` for the delivery API (default: /v1/ on the gateway's)")
	f.StringVar(&d.tls.Cert, "api-tls-cert", "", "a `file` with the certificate for --api; followed when it changes")
	f.StringVar(&d.tls.Key, "api-tls-key", "", "a `file` with its key (default: that of --api-tls-cert)")
	f.StringVar(&d.tls.ClientCA, "api-tls-client-ca", "", "a `file` with the authorities of allowed callers of --api")
	f.StringVar(&d.tokenFile, "api-token-file", "", "a `file` with a token for the API (also from FORBEAR_API_TOKEN); needed beyond loopback")
	f.Func("allow-target", "allow webhooks to this private `prefix`, such as 127.0.0.0/8; may be repeated", prefixes(&o.Allow))
	f.StringVar(&o.SecretsDir, "secrets-dir", "", "the `folder` of file: references")
	database.KeyFlag(f, &d.keys, "encrypt payloads and exports with the first such key `file`, decrypt with all")
	f.TextVar(&d.maxPayload, "max-payload", policyfile.Size(webhook.DefaultMaxPayload), "the largest payload of a message, up to 1MiB")
	f.DurationVar(&o.Retention, "dlq-retention", queue.DefaultRetention, "how long dead letters are kept")
	f.DurationVar(&o.History, "history-retention", dispatch.MinRetention, "how long finished deliveries are kept and duplicates recognized; at least 168h")
	f.DurationVar(&o.Bodies, "body-retention", 0, "how long payloads of delivered messages are kept, at least 1h; 0: as the history")
	f.StringVar(&o.ExportDir, "dlq-export-dir", "", "the `folder` for expired dead letters (see forbear dlq read); without it they stay")
	d.alert.register(f)
}

// prefixes reads a flag that may be repeated into list. A single address without a
// length is refused, and the error names it.
func prefixes(list *[]netip.Prefix) func(string) error {
	return func(v string) error {
		p, err := netip.ParsePrefix(v)
		*list = append(*list, p)
		return err
	}
}

// checkRetention refuses what the dispatcher would, by the names of the flags and
// before the database is opened.
func checkRetention(o *durable.Options) error {
	switch {
	case o.History < dispatch.MinRetention:
		return fmt.Errorf("--history-retention %v is below %v, the time for which duplicates are recognized (R-6): shorten --body-retention instead", o.History, dispatch.MinRetention)
	case o.Bodies == 0:
		return nil
	case o.Bodies < dispatch.MinBodyRetention:
		return fmt.Errorf("--body-retention %v is below %v", o.Bodies, dispatch.MinBodyRetention)
	case o.Bodies > o.History:
		return fmt.Errorf("--body-retention %v is longer than --history-retention %v: raise --history-retention too", o.Bodies, o.History)
	}
	return nil
}

// deliveryVariables are those of the environment that ask for deliveries.
var deliveryVariables = []string{"FORBEAR_DATABASE", "FORBEAR_API_TOKEN", "FORBEAR_ENCRYPTION_KEY_FILE"}

// decide finds out whether serve delivers, and sets why. A gateway that only forwards
// requests needs no database and makes none. A database at the default place is no
// request for deliveries: what is served must not depend on the working folder.
func (d *delivery) decide(given *flag.FlagSet, file *policyfile.File, sample bool) {
	d.alone = !keyed(file)
	given.Visit(func(f *flag.Flag) {
		if (d.why == "" || f.Name == "database") && slices.Contains(d.flags, f.Name) {
			d.why = "--" + f.Name
		}
	})
	for _, name := range deliveryVariables {
		if d.why == "" && os.Getenv(name) != "" {
			d.why = name
		}
	}
	if d.why == "" && sample {
		d.why = "there is no --config"
	}
	if d.why == "" {
		d.why = file.AsksForDeliveries()
	}
}

// warnOfUnused logs that there is a database at the default place, which may hold accepted
// messages, and that nothing asks for their delivery.
func (d *delivery) warnOfUnused(log *slog.Logger) {
	if present(database.Default) && !d.off && !d.on() && d.alone {
		log.Warn("a database is here, but nothing asks for deliveries: its messages are not delivered", slog.String("database", database.Default), slog.String("deliver", "--database "+database.Default), slog.String("silence", "--no-delivery"))
	}
}

// keyed reports whether a route of the file honors idempotency keys.
func keyed(file *policyfile.File) bool {
	return slices.ContainsFunc(file.Gateway.Routes, func(r policyfile.Route) bool { return r.Idempotency.On })
}

// on reports whether serve delivers.
func (d *delivery) on() bool { return !d.off && d.why != "" }

// greeting says whether serve delivers, how to change that, and where messages are posted.
// base is the gateway's address.
func (d *delivery) greeting(base string) string {
	switch {
	case d.off:
		return "deliveries: off by --no-delivery"
	case d.why == "":
		return "deliveries: off, and no database; on with --database " + database.Default
	}
	made := ""
	if d.made {
		made = ", a new file"
	}
	return fmt.Sprintf("deliveries: on, in %s%s (%s); off with --no-delivery\n  post messages to %s/v1/messages; forbear listen is a receiver to try them on",
		database.Name(d.options.Database), made, d.why, cmp.Or(d.api, base))
}
