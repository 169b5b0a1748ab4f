package deadletter_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/internal/hostile"
)

// An alert ends in its time, whatever the server does that takes it.
func TestAlertsToHostileServers(t *testing.T) {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	hostile.Hold(t, func(t *testing.T, s hostile.Server, url string) int {
		n := &deadletter.HTTPNotifier{Label: "slack", URL: url, Client: client}
		if err := n.Notify(t.Context(), deadletter.Alert{ID: 1}); err == nil && s.Status/100 != 2 {
			t.Errorf("%s: %v", s.Name, err)
		}
		return 1
	})
}
