package policyfile

import (
	"strings"
	"testing"
	"time"
)

func TestEnvironment(t *testing.T) {
	const text = "dependencies: {a: {url: {env: FORBEAR_TEST_URL}}}\ngateway: {routes: [{prefix: /a, dependency: a}]}\n"
	if _, err := Parse("f", []byte(text)); err == nil || !strings.Contains(err.Error(), "FORBEAR_TEST_URL is not set") {
		t.Errorf("got %v, want the missing variable", err)
	}
	// The gate runs where the variables are not set.
	if _, refused, err := Inspect("f", []byte(text)); err != nil || refused != nil {
		t.Errorf("Inspect: %v, %v", refused, err)
	}
	t.Setenv("FORBEAR_TEST_URL", "https://a.internal")
	f, err := Parse("f", []byte(text))
	if err != nil || f.Dependencies[0].URL != "https://a.internal" {
		t.Errorf("got %+v, %v", f, err)
	}
	// Elsewhere the environment is not read.
	if _, err := Parse("f", []byte("dependencies: {a: {owner: {env: FORBEAR_TEST_URL}}}\n")); err == nil {
		t.Error("an owner came from the environment")
	}
}

// A secret in clear is refused, and does not reach the message.
func TestSecrets(t *testing.T) {
	_, err := Parse("f", []byte("webhooks: {a: {secret: whsec_abc}}\n"))
	if err == nil || strings.Contains(err.Error(), "whsec") || !strings.Contains(err.Error(), "(R-9)") {
		t.Errorf("got %v", err)
	}
	f, err := Parse("f", []byte("webhooks: {a: {secret: {env: HOOK_SECRET}, dead_letter: {queue: q, alert: w}}}\nconsumers: {b: {dedup: 8d}}\n"))
	if err != nil || f.Webhooks[0].SecretEnv != "HOOK_SECRET" || f.Webhooks[0].DeadLetter != (DeadLetter{"q", "w"}) {
		t.Errorf("got %+v, %v", f, err)
	}
	if f.Consumers[0].Dedup != 8*24*time.Hour || !f.Consumers[0].Policy.Kind.Durable() {
		t.Errorf("consumer %+v", f.Consumers[0])
	}
}

func TestNamesAreUniqueAcrossSections(t *testing.T) {
	_, err := Parse("f", []byte("dependencies: {a: {}}\nconsumers: {a: {}}\n"))
	if err == nil || err.Error() != "f:2:13: a appears twice, first on line 1: rename or remove one" {
		t.Errorf("got %v", err)
	}
	_, err = Parse("f", []byte("webhooks: {a: {kind: sync}}\n"))
	if err == nil || !strings.Contains(err.Error(), "want webhook") {
		t.Errorf("got %v", err)
	}
}
