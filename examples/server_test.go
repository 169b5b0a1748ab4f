package examples

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/porttest"
)

// address returns one that is free at the moment.
func address(t *testing.T) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(porttest.Free(t)))
}

// send posts a body with headers, and returns the status and the body of the response.
func send(t *testing.T, url, body string, headers ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	if user := req.URL.User; user != nil {
		password, _ := user.Password()
		req.SetBasicAuth(user.Username(), password)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(text)
}

// The example's own client pays once with all of its requests, and so do ten of the
// test's at once. Who has another password pays nothing.
func TestServer(t *testing.T) {
	at := address(t)
	p := example(t, "server", "ADDRESS="+at, "SHOP_PASSWORD=open")
	p.until(t, "curl -i -u shop:open")
	has(t, p.printed(), map[string]int{
		"pay 42.00: 201 {\"payment\": 1, \"cents\": 4200}":          1,
		"pay 42.00: 201 replayed {\"payment\": 1, \"cents\": 4200}": 2,
		"once more: 201 replayed {\"payment\": 1":                   1,
		"by the same key: 422":                                      1,
		"without a key: 400":                                        1,
		"in the ledger: 1 payment of 4200 cents":                    1,
	})

	url := fmt.Sprintf("http://shop:open@%s/payments", at)
	var all sync.WaitGroup
	for range 10 { // of one key, 16 may wait
		all.Go(func() {
			if status, body := send(t, url, `{"cents": 1700}`, "Idempotency-Key", "order-19"); status != http.StatusCreated || body != "{\"payment\": 2, \"cents\": 1700}\n" {
				t.Errorf("got %d %s", status, body)
			}
		})
	}
	all.Wait()
	if status, _ := send(t, strings.Replace(url, "open", "closed", 1), `{"cents": 1}`, "Idempotency-Key", "order-20"); status != http.StatusUnauthorized {
		t.Errorf("another password gets %d", status)
	}
	if status, body := send(t, url, `{"cents": 1}`, "Idempotency-Key", "order-21"); status != http.StatusCreated || !strings.Contains(body, `"payment": 3`) {
		t.Errorf("the third payment: got %d %s", status, body)
	}
	has(t, p.interrupt(t), map[string]int{"stopping": 1})
}

// An order is booked after two retries and not twice, what no one can read is a dead
// letter, and a process that is started anew knows what the one before it has done.
func TestConsumer(t *testing.T) {
	at, database := address(t), "DATABASE="+filepath.Join(t.TempDir(), "shop.db")
	p := example(t, "consumer", "ADDRESS="+at, database)
	p.until(t, "Ctrl-C ends it")
	has(t, p.printed(), map[string]int{
		"prices: busy":                  2,
		"WARN retry":                    2,
		"order-17: ack, done":           1,
		"order-17: ack, duplicate":      1,
		"order-18: dead_lettered, ":     1,
		"204 No Content":                3,
		"booked: 1 order of 4200 cents": 1,
		"WARN dead letter":              1,
	})
	event := []string{"ce-specversion", "1.0", "ce-id", "order-19", "ce-source", "/shop", "ce-type", "order.created"}
	for range 2 {
		if status, body := send(t, "http://"+at, `{"number": 19, "item": 1}`, event...); status != http.StatusNoContent {
			t.Errorf("got %d %s", status, body)
		}
	}
	has(t, p.interrupt(t), map[string]int{"order-19: ack, done": 1, "order-19: ack, duplicate": 1, "stopping": 1})

	again := example(t, "consumer", "ADDRESS="+address(t), database)
	again.until(t, "Ctrl-C ends it")
	has(t, again.interrupt(t), map[string]int{"order-17: ack, duplicate": 2, "done": 0, "booked: 2 order of 4300 cents": 1})
}

func portOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

// waitFor waits until a server responds.
func waitFor(t *testing.T, url string) {
	t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		resp, err := http.Get(url)
		if err == nil {
			_ = resp.Body.Close()
			return
		}
	}
	t.Fatalf("%s does not respond", url)
}
