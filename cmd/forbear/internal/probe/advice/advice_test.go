package advice

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// known are the rules that a probe can find broken in a client.
var known = []string{"R-1", "R-2", "R-3", "R-4", "R-5", "R-6", "R-9"}

// whole is a text of whole sentences.
var whole = regexp.MustCompile("^[A-Z`].*\\.$")

// setUps returns the names of the set-ups of the zoo.
func setUps(t *testing.T) (names []string) {
	t.Helper()
	table, err := os.ReadFile("../../../../../probe/zoo/zoo.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		name, _, _ := strings.Cut(line, "\t")
		names = append(names, name)
	}
	return names[1:]
}

// TestEachClientIsWhole holds the file to its form.
func TestEachClientIsWhole(t *testing.T) {
	list, err := Clients()
	if err != nil || len(list) == 0 {
		t.Fatalf("%d clients, %v", len(list), err)
	}
	zoo, names, seen := setUps(t), map[string]bool{}, map[string]bool{}
	for _, c := range list {
		if !regexp.MustCompile(`^[a-z0-9-]+$`).MatchString(c.Name) || names[c.Name] || c.Version == "" {
			t.Errorf("%q: the name is not that of a page, or there twice, or without a version", c.Name)
		}
		names[c.Name] = true
		if _, err := regexp.Compile(c.Agent); err != nil || c.Agent != "" && !strings.HasPrefix(c.Agent, "^") {
			t.Errorf("%s: the agent %q: %v", c.Name, c.Agent, err)
		}
		for _, name := range c.Zoo {
			if !slices.Contains(zoo, name) || seen[name] {
				t.Errorf("%s: %q is not in zoo.tsv, or of two clients", c.Name, name)
			}
			seen[name] = true
		}
		if len(c.Sources) == 0 || slices.ContainsFunc(c.Sources, func(s string) bool { return !strings.HasPrefix(s, "https://") }) {
			t.Errorf("%s: the sources %q: want at least one address of https", c.Name, c.Sources)
		}
		for rule, text := range c.Rules {
			if !slices.Contains(known, rule) {
				t.Errorf("%s: %q: want one of %q", c.Name, rule, known)
			}
			if !whole.MatchString(text) || len(text) > 300 || strings.Count(text, "`")%2 != 0 {
				t.Errorf("%s: %s: want at most 300 characters in whole sentences, got %d: %q", c.Name, rule, len(text), text)
			}
		}
	}
}

// TestAgentFindsItsClient: a User-Agent finds the client that sends it, and no other one.
func TestAgentFindsItsClient(t *testing.T) {
	for agent, want := range map[string]string{
		"curl/7.88.1":          "curl",
		"my-app (curl/7.88.1)": "",
		"":                     "",
	} {
		if c, ok, err := For(agent); err != nil || c.Name != want || ok != (want != "") {
			t.Errorf("%q: got %q, %v, %v, want %q", agent, c.Name, ok, err, want)
		}
	}
}
