package main

import (
	"fmt"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/grpcretry"
)

func main() {
	r := forbear.Must(forbear.New("payments", forbear.Policy{}))
	fmt.Println(len(grpcretry.DialOptions(r)) > 0)
}
