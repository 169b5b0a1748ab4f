package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// What one finds out about an endpoint the others read: that it begins, goes on and is
// over. It begins once, with its alert, whoever else finds it.
func testHolds(t *testing.T, s Store) {
	alert := queue.Alert{Queue: "webhook:a", Reason: "endpoint_slowed", Detail: "down"}
	var mark int64
	put := func(owner string, w store.HoldWrite) {
		t.Helper()
		w.Endpoint, w.Kind = "a", "slowed"
		check(t, s.PutHolds(t.Context(), owner, []store.HoldWrite{w}))
	}
	changes := func(want ...store.Hold) {
		t.Helper()
		list, next, err := s.HoldChanges(t.Context(), mark)
		check(t, err)
		mark = next
		if len(list) == 1 && len(want) == 1 {
			if d := want[0].In - list[0].In; d < 0 || d > time.Minute {
				t.Errorf("the next look is due in %v, want %v", list[0].In, want[0].In)
			}
			want[0].In, want[0].Endpoint, want[0].Kind = list[0].In, "a", "slowed"
		}
		if !slices.Equal(list, want) {
			t.Fatalf("got %+v, want %+v", list, want)
		}
	}
	alerts := func(want int) {
		t.Helper()
		n := 0
		for _, a := range must(s.AlertPage(t.Context(), 0, 10))(t) {
			n += a.Count
		}
		if n != want {
			t.Errorf("%d alerts, want %d", n, want)
		}
	}
	put("x", store.HoldWrite{}) // goes on, and never began
	put("x", store.HoldWrite{Hold: store.Hold{Over: true}})
	changes()
	put("x", store.HoldWrite{Hold: store.Hold{Why: "http_503", Looks: 1, In: time.Hour}, Begins: true, Alert: alert})
	changes(store.Hold{Owner: "x", Why: "http_503", Looks: 1, In: time.Hour})
	changes()
	put("y", store.HoldWrite{Hold: store.Hold{Why: "another", Looks: 9, In: 9 * time.Hour}, Begins: true, Alert: alert})
	changes()
	alerts(1)
	put("y", store.HoldWrite{Hold: store.Hold{Why: "timeout", Looks: 7, In: 2 * time.Hour}})
	changes(store.Hold{Owner: "y", Why: "timeout", Looks: 7, In: 2 * time.Hour})
	put("x", store.HoldWrite{Hold: store.Hold{Why: "http_503", Looks: 2, In: -time.Minute}})
	changes(store.Hold{Owner: "x", Why: "http_503", Looks: 7, In: -time.Minute})
	last := mark
	mark = 0 // one that starts reads what goes on
	changes(store.Hold{Owner: "x", Why: "http_503", Looks: 7, In: -time.Minute})
	mark = last
	put("z", store.HoldWrite{Hold: store.Hold{Over: true}})
	list, _, err := s.HoldChanges(t.Context(), mark)
	check(t, err)
	if len(list) != 1 || !list[0].Over || list[0].Owner != "z" {
		t.Errorf("got %+v, want that it is over", list)
	}
	if list, _, err = s.HoldChanges(t.Context(), 0); err != nil || len(list) > 0 {
		t.Errorf("%+v goes on, %v", list, err)
	}
	put("x", store.HoldWrite{Begins: true, Alert: alert})
	alerts(2)
	// Begun and over before it could be written: the alert is raised.
	put("x", store.HoldWrite{Hold: store.Hold{Over: true}})
	put("x", store.HoldWrite{Hold: store.Hold{Over: true}, Begins: true, Alert: alert})
	alerts(3)
	if list, _, err = s.HoldChanges(t.Context(), 0); err != nil || len(list) > 0 {
		t.Errorf("%+v goes on, %v", list, err)
	}
	// What is found out about an endpoint is not of the next one with its id.
	must(s.PutEndpoint(t.Context(), webhook.Endpoint{ID: "a", URL: "https://example.com/"}))(t)
	put("x", store.HoldWrite{Begins: true})
	check(t, s.DeleteEndpoint(t.Context(), "a", 0))
	if list, _, err = s.HoldChanges(t.Context(), 0); err != nil || len(list) > 0 {
		t.Errorf("%+v goes on, %v", list, err)
	}
}

// Of many that find the same at a time one begins the hold, and one alert is raised; no
// reader misses a change.
func testHoldRace(t *testing.T, s Store) {
	alert := queue.Alert{Queue: "webhook:a", Reason: "endpoint_slowed", Detail: "down"}
	parallel(8, func(int) {
		for range 5 {
			err := s.PutHolds(t.Context(), "x", []store.HoldWrite{{Hold: store.Hold{Endpoint: "a", Kind: "slowed", Looks: 1, In: time.Hour}, Begins: true, Alert: alert}})
			if err != nil {
				t.Error(err)
			}
		}
	})
	alerts := must(s.AlertPage(t.Context(), 0, 10))(t)
	if len(alerts) != 1 || alerts[0].Count != 1 {
		t.Errorf("alerts are %+v, want one", alerts)
	}
	const writers, writes = 4, 25
	seen := make(chan map[string]bool)
	go func() {
		found, mark := map[string]bool{}, int64(0)
		for end := time.Now().Add(2 * time.Minute); len(found) <= writers*writes && time.Now().Before(end); {
			list, next, err := s.HoldChanges(t.Context(), mark)
			if err != nil {
				t.Error(err)
				break
			}
			for _, h := range list {
				found[h.Endpoint] = true
			}
			mark = next
		}
		seen <- found
	}()
	parallel(writers, func(w int) {
		for i := range writes {
			id := string(rune('A'+w)) + string(rune('a'+i))
			if err := s.PutHolds(t.Context(), "x", []store.HoldWrite{{Hold: store.Hold{Endpoint: id, Kind: "slowed"}, Begins: true}}); err != nil {
				t.Error(err)
			}
		}
	})
	if found := <-seen; len(found) != writers*writes+1 {
		t.Errorf("%d of %d changes were read", len(found), writers*writes+1)
	}
}
