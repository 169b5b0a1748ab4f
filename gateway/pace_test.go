package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/pace"
)

// TestPacedCall: a call that has no turn in time gets a 429 of the gateway's own, which
// says when to come, and the dependency sees nothing of it.
func TestPacedCall(t *testing.T) {
	sends := 0
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sends++ }))
	t.Cleanup(up.Close)
	p := &pace.Pacer{}
	for range 8 {
		p.Throttled(time.Now(), time.Now(), time.Minute)
	}
	stats := gateway.NewStats("checkout")
	r, err := forbear.New("upstream", quick, forbear.WithoutLog(), forbear.WithPacer(p), forbear.WithObserver(stats.Observer()),
		forbear.WithWaiver(forbear.Waiver{Rule: "R-7", Dependency: "upstream", Reason: "a budget in no test's way"}))
	if err != nil {
		t.Fatal(err)
	}
	address := start(t, gateway.Route{Prefix: "/up", Target: parse(t, up.URL), Retryer: r})
	a := call(t, http.MethodGet, address+"/up/a", nil, nil)
	got := readProblem(t, a)
	if got.Status != 429 || got.Reason != "paced" || got.Rule != "INTG-STD-033" || got.Attempts != 0 || got.Dependency != "upstream" {
		t.Errorf("got %+v, want a paced call", got)
	}
	if after, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || after < 40 || after > 60 {
		t.Errorf("Retry-After %q, want about 60", a.Header.Get("Retry-After"))
	}
	if stop, n := a.Header.Get("Forbear-Stop"), a.Header.Get("Forbear-Attempts"); stop != "paced" || n != "0" {
		t.Errorf("Forbear-Stop %q and Forbear-Attempts %q, want paced and 0", stop, n)
	}
	if sends != 0 {
		t.Errorf("the dependency saw %d requests", sends)
	}
	status := stats.Status(time.Now())
	if len(status.Dependencies) != 1 {
		t.Fatalf("status %+v", status)
	}
	d := status.Dependencies[0]
	if d.Suppressed["paced"] != 1 || d.Initial != 0 || d.Pace == nil || !d.Pace.Closed {
		t.Errorf("status %+v, pace %+v; want one paced call and no initial request", d, d.Pace)
	}
}
