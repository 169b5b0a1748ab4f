package queue

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/internal/label"
	"github.com/forbear-go/forbear/internal/resend"
)

// AlertFormat says how an alert becomes JSON.
type AlertFormat string

const (
	FormatPlain        AlertFormat = "json"
	FormatSlack        AlertFormat = "slack"        // an incoming webhook
	FormatAlertmanager AlertFormat = "alertmanager" // POST /api/v2/alerts
)

// Encode returns the alert in a format. None of them holds a payload.
func (f AlertFormat) Encode(a Alert) ([]byte, error) {
	switch f {
	case FormatPlain, "":
		return json.Marshal(map[string]any{
			"id": a.ID, "queue": a.Queue, "reason": a.Reason, "count": a.Count, "detail": a.Detail, "letter": a.Letter, "first_at": a.First, "last_at": a.Last,
		})
	case FormatSlack:
		return json.Marshal(struct {
			Text   string `json:"text"`
			Parse  string `json:"parse"`
			Mrkdwn bool   `json:"mrkdwn"`
			Links  bool   `json:"unfurl_links"`
			Media  bool   `json:"unfurl_media"`
		}{Text: slackText.Replace(a.Text()), Parse: "none"})
	case FormatAlertmanager:
		return json.Marshal([]map[string]any{{
			"labels":      map[string]string{"alertname": "ForbearDeadLetter", "severity": "error", "queue": unmarked(a.Queue), "reason": unmarked(a.Reason)},
			"annotations": map[string]string{"summary": unmarked(a.Text()), "count": strconv.Itoa(a.Count), "letter": unmarked(a.Letter)},
			"startsAt":    a.First.UTC().Format(time.RFC3339),
		}})
	}
	return nil, fmt.Errorf("unknown alert format %q: want json, slack or alertmanager", f)
}

// slackText makes a text one that Slack shows as it is: <!channel> calls everybody, and a
// link may say that it leads elsewhere. Tenants choose the names that alerts have.
var slackText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// unmarked is a text for a receiver that puts it into a message of a form which is not
// known here, as Alertmanager's templates do without escaping it.
func unmarked(s string) string { return markup.Replace(oneLine(s)) }

var markup = strings.NewReplacer("<", "‹", ">", "›")

// oneLine is s with a space for each control character.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if label.Control(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// Text is the alert in one line, without control characters.
func (a Alert) Text() string {
	s := fmt.Sprintf("forbear: %d x %s in queue %s", a.Count, a.Reason, a.Queue)
	if a.Detail != "" {
		s += ": " + a.Detail
	}
	return oneLine(s)
}

// HTTPNotifier posts alerts to a URL. The URL may hold a token, as Slack's do:
// it is in no error.
type HTTPNotifier struct {
	Label  string
	URL    string
	Format AlertFormat
	// Client sends; nil means one with a timeout of 10 s. No redirect is
	// followed. Whether addresses inside of a network may be reached is the
	// transport's to say: see webhook.Guard.
	Client *http.Client
}

// Name implements [Notifier].
func (n *HTTPNotifier) Name() string { return n.Label }

// Notify implements [Notifier].
func (n *HTTPNotifier) Notify(ctx context.Context, a Alert) error {
	body, err := n.Format.Encode(a)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.URL, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("notifier %s: its address is not an http or https URL", n.Label)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", "alert-"+strconv.FormatInt(a.ID, 10)+"-"+strconv.Itoa(a.Count))
	client := n.Client
	if client == nil {
		client = &http.Client{Timeout: alertTimeout}
	}
	once := *client
	once.Transport = resend.Once(once.Transport)
	once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := once.Do(req)
	if err != nil {
		return fmt.Errorf("notifier %s: %w", n.Label, unwrapURL(err))
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("notifier %s responded with %d", n.Label, resp.StatusCode)
	}
	return nil
}

// unwrapURL takes the URL out of a client's error.
func unwrapURL(err error) error {
	if e, ok := err.(interface{ Unwrap() error }); ok {
		return e.Unwrap()
	}
	return err
}

// CommandNotifier runs a command with the alert as JSON on its standard input.
type CommandNotifier struct {
	Label string
	Args  []string // the program and its arguments; no shell
}

// Name implements [Notifier].
func (n *CommandNotifier) Name() string { return n.Label }

// Notify implements [Notifier].
func (n *CommandNotifier) Notify(ctx context.Context, a Alert) error {
	if len(n.Args) == 0 {
		return fmt.Errorf("notifier %s has no command", n.Label)
	}
	body, err := FormatPlain.Encode(a)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, n.Args[0], n.Args[1:]...)
	cmd.Stdin = bytes.NewReader(body)
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("notifier %s: %w", n.Label, err)
	}
	return nil
}
