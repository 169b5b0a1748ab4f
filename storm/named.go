package storm

import (
	_ "embed"
	"encoding/json"
)

//go:embed named.json
var named []byte

// Named returns the scenarios that come with the simulator: the worked cases of
// the standard, the budget article and the lesson, and those of the literature.
// Each is a fresh copy, to be changed at will.
func Named() (all []Scenario) {
	if err := json.Unmarshal(named, &all); err != nil {
		panic(err) // embedded: a mistake of the build
	}
	return all
}

// FindNamed returns the named scenario; ok is false when none has that name.
func FindNamed(name string) (s Scenario, ok bool) {
	for _, s := range Named() {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}
