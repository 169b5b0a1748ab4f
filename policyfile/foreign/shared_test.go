package foreign

import "testing"

// A product has no more of a map than its own settings: what stands beside them is
// looked into, and so is a text of one line under the name of a file.
func TestSharedMaps(t *testing.T) {
	const other = "a retry setting that check does not read"
	for _, tt := range []struct {
		name, file, text string
		want, not        []string
	}{
		{"containers", "compose.yaml", `
services:
  web:
    environment: {AWS_MAX_ATTEMPTS: "50"}
`, []string{"4 R-2 max_retries"}, []string{other}},
		{"a container of another name", "compose.yaml", `
services:
  web: {environment: {AWS_MAX_ATTEMPTS: "2"}}
  job: {environment: {app.retry.max-attempts: "50"}}
`, []string{"unread 4: " + other}, nil},
		{"sections of resilience4j", "app.yaml", "resilience4j: {retry: {instances: {a: {maxAttempts: 2}}}}\nworker: {maxRetries: 50}\n", []string{"unread 2: " + other}, nil},
		{"both of Spring's", "app.yaml", "resilience4j: {retry: {instances: {a: {maxAttempts: 50}}}}\nspring: {cloud: {gateway: {routes: []}}}\n", []string{"1 R-2 max_retries"}, []string{other}},
		{"the data of a ConfigMap", "a.yaml", "kind: ConfigMap\ndata:\n  proxy-next-upstream: \"off\"\n  other.yaml: |\n    maxRetries: 50\n", []string{"unread 5: " + other}, nil},
		{"a service config", "a.yaml", "methodConfig: [{name: [{}], timeout: 1s}]\nworker: {maxRetries: 50}\n", []string{"unread 2: " + other}, nil},
		{"a mesh", "a.yaml", "defaultHttpRetryPolicy: {attempts: 1}\nworker: {maxRetries: 50}\n", []string{"unread 2: " + other}, nil},
		{"properties of one line", "a.yaml", "kind: ConfigMap\ndata:\n  application.properties: resilience4j.retry.instances.a.max-attempts=50\n", []string{"3 R-2 max_retries"}, nil},
		{"nginx on one line", "a.yaml", "kind: ConfigMap\ndata:\n  nginx.conf: \"events {} http { server { location / { proxy_pass http://a; } } }\"\n", []string{"a is a name"}, nil},
		{"YAML on one line", "a.yaml", "kind: ConfigMap\ndata:\n  a.yaml: \"defaultHttpRetryPolicy: {attempts: 50}\"\n", []string{"3 R-2 max_retries"}, nil},
		{"in base64 by a tag", "a.yaml", "kind: ConfigMap\ndata:\n  a.yaml: !!binary ZGVmYXVsdEh0dHBSZXRyeVBvbGljeToge2F0dGVtcHRzOiA1MH0K\n", []string{"3 R-2 max_retries"}, nil},
		{"an alias for a key", "a.yaml", "a: &k attempts\ndefaultHttpRetryPolicy: {*k : 50}\n", []string{"2 R-2 max_retries"}, nil},
		{"a key in base64", "a.yaml", "defaultHttpRetryPolicy: {!!binary YXR0ZW1wdHM= : 50}\n", []string{"1 R-2 max_retries"}, nil},
		{"a number of another base", "a.yaml", "defaultHttpRetryPolicy: {attempts: 0x32}\n", []string{"50 retries"}, nil},
		{"a variable beside", "a.yaml", "defaultHttpRetryPolicy: {attempts: 1}\nenv:\n- {name: LOGIN_ATTEMPT, value: x}\n- {name: CLIENT_MAX_RETRIES, value: \"50\"}\n", []string{"unread 4: " + other}, nil},
		{"variables in a map", "a.yaml", "defaultHttpRetryPolicy: {attempts: 1}\nenvironment:\n  APP_RETRY_LIMIT: 50\n", []string{"unread 3: " + other}, nil},
		{"what was applied last", "a.yaml", "kind: ConfigMap\nmetadata:\n  annotations:\n    kubectl.kubernetes.io/last-applied-configuration: |\n      {\"defaultHttpRetryPolicy\": {\"attempts\": 50}}\ndata:\n  a.yaml: \"defaultHttpRetryPolicy: {attempts: 1}\"\n", []string{"x2"}, []string{"x51"}},
		{"a list of resources", "a.yaml", "apiVersion: networking.istio.io/v1\nkind: VirtualServiceList\nspec: {}\nitems:\n- retries: 50\n", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) { holds(t, said(tt.file, tt.text), tt.want, tt.not) })
	}
}
