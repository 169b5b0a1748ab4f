package durable

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/webhook"
)

func TestRateOfAFleet(t *testing.T) { rateOfAFleet(t, 4, 0, 2*time.Second) }
func TestSoakRateOfAFleet(t *testing.T) {
	ringtest.OnlyNightly(t, "the long form")
	rateOfAFleet(t, 2, 2, 20*time.Second)
}

// Dispatchers on one PostgreSQL keep the rate of an endpoint together: what comes to the
// receiver in any second of a time, at whose beginning some more join.
func rateOfAFleet(t *testing.T, n, joining int, length time.Duration) {
	database := pgtest.Database(t)
	const rate = 100
	var mu sync.Mutex
	var seen []time.Time
	sink := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, time.Now())
	}))
	defer sink.Close()
	o := Options{Database: database}
	svc, _ := start(t, o)
	put(t, svc, webhook.Endpoint{ID: "a", URL: sink.URL, Rate: rate, Concurrency: 50})
	msgs := make([]webhook.Message, rate*(10+int(length.Seconds())))
	for i := range msgs {
		msgs[i] = webhook.Message{Endpoints: []string{"a"}, Body: []byte("{}")}
	}
	if _, err := svc.Dispatcher.Accept(t.Context(), msgs...); err != nil {
		t.Fatal(err)
	}
	for range n - 1 {
		start(t, o)
	}
	time.Sleep(5 * time.Second) // they have joined
	from := time.Now()
	for range joining {
		start(t, o)
	}
	time.Sleep(length)
	mu.Lock()
	defer mu.Unlock()
	i, _ := slices.BinarySearchFunc(seen, from, time.Time.Compare)
	seen = seen[i:]
	most := 0
	for i, at := range seen {
		n, _ := slices.BinarySearchFunc(seen[i:], at.Add(time.Second), time.Time.Compare)
		most = max(most, n)
	}
	t.Logf("%d sends in %v, at most %d in a second", len(seen), length, most)
	// What a busy machine delays comes with what follows, so that a second may have more;
	// and while some join, a part of the rate is not used; such a machine may not be up to a
	// half of it either. Each with a rate of its own would send n times as much, and those
	// that do not count each other nothing.
	all := rate * int(length.Seconds())
	if most > rate*2 || len(seen) > all*3/2 || len(seen) < all/10 {
		t.Errorf("%d sends in %v, at most %d in a second; want %d", len(seen), length, most, rate)
	}
}
