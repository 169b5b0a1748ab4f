package main

import (
	"fmt"

	"github.com/forbear-go/forbear/policyfile"
)

func main() {
	f, err := policyfile.Parse("forbear.yaml", []byte("service: checkout\ndependencies:\n  payments: {owner: checkout}\n"))
	fmt.Println(f != nil, err)
}
