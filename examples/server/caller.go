package main

import (
	"database/sql"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/idempotency"
)

// impatient is a client that sends a payment three times at once and once more later,
// and then another payment under the same key.
func impatient(url string, db *sql.DB) {
	fmt.Println("serving", url)
	key := idempotency.NewKey()
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { show("pay 42.00", url, key, `{"cents": 4200}`) })
	}
	all.Wait()
	show("once more", url, key, `{"cents": 4200}`)
	show("pay 43.00 by the same key", url, key, `{"cents": 4300}`)
	show("pay 43.00 without a key", url, "", `{"cents": 4300}`)
	var count, sum int
	if err := db.QueryRow(`SELECT count(*), sum(cents) FROM payments`).Scan(&count, &sum); err != nil {
		log.Print(err)
		return
	}
	fmt.Printf("in the ledger: %d payment of %d cents\n", count, sum)
	fmt.Printf("\nYour turn; Ctrl-C ends it:\n  curl -i -u shop:%s -H 'Idempotency-Key: %s' -d '{\"cents\": 1700}' %s/payments\n", password, idempotency.NewKey(), url)
}

// The server may not be there yet: a refused connection is tried again.
var client = &http.Client{Transport: httpretry.NewTransport(nil, forbear.Must(forbear.New("server", forbear.Policy{
	Backoff: forbear.Backoff{Base: 50 * time.Millisecond},
}, forbear.WithoutLog())))}

func show(what, url, key, body string) {
	req, err := http.NewRequest(http.MethodPost, url+"/payments", strings.NewReader(body))
	if err != nil {
		log.Print(err)
		return
	}
	req.SetBasicAuth("shop", password)
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := client.Do(req)
	if err != nil {
		log.Print(err)
		return
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	replayed := ""
	if resp.Header.Get(idempotency.HeaderReplayed) != "" {
		replayed = "replayed "
	}
	fmt.Printf("  %s: %d %s%s\n", what, resp.StatusCode, replayed, strings.TrimSpace(string(text)))
}
