package main

import (
	"context"
	"fmt"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

func main() {
	r := forbear.Must(forbear.New("payments", forbear.Policy{}))
	err := r.Do(context.Background(), func(context.Context) error { return nil })
	fmt.Println(err, httpretry.NewTransport(nil, r) != nil)
}
