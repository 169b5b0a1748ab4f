package main

import "syscall/js"

// main hands simulate(scenario) to the worker that loads it: JSON in, JSON out,
// and an error as {"error": "..."}.
func main() {
	js.Global().Set("simulate", js.FuncOf(func(_ js.Value, args []js.Value) any {
		out, err := run([]byte(args[0].String()))
		if err != nil {
			return js.ValueOf(map[string]any{"error": err.Error()})
		}
		return string(out)
	}))
	select {}
}
