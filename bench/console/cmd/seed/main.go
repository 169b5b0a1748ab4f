// Seed fills a database as package seed does:
//
//	GOWORK=off go run ./cmd/seed --database forbear.db --messages 10000 --endpoints 200
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/forbear-go/forbear/bench/console/seed"
)

func main() {
	var c seed.Config
	database := flag.String("database", "forbear.db", "an SQLite `file` or a postgres:// URL; its schema is brought up to date")
	flag.IntVar(&c.Messages, "messages", 0, "the `number` of messages (1,000,000)")
	flag.IntVar(&c.Letters, "letters", 0, "about this `number` of them are dead letters (a tenth)")
	flag.IntVar(&c.Endpoints, "endpoints", 0, "the `number` of endpoints (10,000)")
	flag.IntVar(&c.Held, "held", 0, "the `number` of keys that are held (1,000)")
	flag.IntVar(&c.Redrives, "redrives", 0, "the `number` of redrives (200)")
	flag.IntVar(&c.StuckWaiting, "stuck-waiting", 0, "the `number` of messages that wait for the endpoint stuck (5,000)")
	flag.IntVar(&c.StuckDead, "stuck-dead", 0, "the `number` of its dead letters (2,000)")
	flag.StringVar(&c.StuckURL, "stuck-url", "", "the `address` of the endpoint stuck")
	flag.Parse()
	began := time.Now()
	if err := seed.Fill(context.Background(), *database, c); err != nil {
		fmt.Fprintln(os.Stderr, "seed:", err)
		os.Exit(1)
	}
	fmt.Printf("filled in %v\n", time.Since(began).Round(time.Second))
}
