package main

import "testing"

// TestNoWorseThanNetHTTP holds forbear to net/http alone: as many POSTs succeed,
// and none comes twice.
func TestNoWorseThanNetHTTP(t *testing.T) {
	for _, m := range modes {
		t.Run(m.title, func(t *testing.T) {
			got, err := measure(t.Context(), m, 200, contenders[:2]...)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("net/http %+v, forbear %+v", got[0], got[1])
			if err := m.held(got[0], got[1]); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestConnectionsAreStale holds the mode that needs no luck: net/http writes
// nothing to a dead connection and makes each POST again, on a new one.
func TestConnectionsAreStale(t *testing.T) {
	got, err := measure(t.Context(), modes[0], 20, contenders[0])
	if err != nil {
		t.Fatal(err)
	}
	if got[0].succeeded != 20 || got[0].received != 20 || got[0].twice != 0 {
		t.Errorf("%+v, want 20 that succeed and come once", got[0])
	}
}

func TestHeld(t *testing.T) {
	plain := figures{calls: 100, succeeded: 90}
	for _, tt := range []struct {
		m       mode
		forbear figures
		held    bool
	}{
		{mode{}, figures{calls: 100, succeeded: 90}, true},
		{mode{}, figures{calls: 100, succeeded: 89}, false},
		{mode{races: true}, figures{calls: 100, succeeded: 80}, true},
		{mode{races: true}, figures{calls: 100, succeeded: 60}, false},
		{mode{races: true}, figures{calls: 100, succeeded: 100, twice: 1}, false},
	} {
		if err := tt.m.held(plain, tt.forbear); (err == nil) != tt.held {
			t.Errorf("%+v: %v", tt.forbear, err)
		}
	}
}
