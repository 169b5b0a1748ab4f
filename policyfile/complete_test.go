package policyfile

import (
	"reflect"
	"strings"
	"testing"

	"github.com/forbear-go/forbear"
)

// Every field of a Policy can be written in a file, under its JSON name.
func TestEveryPolicyFieldIsRead(t *testing.T) {
	var walk func(typ reflect.Type, open, shut string)
	walk = func(typ reflect.Type, open, shut string) {
		for f := range typ.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				t.Errorf("%s.%s has no JSON name", typ, f.Name)
				continue
			}
			if f.Type.Kind() == reflect.Struct {
				walk(f.Type, open+name+": {", "}"+shut)
				continue
			}
			text := open + name + ": " + shut
			_, err := ParsePolicy("policy", []byte(text), forbear.Policy{})
			if err == nil || strings.Contains(err.Error(), "unknown key") {
				t.Errorf("%s: got %v, want a fault for the empty value alone", text, err)
			}
		}
	}
	walk(reflect.TypeFor[forbear.Policy](), "{", "}")
}
