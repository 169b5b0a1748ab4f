package main

import (
	"fmt"

	"github.com/forbear-go/forbear/client"
)

func main() {
	c, err := client.NewClientWithResponses("http://127.0.0.1:8080")
	fmt.Println(c != nil, err)
}
