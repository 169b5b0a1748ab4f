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
		{"pods are replaced", job("  backoffLimit: 2\n", "Never"), []string{"Job a [] x3,", "cannot R-1 : Kubernetes waits for 10s, 20s and so on up to 6m before it replaces its pod", "runs a pod again"}, []string{"container"}},
		{"containers are restarted", job("  backoffLimit: 2\n", "OnFailure"), []string{"Job a [] x3,", "up to 5m before it restarts its containers", "runs a container again"}, []string{"replaces"}},
		{"no limit", job("", "OnFailure"), []string{"has no backoffLimit: Kubernetes restarts its containers up to 6 times"}, []string{"replaces"}},
		{"none, but one", job("  backoffLimit: 0\n", "OnFailure"), []string{"Job a [] x2,", "note 6: Job a fails only once a container has been restarted, so that it may run twice: for none at all set restartPolicy: Never"}, nil},
		{"none", job("  backoffLimit: 0\n", "Never"), []string{"quiet 1\n"}, []string{"note", "x1"}},
	} {
		t.Run(tt.name, func(t *testing.T) { holds(t, said("job.yaml", tt.text), tt.want, tt.not) })
	}
}
