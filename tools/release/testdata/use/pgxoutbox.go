package main

import (
	"fmt"

	"github.com/forbear-go/forbear/pgxoutbox"
)

func main() { fmt.Println(pgxoutbox.Outbox{MaxPayload: 1}) }
