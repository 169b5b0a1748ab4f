package foreign

import "testing"

// Jobs that restart in their pod, and those whose pods are replaced.
func TestJobs(t *testing.T) {
	job := func(spec, restart string) string {
		return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec:\n  activeDeadlineSeconds: 60\n" + spec +
			"  template: {spec: {restartPolicy: " + restart + ", containers: []}}\n"
	}
	for _, tt := range []struct {
		name, text string
		want, not  []string
	}{
		{"pods are replaced", job("  backoffLimit: 2\n", "Never"), []string{"Job a [] x3,", "cannot R-1 : Kubernetes waits 10s, 20s and so on, up to 6m, before it replaces its pod", "runs a pod again"}, []string{"container"}},
		{"containers are restarted", job("  backoffLimit: 2\n", "OnFailure"), []string{"Job a [] x3,", "up to 5m, before it restarts its containers", "runs a container again"}, []string{"replaces"}},
		{"no limit", job("", "OnFailure"), []string{"has no backoffLimit: Kubernetes restarts its containers up to 6 times"}, []string{"replaces"}},
		{"none, but one", job("  backoffLimit: 0\n", "OnFailure"), []string{"Job a [] x2,", "note 6: Job a fails only after a container was restarted, so it may run twice: for no retry set restartPolicy: Never"}, nil},
		{"none", job("  backoffLimit: 0\n", "Never"), []string{"quiet 1\n"}, []string{"note", "x1"}},
	} {
		t.Run(tt.name, func(t *testing.T) { holds(t, said("job.yaml", tt.text), tt.want, tt.not) })
	}
}

// What decides in a file or in code whether, and for how long, work is done again.
func TestConditionsOfWork(t *testing.T) {
	workflow := func(strategy string) string {
		return "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {name: w}\nspec:\n  activeDeadlineSeconds: 60\n  templates:\n  - name: a\n    retryStrategy: {limit: 2, backoff: {duration: 1s, factor: 2}" + strategy + "}\n    container: {image: i}\n"
	}
	for _, tt := range []struct {
		name, file, text string
		want, not        []string
	}{
		{"Argo, whatever failed", "w.yaml", workflow(""), []string{"Workflow w/a [] x3", "cannot R-6"}, []string{"note"}},
		{"Argo, by an expression", "w.yaml", workflow(", expression: 'asInt(lastRetry.exitCode) > 1'"), []string{"Workflow w/a [] x3", "note 8: Workflow w/a is retried where its expression is true: whether that excludes operations that must not run twice (R-6) is not judged"}, []string{"cannot R-6"}},
	} {
		t.Run(tt.name, func(t *testing.T) { holds(t, said(tt.file, tt.text), tt.want, tt.not) })
	}
}

// A state that its own Catch leads back to is tried again without a retrier.
func TestStatesThatLoop(t *testing.T) {
	machine := func(states string) string { return `{"StartAt": "A", "States": {` + states + `}}` }
	const a = `"A": {"Type": "Task", "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "B"}], "Next": "C"}, `
	for _, tt := range []struct {
		name, text string
		want, not  []string
	}{
		{"by a choice and a wait", machine(a + `"B": {"Type": "Choice", "Choices": [{"Next": "W"}], "Default": "C"}, "W": {"Type": "Wait", "Next": "A"}, "C": {"Type": "Succeed"}`), []string{"state A [A] x1 at least", "note 1: a Catch of state A leads back to it: the choice between decides whether and how often it runs again", "cannot R-7 budget"}, []string{"quiet", "R-2", "R-3"}},
		{"to itself", machine(`"A": {"Type": "Task", "Catch": [{"Next": "A"}]}`), []string{"state A [A] x6 at least", "1 R-2 max_retries: its Catch leads back to it without a choice between, so it runs until it succeeds", "R-3 total.missing"}, []string{"R-1"}},
		{"by a wait", machine(`"A": {"Type": "Task", "Catch": [{"Next": "W"}]}, "W": {"Type": "Wait", "Next": "A"}`), []string{"without a choice between"}, nil},
		{"with retriers too", machine(`"A": {"Type": "Task", "TimeoutSeconds": 5, "Retry": [{"ErrorEquals": ["X"], "MaxAttempts": 2, "JitterStrategy": "FULL"}], "Catch": [{"Next": "A"}]}`), []string{"state A [A] x3 at least", "R-2 max_retries"}, nil},
		{"within a Map", machine(`"A": {"Type": "Map", "ItemProcessor": {"StartAt": "B", "States": {"B": {"Type": "Task", "Catch": [{"Next": "B"}]}}}}`), []string{"state B [A] x6 at least"}, nil},
		{"forward", machine(a + `"B": {"Type": "Pass", "Next": "C"}, "C": {"Type": "Succeed"}`), []string{"quiet 1\n"}, []string{"leads back"}},
		{"around, without a failure", machine(`"A": {"Type": "Task", "Next": "B"}, "B": {"Type": "Choice", "Choices": [], "Default": "A"}`), []string{"quiet 1\n"}, []string{"leads back"}},
	} {
		t.Run(tt.name, func(t *testing.T) { holds(t, said("m.asl.json", tt.text), tt.want, tt.not) })
	}
}

// A template whose lines are no YAML says how it can be checked, at the first of them.
func TestTemplates(t *testing.T) {
	const text = "queues:\n<% if ENV['Q'] %>\n  - <%= ENV['Q'] %>\n<% end %>\n"
	const want = "a template: render it with erb, and check the result"
	if opened := Open("a.yml", []byte(text), ""); opened.Why != want {
		t.Errorf("got %q, want %q", opened.Why, want)
	}
	holds(t, said("a.yml", text+"max_retries: 7\n"), []string{"fault 2: " + want}, nil)
	holds(t, said("t.yaml", "a: {{ .retries }}: b\n{{ if .c }}\nd: 1\n{{ end }}\n"), []string{"fault 1: a template"}, nil)
}
