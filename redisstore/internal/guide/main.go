// The example shares one retry budget among all of its copies: start it more
// than once.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/redisstore"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: example redis://127.0.0.1:6379/0 http://127.0.0.1:8080/")
	}
	store, err := redisstore.Open(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	// One key for each dependency of a service, the same in all its instances.
	budget, err := budget.NewFleet(budget.Policy{}, store, "checkout/payments", budget.FleetOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer budget.Close() // gives back what this instance still holds
	retryer, err := forbear.New("payments", forbear.Policy{}, forbear.WithBudget(budget))
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: httpretry.NewTransport(nil, retryer)}
	for range 20 {
		resp, err := client.Get(os.Args[2])
		if err != nil {
			fmt.Println(err)
		} else {
			fmt.Println(resp.Status)
			resp.Body.Close()
		}
		time.Sleep(100 * time.Millisecond)
	}
	level, stats := budget.Level(time.Now()), budget.Stats()
	fmt.Printf("the fleet has used %.0f of %.0f retries; %d instances, on its own: %v\n",
		level.Used, level.Allowed, stats.Reading.Instances, stats.Local)
}
