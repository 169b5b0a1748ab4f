package main

import (
	"fmt"

	"github.com/forbear-go/forbear/lint"
)

func main() { fmt.Println(len(lint.Analyzers()) > 0) }
