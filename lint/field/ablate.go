package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/forbear-go/forbear/lint/internal/ablate"
)

// ablated counts the labelled places with all parts of the linter, and then without
// each, over the modules that are there and have a place with a finding. A part whose
// line is that of all parts is of no use.
func (o *options) ablated(byModule map[string][]*site) error {
	maps.DeleteFunc(byModule, func(module string, _ []*site) bool {
		_, err := os.Stat(filepath.Join(o.src, strings.ReplaceAll(module, "/", "_")))
		return err != nil
	})
	if len(byModule) == 0 {
		return errors.New("no such module was judged before: run without -ablate first, which downloads them")
	}
	fmt.Printf("%-14s %12s %14s %10s   %s\n", "without", "true at high", "false at high", "innocents", "what it does")
	whole := ablate.Part{Does: "(all parts)"}
	for _, part := range append([]ablate.Part{whole}, ablate.Parts...) {
		without = part.Name
		sites, found := o.all(byModule)
		right, wrong, accused := count(sites, found)
		fmt.Printf("%-14s %12d %14d %10d   %s\n", part.Name, right, wrong, accused, part.Does)
	}
	return nil
}

// count counts the findings of high confidence at labelled places, one for each rule
// and place, and the innocent places that are reported with medium confidence or more.
func count(sites []*site, found []finding) (right, wrong, accused int) {
	for _, s := range sites {
		innocent, reported := true, false
		for _, rule := range rules {
			got := s.reported(rule, found)
			innocent = innocent && s.labels[rule] == "no"
			reported = reported || got > 1
			switch {
			case got == 3 && s.labels[rule] == "yes":
				right++
			case got == 3 && s.labels[rule] == "no":
				wrong++
			}
		}
		if innocent && reported {
			accused++
		}
	}
	return right, wrong, accused
}
