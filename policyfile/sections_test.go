package policyfile

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
)

// The keys that tell a policy file from others are those of its schema.
func TestSectionsAreTheSchemas(t *testing.T) {
	var schema struct{ Properties map[string]any }
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	if got, want := slices.Sorted(slices.Values(Sections())), slices.Sorted(maps.Keys(schema.Properties)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
