package probe

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
)

//forbear:plain its programs, which are this one, would take ten times as long to start

func TestMain(m *testing.M) {
	switch {
	case os.Getenv("PROBE_URL") != "":
		callerMain()
	case os.Getenv("PROBE_TARGET") != "":
		grpcMain()
	}
	os.Exit(m.Run())
}

// outcomes probes the caller with a switch, and returns the outcome of each case.
func outcomes(t *testing.T, p *protocol, list []Case, wrong string, argv []string) map[string]string {
	t.Helper()
	var log strings.Builder
	report, err := judge(t.Context(), &cli.Streams{Out: &log, Err: &log}, p, argv, list)
	if err != nil {
		t.Fatal(err)
	}
	is := map[string]string{}
	for _, f := range report.Cases {
		is[f.ID] = f.Outcome
		if f.Outcome == Fails || f.Outcome == NotJudged {
			t.Logf("%s: %s: %s: %s", wrong, f.ID, f.Outcome, f.Why)
		}
	}
	return is
}

// expect probes the caller with a switch, and reports the cases that are not as they should
// be. A machine that is busy with other tests may disturb one run, and not two.
func expect(t *testing.T, wrong string, right func(id, outcome string) bool) {
	t.Helper()
	expectOf(t, overHTTP, cases(), wrong, command(wrong), right)
}

// command is the command line of the caller.
func command(wrong string) []string {
	return []string{"env", "PROBE_WRONG=" + wrong, os.Args[0], "{url}", "{method}"}
}

func expectOf(t *testing.T, p *protocol, list []Case, wrong string, argv []string, right func(id, outcome string) bool) {
	t.Helper()
	var faults []string
	for range 2 {
		faults = nil
		for id, outcome := range outcomes(t, p, list, wrong, argv) {
			if !right(id, outcome) {
				faults = append(faults, id+": "+outcome)
			}
		}
		if len(faults) == 0 {
			return
		}
	}
	t.Errorf("%q", faults)
}

// TestRightClient: a client that does what the standard asks holds in all cases.
func TestRightClient(t *testing.T) {
	t.Parallel()
	expect(t, "", func(_, outcome string) bool { return outcome != Fails && outcome != NotJudged })
}

// TestVerdictsStay: ten runs of a probe come to the same verdicts. Where there is no night
// for ten, a busy machine may disturb one of three.
func TestVerdictsStay(t *testing.T) {
	t.Parallel()
	const wrong = "proportional"
	var all []map[string]string
	for range ringtest.Size(3, 10) {
		all = append(all, outcomes(t, overHTTP, cases(), wrong, command(wrong)))
	}
	most := 0
	for _, one := range all {
		same := 0
		for _, other := range all {
			if maps.Equal(one, other) {
				same++
			}
		}
		most = max(most, same)
	}
	if least := ringtest.Size(2, 10); most < least {
		t.Errorf("%d of %d runs agree, want %d: %v", most, len(all), least, all)
	}
}

// faults are the switches of the caller, and the cases that catch each.
func faults() map[string][]string {
	list := map[string][]string{
		"timeout":      {"R-4/hang/GET"},
		"broken":       {"R-4/reset/GET", "R-4/reset-in-headers/GET", "R-4/closed/GET", "R-4/refused/GET"}, // net/http sends the others again by itself
		"half":         {"R-4/half-body/GET"},
		"no key 503":   {"R-6/503/POST"},
		"no key reset": {"R-6/reset/POST"},
		"no key hang":  {"R-6/hang/POST"},
		"other key":    {"R-6/503/POST", "R-6/reset/POST", "R-6/hang/POST"},
		"new key not":  {"R-6/new-key/POST"},
		"bytes":        {"R-6/503/PUT", "R-6/503/POST", "R-6/reset/POST", "R-6/hang/POST"},
		"certificate":  {"R-9/expired", "R-9/wrong-name", "R-9/unknown"},
		"redirect":     {"R-9/redirect/GET"},
		"401":          {"R-9/401/GET"},
		"count":        {"R-2/outage"},
		"end":          {"R-3/end"},
		"attempt":      {"R-3/attempt"},
		"equal":        {"R-1/law"}, "proportional": {"R-1/law"}, "none": {"R-1/law"}, "fixed": {"R-1/law"}, "immediate": {"R-1/law"},
		"retry-after": {"R-5/seconds/429", "R-5/seconds/503", "R-5/date", "R-5/too-long", "R-5/huge"},
		"date":        {"R-5/date"},
		"sits":        {"R-5/too-long", "R-5/huge"},
		"until":       {"R-5/too-long", "R-5/huge"},
		"zero":        {"R-5/zero"},
		"rubbish":     {"R-5/rubbish", "R-5/zero"},
	}
	for _, code := range []int{408, 429, 500, 502, 504, 400, 403, 404, 409, 422, 425, 501} {
		list[fmt.Sprint(code)] = []string{fmt.Sprintf("R-4/%d/GET", code)}
	}
	return list
}

// TestEachFaultIsCaught: a client that is wrong in one way is caught in that way, and no
// other verdict moves.
func TestEachFaultIsCaught(t *testing.T) {
	list := slices.Sorted(maps.Keys(faults()))
	if !ringtest.Nightly() { // one of each kind
		list = []string{"502", "404", "half", "no key 503", "certificate", "count", "none", "zero", "end"}
	}
	for _, wrong := range list {
		t.Run(wrong, func(t *testing.T) {
			t.Parallel()
			want := faults()[wrong]
			expect(t, wrong, func(id, outcome string) bool { return slices.Contains(want, id) == (outcome == Fails) })
		})
	}
}
