package foreign

import "testing"

// A file that no one named has to say that it is a policy: by its fields, its name, its
// version or its schema. One that was named may have more mistakes in it.
func TestPolicyShape(t *testing.T) {
	for _, tt := range []struct {
		name, file, text string
		met, named       bool // whether it is taken for a policy file
	}{
		{"by its fields", "retries.yaml", "service: a\ndependencies: {b: {max_retries: 2}}\n", true, true},
		{"by its fields, with two mistakes", "retries.yaml", "servce: a\ndependncies: {b: {max_retrys: 2}}\n", true, true},
		{"by its version", "retries.yaml", "version: 1\nservice: a\ndependencies: {b: {}}\n", true, true},
		{"by its version, in JSON", "retries.json", `{"version": 1, "service": "a", "dependencies": {"b": {}}}`, true, true},
		{"by its schema", "retries.yaml", "# yaml-language-server: $schema=https://raw.githubusercontent.com/forbear-go/forbear/main/policyfile/schema.json\nservice: a\ndependencies: {b: {}}\n", true, true},
		{"by its name", "forbear.yaml", "dependencies: {b: {}}\n", true, true},
		{"by its name, with a wrong section", "policy.yaml", "service: a\ndeps: {b: {owner: a}}\n", true, true},
		{"by a name in a folder", "payments-policy.yml", "service: a\n", true, true},
		{"empty entries", "retries.yaml", "dependencies: {b: {}}\n", false, false},
		{"service alone", "retries.yaml", "service: a\n", false, true},
		{"service with a slip", "retries.yaml", "service: a\ndeps: {b: {owner: a}}\n", false, false},

		{"a service, and empty entries", "retries.yaml", "service: orders\ndependencies: {payments: {}, ledger: {}}\n", true, true},
		{"a service, and fields of another kind", "retries.yaml", "service: orders\ndependencies: {payments: {url: 'https://p', retries: 99}}\n", true, true},
		{"a later version", "retries.yaml", "version: 2\nservice: orders\ndependencies: {payments: {target: p, attempts: 99}}\n", true, true},
		{"a gateway with its dependencies", "retries.yaml", "gateway: {listen: ':80', routes: [{prefix: /, dependency: a}]}\ndependencies: {a: {owner: x, url: 'https://a'}}\n", true, true},
		{"waivers alone", "waivers.yaml", "waivers: [{id: W-1, rule: R-2, files: [a]}]\n", true, true},

		{"values with observability", "values.yaml", "image: {tag: a}\nobservability: {metrics: {enabled: true}, logs: {level: info}}\n", false, false},
		{"values with a service and a gateway", "values.yaml", "service: {type: ClusterIP, port: 80}\ngateway: {enabled: true, tls: {secretName: x}, routes: []}\n", false, false},
		{"webhooks of another program", "hooks.yaml", "version: \"3.1\"\nwebhooks: {github: {url: x, secret: y, events: [push]}}\n", false, false},
		{"waivers of a scanner", "waivers.yaml", "waivers: [{id: CVE-1, reason: x, expires: 2027-01-01, owner: y}]\n", false, true},
		{"profiles of another program", "profiles.yaml", "profiles: {dev: {kind: cluster}}\n", false, true},
		{"profiles of .NET", "launchSettings.json", `{"$schema": "https://json.schemastore.org/launchsettings.json", "profiles": {"http": {"commandName": "Project", "applicationUrl": "http://a"}}}`, false, false},
		{"lock file of NuGet", "packages.lock.json", `{"version": 1, "dependencies": {"net8.0": {"Newtonsoft.Json": {"type": "Direct", "resolved": "13.0.1"}}}}`, false, false},
		{"empty lock file of NuGet", "packages.lock.json", `{"version": 1, "dependencies": {"net10.0": {}}}`, false, false},
		{"package of npm", "package.json", `{"name": "a", "version": "1", "dependencies": {}}`, false, false},
		{"values of a chart", "values.yaml", "gateway:\n  image: a\n  replicas: 2\n", false, false},
		{"more values of a chart", "values.yaml", "service: {type: ClusterIP}\nidempotency: {enabled: true}\ngateway: {image: a}\n", false, false},
		{"list of protos", "buf.yaml", "version: v1\ndependencies: {a: {path: b}}\n", false, false},
		{"packages of Dart", "pubspec.yaml", "name: a\nversion: 1.0.0\ndependencies: {flutter: {sdk: flutter}}\n", false, false},
		{"resource of Kubernetes", "forbear.yaml", "apiVersion: v1\nkind: Service\nspec: {}\n", false, false},
		{"policy of another kind", "policy.yaml", "version: 1\npolicies: {a: {effect: allow, actions: []}}\n", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, open := range []struct {
				how  string
				open func(string, []byte, string) *Opened
				want bool
			}{{"met", OpenMet, tt.met}, {"named", Open, tt.named}} {
				got := open.open(tt.file, []byte(tt.text), "")
				if is := len(got.Policies) == 1; is != open.want || len(got.Faults) > 0 {
					t.Errorf("%s: taken for a policy %v, want %v (%v)", open.how, is, open.want, got.Faults)
				}
			}
		})
	}
}
