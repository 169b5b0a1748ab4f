package idempotency_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/testkit/pipetest"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// dial returns the client's end of a new connection.
func dial(t *testing.T, l *pipetest.Network) net.Conn {
	conn, err := l.Dial(t.Context(), "", "")
	if err != nil {
		t.Error(err)
	}
	return conn
}

// upload sends a request whose body is named as length bytes long and has so much
// of it, and returns the status and the body of the response.
func upload(t *testing.T, conn net.Conn, caller, key string, length int, body []byte) (status int, text string) {
	defer func() { _ = conn.Close() }()
	go func() { // the response may come before all is sent
		_, _ = fmt.Fprintf(conn, "POST /pay HTTP/1.1\r\nHost: x\r\nCaller: %s\r\nIdempotency-Key: %s\r\nContent-Length: %d\r\n\r\n", caller, key, length)
		_, _ = conn.Write(body)
	}()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Errorf("%s: %v", key, err)
		return 0, ""
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

// One caller's two hundred uploads that stand still take nothing from forty other
// callers: each of their requests is done at once, while the room is still full. Those
// that stand still end when their idle time is over, and make room for each other.
func TestStalledUploadsOfOneCallerHoldNoOtherUp(t *testing.T) {
	const stalled, others, idle = 200, 40, 2 * time.Second
	const mostWait = 10 * time.Second // for room, see room.go
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		got := map[string][32]byte{} // what the handler has read, by key
		h, err := idempotency.Handler(&memstore.Idempotency{}, idempotency.Options{
			Scope:    func(r *http.Request) (string, error) { return r.Header.Get("Caller"), nil },
			BodyIdle: idle,
		}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			mu.Lock()
			defer mu.Unlock()
			got[r.Header.Get("Idempotency-Key")] = sha256.Sum256(body)
		}))
		if err != nil {
			t.Fatal(err)
		}
		l := pipetest.New()
		srv := &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
		go func() { _ = srv.Serve(l) }()
		defer func() { _ = srv.Close() }()

		begin := time.Now()
		var greedy, good sync.WaitGroup
		ended := map[string]int{} // stalled uploads by status and time
		almost := make([]byte, 1<<20-1<<10)
		for i := range stalled {
			conn := dial(t, l)
			greedy.Go(func() {
				status, _ := upload(t, conn, "greedy", fmt.Sprint("stalled-", i), 1<<20, almost)
				mu.Lock()
				defer mu.Unlock()
				ended[fmt.Sprint(status, " after ", time.Since(begin))]++
			})
		}
		synctest.Wait() // all that can move has moved
		if len(ended) != 0 {
			t.Fatalf("before the others came: %v", ended)
		}
		want := map[string][32]byte{}
		for i := range others {
			key, body := fmt.Sprint("good-", i), bytes.Repeat(fmt.Appendf(nil, "%02d ", i), 200<<10)
			want[key] = sha256.Sum256(body)
			conn := dial(t, l)
			good.Go(func() {
				if status, text := upload(t, conn, fmt.Sprint("caller-", i), key, len(body), body); status != 200 {
					t.Errorf("%s: %d %s", key, status, text)
				}
			})
		}
		good.Wait()
		if took := time.Since(begin); took != 0 {
			t.Errorf("the others have waited for %v", took)
		}
		greedy.Wait()
		n := 0
		for how, times := range ended {
			status, after, _ := strings.Cut(how, " after ")
			took, err := time.ParseDuration(after)
			// 2 s after they had room, or where they had to wait for it for longer than anyone does.
			if err == nil && (status == "408" || status == "503" && took >= mostWait) {
				n += times
			}
		}
		if n != stalled || ended["408 after 2s"] == 0 {
			t.Errorf("%v; want all timed out as soon as they had room and their idle time was over", ended)
		}
		if len(got) != others {
			t.Errorf("%d runs, want %d", len(got), others)
		}
		for key, sum := range want {
			if got[key] != sum {
				t.Errorf("%s: the handler has read another body", key)
			}
		}
		t.Logf("stalled uploads: %v", ended)
	})
}
