package storm

import "testing"

// overDeadLeaf is a client over a middle service over a leaf that is down.
func overDeadLeaf(client, middle Client) Scenario {
	return Scenario{
		Name: "dead-leaf", Duration: seconds(60), Engine: Exact,
		Fleets: []Fleet{{Rate: 20, Client: client}},
		Services: []Service{
			{Name: "middle", Calls: []Edge{{To: "leaf", Client: middle}}},
			{Name: "leaf"},
		},
		Faults: []Fault{{Kind: Outage, Service: "leaf", For: seconds(120)}},
	}
}

// TestLayersKnowOfEachOther: what the layer below has given up is final, and
// inside a retry there is one attempt; where the layers do not know of each
// other both multiply.
func TestLayersKnowOfEachOther(t *testing.T) {
	patient := Client{
		Retries: new(2), Timeout: 5000 * ms, Base: 10 * ms, Cap: 20 * ms,
		Breaker: new(false), Baseline: Baseline{NoBudget: true},
	}
	// hasty leaves before the layer below has given up, so that its retries
	// find a layer that has not.
	hasty := patient
	hasty.Timeout = 50 * ms
	slow := patient
	slow.Base, slow.Cap = 1000*ms, 2000*ms
	disabled := patient
	disabled.Retries = new(0)
	oblivious := func(c Client) Client {
		c.Baseline.Oblivious = true
		return c
	}
	for _, tc := range []struct {
		name           string
		client, middle Client
		middles, leafs [2]float64 // arrivals for one call, at least and at most
	}{
		{"exhausted below", patient, patient, [2]float64{1, 1}, [2]float64{2.95, 3}},
		{"exhausted below, and no one listens", oblivious(patient), patient, [2]float64{2.95, 3}, [2]float64{4.9, 5}},
		{"exhausted below, and no one knows", oblivious(patient), oblivious(patient), [2]float64{2.95, 3}, [2]float64{8.85, 9}},
		{"the layer below leaves it to this one", patient, disabled, [2]float64{2.95, 3}, [2]float64{2.95, 3}},
		{"a hasty client", hasty, slow, [2]float64{2.8, 3}, [2]float64{4.5, 5}},
		{"a hasty client, and the middle does not know", hasty, oblivious(slow), [2]float64{2.8, 3}, [2]float64{8, 9}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := mustRun(t, overDeadLeaf(tc.client, tc.middle))
			for i, want := range [][2]float64{tc.middles, tc.leafs} {
				if got := r.Services[i].PerCall; got < want[0] || got > want[1] {
					t.Errorf("%s: %.3f arrivals for a call, want %v to %v", r.Services[i].Name, got, want[0], want[1])
				}
			}
		})
	}
}

// TestRetriesAreKnownAllTheWayDown: inside a retry of the topmost layer there
// is one attempt at every layer, not only at the next.
func TestRetriesAreKnownAllTheWayDown(t *testing.T) {
	slow := Client{
		Retries: new(2), Timeout: 5000 * ms, Base: 1000 * ms, Cap: 2000 * ms,
		Breaker: new(false), Baseline: Baseline{NoBudget: true},
	}
	hasty := slow
	hasty.Timeout, hasty.Base, hasty.Cap = 50*ms, 10*ms, 20*ms
	s := overDeadLeaf(hasty, slow)
	s.Services[0].Calls[0].To = "lower"
	s.Services = append(s.Services, Service{Name: "lower", Calls: []Edge{{To: "leaf", Client: slow}}})
	r := mustRun(t, s)
	if got := r.Services[1].PerCall; got < 4.5 || got > 5 {
		t.Errorf("the leaf gets %.3f requests for a call, want three of the first attempt and one for each retry", got)
	}
}

// TestOneFailedBranchFailsTheWhole, also when a good one ends after it.
func TestOneFailedBranchFailsTheWhole(t *testing.T) {
	once := Client{Retries: new(0), Timeout: 5000 * ms, Breaker: new(false), Baseline: Baseline{NoBudget: true}}
	late := once
	late.RTT = 200 * ms
	client := once
	client.Retries, client.Base, client.Cap = new(2), 10*ms, 20*ms
	s := overDeadLeaf(client, once)
	s.Services[0].Calls = append(s.Services[0].Calls, Edge{To: "fine", Client: late})
	s.Services = append(s.Services, Service{Name: "fine"})
	r := mustRun(t, s)
	if got := r.Services[0].PerCall; got < 2.9 || got > 3 {
		t.Errorf("the middle gets %.3f requests for a call, want 3", got)
	}
}
