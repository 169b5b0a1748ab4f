//go:build !js

package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	scenario, err := io.ReadAll(os.Stdin)
	if err == nil {
		var out []byte
		if out, err = run(scenario); err == nil {
			_, err = os.Stdout.Write(out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
