// Package started holds loops that go on after a success, since what they call
// starts something that goes on until it fails.
package started

import (
	"context"
	"log"
	"net/http"
	"time"
)

type hub struct {
	client *http.Client
	url    string
}

func (h *hub) Subscribe(ctx context.Context) (<-chan string, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", h.url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return nil, err
	}
	lines := make(chan string)
	go func() { defer close(lines); defer resp.Body.Close() }()
	return lines, nil
}

func subscribed(ctx context.Context, h *hub) {
	for { // want `FB1001: retries started.hub.Subscribe on failure and waits 1s every time`
		lines, err := h.Subscribe(ctx)
		if err != nil {
			time.Sleep(time.Second)
			continue
		}
		for l := range lines {
			log.Print(l)
		}
	}
}

func (h *hub) latest(ctx context.Context) (string, error) {
	lines, err := h.Subscribe(ctx)
	if err != nil {
		return "", err
	}
	return <-lines, nil
}

// read goes on with the next line, and waits after a failure alone.
func read(ctx context.Context, h *hub) {
	for { // want `FB1001: retries started.hub.latest on failure and waits 1s every time`
		l, err := h.latest(ctx)
		if err != nil {
			time.Sleep(time.Second)
			continue
		}
		log.Print(l)
	}
}

// run goes on until the lines end.
func (h *hub) run(ctx context.Context) {
	lines, err := h.Subscribe(ctx)
	if err != nil {
		return
	}
	for l := range lines {
		log.Print(l)
	}
}

func restarted(ctx context.Context, h *hub) {
	for { // want `FB1001: retries started.hub.run on failure and waits 1s every time`
		h.run(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
			log.Print("reconnecting")
		}
	}
}
