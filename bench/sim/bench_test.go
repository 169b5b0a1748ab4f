package sim

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/forbear-go/forbear/storm"
	stormpage "github.com/forbear-go/forbear/storm/page"
)

func named(b *testing.B, name string, engine storm.EngineKind) storm.Scenario {
	b.Helper()
	s, ok := storm.FindNamed(name)
	if !ok {
		b.Fatalf("no scenario is called %q", name)
	}
	s.Engine = engine
	return s
}

// cpu returns the processor time that this process has used: on a machine that
// others share, the clock on the wall measures them as well.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// run reports the events a second, and the milliseconds of a run, by the wall
// and by the processor.
func run(b *testing.B, s storm.Scenario) {
	b.Helper()
	b.ReportAllocs()
	var events int64
	start := cpu(b)
	for b.Loop() {
		r, err := storm.Run(b.Context(), s, storm.Options{})
		if err != nil {
			b.Fatal(err)
		}
		events += r.Events
	}
	used := cpu(b) - start
	b.ReportMetric(float64(events)/used.Seconds()/1e6, "Mevents/cpu-s")
	b.ReportMetric(float64(used.Microseconds())/1e3/float64(b.N), "cpu-ms/run")
	b.ReportMetric(float64(events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/run")
}

// Quiet: 10,000 requests a second for a minute, a fault that leaves no trace.
func BenchmarkExactQuiet(b *testing.B) {
	s := named(b, "metastable", storm.Exact)
	s.Faults[0].For = storm.Duration(time.Second)
	run(b, s)
}

// Collapse: the same, stuck at four times the load, 100 thousand pending.
func BenchmarkExactCollapse(b *testing.B) { run(b, named(b, "metastable", storm.Exact)) }

// Collapse with the standard's budget in each of 100 instances.
func BenchmarkExactBudget(b *testing.B) { run(b, named(b, "budgeted", storm.Exact)) }

// The same with a circuit breaker in each of them.
func BenchmarkExactGuarded(b *testing.B) {
	s := named(b, "budgeted", storm.Exact)
	s.Fleets[0].Client.Breaker = new(true)
	run(b, s)
}

// 100 M requests a second for a minute, 24 thousand million attempts, as a sample.
func Benchmark100M(b *testing.B) { run(b, named(b, "hundred-million", storm.Auto)) }

// What the page asks when it is opened: six policies and the herd.
func BenchmarkPageRequest(b *testing.B) {
	const asked = `{"scenario":{"duration":"60s","fleets":[{"instances":100,"rate":10000,"client":{"retries":3,"timeout":"1s",
"base":"100ms","cap":"2s","budget":{"ratio":0.2,"window":"30s"}}}],"services":[{"name":"service","capacity":14285.714,"time":"50ms"}],
"faults":[{"kind":"brownout","at":"10s","for":"10s"}]},"variants":["","none","backoff","jitter","budget","breaker"],"herd":1000}`
	h := stormpage.Handler(nil)
	start := cpu(b)
	for b.Loop() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "/api/run", strings.NewReader(asked)))
		if w.Code != http.StatusOK {
			b.Fatal(w.Body)
		}
	}
	b.ReportMetric(float64((cpu(b)-start).Microseconds())/1e3/float64(b.N), "cpu-ms/request")
}
