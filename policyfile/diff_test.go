package policyfile

import (
	"reflect"
	"strings"
	"testing"
)

func must(t *testing.T, text string) *File {
	t.Helper()
	f, err := parse("policy.yaml", []byte(text), today)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestDiff(t *testing.T) {
	base := "service: checkout\ndependencies:\n  payments: {max_retries: 3, budget: {ratio: 10%}, total: 10s}\n"
	for _, tt := range []struct {
		name, old, new string
		want           []string
	}{
		{"nothing", base, base, nil},
		{"load", "dependencies: {payments: {disabled: true}}\n", "dependencies: {payments: {max_retries: 2}}\n", []string{
			"in an outage a busy client may now send payments 20 % more load: 1.2 times its calls, it was 1",
			"a call to payments is now tried up to 3 times, it was 1",
			"payments: disabled is now the default, it was true",
			"payments: max_retries is now 2, it was the default",
		}},
		{"less", base, strings.Replace(base, "10%", "5%", 1), []string{
			"in an outage a busy client now sends payments at least 5 % less load: at most 1.05 times its calls, it was 1.1",
			"payments: budget.ratio is now 5%, it was 10%",
		}},
		{"time", base, strings.Replace(base, "10s", "20s", 1), []string{
			"a call to payments may now take longer: up to 20s, it was 10s",
			"payments: total is now 20s, it was 10s",
		}},
		{"names", base, strings.Replace(base, "payments", "billing", 1), []string{
			"payments is removed",
			"billing is new: at most 4 attempts within 10s, and 1.1 times the load of a busy client in an outage",
		}},
		{"silence", base, base + "observability: {logs: false}\n", []string{"logs are now turned off"}},
		{"waiver", base, base + "waivers: [{rule: R-3, dependency: payments, reason: x, expires: 2027-01-31}]\n", []string{
			"a new waiver lifts R-3 for payments until 2027-01-31",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, c := range Diff(must(t, tt.old), must(t, tt.new)) {
				got = append(got, c.Text)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

// What Marshal writes reads as the same policies.
func TestMarshal(t *testing.T) {
	full := string(read(t, "good.yaml")) + `
instances: 12
idempotency: {retention: 48h}
observability: {metrics: false}
consumers:
  orders: {dedup: 8d, dead_letter: {queue: orders-dead, alert: oncall}}
webhooks:
  partner: {secret: {env: PARTNER_SECRET}, dead_letter: {queue: "true", alert: "12"}}
`
	f := must(t, full)
	data, err := Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "marshal.yaml", string(data))
	again := must(t, string(data))
	if changes := Diff(f, again); len(changes) > 0 {
		t.Errorf("read again, it differs: %v\n%s", changes, data)
	}
	for _, d := range f.All() {
		if same, _ := again.Policy(d.Name); !reflect.DeepEqual(d.Policy, same) {
			t.Errorf("policy of %s = %+v, want %+v", d.Name, same, d.Policy)
		}
	}
	if len(again.Waivers) != 1 || !again.Waivers[0].Expires.Equal(f.Waivers[0].Expires) {
		t.Errorf("waivers = %+v", again.Waivers)
	}
}

// A waiver is written with all that is signed, and with the signatures as they are.
// A policy is written as a dependency of a file has it.
func TestMarshalPolicy(t *testing.T) {
	p := must(t, "dependencies: {search: {max_retries: 1, backoff: {base: 1ms}, breaker: {failure_rate: 60%}}}").Dependencies[0].Policy
	want := "max_retries: 1\nbackoff:\n    base: 1ms\nbreaker:\n    failure_rate: 60%\n"
	if got := MarshalPolicy(p); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMarshalWaivers(t *testing.T) {
	f := must(t, `waivers:
- {id: W-1, rule: R-2, files: ["mesh/**"], lifts: [max_retries 7], reason: r, owner: dana, ticket: T-1, created: 2026-11-01, expires: 2027-03-01,
  code: [a/...], approvals: [{by: iris, role: iab, signature: "a\nb"}]}
`)
	data, err := Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	was, is := f.Waivers[0], must(t, string(data)).Waivers[0]
	was.At, is.At, was.Approvals[0].At, is.Approvals[0].At = Position{}, Position{}, Position{}, Position{}
	if !reflect.DeepEqual(was, is) {
		t.Errorf("got %+v, want %+v", is, was)
	}
}
