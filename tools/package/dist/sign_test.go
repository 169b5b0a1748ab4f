package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What make sign writes is verified by what the guide tells users to type, and nothing
// else is: not other sums, not by another key, not what was signed for another purpose.
func TestSign(t *testing.T) {
	dir := t.TempDir()
	run := func(stdin, name string, args ...string) (string, error) {
		cmd := exec.Command(name, args...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	must := func(name string, args ...string) {
		t.Helper()
		if out, err := run("", name, args...); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
	}
	var signers [2]string
	for i, key := range []string{"key", "other"} {
		must("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", filepath.Join(dir, key))
		public, err := os.ReadFile(filepath.Join(dir, key+".pub"))
		if err != nil {
			t.Fatal(err)
		}
		signers[i] = filepath.Join(dir, key+".signers")
		if err := os.WriteFile(signers[i], []byte("releases@forbear "+string(public)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const sums = "00  forbear_1.2.3_linux_amd64.tar.gz\n"
	if err := os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(sums), 0o600); err != nil {
		t.Fatal(err)
	}
	must("make", "-s", "-C", root, "sign", "DIST="+dir, "KEY="+filepath.Join(dir, "key"))
	verify := func(signers, text, purpose string) error {
		_, err := run(text, "ssh-keygen", "-Y", "verify", "-f", signers, "-I", "releases@forbear", "-n", purpose, "-s", filepath.Join(dir, "SHA256SUMS.sig"))
		return err
	}
	if err := verify(signers[0], sums, "forbear-release"); err != nil {
		t.Errorf("the signature does not hold: %v", err)
	}
	for name, err := range map[string]error{
		"other sums":      verify(signers[0], "1"+sums, "forbear-release"),
		"another key":     verify(signers[1], sums, "forbear-release"),
		"another purpose": verify(signers[0], sums, "git"),
	} {
		if err == nil {
			t.Errorf("%s: verified", name)
		}
	}
	if out, err := run("", "make", "-s", "-C", root, "sign", "DIST="+dir); err == nil || !strings.Contains(out, "KEY is") {
		t.Errorf("without a key: %v, %s", err, out)
	}
}
