package main

import (
	"fmt"

	"github.com/forbear-go/forbear/redisstore"
)

func main() {
	s, err := redisstore.Open("redis://127.0.0.1:6379")
	fmt.Println(s != nil, err)
}
