package driver

import (
	"go/types"
	"reflect"
	"sync"

	"golang.org/x/tools/go/analysis"
)

// factStore keeps the facts about functions by name, so that a function that
// was type-checked from source and the same one read from export data share
// them. The zero value is ready; it is safe for concurrent use.
// The objects themselves cannot be the keys: the two forms of a package have
// different ones.
type factStore struct{ m sync.Map } // of factKey and analysis.Fact

// factKey names a fact about a function.
// The type is a part of it, since several analyzers may keep facts about one
// function.
type factKey struct {
	fn  string
	typ reflect.Type
}

// keyOf returns the key of a fact; ok is false for objects that have no facts
// here. Instances of a generic function share those of their origin.
// Facts about packages, types and variables are dropped: no analyzer here has
// any.
func keyOf(obj types.Object, f analysis.Fact) (factKey, bool) {
	fn, ok := obj.(*types.Func)
	if !ok || fn.Pkg() == nil {
		return factKey{}, false
	}
	return factKey{fn.Origin().FullName(), reflect.TypeOf(f)}, true
}

// exporter returns the function of analysis.Pass that keeps facts here, and in
// kept what the package has exported, for the cache. A pass exports its facts one after
// the other.
func (s *factStore) exporter(kept *[]keptFact) func(types.Object, analysis.Fact) {
	return func(obj types.Object, f analysis.Fact) {
		if k, ok := keyOf(obj, f); ok {
			s.m.Store(k, f)
			*kept = append(*kept, keptFact{k.fn, f})
		}
	}
}

// keptFact is a fact as the cache has it.
type keptFact struct {
	Func string
	Fact analysis.Fact
}

// restore puts the facts of a package back that an earlier run has exported.
func (s *factStore) restore(kept []keptFact) {
	for _, k := range kept {
		s.m.Store(factKey{k.Func, reflect.TypeOf(k.Fact)}, k.Fact)
	}
}

// importObject is that of analysis.Pass: it fills f with the stored fact and reports whether there was one.
// The fact is copied, since analyzers own what they are given.
// The runner waits for a dependency before its dependents, so a missing fact
// means that there is none, not that it comes later.
func (s *factStore) importObject(obj types.Object, f analysis.Fact) bool {
	k, ok := keyOf(obj, f)
	if !ok {
		return false
	}
	stored, ok := s.m.Load(k)
	if ok {
		// Both are pointers to the same type, because the type is part of the key.
		reflect.ValueOf(f).Elem().Set(reflect.ValueOf(stored).Elem())
	}
	return ok
}
