package queue_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/internal/testkit/hostiletest"
)

// An alert ends in its time, whatever the server does that takes it.
func TestAlertsToHostileServers(t *testing.T) {
	hostiletest.Each(t, func(t *testing.T, servers []hostiletest.Server, transport *http.Transport) {
		client := &http.Client{Timeout: time.Second, Transport: transport}
		hostiletest.Hold(t, servers, func(t *testing.T, s hostiletest.Server, url string) int {
			n := &queue.HTTPNotifier{Label: "slack", URL: url, Client: client}
			if err := n.Notify(t.Context(), queue.Alert{ID: 1}); err == nil && s.Status/100 != 2 {
				t.Errorf("%s: %v", s.Name, err)
			}
			return 1
		})
	})
}

// What a tenant has named is data wherever an alert goes: it calls no channel, is no link,
// and begins no line.
func TestNamesInAlertsAreData(t *testing.T) {
	const name = "<!channel> <https://evil.example|your bank> &lt; *x*\r\nFAKE\x1b[31m\u202e\u0085"
	a := queue.Alert{ID: 1, Queue: "webhooks:" + name, Reason: "exhausted" + name, Detail: "endpoint " + name, Letter: name, Count: 1}
	for _, f := range []queue.AlertFormat{queue.FormatSlack, queue.FormatAlertmanager, queue.FormatPlain} {
		text, err := f.Encode(a)
		var v any
		if err != nil || json.Unmarshal(text, &v) != nil {
			t.Fatalf("%s: %s, %v", f, text, err)
		}
		shown := strings.Join(texts(v), "\x00")
		if f == queue.FormatPlain {
			if !strings.Contains(shown, a.Queue) {
				t.Errorf("the name is not there as it is: %q", shown)
			}
			continue
		}
		if strings.ContainsAny(shown, "<>\r\n\x1b\u202e\u0085") || !strings.Contains(shown, "!channel") {
			t.Errorf("%s: %q", f, shown)
		}
	}
	text, _ := queue.FormatSlack.Encode(a)
	var slack map[string]any
	_ = json.Unmarshal(text, &slack)
	if s, _ := slack["text"].(string); slack["mrkdwn"] != false || slack["parse"] != "none" || !strings.Contains(s, "&lt;!channel&gt;") || !strings.Contains(s, "&amp;lt;") {
		t.Errorf("Slack gets %s", text)
	}
}

// texts lists the texts of a JSON value.
func texts(v any) (list []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, inner := range v {
			list = append(list, texts(inner)...)
		}
	case map[string]any:
		for _, inner := range v {
			list = append(list, texts(inner)...)
		}
	}
	return list
}
