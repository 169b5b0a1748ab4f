package dispatch

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook"
)

// lateStore has one endpoint more for each reading, and takes its time to hand
// over the first list.
type lateStore struct {
	webhook.Store
	reads int
	first chan struct{}
}

func (s *lateStore) EndpointChanges(context.Context, int64) (webhook.EndpointChanges, error) {
	s.reads++
	if s.reads == 1 {
		<-s.first
		return webhook.EndpointChanges{}, nil
	}
	return webhook.EndpointChanges{Mark: 1, Endpoints: []webhook.Endpoint{{ID: "a", URL: "https://example.com/", State: webhook.Enabled, Version: 1}}}, nil
}

type noAlerts struct{}

func (noAlerts) Raise(context.Context, deadletter.Alert) error { return nil }

// A list of endpoints that was read before a change must not undo the change.
func TestLoadKeepsTheNewerList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &lateStore{first: make(chan struct{})}
		d, err := New(Config{Store: s, Alerts: noAlerts{}})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 2)
		go func() { done <- d.Load(t.Context()) }()
		synctest.Wait()
		go func() { done <- d.Load(t.Context()) }()
		synctest.Wait()
		close(s.first)
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if d.lane("a") == nil {
			t.Error("the endpoint is unknown again")
		}
	})
}
