// Command table runs all scenarios and prints one Markdown table for each.
//
//	go run ./table [-rounds 7] [-turn 60ms] [-only A,B]
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/bench"
)

func main() {
	rounds := flag.Int("rounds", 7, "rounds; the median counts")
	turn := flag.Duration("turn", 60*time.Millisecond, "how long each peer runs in a round")
	only := flag.String("only", "", "the scenarios to run, by their letters, with commas between")
	flag.Parse()
	if err := run(*rounds, *turn, *only); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(2)
	}
}

func run(rounds int, turn time.Duration, only string) error {
	wanted := strings.FieldsFunc(only, func(r rune) bool { return r == ',' })
	fmt.Printf("%s, %s/%s, %d processors; median of %d rounds of %v, peers in turns.\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), rounds, turn)
	for _, s := range bench.Scenarios() {
		if len(wanted) > 0 && !slices.Contains(wanted, s.ID) {
			continue
		}
		if err := table(s, rounds, turn); err != nil {
			return fmt.Errorf("scenario %s: %w", s.ID, err)
		}
	}
	return nil
}

func table(s bench.Scenario, rounds int, turn time.Duration) error {
	fmt.Printf("\n### %s: %s\n\n", s.ID, s.Title)
	one, err := bench.Measure(s.Peers, 1, rounds, turn)
	if err != nil {
		return err
	}
	if !s.Parallel {
		fmt.Println("| | version | own context | CPU ns | wall ns | bytes | allocations |")
		fmt.Println("|---|---|---|--:|--:|--:|--:|")
		for i, p := range s.Peers {
			fmt.Printf("| %s | %s | %s | %.0f | %.0f | %d | %d |\n", name(p), version(p.Module), yes(p.Context),
				one[i].CPU, one[i].Wall, one[i].Bytes, one[i].Allocs)
		}
		return nil
	}
	two, err := bench.Measure(s.Peers, 2, rounds, turn)
	if err != nil {
		return err
	}
	fmt.Println("| | version | own context | wall ns, 1 processor | wall ns, 2 processors | ratio | CPU ns, 1 | CPU ns, 2 | allocations |")
	fmt.Println("|---|---|---|--:|--:|--:|--:|--:|--:|")
	for i, p := range s.Peers {
		fmt.Printf("| %s | %s | %s | %.0f | %.0f | %.2f | %.0f | %.0f | %d |\n", name(p), version(p.Module), yes(p.Context),
			one[i].Wall, two[i].Wall, two[i].Wall/one[i].Wall, one[i].CPU, two[i].CPU, one[i].Allocs)
	}
	return nil
}

func name(p bench.Peer) string {
	if strings.HasPrefix(p.Name, "forbear") {
		return "**" + p.Name + "**"
	}
	return p.Name
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// version returns the version of a module as it was linked into this program.
func version(module string) string {
	if strings.HasSuffix(module, "/forbear") {
		return "this tree"
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || module == "" {
		return ""
	}
	for _, dep := range info.Deps {
		if dep.Path == module {
			return dep.Version
		}
	}
	return ""
}
