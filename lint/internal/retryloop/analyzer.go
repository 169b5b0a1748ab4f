package retryloop

import (
	"go/types"
	"reflect"
	"slices"
	"strings"
	"sync"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"
	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/fact"
)

// Analyzer builds the SSA form of a package, finds its retries, and exports
// what other packages need to know of its functions.
// The rules share its result, so that SSA is built once for a package.
var Analyzer = &analysis.Analyzer{
	Name:       "forbearregions",
	Doc:        "find regions that are entered again because a call failed",
	Run:        run,
	Requires:   []*analysis.Analyzer{ctrlflow.Analyzer},
	ResultType: reflect.TypeFor[*Result](),
	FactTypes:  []analysis.Fact{new(fact.Summary)},
}

// Result is what the other analyzers work on. The package of the standard
// library, about which the tables know enough, has no functions in it.
type Result struct {
	// Turn is held by the rule that works on the package: what is found out for one
	// is kept for the others, as is which directives are used, and drivers run the
	// rules of a package at once.
	Turn sync.Mutex

	Funcs   []*ssa.Function // with bodies, literals included, in source order
	Regions []*Region
	// Restarts are retries that have no branch on a failure of their own: what
	// starts something again that has ended, and what is handed to a function that
	// calls it until it is done. Only their waits are judged.
	Restarts []*Region

	// What rules ask beyond the regions: what is known of a function, and what a
	// predicate does with a status.
	*finders
	repeats []*Repeat // once they were asked for
}

// run builds the SSA form. Imported packages are made without bodies: what is
// known of them comes by facts. Calls that do not return end their blocks, as
// the control-flow graphs of the ctrlflow analyzer have it.
func run(pass *analysis.Pass) (any, error) {
	if standard(pass) {
		return &Result{finders: newFinders(pass, nil)}, nil
	}
	cfgs := pass.ResultOf[ctrlflow.Analyzer].(*ctrlflow.CFGs)
	prog := ssa.NewProgram(pass.Fset, ssa.BuilderMode(0))
	prog.SetNoReturn(cfgs.NoReturn)
	for _, p := range pass.Pkg.Imports() {
		prog.CreatePackage(p, nil, nil, true)
	}
	pkg := prog.CreatePackage(pass.Pkg, pass.Files, pass.TypesInfo, false)
	pkg.Build()

	r := &Result{finders: newFinders(pass, pkg)}
	r.Funcs = r.Known.Funcs()
	for _, fn := range r.Funcs {
		r.Regions = append(r.Regions, r.of(fn).regions()...)
		r.Restarts = append(r.Restarts, r.of(fn).restarts()...)
	}
	r.export(pass)
	return r, nil
}

// standard reports whether the package is one of the standard library, about
// which the tables know what is needed. Drivers without modules give none for
// any package, or an empty one, so that the path has to tell.
func standard(pass *analysis.Pass) bool {
	path := pass.Pkg.Path()
	first, _, _ := strings.Cut(path, "/")
	return (pass.Module == nil || pass.Module.Path == "") && path != "main" && slices.Contains(stdRoots, first)
}

// stdRoots are the first elements of the standard library's import paths.
var stdRoots = strings.Fields(`archive bufio bytes cmp compress container context crypto database debug embed encoding
	errors expvar flag fmt go hash html image index internal io iter log maps math mime net os path plugin reflect
	regexp runtime slices sort strconv strings structs sync syscall testing text time unicode unique unsafe vendor weak cmd`)

// export writes the facts about the package's exported functions and methods,
// those of unexported types too: a caller reaches them through an interface or a
// field. Functions without anything to say get none.
// Facts cost space and time in every package that imports this one.
func (r *Result) export(pass *analysis.Pass) {
	r.tell()
	for _, fn := range r.Funcs {
		obj, ok := fn.Object().(*types.Func)
		if !ok || !obj.Exported() || obj.Pkg() != pass.Pkg {
			continue
		}
		if sum := r.Known.Local(fn); !sum.Empty() {
			pass.ExportObjectFact(obj, sum)
		}
	}
}
