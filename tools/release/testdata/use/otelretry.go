package main

import (
	"fmt"

	"github.com/forbear-go/forbear/otelretry"
)

func main() {
	o, err := otelretry.New()
	fmt.Println(o != nil, err)
}
