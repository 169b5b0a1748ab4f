package foreign

import "testing"

// A file that is recognized may hold retries of something else.
func TestRetriesBeside(t *testing.T) {
	const (
		job   = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {backoffLimit: 2, activeDeadlineSeconds: 60}\n---\n"
		other = "a retry setting that check does not read"
	)
	for _, tt := range []struct {
		name, file, text string
		want, not        []string
	}{
		{"of another kind", "a.yaml", job + "kind: Application\napiVersion: example.com/v1\nspec:\n  syncPolicy: {retry: {limit: 50}}\n", []string{"unread 9: " + other}, nil},
		{"in an environment", "a.yaml", job + "kind: Deployment\nspec: {env: {app.retry.max-attempts: 50}}\n", []string{"unread 7: " + other}, nil},
		{"in JSON", "a.json", `{"A": {"defaultHttpRetryPolicy": {"attempts": 1}}, "B": {"RetryCount": 50}}`, []string{"unread 1: " + other}, nil},
		{"in a patch", "a.yaml", job + "- op: replace\n  path: /spec/http/0/retries/attempts\n  value: 50\n", []string{"unread 7: " + other}, nil},
		{"in a patch within", "a.yaml", job + "kind: Kustomization\npatches:\n- patch: |-\n    - op: replace\n      path: /spec/http/0/retries/attempts\n      value: 50\n", []string{"unread 10: " + other}, nil},
		{"in a text", "a.yaml", job + "kind: ConfigMap\ndata:\n  app.yaml: |\n    client:\n      retry: {limit: 50}\n", []string{"unread 10: " + other}, nil},
		{"none", "a.yaml", job + "kind: Service\nspec: {retryable: true}\n", []string{"Job a"}, []string{other}},
	} {
		t.Run(tt.name, func(t *testing.T) { holds(t, said(tt.file, tt.text), tt.want, tt.not) })
	}
}
