package truth

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/storm"
)

// words are the fields of a scenario that the real side knows, by type. Another one would be
// ignored there, and the comparison be of two different things.
var words = map[string]string{
	"Scenario": "Name Description Duration Bin Fleets Services Faults",
	"Fleet":    "Name Instances Rate Load Users Think Burst BurstAt Spread Calls Client",
	"Step":     "At Rate",
	"Service":  "Name Capacity Concurrency Time Law CV Quantiles Queue QueueLength Shed Replicas RetryAfter Limit Timeout DropExpired Calls",
	"Quantile": "Q Time",
	"Limit":    "Rate Burst RetryAfter",
	"Edge":     "To FanOut Instances Client",
	"Fault":    "Kind Service At For Rate Mode Status RetryAfter Method Time Factor Share Replicas",
	"Client":   "Policy PolicyRef Retries Timeout Base Cap Jitter Breaker Method Key MaxConcurrent Connections Baseline",
	"Baseline": "Wait NoBudget Oblivious",
}

// kinds are the faults that it knows.
var kinds = []storm.FaultKind{storm.Outage, storm.Errors, storm.Brownout, storm.SlowStart, storm.Pause, storm.Spike, storm.Partition, storm.Slow}

// unknown returns the fields that s uses and the real side does not know.
func unknown(s storm.Scenario) (found []string) {
	for i, f := range s.Faults {
		if !slices.Contains(kinds, f.Kind) || f.Mode == storm.LoadCoupled {
			found = append(found, fmt.Sprintf("Faults[%d], %s %s", i, f.Kind, f.Mode))
		}
	}
	var look func(path string, v reflect.Value)
	look = func(path string, v reflect.Value) {
		if v.Kind() == reflect.Slice {
			for i := range v.Len() {
				look(fmt.Sprintf("%s[%d]", path, i), v.Index(i))
			}
			return
		}
		known := strings.Fields(words[v.Type().Name()])
		if v.Kind() != reflect.Struct || known == nil {
			return
		}
		for field := range v.Type().Fields() {
			switch at := v.FieldByIndex(field.Index); {
			case at.IsZero():
			case !slices.Contains(known, field.Name):
				found = append(found, path+"."+field.Name)
			default:
				look(path+"."+field.Name, at)
			}
		}
	}
	look("", reflect.ValueOf(s))
	return found
}

func TestUnknownWords(t *testing.T) {
	s := storm.Scenario{
		Fleets:   []storm.Fleet{{Rate: 1, Client: storm.Client{Timeout: 1, RTT: storm.Duration(time.Second)}}},
		Services: []storm.Service{{Name: "a", Time: 1, Calls: []storm.Edge{{To: "b", Client: storm.Client{Strict: true}}}}},
		Faults:   []storm.Fault{{Kind: storm.Errors, Mode: storm.LoadCoupled}, {Kind: "meteor"}},
	}
	want := "Faults[0], errors load; Faults[1], meteor ; .Fleets[0].Client.RTT; .Services[0].Calls[0].Client.Strict"
	if got := strings.Join(unknown(s), "; "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
