//forbear:plain nothing runs at once
package sarifcheck

import (
	"strings"
	"testing"
)

const log = `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"t","rules":[{"id":"A"},{"id":"B"}],"notifications":[{"id":"N"},{"id":"O"}]}},
"invocations":[{"executionSuccessful":false,"toolExecutionNotifications":[{"level":"note","descriptor":{"id":"O","index":1},"message":{"text":"n"}}]}],"results":[
{"ruleId":"B","ruleIndex":1,"level":"error","message":{"text":"m"},
"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a.go"},"region":{"startLine":3,"startColumn":2,"endLine":3,"endColumn":4}}}]}]}]}`

func TestCheck(t *testing.T) {
	if err := Check([]byte(log)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, from, to, want string }{
		{"version", "2.1.0", "2.0.0", "want 2.1.0"},
		{"unknown property", `"level"`, `"levels"`, "levels is not one of the standard's"},
		{"level", `"error"`, `"fatal"`, "want one of [none note warning error]"},
		{"message", `"message":{"text":"m"}`, `"kind":"fail"`, "message is missing"},
		{"rule", `"ruleIndex":1`, `"ruleIndex":0`, "ruleIndex 0 is not that of B"},
		{"notification", `"index":1`, `"index":0`, "index 0 is not that of O"},
		{"notification's message", `,"message":{"text":"n"}`, ``, "message is missing"},
		{"line", `"startLine":3`, `"startLine":0`, "want a position"},
		{"end", `"endColumn":4`, `"endColumn":1`, "ends before it begins"},
		{"uri", `"uri":"a.go"`, `"uri":"a b.go"`, "want a uri"},
		{"list", `"locations":[`, `"locations":null,"fixes":[`, "want a list"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := Check([]byte(strings.Replace(log, tt.from, tt.to, 1))); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
