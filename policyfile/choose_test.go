package policyfile

import (
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	const one = "service: a\ndependencies:\n  payments: {owner: a}\n"
	const more = one + "  search: {owner: a}\n"
	const consumer = "consumers:\n  orders: {owner: a, dead_letter: {queue: q, alert: x}}\n"
	for _, c := range []struct{ text, name, want, err string }{
		{one, "", "payments", ""},
		{one, "payments", "payments", ""},
		{one + consumer, "", "payments", ""},
		{one + consumer, "orders", "orders", ""},
		{more, "search", "search", ""},
		{more, "", "", "has 2 dependencies: name one of payments, search"},
		{"service: a\n", "", "", "has no dependencies"},
		{consumer, "", "", "has no dependencies"},
		{more, "serch", "", `has no dependency "serch": did you mean search?`},
		{more, "mail", "", `has no dependency "mail"`},
	} {
		f, err := Parse("p.yaml", []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		d, err := f.Choose(c.name)
		switch {
		case c.err == "" && (err != nil || d.Name != c.want):
			t.Errorf("%q of %q: got %v, %v", c.name, c.text, d, err)
		case c.err != "" && (err == nil || !strings.HasSuffix(err.Error(), c.err)):
			t.Errorf("%q of %q: got %v", c.name, c.text, err)
		}
	}
}
