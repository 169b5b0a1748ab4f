package serve

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/durable"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/webhook"
)

// alertFlags say where alerts about dead letters go. The zero value sends
// them nowhere but to the log, which always has them.
type alertFlags struct {
	slack   string
	manager string
	hook    string
	hookKey string // reference of its signing secret
	reach   []netip.Prefix
	command string
}

// register registers the flags of alerts. The signing secret is a reference, since a command line shows in the list of processes.
func (a *alertFlags) register(f *flag.FlagSet) {
	f.StringVar(&a.slack, "alert-slack", "", "send alerts to this Slack-compatible `URL`")
	f.StringVar(&a.manager, "alert-alertmanager", "", "send alerts to this Alertmanager `URL`")
	f.StringVar(&a.hook, "alert-webhook", "", "deliver alerts to this `URL` as signed webhooks")
	f.StringVar(&a.hookKey, "alert-webhook-secret", "", "the secret that signs these, as a `reference`: env:NAME or file:NAME")
	f.Func("alert-allow-target", "allow --alert-slack and --alert-alertmanager in this private `prefix`; may be repeated", prefixes(&a.reach))
	f.StringVar(&a.command, "alert-command", "", "run this `command` for each alert, with JSON on standard input")
}

// notifiers returns the receivers that alerts are sent to directly. They reach public
// addresses, and those that are allowed: the operator chose the name in a flag, but it may
// resolve to an address that the operator never meant.
func (a *alertFlags) notifiers(allow []netip.Prefix) (list []queue.Notifier, err error) {
	guard := webhook.Guard{Allow: slices.Concat(allow, a.reach), Flag: "--alert-allow-target"}
	client := &http.Client{Transport: guard.Transport(httpretry.DefaultConnect), Timeout: 10 * time.Second}
	for _, n := range []struct {
		label, url string
		format     queue.AlertFormat
	}{{"slack", a.slack, queue.FormatSlack}, {"alertmanager", alertmanager(a.manager), queue.FormatAlertmanager}} {
		if n.url == "" {
			continue
		}
		if err := guard.CheckURL(n.url); err != nil {
			return nil, fmt.Errorf("--alert-%s: %w", n.label, err)
		}
		list = append(list, &queue.HTTPNotifier{Label: n.label, URL: n.url, Format: n.format, Client: client})
	}
	if args := strings.Fields(a.command); len(args) > 0 {
		list = append(list, &queue.CommandNotifier{Label: "command", Args: args})
	}
	return list, nil
}

// alertmanager completes an address without a path by that of Alertmanager's
// API: its own documentation gives the address alone.
func alertmanager(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" && strings.Trim(u.Path, "/") == "" {
		return u.JoinPath("/api/v2/alerts").String()
	}
	return address
}

// endpoint returns the endpoint that alerts are delivered to, or nil. Both flags
// or neither: an unsigned alert could come from any sender.
func (a *alertFlags) endpoint() (*webhook.Endpoint, error) {
	switch {
	case a.hook == "" && a.hookKey == "":
		return nil, nil
	case a.hook == "":
		return nil, errors.New("--alert-webhook-secret needs --alert-webhook")
	case a.hookKey == "":
		return nil, fmt.Errorf("--alert-webhook needs --alert-webhook-secret: env:ALERTS, for example, reads the variable %sALERTS", durable.SecretPrefix)
	}
	return &webhook.Endpoint{URL: a.hook, Secrets: []string{a.hookKey}}, nil
}
