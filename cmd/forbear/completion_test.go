package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/commands"
)

// completionCases are what each shell completes, the same in all of them: a command
// line, and what it becomes. Each has a single completion.
var completionCases = [][2]string{
	{"forbear che", "forbear check"},
	{"forbear check --max-am", "forbear check --max-amplification"},
	{"forbear check -o text -o js", "forbear check -o text -o json"},
	{"forbear check --fail-on=n", "forbear check --fail-on=note"},
	{"forbear check poli", "forbear check policy.yaml"},
	{"forbear check --now 2027-01-01T00:00:00Z --basel", "forbear check --now 2027-01-01T00:00:00Z --baseline"},
	{"forbear explain --kind we", "forbear explain --kind webhook"},
	{"forbear dlq -o json expo", "forbear dlq -o json export"},
	{"forbear lint --show", "forbear lint --show-suppressed"},
	{"forbear help mig", "forbear help migrate"},
}

// Bash has no command that completes a line: its function is called as bash calls it.
// What it takes from the package bash-completion is that package's, or, where it is not
// installed, the words of the line.
const driveBash = `
if ! source /usr/share/bash-completion/bash_completion 2>/dev/null; then
	_get_comp_words_by_ref() { words=("${COMP_WORDS[@]}") cword=$COMP_CWORD cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}; }
fi
compopt() { :; } # is for functions that bash calls
source <(forbear completion bash)
for COMP_LINE; do
	COMP_POINT=${#COMP_LINE} COMP_TYPE=9
	read -ra COMP_WORDS <<<"$COMP_LINE"
	COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
	__start_forbear forbear
	word=${COMP_LINE##*[ =]}
	if [[ ${#COMPREPLY[@]} = 0 ]]; then
		COMPREPLY=($(compgen -f -- "$word")) # -o default
	fi
	done=${COMPREPLY[*]}
	echo "${COMP_LINE%"$word"}${done#--fail-on=}"
done
`

const driveFish = `
forbear completion fish | source
for line in $argv
	set -l words (string split -- ' ' $line)
	set words[-1] (complete -C "$line" | string replace -r '\t.*' '')
	echo $words
end
`

// Zsh completes on a terminal only, which zpty is.
const driveZsh = `
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PROMPT= TERM=dumb; unsetopt prompt_sp zle_bracketed_paste
autoload -U compinit && compinit -u -D; source <(forbear completion zsh)
show() { print -r -- \"<\$BUFFER>\"; BUFFER=; zle accept-line }; zle -N show
bindkey '^I' complete-word '^X' show; print rea'dy'"
zpty -r -m shell out '*ready*'
for line; do
	zpty -w -n shell "$line"$'\t\x18'
	zpty -r -m shell out '*<*>*'
	out=${out##*\<}
	print -r -- "${out%%\>*}"
done
zpty -d shell
`

// Each shell takes its script, and completes by it.
func TestCompletionInShells(t *testing.T) {
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(passing), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, shell := range []struct {
		name, drive string
		check, run  []string // the shell's flags to check a script and to run one
	}{
		{"bash", driveBash, []string{"-n"}, []string{"--norc", "-c"}},
		{"zsh", driveZsh, []string{"-f", "-n"}, []string{"-f", "-c"}},
		{"fish", driveFish, []string{"--no-config", "-n"}, []string{"--no-config", "-c"}},
	} {
		t.Run(shell.name, func(t *testing.T) {
			needs(t, shell.name, shell.name)
			script := filepath.Join(t.TempDir(), "script")
			if err := os.WriteFile(script, []byte(invoke(t, "", "completion", shell.name).Out), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(shell.name, append(shell.check, script)...).CombinedOutput(); err != nil {
				t.Fatalf("the script is refused: %v: %s", err, out)
			}
			args := append(shell.run, shell.drive)
			if shell.name != "fish" {
				args = append(args, shell.name) // $0
			}
			for _, c := range completionCases {
				args = append(args, c[0])
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			c := exec.CommandContext(ctx, shell.name, args...)
			c.Dir = dir
			c.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "HOME="+dir)
			out, err := c.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			for i, c := range completionCases {
				if i >= len(lines) || strings.TrimSpace(lines[i]) != c[1] {
					t.Errorf("%s: got %q, want %q", c[0], lines[min(i, len(lines)-1)], c[1])
				}
			}
		})
	}
}

// needs skips a test whose program is missing, and fails it in CI.
func needs(t *testing.T, program, deb string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no %s: sudo apt-get install %s", program, deb)
		}
		t.Skipf("no %s: sudo apt-get install %s", program, deb)
	}
}

// The flags that take one of a few values, which shells complete: a usage that is
// written otherwise would lose them unnoticed.
func TestCompletedValues(t *testing.T) {
	var b strings.Builder
	for _, c := range commands.Program() {
		c.Registered().VisitAll(func(f *flag.Flag) {
			if values := cli.Choices(f); values != nil {
				fmt.Fprintf(&b, "%s %s: %s\n", c.Name, f.Name, strings.Join(values, " "))
			}
		})
	}
	const want = `serve log-format: text json
explain breaker: closed open half-open
explain kind: sync grpc event webhook batch
explain o: text json
explain profile: standard cautious lattice
explain protocol: http net grpc forrst
check fail-on: error warning note
check from: forbear grpc istio envoy ingressnginx envoygateway linkerd gatewayapi resilience4j spring aws k8sjob argo stepfunctions nginx haproxy
check o: text json sarif github junit markdown
rules o: text json
policy o: text json
policy to: envoy istio gatewayapi grpc nginx haproxy linkerd resilience4j
sim engine: auto exact
sim o: text json csv svg html
probe o: text json junit policy
lint fail-on: high medium low
lint o: text json sarif github junit
top o: text json
messages o: text json
messages state: waiting held sending canceling delivered dead canceled
endpoints o: text json
applications o: text json
dlq o: text json
dlq state: dead redriving resolved discarded
keys o: text json
keys state: held started completed released all
token o: text json
token scope: admin application read-only
version o: text json
`
	if b.String() != want {
		t.Errorf("a usage lists other values now, or none: if that is meant, write it down here. Got\n%s", b.String())
	}
}
