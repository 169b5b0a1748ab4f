package chart

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// A mistake is refused before anything is rendered, and the message says what to write.
func TestBadValues(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values string // of the cases
		set    []string
		want   string
	}{
		{"no image", "minimal", []string{"image.repository="}, "image.repository: no public registry has forbear's image yet: build it, push it"},
		{"no policy", "minimal", []string{"gateway.policy="}, "gateway.policy: the gateway needs a policy file: --set-file gateway.policy=policy.yaml"},
		{"two policies", "minimal", []string{"gateway.existingPolicy.configMap=mine"}, "gateway.policy and gateway.existingPolicy.configMap are both set"},
		{"nothing", "minimal", []string{"gateway.enabled=false"}, "nothing to install: set gateway.enabled or delivery.enabled"},
		{"no database", "delivery", []string{"delivery.database.existingSecret="}, "delivery.database.existingSecret: deliveries are kept in PostgreSQL: name a Secret"},
		{"no token of the API", "delivery", []string{"delivery.apiToken.existingSecret="}, "delivery.apiToken.existingSecret: beyond loopback the API demands a token"},
		{"keys of no Secret", "delivery", []string{"delivery.encryption.keys={a}"}, "delivery.encryption: existingSecret and keys go together"},
		{"a Secret without keys", "delivery", []string{"delivery.encryption.existingSecret=s"}, "delivery.encryption: existingSecret and keys go together"},
		{"a network without dependencies", "minimal", []string{"networkPolicy.enabled=true"}, "gateway.networkPolicy.egress: with networkPolicy.enabled the gateway reaches no dependency"},
		{"a secret in clear", "delivery", []string{"delivery.extraEnv[0].name=FORBEAR_SECRET_ACME", "delivery.extraEnv[0].value=whsec"}, "delivery.extraEnv: FORBEAR_SECRET_ACME is a secret: take it from a Secret"},
		{"a collector's key in clear", "minimal", []string{"gateway.extraEnv[0].name=OTEL_EXPORTER_OTLP_HEADERS", "gateway.extraEnv[0].value=api-key=k"}, "gateway.extraEnv: OTEL_EXPORTER_OTLP_HEADERS is a secret"},
		{"a password in a flag", "minimal", []string{"gateway.extraArgs={--fleet-budget=redis://:pass@redis/0}"}, "gateway.extraArgs: --fleet-budget has a secret"},
		{"a chat's address in a flag", "delivery", []string{"delivery.extraArgs={--alert-slack=https://hooks.example/T0/B0/x}"}, "delivery.extraArgs: --alert-slack has a secret"},
		{"a flag of the chart's", "minimal", []string{"gateway.extraArgs={--drain-delay=30s}"}, "gateway.extraArgs: --drain-delay is the chart's"},
		{"fewer than the fewest", "gateway", []string{"gateway.autoscaling.maxReplicas=2"}, "gateway.autoscaling: maxReplicas is below minReplicas"},

		{"a misspelt key", "minimal", []string{"gateway.replica=3"}, "at '/gateway': additional properties 'replica' not allowed"},
		{"a text for a number", "minimal", []string{"gateway.replicas=many"}, "at '/gateway/replicas': got string, want integer"},
		{"no time to end", "minimal", []string{"gateway.drain.timeoutSeconds=0"}, "at '/gateway/drain/timeoutSeconds': minimum: got 0, want 1"},
		{"a tag for a digest", "minimal", []string{"image.digest=v1"}, "at '/image/digest': 'v1' does not match pattern"},
		{"a tag in the repository", "minimal", []string{"image.repository=registry.example/forbear:v1"}, "at '/image/repository'"},
		{"a name that no Service has", "minimal", []string{"fullnameOverride=apps.forbear"}, "at '/fullnameOverride': 'apps.forbear' does not match pattern"},
		{"a name that is none", "delivery", []string{"delivery.database.existingSecret=My_Secret"}, "at '/delivery/database/existingSecret': 'My_Secret' does not match pattern"},
		{"an address for a prefix", "delivery", []string{"delivery.allowTargets={10.0.0.1}"}, "at '/delivery/allowTargets/0': '10.0.0.1' does not match pattern"},
		{"a word for a flag", "delivery", []string{"delivery.extraArgs={serve}"}, "at '/delivery/extraArgs/0': 'serve' does not match pattern"},
		{"callers from anywhere", "everything", []string{"delivery.networkPolicy.clients=null"}, "delivery.networkPolicy.clients: a rule without peers would let everyone in"},
		{"a sidecar for all", "minimal", []string{"sidecar.listen=0.0.0.0:8080"}, "at '/sidecar/listen': '0.0.0.0:8080' does not match pattern"},
		{"a token as a value", "minimal", []string{"admin.token.value=secret"}, "at '/admin/token': additional properties 'value' not allowed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := []string{"template", "forbear", chartDir, "-f", values(tt.values)}
			for _, s := range tt.set {
				args = append(args, "--set", s)
			}
			if out, err := helm(t, args...); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q\n%.200s", err, tt.want, out)
			}
		})
	}
}

// A flag may have a secret by its variable.
func TestSecretsOfFlags(t *testing.T) {
	template(t, "-f", values("delivery"), "--set", "delivery.extraArgs={--alert-slack=$(SLACK_URL),--fleet-budget=redis://:$(PASSWORD)@redis/0}")
}

// The longest names that helm allows are still those of labels and Services.
func TestLongNames(t *testing.T) {
	for _, name := range []string{strings.Repeat("a", 53), strings.Repeat("a", 43) + ".b", strings.Repeat("a-", 26) + "a"} {
		for _, hook := range []string{"true", "false"} {
			out, err := helm(t, "template", name, chartDir, "-f", values("everything"), "--set", "delivery.migration.hook="+hook)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range decode(t, out).objects {
				object := o.(metav1.Object)
				if bad := validation.IsDNS1035Label(object.GetName()); len(bad) > 0 {
					t.Errorf("%T: the name %s: %v", o, object.GetName(), bad)
				}
				for key, value := range object.GetLabels() {
					if bad := validation.IsValidLabelValue(value); len(bad) > 0 {
						t.Errorf("%T: the label %s: %v", o, key, bad)
					}
				}
			}
		}
	}
}

// The schema knows the values that there are, and no others: what it allows, values.yaml
// has and comments.
func TestSchemaHasTheValues(t *testing.T) {
	var schema map[string]any
	data, err := os.ReadFile(chartDir + "/values.schema.json")
	if err == nil {
		err = json.Unmarshal(data, &schema)
	}
	if err != nil {
		t.Fatal(err)
	}
	definitions := schema["definitions"].(map[string]any)
	inSchema := map[string]bool{}
	var walk func(path string, s map[string]any)
	walk = func(path string, s map[string]any) {
		if ref, ok := s["$ref"].(string); ok {
			s = definitions[strings.TrimPrefix(ref, "#/definitions/")].(map[string]any)
		}
		properties, _ := s["properties"].(map[string]any)
		if properties == nil || strings.HasSuffix(path, ".resources") {
			inSchema[path] = true
			return
		}
		for name, p := range properties {
			walk(strings.TrimPrefix(path+"."+name, "."), p.(map[string]any))
		}
	}
	walk("", schema)
	delete(inSchema, "global") // helm's own
	rows := map[string]bool{}
	for _, r := range documented(t) {
		rows[r.key] = true
	}
	for key := range inSchema {
		if !rows[key] {
			t.Errorf("%s has no comment in values.yaml", key)
		}
		delete(rows, key)
	}
	if len(rows) > 0 {
		t.Errorf("not in the schema: %v", slices.Sorted(maps.Keys(rows)))
	}
}

// row is a value with its comment.
type row struct{ key, value, comment string }

// documented reads the values with a comment "# -- " above them.
func documented(t *testing.T) (rows []row) {
	t.Helper()
	data, err := os.ReadFile(chartDir + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := yaml.UnmarshalStrict(data, &tree); err != nil {
		t.Fatal(err)
	}
	var parents []string // by indentation
	comment := ""
	for line := range strings.Lines(string(data)) {
		text := strings.TrimSpace(line)
		if c, ok := strings.CutPrefix(text, "# -- "); ok {
			comment = c
			continue
		}
		name, _, ok := strings.Cut(text, ":")
		if !ok || strings.HasPrefix(text, "#") {
			continue
		}
		depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2
		if depth > len(parents) { // below a value that has its comment
			continue
		}
		parents = append(parents[:depth], name)
		if comment == "" {
			continue
		}
		rows = append(rows, row{strings.Join(parents, "."), inline(t, tree, parents), comment})
		parents, comment = parents[:depth], ""
	}
	return rows
}

// inline writes a value of the tree in one line.
func inline(t *testing.T, tree map[string]any, path []string) string {
	t.Helper()
	var v any = tree
	for _, name := range path {
		v = v.(map[string]any)[name]
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
