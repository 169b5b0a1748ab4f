package simfile

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// What a client says in words is what the same settings are in a policy file.
func TestWordsMeanWhatFilesMean(t *testing.T) {
	for _, tt := range []struct{ words, policy string }{
		{"{}", ""},
		{"{retries: 2, timeout: 1s, base: 100ms, cap: 2s}", "max_retries: 2, per_attempt: 1s, backoff: {base: 100ms, cap: 2s}"},
		{"{total: 20s, jitter: decorrelated}", "total: 20s, backoff: {jitter: decorrelated}"},
		{"{budget: {ratio: 10%, window: 1m, min_retries: 5, of: total}}", "budget: {ratio: 10%, window: 1m, min_retries: 5, of: total}"},
		{"{kind: webhook, retries: 4}", "kind: webhook, max_attempts: 5"},
		{"{kind: event}", "kind: event"},
		{"{breaker: false}", "breaker: {disabled: true}"},
		{"{strict: true}", "strict: true"},
		{"{retries: 0}", "disabled: true"},
	} {
		dir := t.TempDir()
		write(t, dir, "policy.yaml", "service: web\ndependencies:\n  api: {url: 'http://api.internal', owner: web, "+tt.policy+"}\n")
		parsed := func(client string) (p any) {
			text := fmt.Sprintf("fleets: [{rate: 10, client: %s}]\nservices: [{name: s}]\n", client)
			s, err := Parse(filepath.Join(dir, "scenario.yaml"), []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			policy, err := s.Fleets[0].Client.AsPolicy()
			if err != nil {
				t.Fatal(err)
			}
			policy = policy.WithDefaults()
			policy.Owner = "" // a scenario's fleet owns its retries
			return policy
		}
		if words, file := parsed(tt.words), parsed("{policy: policy.yaml#api}"); !reflect.DeepEqual(words, file) {
			t.Errorf("%s:\n%+v\nand as a file\n%+v", tt.words, words, file)
		}
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
