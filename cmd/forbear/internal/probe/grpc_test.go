package probe

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/probe/wire"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/policyfile"
)

// commandGRPC is the command line of a caller of gRPC.
func commandGRPC(wrong string) []string {
	return []string{"env", "PROBE_WRONG=" + wrong, os.Args[0], "{target}", "{ca}"}
}

func expectGRPC(t *testing.T, wrong string, right func(id, outcome string) bool) {
	t.Helper()
	expectOf(t, overGRPC, grpcCases(), wrong, commandGRPC(wrong), right)
}

// TestRightGRPC: a client that does what the standard asks holds in all cases.
func TestRightGRPC(t *testing.T) {
	t.Parallel()
	expectGRPC(t, "", func(_, outcome string) bool { return outcome != Fails && outcome != NotJudged })
}

// TestForbearGRPC: and so does forbear's own, with its defaults.
func TestForbearGRPC(t *testing.T) {
	t.Parallel()
	list := grpcCases()
	if !ringtest.Nightly() { // layers of its waits take half a minute
		list = slices.DeleteFunc(list, func(c Case) bool { return c.ID == "layers" })
	}
	expectOf(t, overGRPC, list, "forbear", commandGRPC("forbear"), func(_, outcome string) bool { return outcome != Fails && outcome != NotJudged })
}

// grpcFaults are the switches of the caller of gRPC, and the cases that catch each. grpc-go
// sends again by itself what a server has not processed.
func grpcFaults() map[string][]string {
	list := map[string][]string{
		"timeout":     {"R-4/hang"},
		"broken":      {"R-4/reset", "R-4/closed", "R-4/stale", "R-4/refused"},
		"stale":       {"R-4/stale", "R-4/refused"},
		"http":        {"R-4/http-429", "R-4/http-502", "R-4/http-503", "R-4/http-504", "R-4/http-403", "R-4/http-404"},
		"half":        {"R-4/half-message"},
		"bytes":       {"R-6/bytes"},
		"other key":   {"R-6/key"},
		"same key":    {"R-6/key"},
		"certificate": {"R-9/expired", "R-9/wrong-name", "R-9/unknown"},
		"count":       {"R-2/outage"},
		"end":         {"R-3/end"},
		"attempt":     {"R-3/attempt"},
		"equal":       {"R-1/law"}, "proportional": {"R-1/law"}, "none": {"R-1/law"}, "fixed": {"R-1/law"}, "immediate": {"R-1/law"},
		"pushback":        {"R-5/pushback", "R-5/pushback-too-long", "R-5/pushback-stop", "R-5/pushback-rubbish"},
		"sits":            {"R-5/pushback-too-long"},
		"until":           {"R-5/pushback-too-long"},
		"stop":            {"R-5/pushback-stop"},
		"rubbish":         {"R-5/pushback-rubbish"},
		"zero":            {"R-5/pushback-zero"},
		"retry-info":      {"R-5/retry-info"},
		"UNAUTHENTICATED": {"R-9/UNAUTHENTICATED"},
	}
	for _, c := range classes {
		if c.group != "" && c.name != "UNAVAILABLE" { // an outage is made of those
			list[c.name] = []string{"R-4/" + c.name}
		}
	}
	return list
}

// TestEachFaultOfGRPCIsCaught: a client that is wrong in one way is caught in that way, and
// no other verdict moves. Ways that have nothing to do with each other share a client where
// there is no night for it.
func TestEachFaultOfGRPCIsCaught(t *testing.T) {
	t.Parallel()
	list := slices.Sorted(maps.Keys(grpcFaults()))
	if !ringtest.Nightly() {
		list = []string{"ABORTED,INTERNAL,half,other key,certificate,stop,retry-info", "http,broken,bytes,none,rubbish,end"}
	}
	for _, wrong := range list {
		t.Run(wrong, func(t *testing.T) {
			t.Parallel()
			var want []string
			for one := range strings.SplitSeq(wrong, ",") {
				want = append(want, grpcFaults()[one]...)
			}
			expectGRPC(t, wrong, func(id, outcome string) bool {
				if wrong == "immediate" && id == "R-1/law" { // a busy machine makes waits of none
					return outcome != Holds
				}
				return slices.Contains(want, id) == (outcome == Fails)
			})
		})
	}
}

// TestUsageOfGRPC: what a command line lacks is named.
func TestUsageOfGRPC(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--grpc"}, "forbear probe -- COMMAND {target}"},
		{[]string{"--grpc", "--", "client", "{url}"}, "no argument has {target}"},
		{[]string{"--grpc", "--serve"}, "--serve is for HTTP"},
		{[]string{"--grpc", "-c", "R-4/503/GET", "--", "client", "{target}"}, `no case is named "R-4/503/GET"`},
	} {
		if code, _, errs := probe(t.Context(), c.args...); code != cli.ExitUsage || !strings.Contains(errs, c.want) {
			t.Errorf("%q: exit code %d, %s", c.args, code, errs)
		}
	}
	if code, out, _ := probe(t.Context(), "--grpc", "--list"); code != cli.ExitOK || !strings.Contains(out, "R-4/UNAVAILABLE ") || strings.Contains(out, "/GET") {
		t.Errorf("exit code %d, %s", code, out)
	}
	argv := []string{"-c", "R-9/expired", "--grpc", "--", "env", "PROBE_WRONG=", os.Args[0], "{target}"}
	if code, out, _ := probe(t.Context(), argv...); code != cli.ExitUsage || !strings.Contains(out, "put {ca} into its command line") {
		t.Errorf("exit code %d, %s", code, out)
	}
}

// TestPolicyOfGRPC: a policy file that was written is read, and has the kind and the codes.
func TestPolicyOfGRPC(t *testing.T) {
	t.Parallel()
	argv := append([]string{"--grpc", "-c", "R-4/ABORTED,R-4/INTERNAL,R-4/hang,R-1/law", "-o", "policy", "--"}, commandGRPC("ABORTED,INTERNAL")...)
	out := policyOf(t, grpcBase, callerAttempt, argv)
	_, err := policyfile.Parse("probed.yaml", []byte(out))
	faults, _ := errors.AsType[*policyfile.Error](err)
	if faults == nil || len(faults.Faults) != 1 || !strings.Contains(err.Error(), "budget none") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, want := range []string{"kind: grpc\n", "max_retries: 3\n", "grpc_ABORTED: terminal\n", "grpc_INTERNAL: transient\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
}

// TestNotGRPC: a client that speaks something else is told so.
func TestNotGRPC(t *testing.T) {
	v := judgeHealthy(&known{protocol: overGRPC}, []run{{Arrivals: []wire.Arrival{{Number: 1, Proto: "HTTP/1.1"}}, Exit: 1}})
	if v.Outcome != NotJudged || !strings.Contains(v.Why, "it speaks HTTP/1.1") {
		t.Errorf("%+v", v)
	}
}
