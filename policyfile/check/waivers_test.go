package check

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// keyring makes keys and the file of allowed signers.
type keyring struct {
	t   *testing.T
	dir string
}

func newKeyring(t *testing.T, signers map[string]string) *keyring {
	t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Fatal("ssh-keygen is missing: apt-get install openssh-client")
	}
	k := &keyring{t, t.TempDir()}
	var allowed strings.Builder
	for name, namespaces := range signers {
		k.run("", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", k.path(name))
		public, err := os.ReadFile(k.path(name) + ".pub")
		if err != nil {
			t.Fatal(err)
		}
		allowed.WriteString(name + ` namespaces="` + namespaces + `" ` + string(public))
	}
	if err := os.WriteFile(k.path("allowed"), []byte(allowed.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k *keyring) path(name string) string { return filepath.Join(k.dir, name) }

func (k *keyring) run(stdin string, args ...string) string {
	k.t.Helper()
	c := exec.CommandContext(k.t.Context(), "ssh-keygen", args...)
	c.Stdin = strings.NewReader(stdin)
	out, err := c.Output()
	if err != nil {
		k.t.Fatalf("ssh-keygen %v: %v", args, err)
	}
	return string(out)
}

const waived = `service: checkout
dependencies:
  payments: {owner: checkout, strict: true, max_retries: MAX, per_attempt: 1s, backoff: {base: 200ms}}
waivers:
  - id: W-1
    rule: R-2
    dependency: payments
    reason: a slow partner
    owner: bob
    ticket: ARCH-118
    created: 2026-11-01
    expires: 2027-04-01
`

// signed returns the policy above with an approval, signed over the payload of
// the file as it stands in original.
func (k *keyring) signed(text, original, key, by, role, namespace string) string {
	k.t.Helper()
	s := parse(k.t, "policy.yaml", original)
	signature := k.run(string(Payload(s.File, &s.File.Waivers[0])), "-q", "-Y", "sign", "-n", namespace, "-f", k.path(key))
	var b strings.Builder
	b.WriteString(text + "    approvals:\n      - by: " + by + "\n")
	if role != "" {
		b.WriteString("        role: " + role + "\n")
	}
	b.WriteString("        signature: |\n")
	for line := range strings.Lines(signature) {
		b.WriteString("          " + line)
	}
	return b.String()
}

func TestSignatures(t *testing.T) {
	k := newKeyring(t, map[string]string{
		"alice": Namespace, "bob": Namespace + "," + NamespaceIAB, "iris": Namespace + "," + NamespaceIAB,
	})
	over := strings.Replace(waived, "MAX", "6", 1)
	later := strings.Replace(over, "2027-04-01", "2027-04-20", 1)
	loud := strings.Replace(over, "owner: bob", "owner: BOB", 1)
	fewer := strings.Replace(waived, "MAX", "7", 1)
	elsewhere := strings.Replace(over, "service: checkout", "service: search", 1)
	for _, tt := range []struct {
		name string
		text string
		want []string // the ids that count
	}{
		{"the board signs", k.signed(over, over, "iris", "iris", "iab", NamespaceIAB), nil},
		{"not of the board", k.signed(over, over, "alice", "alice", "iab", NamespaceIAB), []string{"FC201", "FC907"}},
		{"claims the role alone", k.signed(over, over, "iris", "iris", "iab", Namespace), []string{"FC201", "FC907"}},
		{"no claim of the role", k.signed(over, over, "alice", "alice", "", Namespace), []string{"FC201", "FC909"}},
		{"another's name", k.signed(over, over, "alice", "iris", "iab", NamespaceIAB), []string{"FC201", "FC907"}},
		{"prolonged after the signature", k.signed(later, over, "iris", "iris", "iab", NamespaceIAB), []string{"FC201", "FC907"}},
		{"taken from another service", k.signed(over, elsewhere, "iris", "iris", "iab", NamespaceIAB), []string{"FC201", "FC907"}},
		{"a larger count than was signed", k.signed(fewer, over, "iris", "iris", "iab", NamespaceIAB), []string{"FC201", "FC208", "FC907"}},
		{"the owner signs", k.signed(over, over, "bob", "bob", "iab", NamespaceIAB), []string{"FC201", "FC906"}},
		{"the owner signs in other letters", k.signed(loud, loud, "bob", "bob", "iab", NamespaceIAB), []string{"FC201", "FC906"}},
		{"not signed", over, []string{"FC201", "FC905", "FC909"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Run([]Source{parse(t, "policy.yaml", tt.text)}, Options{Now: today, AllowedSigners: k.path("allowed")})
			found := ids(got.Findings)
			slices.Sort(found)
			if !slices.Equal(found, tt.want) || len(got.Unjudged) > 0 {
				t.Errorf("got %v (unjudged %v), want %v", found, got.Unjudged, tt.want)
			}
		})
	}
}

// An owner with a second name in the file of signers is still the owner.
func TestOwnerUnderAnotherName(t *testing.T) {
	k := newKeyring(t, map[string]string{"bob": Namespace + "," + NamespaceIAB})
	allowed, err := os.ReadFile(k.path("allowed"))
	if err != nil {
		t.Fatal(err)
	}
	twice := string(allowed) + strings.Replace(string(allowed), "bob", "bobby", 1)
	if err := os.WriteFile(k.path("allowed"), []byte(twice), 0o600); err != nil {
		t.Fatal(err)
	}
	over := strings.Replace(waived, "MAX", "6", 1)
	text := k.signed(over, over, "bob", "bobby", "iab", NamespaceIAB)
	got := Run([]Source{parse(t, "policy.yaml", text)}, Options{Now: today, AllowedSigners: k.path("allowed")})
	if !slices.Contains(ids(got.Findings), "FC906") {
		t.Errorf("got %v, want FC906", got.Findings)
	}
}

func TestMissingSignersAreNotJudged(t *testing.T) {
	over := strings.Replace(waived, "MAX", "6", 1) + "    approvals: [{by: iris, role: iab, signature: x}]\n"
	got := Run([]Source{parse(t, "policy.yaml", over)}, Options{Now: today, AllowedSigners: filepath.Join(t.TempDir(), "none")})
	if len(got.Unjudged) == 0 {
		t.Error("a missing file of signers was no trouble")
	}
}

func TestNothingWaivesR9(t *testing.T) {
	text := "dependencies:\n  payments: {owner: a, strict: true, tls: {verify: false}}\nwaivers:\n" +
		"  - {id: W-9, rule: R-9, dependency: payments, reason: lab, owner: bob, expires: 2027-01-01}\n"
	got := Run([]Source{parse(t, "policy.yaml", text)}, Options{Now: today})
	if want := []string{"FC601", "FC908"}; !slices.Equal(ids(got.Findings), want) {
		t.Errorf("got %v, want %v", got.Findings, want)
	}
}
