package policyfile

import (
	"bytes"
	"encoding/json"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The entry for the catalog of schemas names this schema, and the names of files
// that the guide recommends. policy.yaml is none of them: other programs have files
// of that name.
func TestCatalogEntry(t *testing.T) {
	data, err := os.ReadFile("../docs/schemastore.json")
	if err != nil {
		t.Fatal(err)
	}
	// The fields that an entry has to have, and no others.
	var entry struct {
		Name        string   `json:"name"`
		Description string   `json:"description"`
		FileMatch   []string `json:"fileMatch"`
		URL         string   `json:"url"`
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&entry); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		ID string `json:"$id"`
	}
	if err := json.Unmarshal(Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	if entry.Name == "" || entry.Description == "" || entry.URL != SchemaURL || doc.ID != SchemaURL {
		t.Errorf("the entry is %+v, the schema's $id %s", entry, doc.ID)
	}
	matched := func(name string) bool {
		return slices.ContainsFunc(entry.FileMatch, func(glob string) bool {
			ok, err := path.Match(glob, name)
			if err != nil {
				t.Errorf("%s: %v", glob, err)
			}
			return ok
		})
	}
	guide, err := os.ReadFile("../docs/guides/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(guide), "\n## Editors\n")
	advice, _, _ := strings.Cut(strings.TrimSpace(section), "\n\n")
	names := regexp.MustCompile("`([a-z.]+\\.ya?ml)`").FindAllStringSubmatch(advice, -1)
	if len(names) < 2 {
		t.Errorf("the guide recommends no names: %q", advice)
	}
	for _, m := range names {
		if !matched(m[1]) {
			t.Errorf("the guide recommends %s, which %q do not match", m[1], entry.FileMatch)
		}
	}
	if matched("policy.yaml") {
		t.Errorf("%q match policy.yaml", entry.FileMatch)
	}
	if !strings.Contains(section, "$schema="+SchemaURL) {
		t.Error("the guide does not say how another file names the schema")
	}
}
