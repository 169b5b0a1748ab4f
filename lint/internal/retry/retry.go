// Package retry finds retries in the SSA form of a package and draws one small
// picture of each: what is attempted again, after which wait, how often, what ends
// it. The rules read the picture, and nothing else.
//
// A retry is found by carrying it out (package eval): code in which an operation
// that fails is attempted again, and one that succeeds is not, or only after other
// work. Polling, tickers, walks over items, compare-and-swap and lock loops come out
// differently in that, or are told apart by their names.
package retry

import (
	"go/ast"
	"go/token"
	"reflect"
	"slices"
	"strings"
	"sync"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"
	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/eval"
)

// Retry is one loop, or one function that calls itself, in which a failure of an
// operation leads to another attempt at it.
type Retry struct {
	Fn   *ssa.Function
	Loop *eval.Loop // nil for a recursion
	Pos  token.Pos  // the loop keyword, or the recursive call
	Node ast.Node   // the loop statement, when there is one

	Ops   []*ssa.Call       // what is attempted again
	Waits []ssa.Instruction // what lets time pass before another attempt
	Delay Delay
	Bound Bound
	// Pure retries end with the first success. The others go on with something else.
	Pure bool
	// Refuses says that a success which is not accepted leads to another attempt too,
	// as it does in a poller.
	Refuses bool
	// Weak retries know failure from a bool or a missing result only.
	Weak bool
	// Callback retries attempt a function that was handed to them.
	Callback bool
	// Starts retries start something that goes on until it fails.
	Starts bool
	// WaitFirst retries wait before the first attempt too, as pollers do.
	WaitFirst bool
	Spoken    bool // its names speak of retrying
	Waiting   bool // its names speak of waiting for a state
	Boundary  Boundary
	Reaches   bool // its operations look as if they went to another machine
}

// Result is what the analyzers work on.
type Result struct {
	// Turn is held by the rule that works on the package, since what is found out for
	// one is kept for the others.
	Turn sync.Mutex
	*Package
	Retries []*Retry
}

// Analyzer finds the retries of a package, once for all rules.
var Analyzer = &analysis.Analyzer{
	Name:       "forbearretries",
	Doc:        "find code that is entered again because a call failed",
	Run:        run,
	Requires:   []*analysis.Analyzer{ctrlflow.Analyzer},
	ResultType: reflect.TypeFor[*Result](),
	FactTypes:  []analysis.Fact{new(Fact)},
}

func run(pass *analysis.Pass) (any, error) {
	if standard(pass) {
		return &Result{Package: &Package{Pass: pass}}, nil
	}
	cfgs := pass.ResultOf[ctrlflow.Analyzer].(*ctrlflow.CFGs)
	prog := ssa.NewProgram(pass.Fset, ssa.BuilderMode(0))
	prog.SetNoReturn(cfgs.NoReturn)
	for _, p := range pass.Pkg.Imports() {
		prog.CreatePackage(p, nil, nil, true)
	}
	pkg := prog.CreatePackage(pass.Pkg, pass.Files, pass.TypesInfo, false)
	pkg.Build()
	r := &Result{Package: newPackage(pass, pkg)}
	for _, fn := range r.Funcs {
		r.Retries = append(r.Retries, r.find(fn)...)
	}
	r.export(r.Retries)
	return r, nil
}

// standard reports whether the package is one of the standard library, which go vet
// asks for facts about: its calls are known by their names. Drivers without modules give
// none for any package, so that the path has to tell.
func standard(pass *analysis.Pass) bool {
	path := pass.Pkg.Path()
	first, _, _ := strings.Cut(path, "/")
	return (pass.Module == nil || pass.Module.Path == "") && path != "main" && slices.Contains(stdRoots, first)
}

// stdRoots are the first elements of the standard library's import paths.
var stdRoots = strings.Fields(`archive bufio bytes cmp compress container context crypto database debug embed encoding
	errors expvar flag fmt go hash html image index internal io iter log maps math mime net os path plugin reflect
	regexp runtime slices sort strconv strings structs sync syscall testing text time unicode unique unsafe vendor weak cmd`)

// OpNames names what is attempted, for messages: the calls that leave the process
// first.
func (r *Retry) OpNames() string {
	names := r.Callees()
	if len(names) > 1 {
		return names[0] + ", others"
	}
	return strings.Join(names, "")
}

// Callees are the names of what is attempted again.
func (r *Retry) Callees() (names []string) {
	for _, op := range r.Ops {
		if n := Describe(op.Common()); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}
