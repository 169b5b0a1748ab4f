package redisstore_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/redisstore"
)

// Two instances of a service share one budget for one dependency.
func ExampleOpen() {
	address, stop := exampleRedis()
	defer stop()
	var budgets [2]*budget.Fleet
	for i := range budgets {
		store, err := redisstore.Open(address)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer store.Close()
		budgets[i], err = budget.NewFleet(budget.Policy{}, store, "checkout/payments", budget.FleetOptions{Timeout: time.Second})
		if err != nil {
			fmt.Println(err)
			return
		}
		retryer := forbear.Must(forbear.New("payments", forbear.Policy{}, forbear.WithBudget(budgets[i])))
		for range 50 {
			_ = retryer.Do(context.Background(), func(context.Context) error { return nil })
		}
	}
	_ = budgets[0].Close() // reports for the last time, as does the next line
	_ = budgets[1].Close()
	fleet := budgets[1].Stats().Reading
	fmt.Println("requests of the fleet:", fleet.Initial, "retries:", fleet.Retries)
	// Output:
	// requests of the fleet: 100 retries: 0
}

func exampleRedis() (address string, stop func()) {
	s := &server{}
	if err := s.launch(); err != nil {
		slog.Error("example", "error", err)
	}
	return s.url(), func() { s.stop(); _ = os.RemoveAll(s.dir) }
}

// The program that docs/guides/fleet-budget.md has its lines of works.
func TestGuide(t *testing.T) {
	binary := t.TempDir() + "/example"
	if out, err := exec.Command("go", "build", "-o", binary, "./internal/guide").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s := startRedis(t)
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	out, err := exec.Command(binary, s.url(), web.URL).CombinedOutput()
	if err != nil || strings.Count(string(out), "404 Not Found") != 20 ||
		!strings.Contains(string(out), "used 0 of 4 retries; 1 instances, on its own: false") {
		t.Errorf("%v\n%s", err, out)
	}
}
