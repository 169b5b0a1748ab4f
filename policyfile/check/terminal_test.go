package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/edge/grpccode"
)

// A policy may make retryable what R-4 does not list, and not what it forbids.
func TestOverridesOfEveryFailure(t *testing.T) {
	forbidden := []string{
		"http_400", "http_401", "http_403", "http_404", "http_409", "http_422", "http_4xx",
		"grpc_INVALID_ARGUMENT", "grpc_NOT_FOUND", "grpc_PERMISSION_DENIED", "grpc_UNAUTHENTICATED", "grpc_UNIMPLEMENTED",
	}
	labels := []string{"http_4xx", "http_5xx"}
	for status := 400; status < 600; status++ {
		labels = append(labels, "http_"+strconv.Itoa(status))
	}
	for _, name := range grpccode.Names[1:] {
		labels = append(labels, "grpc_"+name)
	}
	for _, label := range labels {
		s := parse(t, "p.yaml", fmt.Sprintf("service: a\ndependencies: {b: {owner: a, strict: true, classify: {%s: retry}}}\n", label))
		if got, want := slices.Contains(ids(Run([]Source{s}, Options{Now: today}).Findings), "FC306"), slices.Contains(forbidden, label); got != want {
			t.Errorf("%s: FC306 is %v, want %v", label, got, want)
		}
	}
}

// What stands in a product's defaults, and 5xx, is a note; what was chosen is a warning;
// what R-4 forbids is an error.
func TestSeveritiesOfConditions(t *testing.T) {
	for word, want := range map[string]string{
		"5xx": "FC313 note", "cancelled": "FC313 note", "internal": "FC313 warning", "retriable-4xx": "FC306 error",
		"5xxx": "FC005 warning", "every-moon": "FC005 note", "gateway-error": "",
	} {
		text := "virtual_hosts: [{name: v, domains: ['*'], routes: [{match: {prefix: /}, route: {cluster: a, retry_policy: {retry_on: '" + word + "'}}}]}]\n"
		var got strings.Builder
		for _, f := range Run(ReadAll([]Input{{Name: "e.yaml", Data: []byte(text)}}).Sources, Options{Now: today}).Findings {
			if slices.Contains([]string{"FC005", "FC306", "FC313"}, f.ID) {
				got.WriteString(f.ID + " " + f.Severity.String())
			}
		}
		if got.String() != want {
			t.Errorf("%s: got %q, want %q", word, got.String(), want)
		}
	}
}
