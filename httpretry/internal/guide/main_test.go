package main

import (
	"log"
	"os"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/testkit/guide"
)

// TestGuide runs the program with shorter waits, and compares what a terminal shows, the
// log included.
func TestGuide(t *testing.T) {
	policy := payments.Policy()
	policy.Backoff.Base = 5 * time.Millisecond
	client.Transport = httpretry.NewTransport(nil, forbear.Must(forbear.New("payments", policy)))
	guide.Check(t, "http", func() {
		log.SetOutput(os.Stdout)
		defer log.SetOutput(os.Stderr)
		main()
	})
}
