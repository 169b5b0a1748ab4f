// Package restarts holds loops that start something again, with or without a
// branch on its failure, and jobs that look like them.
package restarts

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"
)

type feed struct {
	addr string
	stop chan struct{}
	got  chan []byte
}

// run goes on until the connection is lost.
func (f *feed) run(ctx context.Context) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", f.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	for {
		buf := make([]byte, 1<<10)
		if _, err := conn.Read(buf); err != nil {
			return err
		}
		f.got <- buf
	}
}

// supervised: what run returns with is only logged.
func supervised(ctx context.Context, f *feed) {
	for { // want `FB1001: retries restarts.feed.run on failure and waits 1s every time`
		err := f.run(ctx)
		log.Print("ended: ", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// waitsFirst has its start in the case of the clock.
func waitsFirst(ctx context.Context, f *feed) {
	for { // want `FB1001: retries restarts.feed.run on failure and waits 1s every time`
		select {
		case <-time.After(time.Second):
			if err := f.run(ctx); err != nil {
				log.Print(err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// job is called by its loop once in a while, and does a little work.
func (f *feed) job(work func()) {
	for {
		work()
		select {
		case <-f.stop:
			return
		case <-time.After(250 * time.Millisecond):
		}
	}
}

func (f *feed) clean() {
	go f.job(func() { os.Remove(f.addr) })
}

// runOnce has the name of something that lasts, and does one thing.
func (f *feed) runOnce(ctx context.Context) error {
	resp, err := http.Get("http://" + f.addr)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

func scheduled(ctx context.Context, f *feed) {
	for {
		if err := f.runOnce(ctx); err != nil {
			log.Print(err)
		}
		time.Sleep(time.Minute)
	}
}

// sync is a job that lasts for a while: its wait is a period.
func (f *feed) subscribed(ctx context.Context, pollInterval time.Duration) {
	for {
		if err := f.run(ctx); err != nil {
			log.Print(err)
		}
		time.Sleep(pollInterval)
	}
}

type broker interface {
	Subscribe(ctx context.Context, got func([]byte)) error
	Run(ctx context.Context) error
}

// resubscribed: the name says that the call stays subscribed.
func resubscribed(ctx context.Context, b broker, f *feed) {
	for { // want `FB1001: retries restarts.broker.Subscribe on failure and waits 1s every time`
		if err := b.Subscribe(ctx, func(m []byte) { f.got <- m }); err != nil {
			log.Print(err)
		}
		time.Sleep(time.Second)
	}
}

// ran: what runs elsewhere may be a job.
func ran(ctx context.Context, b broker) {
	for {
		if err := b.Run(ctx); err != nil {
			log.Print(err)
		}
		time.Sleep(time.Second)
	}
}

// all servers are tried in each turn, and each turn tries the same ones.
func all(ctx context.Context, addrs []string) (net.Conn, error) {
	for { // want `FB1001: retries net.Dial on failure and waits 5s every time`
		for _, a := range addrs {
			conn, err := net.Dial("tcp", a)
			if err == nil {
				return conn, nil
			}
			log.Print(err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(5 * time.Second):
		}
	}
}

// each turn sends other items, with a pause between the batches.
func batches(send func(string) error, next func() []string) {
	for {
		for _, it := range next() {
			if err := send(it); err != nil {
				log.Print(err)
			}
		}
		time.Sleep(5 * time.Second)
	}
}

// policy says how long to wait after each turn, and is told how it went.
type policy interface{ After(err error) time.Duration }

type patient struct{ pause time.Duration }

func (p patient) After(err error) time.Duration {
	if err != nil {
		return p.pause
	}
	return 0
}

func newPolicy() policy { return patient{time.Second} }

func told(ctx context.Context, f *feed, p policy) {
	var wait time.Duration
	for { // want `FB1001: retries restarts.feed.runOnce on failure and waits pause every time`
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		err := f.runOnce(ctx)
		if err != nil {
			log.Print(err)
		}
		wait = p.After(err)
	}
}
