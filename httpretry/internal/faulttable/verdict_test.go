package faulttable

import "testing"

func TestVerdicts(t *testing.T) {
	ok := outcome{grade: good, sends: 1}
	for _, tt := range []struct {
		name           string
		f              fault
		plain, forbear outcome
		want           verdict
	}{
		{"equal", fault{}, ok, ok, same},
		{"a failure less", fault{}, outcome{grade: refusing, sends: 1}, outcome{grade: good, sends: 2}, better},
		{"a failure more", fault{}, ok, outcome{grade: failing, sends: 1}, worse},
		{"a failure more by rule", fault{forbidden: true}, ok, outcome{grade: failing, sends: 1}, forbidden},
		{"no rule asks for harm", fault{forbidden: true}, ok, outcome{grade: harmful}, worse},
		{"nor does company excuse it", fault{}, outcome{grade: harmful}, outcome{grade: harmful}, worse},
		{"no rule asks for hanging", fault{forbidden: true}, ok, outcome{grade: hanging}, worse},
		{"sends for nothing", fault{}, ok, outcome{grade: good, sends: 2}, worse},
		{"sends by rule", fault{retried: true}, ok, outcome{grade: good, sends: 2}, same},
		{"sends saved", fault{}, outcome{grade: good, sends: 9}, ok, better},
		{"gone", fault{leaves: true}, outcome{grade: refusing, sends: 1}, outcome{grade: failing, sends: 1}, same},
		{"not let go", fault{leaves: true}, outcome{grade: refusing}, outcome{grade: hanging}, worse},
	} {
		if got := tt.f.compare(tt.plain, tt.forbear); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
