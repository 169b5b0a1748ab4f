package foreign

import (
	"strings"
	"testing"
)

// Where a file says the method of what is sent again, a write without a key is a finding, and
// of what is no write nothing is said.
func TestRetriedRequests(t *testing.T) {
	workflow := func(http string) string {
		return "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nspec:\n  templates: [{name: t, retryStrategy: {limit: 2}, " + http + "}]\n"
	}
	state := func(task string) string {
		return `{"StartAt": "a", "States": {"a": {"Type": "Task", ` + task + `, "Retry": [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 2}]}}}`
	}
	const http = `"Resource": "arn:aws:states:::http:invoke", `
	for _, tt := range []struct{ name, text, want string }{
		{"POST of Argo", workflow("http: {url: 'http://a', method: POST}"), "refused"},
		{"POST of Argo with a key", workflow("http: {url: 'http://a', method: POST, headers: [{name: idempotency-key, value: '{{workflow.uid}}'}]}"), "no word"},
		{"GET of Argo", workflow("http: {url: 'http://a'}"), "no word"},
		{"a method of a parameter", workflow("http: {url: 'http://a', method: '{{inputs.parameters.m}}'}"), "not known"},
		{"a container of Argo", workflow("container: {image: a}"), "not known"},
		{"POST of Step Functions", state(http + `"Parameters": {"Method": "POST", "ApiEndpoint": "https://a"}`), "refused"},
		{"PATCH of Step Functions, by JSONata", state(http + `"Arguments": {"Method": "PATCH"}`), "refused"},
		{"POST with a key of the input", state(http + `"Parameters": {"Method": "POST", "Headers": {"Idempotency-Key.$": "$.id"}}`), "no word"},
		{"GET of API Gateway", state(`"Resource": "arn:aws:states:::apigateway:invoke", "Parameters": {"Method": "GET"}`), "no word"},
		{"a function", state(`"Resource": "arn:aws:states:::lambda:invoke", "Parameters": {"Method": "POST"}`), "not known"},
	} {
		var refused, unknown bool
		for _, r := range Read(Open("f.yaml", []byte(tt.text), "").Parts) {
			for _, f := range r.Refused {
				refused = refused || f.Rule == "R-6" && strings.Contains(f.Message, "is sent again without the header Idempotency-Key")
			}
			for _, f := range r.File.Limits {
				unknown = unknown || f.Rule == "R-6"
			}
		}
		got := map[[2]bool]string{{true, false}: "refused", {false, true}: "not known", {false, false}: "no word"}[[2]bool{refused, unknown}]
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
