package bench

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Cost is what one operation costs.
type Cost struct {
	CPU, Wall float64 // nanoseconds
	Bytes     uint64
	Allocs    uint64
}

// Measure runs the peers in turns for the given number of rounds, each turn
// lasting about d on that many goroutines and processors, and returns each
// peer's median. Peers take turns so that whatever else the machine does falls
// on all of them. CPU is that of the whole process: the garbage collector's
// share is in it.
func Measure(peers []Peer, workers, rounds int, d time.Duration) ([]Cost, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
	costs := make([]Cost, len(peers))
	works := make([][]func() error, len(peers))
	counts := make([]int, len(peers))
	for i, p := range peers {
		for range workers {
			works[i] = append(works[i], p.New())
		}
		var err error
		if counts[i], err = calibrate(works[i], d); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		costs[i].Bytes, costs[i].Allocs = allocations(works[i][0])
	}
	cpu, wall := make([][]float64, len(peers)), make([][]float64, len(peers))
	for range rounds {
		for i := range peers {
			c, w := turn(works[i], counts[i])
			cpu[i], wall[i] = append(cpu[i], c), append(wall[i], w)
		}
	}
	for i := range peers {
		costs[i].CPU, costs[i].Wall = median(cpu[i]), median(wall[i])
	}
	return costs, nil
}

// calibrate returns how many times each worker must run for a turn of d. It is
// the warm-up, too, and the one place that looks at errors.
func calibrate(work []func() error, d time.Duration) (int, error) {
	for n := 1; ; n *= 2 {
		start := time.Now()
		for range n {
			if err := work[0](); err != nil {
				return 0, err
			}
		}
		if took := time.Since(start); took > d/8 {
			return max(int(float64(n)*float64(d)/float64(took)), 1), nil
		}
	}
}

// turn runs each worker n times and returns the nanoseconds of CPU and of time
// for each operation.
func turn(work []func() error, n int) (cpu, wall float64) {
	runtime.GC()
	before, start := processTime(), time.Now()
	var wg sync.WaitGroup
	for _, w := range work {
		wg.Go(func() {
			for range n {
				_ = w()
			}
		})
	}
	wg.Wait()
	elapsed, used := time.Since(start), processTime()-before
	ops := float64(n * len(work))
	return float64(used) / ops, float64(elapsed) / ops
}

// allocations returns what one operation allocates. Unlike times, it repeats.
func allocations(work func() error) (bytes, allocs uint64) {
	const runs = 1000
	allocs = uint64(testing.AllocsPerRun(runs, func() { _ = work() }))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		_ = work()
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / runs, allocs
}

// processTime returns the CPU time that the process has used.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}

// line says "a: 0.62 x b".
func line(a, b string, ratio float64) string { return fmt.Sprintf("%s: %.2f x %s", a, ratio, b) }
