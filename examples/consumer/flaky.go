package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

var errBusy = errors.New("the price list is busy")

var asked atomic.Int64

// price stands for a service that is busy at first.
func price(_ context.Context, item int) (cents int, err error) {
	if asked.Add(1) <= 2 {
		fmt.Println("  prices: busy")
		return 0, errBusy
	}
	return 100 * item, nil
}

// broker brings an order, the same again, as brokers do, and one that no one can read.
func broker(ctx context.Context, url string, db *sql.DB) {
	fmt.Println("taking events at", url)
	for _, e := range [][2]string{{"order-17", `{"number": 17, "item": 42}`}, {"order-17", `{"number": 17, "item": 42}`}, {"order-18", `{"number": "eighteen"}`}} {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(e[1]))
		if err != nil {
			log.Print(err)
			return
		}
		for name, value := range map[string]string{"specversion": "1.0", "id": e[0], "source": "/shop", "type": "order.created"} {
			req.Header.Set("ce-"+name, value)
		}
		fmt.Println("  broker: brings", e[0])
		resp, err := bring.Do(req)
		if err != nil {
			log.Print(err)
			return
		}
		_ = resp.Body.Close()
		fmt.Println("  broker:", resp.Status)
	}
	var count, sum int
	if err := db.QueryRowContext(ctx, `SELECT count(*), sum(cents) FROM bookings`).Scan(&count, &sum); err != nil {
		log.Print(err)
		return
	}
	fmt.Printf("booked: %d order of %d cents. Ctrl-C ends it\n", count, sum)
}

// bring tries again while the consumer is not there yet. An event that comes twice is
// what the consumer is made for.
var bring = &http.Client{Transport: httpretry.NewTransport(nil, forbear.Must(forbear.New("bookkeeping", forbear.Policy{
	Idempotent: true, Total: 30 * time.Second, PerAttempt: 10 * time.Second, Backoff: forbear.Backoff{Base: 50 * time.Millisecond},
}, forbear.WithoutLog())))}
