package check

import (
	"encoding/json"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
)

// A simulation takes far longer than all other checks of a policy together. So
// what is alike is simulated once, and what is not on all processors.

// alike groups dependencies by what key leaves of their policies, in the order of
// their first ones.
func alike(ds []*policyfile.Dependency, key func(forbear.Policy) forbear.Policy) (groups [][]*policyfile.Dependency) {
	index := map[string]int{}
	for _, d := range ds {
		data, err := json.Marshal(key(d.Policy))
		if err != nil {
			data = []byte(d.At.String()) // like no other
		}
		i, known := index[string(data)]
		if !known {
			i = len(groups)
			index[string(data)] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], d)
	}
	return groups
}

// inParallel calls f with 0 to n-1, and returns when all calls have.
func inParallel(n int, f func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				f(int(i))
			}
		})
	}
	wg.Wait()
}
