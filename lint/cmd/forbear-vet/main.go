// Command forbear-vet runs forbear's analyzers under the go command:
//
//	go vet -vettool=$(which forbear-vet) ./...
//
// It reports what it is sure of (high confidence). The wider forms, with SARIF,
// baselines and fixes, are those of forbear lint.
package main

import (
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/forbear-go/forbear/lint"
)

func main() { unitchecker.Main(append(lint.Analyzers(), lint.Directives)...) }
