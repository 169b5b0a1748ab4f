package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"sync"
	"time"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/forbear-go/forbear/lint/internal/eval"
	"github.com/forbear-go/forbear/lint/internal/retry"
)

type finding struct {
	ID, Confidence, File string
	Line                 int
	Message              string
	Retry                string
}

var asked = map[string]bool{}

var mu sync.Mutex

func main() {
	flag.Bool("q", false, "")
	flag.Bool("all", false, "")
	out := flag.String("o", "", "")
	prof := flag.String("cpuprofile", "", "")
	fnName := flag.String("fn", "", "")
	st := flag.Int64("status", 0, "")
	flag.Parse()
	dbg := flag.Lookup("fn")
	_ = dbg
	cwd, _ := os.Getwd()
	if *prof != "" {
		f, _ := os.Create(*prof)
		pprof.StartCPUProfile(f)
		time.AfterFunc(40*time.Second, func() { pprof.StopCPUProfile(); f.Close() })
	}
	var found []finding
	a := &analysis.Analyzer{Name: "pic", Doc: "pic", Requires: []*analysis.Analyzer{retry.Analyzer}, Run: func(pass *analysis.Pass) (any, error) {
		if !asked[pass.Pkg.Path()] {
			return nil, nil
		}
		res := pass.ResultOf[retry.Analyzer].(*retry.Result)
		if *fnName != "" {
			for _, fn := range res.Funcs {
				if fn.Name() != *fnName {
					continue
				}
				loops, inner := eval.Loops(fn)
				loops = append(loops, nil)
				for _, l := range loops {
					for c := range retry.Calls(fn) {
						if l != nil && (!l.Contains(c) || inner[c.Block()] != l) {
							continue
						}
						sc := eval.Scene{Outcome: eval.Lost}
						if *st > 0 {
							sc = eval.Scene{Outcome: eval.Answered, Status: *st, Deep: true}
						}
						m := res.Carry(fn, l, c, sc)
						cert, poss := m.Again()
						ok := res.Carry(fn, l, c, eval.Scene{Outcome: eval.Success})
						oc, op := ok.Again()
						fmt.Println("OP", retry.Describe(c.Common()), "loop", l != nil, "again", cert, poss, "ok", oc, op, "answered", m.Answered, m.Looked, "over", m.Over(), "bd", res.BoundaryOf(c.Common()))
						if poss || *st > 0 {
							fmt.Println(m.Dump())
						}
					}
				}
			}
			return nil, nil
		}
		for _, r := range res.Retries {
			pos := pass.Fset.Position(r.Pos)
			if strings.HasSuffix(pos.Filename, "_test.go") {
				continue
			}
			name, _ := filepath.Rel(cwd, pos.Filename)
			text := fmt.Sprintf("%s: %s [%s known=%v %v name=%s mixed=%v] bound=%+v pure=%v refuses=%v weak=%v spoken=%v waiting=%v first=%v bd=%d waits=%d cb=%v", r.Fn.Name(), r.OpNames(), r.Delay.Class, r.Delay.Known, r.Delay.Value, r.Delay.Name, r.Delay.Mixed, r.Bound, r.Pure, r.Refuses, r.Weak, r.Spoken, r.Waiting, r.WaitFirst, r.Boundary, len(r.Waits), r.Callback)
			rep := func(id, msg string) {
				mu.Lock()
				defer mu.Unlock()
				found = append(found, finding{id, "high", name, pos.Line, msg, text})
			}
			rep("FB0000", "retry")
			switch r.Delay.Class {
			case retry.Fixed, retry.Immediate:
				rep("FB1001", "fixed")
			case retry.Growing:
				rep("FB1002", "grows")
			}
			for _, g := range []bool{false, true} {
				if n := res.Retried(r, g, func(x retry.Response) bool { return x.Final }); len(n) > 0 {
					rep("FB1035", strings.Join(n, ","))
					break
				}
			}
			if w := res.Writes(r); w != nil {
				rep("FB1030", fmt.Sprint(w.Method, w.Open, w.Depth))
			}
		}
		return nil, nil
	}}
	first, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedImports | packages.NeedDeps | packages.NeedModule}, flag.Args()...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	mods := map[string]bool{}
	for _, p := range first {
		asked[p.PkgPath] = true
		if p.Module != nil {
			mods[p.Module.Path] = true
		}
	}
	var paths []string
	packages.Visit(first, nil, func(p *packages.Package) {
		if asked[p.PkgPath] || p.Module != nil && mods[p.Module.Path] {
			paths = append(paths, p.PkgPath)
		}
	})
	pkgs, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax | packages.NeedModule}, paths...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	packages.Visit(pkgs, nil, func(p *packages.Package) {
		if p.TypesInfo == nil {
			p.TypesInfo = &types.Info{}
		}
		if p.Types == nil {
			p.Types = types.NewPackage(p.PkgPath, p.Name)
		}
		if p.Fset == nil {
			p.Fset = token.NewFileSet()
		}
	})
	var ok []*packages.Package
	for _, p := range pkgs {
		if !p.IllTyped && len(p.Errors) == 0 {
			ok = append(ok, p)
		} else {
			fmt.Fprintln(os.Stderr, p.PkgPath, p.Errors)
		}
	}
	g, err := checker.Analyze([]*analysis.Analyzer{a}, ok, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	for _, act := range g.Roots {
		if act.Err != nil {
			fmt.Fprintln(os.Stderr, act, act.Err)
		}
	}
	b, _ := json.MarshalIndent(map[string]any{"Findings": found, "Problems": []any{}}, "", " ")
	if name, ok := strings.CutPrefix(*out, "json:"); ok {
		os.WriteFile(name, b, 0o644)
	} else {
		for _, f := range found {
			fmt.Printf("%s:%d %s %s\n   %s\n", f.File, f.Line, f.ID, f.Message, f.Retry)
		}
	}
}
