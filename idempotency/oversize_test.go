package idempotency_test

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// A thousand requests at once that are too large and do not say so: each is
// refused, none runs, and the heap grows by a fraction of what their limits add
// up to. They stop just below the limit until all are there, or no more come: those that are not read yet wait for the others.
func TestOversizeRequestsDoNotFillTheMemory(t *testing.T) {
	const clients, limit, bound = 1000, 1 << 20, 200 << 20
	var runs atomic.Int64
	h, err := idempotency.Handler(&memstore.Idempotency{}, idempotency.Options{Scope: idempotency.SingleTenant()},
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { runs.Add(1) }))
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	srv.Start()
	defer srv.Close()
	defer srv.CloseClientConnections()
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse
	}
	// What counts is what is held, not what is not collected yet.
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	runtime.GC()
	before := heap()

	block := fmt.Appendf(nil, "%x\r\n%s\r\n", 60<<10, strings.Repeat("x", 60<<10)) // one chunk
	almost, all := limit/len(block), limit/len(block)+2
	var ready atomic.Int64
	gate := make(chan struct{})
	go func() {
		defer close(gate)
		for seen, since := int64(0), time.Now(); seen < clients && time.Since(since) < 2*time.Second; time.Sleep(10 * time.Millisecond) {
			if n := ready.Load(); n > seen {
				seen, since = n, time.Now()
			}
		}
	}()
	statuses := make(chan int, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			statuses <- oversize(t, srv.Listener.Addr().String(), i, block, almost, all, sync.OnceFunc(func() { ready.Add(1) }), gate)
		})
	}
	var peak uint64
	finished := make(chan struct{})
	go func() { wg.Wait(); close(finished) }()
	for running := true; running; {
		select {
		case <-finished:
			running = false
		case <-time.After(10 * time.Millisecond):
		}
		peak = max(peak, heap())
	}
	close(statuses)
	got := map[int]int{}
	for s := range statuses {
		got[s]++
	}
	t.Logf("answers %v; the heap grew by %d MiB", got, (peak-before)>>20)
	// On a slow machine some wait too long for their turn, or take too long.
	if got[413]+got[503]+got[408]+got[0] != clients || got[413] == 0 || runs.Load() != 0 {
		t.Errorf("answers %v, %d runs; want 413, or 503 and 408 for those who waited or took too long", got, runs.Load())
	}
	if peak > before+bound {
		t.Errorf("the heap grew by %d MiB, at most %d", (peak-before)>>20, bound>>20)
	}
}

// oversize sends one request and returns the status; 0 when the server has cut
// the connection before it could be read.
func oversize(t *testing.T, address string, i int, block []byte, almost, all int, ready func(), gate chan struct{}) int {
	defer ready()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return -1
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(60 * time.Second))
	fmt.Fprintf(conn, "POST /pay HTTP/1.1\r\nHost: x\r\nIdempotency-Key: key-%d\r\nTransfer-Encoding: chunked\r\n\r\n", i)
	for n := range all {
		if n == almost {
			ready()
			<-gate
		}
		if _, err := conn.Write(block); err != nil {
			break // refused already
		}
	}
	_, _ = conn.Write([]byte("0\r\n\r\n"))
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return 0
	}
	status := 0
	_, _ = fmt.Sscanf(strings.TrimSpace(line), "HTTP/1.1 %d", &status)
	return status
}
