//forbear:plain nothing runs at once
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
		"Wget/1.21.3":          "wget",
		"node":                 "node",
		"nodemon/3":            "",
		"axios/1.21.1":         "axios",
		"got (https://github.com/sindresorhus/got)": "got",
		"node-fetch": "gaxios",
		"core-rest-pipeline/1.24.0 Node/20.20.2 (Linux; x64)":           "azure-core-js",
		"aws-sdk-js/3.1174.0 ua/2.1 os/linux lang/js md/nodejs#20.20.2": "aws-sdk-js",
		"python-urllib3/2.7.0":      "urllib3",
		"python-requests/2.34.2":    "requests",
		"python-httpx/0.23.3":       "httpx",
		"Python/3.11 aiohttp/3.8.4": "aiohttp",
		"Boto3/1.43.11 md/Botocore#1.43.11 ua/2.1 cfg/retry-mode#legacy": "boto3",
		"Go-http-client/1.1": "go-net-http",
		"go-resty/2.17.2 (https://github.com/go-resty/resty)":        "resty",
		"azsdk-go-zoo/v1 (go1.26.8; linux)":                          "azcore",
		"aws-sdk-go-v2/1.48.0 ua/2.1 os/linux lang/go#1.26.8 api/s3": "aws-sdk-go",
		"Ruby":           "ruby-net-http",
		"Faraday v1.1.0": "faraday",
		"excon/0.88.0":   "excon",
		"rest-client/2.1.0 (linux-gnu x86_64) ruby/3.1.2p20": "rest-client",
		"GuzzleHttp/7":                           "guzzle",
		"Java-http-client/17.0.15":               "java-net-http",
		"Apache-HttpClient/5.2.1 (Java/17.0.15)": "apache-httpclient",
		"okhttp/3.13.1":                          "okhttp",
		"libwww-perl/6.68":                       "perl-lwp",
	} {
		if c, ok, err := For(agent); err != nil || c.Name != want || ok != (want != "") {
			t.Errorf("%q: got %q, %v, %v, want %q", agent, c.Name, ok, err, want)
		}
	}
}
