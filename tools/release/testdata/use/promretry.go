package main

import (
	"fmt"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/promretry"
)

func main() {
	_, err := forbear.New("payments", forbear.Policy{}, forbear.WithObserver(promretry.New().Observer()))
	fmt.Println(err)
}
