//forbear:plain rules have no goroutines; package lint runs them at once
package eval_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/eval"
	"github.com/forbear-go/forbear/lint/internal/retry"
	"github.com/forbear-go/forbear/lint/internal/ruletest"
)

// answered is the scene in which the operation has a response of that status.
func answered(status int64) eval.Scene {
	return eval.Scene{Outcome: eval.Answered, Status: status, Deep: true}
}

// TestAgain: what comes of a loop of testdata after an outcome of its operation. Waits
// are those before the attempts that follow, in nanoseconds.
func TestAgain(t *testing.T) {
	lost, success := eval.Scene{Outcome: eval.Lost}, eval.Scene{Outcome: eval.Success}
	pkg := ruletest.Retries(t, "a")["a"]
	for _, tt := range []struct {
		fn, op string
		scene  eval.Scene
		want   string
	}{
		{"grows", "Get", lost, "certain 1000000000 2000000000 4000000000"},
		{"grows", "Get", success, "never"},
		{"sums", "Get", lost, "certain 1000000000 2000000000 3000000000"},
		{"literal", "Get", answered(503), "certain"},
		{"literal", "Get", answered(404), "never"},
		{"filled", "get", success, "perhaps"},
		{"swaps", "Get", lost, "certain [1000000000,3600000000000]+[60000000000,3600000000000] [1000000000,3600000000000]+[60000000000,3600000000000] [1000000000,3600000000000]+[60000000000,3600000000000]"},
		{"flagged", "Get", lost, "never"},
		{"byStatus", "Get", lost, "never"},
		{"byStatus", "Get", answered(503), "certain"},
		{"byStatus", "Get", answered(404), "never"},
		{"byResults", "look", eval.Scene{Outcome: eval.Lost, Deep: true}, "certain"},
		{"byResults", "look", answered(503), "certain"},
		{"byResults", "look", answered(404), "never"},
		{"byError", "fetch", answered(400), "certain"},
		{"byError", "fetch", answered(404), "never"},
		{"asks", "Get", answered(503), "perhaps"},
		{"either", "Get", answered(503), "certain"},
	} {
		t.Run(fmt.Sprintf("%s after %d %d", tt.fn, tt.scene.Outcome, tt.scene.Status), func(t *testing.T) {
			fn := function(t, pkg, tt.fn)
			loops, _ := eval.Loops(fn)
			m := pkg.Carry(fn, loops[0], call(t, fn, tt.op), tt.scene)
			if got := outcome(m); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// outcome says whether another attempt follows, and after which waits.
func outcome(m *eval.Machine) string {
	certain, possible := m.Again()
	switch {
	case !possible:
		return "never"
	case !certain:
		return "perhaps"
	}
	words := []string{"certain"}
	for _, turn := range m.Turns[1:] {
		for _, w := range turn.Waits {
			if s := w.String(); s != "" {
				words = append(words, s)
			}
		}
	}
	return strings.Join(words, " ")
}

func function(t *testing.T, r *retry.Result, name string) *ssa.Function {
	t.Helper()
	i := slices.IndexFunc(r.Funcs, func(fn *ssa.Function) bool { return fn.Name() == name })
	if i < 0 {
		t.Fatalf("there is no function %s", name)
	}
	return r.Funcs[i]
}

func call(t *testing.T, fn *ssa.Function, name string) *ssa.Call {
	t.Helper()
	for c := range retry.Calls(fn) {
		if eval.CalleeName(c.Common()) == name {
			return c
		}
	}
	t.Fatalf("%s calls no %s", fn.Name(), name)
	return nil
}
