package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// Store is what the suite tests: webhooks and dead letters together, since a
// delivery that dies and its letter are one write.
type Store interface {
	store.Store
	queue.Store
}

// rule is a test of the suite: its name is the rule that a store has to keep.
type rule struct {
	name string
	test func(*testing.T, Store)
}

// deliveries are the rules that a dispatcher depends upon.
var deliveries = []rule{
	{"EndpointsAreVersioned", testEndpoints},
	{"EndpointVersionIsCompared", testExpectedVersion},
	{"OneOfManyWritersWins", testVersionRace},
	{"EndpointChangesAreRead", testEndpointChanges},
	{"NoEndpointChangeIsMissed", testEndpointChangeRace},
	{"OperatorsDisableStays", testDisabledByOperator},
	{"DisabledOnceWithItsAlert", testDisabledOnce},
	{"ListsAreOfAnApplication", testByApplication},
	{"EndpointsOfAnApplicationAreLimited", testLimitOfEndpoints},
	{"AcceptIsIdempotent", testAccept},
	{"MessageIsIDAndEndpoint", testIdentity},
	{"ConflictIsRefused", testConflict},
	{"OneOfManyWins", testConflictRace},
	{"DuplicateHoldsNoKey", testDuplicateHoldsNoKey},
	{"MessageComesBackWhole", testWhole},
	{"ClaimTakesDueOnly", testDue},
	{"ClaimKeepsToItsLanes", testLanes},
	{"ClaimsDoNotOverlap", testOverlap},
	{"FinishIsFenced", testFence},
	{"TurnDoesBoth", testTurn},
	{"CrashBurnsNoAttempt", testReclaim},
	{"ProgressSurvives", testProgress},
	{"KeyKeepsItsOrder", testOrder},
	{"OrderIsThatOfArrival", testOrderOfArrival},
	{"OrderUnderConcurrency", testOrderRace},
	{"OverdueIsFound", testOverdue},
	{"SweepLeavesWhatIsNotFinished", testSweep},
	{"DispatchersAreCounted", testHeartbeat},
	{"HoldsAreShared", testHolds},
	{"HoldBeginsOnce", testHoldRace},
	{"CanceledCallerHarmsNobody", testCanceled},
	{"BadMemberHarmsNobody", testBadMember},
	{"MessagesAreListed", testMessages},
	{"CancelLetsTheNextGo", testCancel},
	{"LetterComesWithItsAlert", testLetter},
	{"LettersAreFiltered", testFilter},
	{"RedriveIsLimited", testRedriveLimit},
	{"JobsAreFenced", testJobs},
	{"AlertsCoalesceAndAreKept", testAlerts},
}

// operations are the rules for operators.
var operations = []rule{
	{"ApplicationsAreStored", testApplications},
	{"EndpointsKeepTheirApplication", testTenants},
	{"BodiesGoFirst", testBodies},
	{"ContentsAreRead", testContents},
	{"ErasedIsGone", testErase},
	{"CancelEndsARedrive", testCancelRedriven},
	{"SendAgainIsTheSameMessage", testSendAgain},
	{"SendAgainSaysWhyNot", testSendAgainRefused},
	{"DeletedEndpointLeavesLetters", testAbandon},
	{"LettersSayWhy", testCauses},
	{"DeliveriesSayWhy", testCauseOfDelivery},
	{"DiscardIsAudited", testDiscard},
	{"DiscardByFilter", testDiscardMany},
	{"RedriveKeepsIDAndKey", testRedrive},
	{"RedriveSendsItsOwn", testRedriveIdentity},
	{"RedriveOfWhatArrived", testRedriveOfDelivered},
	{"RedriveKeepsItsKey", testRedriveKeepsKey},
}

// Run runs the suite; open returns an empty store, which the test cleans up.
func Run(t *testing.T, open func(t *testing.T) Store) {
	RunDeliveries(t, open)
	run(t, operations, open)
}

// RunDeliveries runs the part of the suite that a dispatcher depends upon.
func RunDeliveries(t *testing.T, open func(t *testing.T) Store) { run(t, deliveries, open) }

func run(t *testing.T, rules []rule, open func(t *testing.T) Store) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) { r.test(t, open(t)) })
	}
}

// lease outlasts every test: a test that lets a lease end passes a shorter
// one.
const lease = time.Minute

// must returns the value of a call that is to succeed: must(f())(t).
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		check(t, err)
		return v
	}
}

// check stops the test on an error.
func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// errOf is the error of a call whose value does not count.
func errOf[T any](_ T, err error) error { return err }

// wantErr holds an error to the sentinel that callers branch on.
func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

// parallel calls f n times at once, with 0 to n-1, and waits for the end of all.
func parallel(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// message is a small message with an idempotency key and a correlation id
// that follow from its id.
func message(id, key string, endpoints ...string) webhook.Message {
	return webhook.Message{ID: id, Endpoints: endpoints, Key: key, Type: "test.made", Body: []byte(`{"n":1}`), IdempotencyKey: "key-" + id, CorrelationID: "corr-" + id}
}

// accept accepts messages; ordered says whether their endpoints keep the
// order of keys.
func accept(t *testing.T, s Store, ordered bool, msgs ...webhook.Message) []webhook.Accepted {
	t.Helper()
	// Whether an endpoint keeps order is configuration, which the caller
	// knows.
	order := map[string]bool{}
	for _, m := range msgs {
		for _, e := range m.Endpoints {
			order[e] = ordered
		}
	}
	return must(s.Accept(t.Context(), msgs, order))(t)
}

// claim takes what is due at one endpoint, under a lease that outlasts the
// test.
func claim(t *testing.T, s Store, endpoint string, n int) []store.Delivery {
	t.Helper()
	return claimAs(t, s, "test", lease, store.Lane{Endpoint: endpoint, Max: n})
}

// claimAs claims for a named owner under a lease of its own, over several
// lanes at once. A store has no claim by itself: it is the second half of a
// turn.
func claimAs(t *testing.T, s Store, owner string, lease time.Duration, lanes ...store.Lane) []store.Delivery {
	t.Helper()
	return must(s.WriteBackAndClaim(t.Context(), store.Step{Owner: owner, Lease: lease, Lanes: lanes}))(t).Claimed
}

// finish writes outcomes back and reports for each whether its fence held.
func finish(t *testing.T, s Store, o ...store.WriteBack) []bool {
	t.Helper()
	return must(s.WriteBackAndClaim(t.Context(), store.Step{WriteBacks: o}))(t).OK
}

// deliverAll delivers what is due at an endpoint, and what comes behind that, and
// returns the ids in their order.
func deliverAll(t *testing.T, s Store, endpoint string) (ids []string) {
	t.Helper()
	for range 10 {
		for _, d := range claim(t, s, endpoint, 10) {
			ids = append(ids, d.Message.ID)
			finish(t, s, outcome(d, store.Delivered))
		}
	}
	return ids
}

// outcome is the result of one attempt that got a 503, under the fence of
// the claim. Tests change what they need.
func outcome(d store.Delivery, k store.WriteBackKind) store.WriteBack {
	return store.WriteBack{
		ID: d.ID, Fence: d.Fence, Endpoint: d.Endpoint, OrderKey: d.OrderKey, Kind: k, Progress: d.Progress,
		Attempt: &deadletter.Attempt{Number: 1, Claim: d.Claims, Due: d.Due, At: d.Due.Add(time.Second), Took: time.Millisecond, ErrorType: "http_503", Status: 503, Worker: "test"},
	}
}

// deadLettered is the outcome of a delivery that failed for good, with its
// letter.
func deadLettered(d store.Delivery, id string) store.WriteBack {
	o := outcome(d, store.Dead)
	m := d.Message
	o.Dead = &deadletter.Letter{
		ID: id, Queue: webhook.Queue, Destination: d.Endpoint, EventID: m.ID, Type: m.Type, IdempotencyKey: m.IdempotencyKey, CorrelationID: m.CorrelationID,
		PartitionKey: m.Key, Payload: m.Body, Headers: m.Headers, Reason: "exhausted", ErrorType: "http_503", Attempts: 1, State: deadletter.Dead, EnqueuedAt: m.Created,
	}
	return o
}

// Accepting twice is how a producer recovers from a lost response: the
// second call succeeds, says that it is a duplicate, and adds no delivery.
func testAccept(t *testing.T, s Store) {
	if a := accept(t, s, false, message("m1", "", "a", "b")); a[0].Duplicate || a[0].ID != "m1" {
		t.Errorf("first time: got %+v", a)
	}
	if a := accept(t, s, false, message("m1", "", "a", "b")); !a[0].Duplicate {
		t.Errorf("second time: got %+v", a)
	}
	for _, e := range []string{"a", "b"} {
		if n := len(claim(t, s, e, 10)); n != 1 {
			t.Errorf("endpoint %s has %d deliveries, want 1", e, n)
		}
	}
}

// A message comes back whole: the exact bytes, repeated headers in order,
// and times to the microsecond, which is what PostgreSQL keeps.
func testWhole(t *testing.T, s Store) {
	m := message("m1", "", "a")
	// No text, and no valid UTF-8.
	m.Body = []byte{0, 1, 2, 0xff}
	m.Headers = []webhook.Header{{Name: "X-B", Value: "1"}, {Name: "X-A", Value: "2"}, {Name: "X-B", Value: "3"}}
	m.ContentType, m.Source, m.Subject, m.Created = "application/x", "urn:s", "sub", time.UnixMicro(1_700_000_000_123_456).UTC()
	accept(t, s, false, m)
	d := claim(t, s, "a", 1)[0]
	got := d.Message
	if string(got.Body) != string(m.Body) || fmt.Sprint(got.Headers) != fmt.Sprint(m.Headers) || got.ContentType != m.ContentType ||
		got.Source != m.Source || got.Subject != m.Subject || got.IdempotencyKey != m.IdempotencyKey || got.CorrelationID != m.CorrelationID {
		t.Errorf("got %+v, want %+v", got, m)
	}
	if !got.Created.Equal(m.Created) || got.ID != m.ID {
		t.Errorf("%s was made at %v, want %s at %v", got.ID, got.Created, m.ID, m.Created)
	}
	if d.Claims != 1 || d.Start.IsZero() || d.Due.IsZero() || time.Until(d.LeaseEnd) > lease {
		t.Errorf("got %+v", d)
	}
}

// Sweep removes finished deliveries after their age and leaves those that
// still wait, however old they are.
func testSweep(t *testing.T, s Store) {
	accept(t, s, false, message("done", "", "a"), message("both", "", "a", "b"), message("waiting", "", "b"))
	for _, d := range claim(t, s, "a", 2) {
		finish(t, s, outcome(d, store.Delivered))
	}
	sweep := func(want int) {
		t.Helper()
		time.Sleep(5 * time.Millisecond)
		if n := must(s.Sweep(t.Context(), time.Millisecond, 10))(t); n != want {
			t.Errorf("swept %d, want %d", n, want)
		}
	}
	sweep(2)
	for id, want := range map[string]int{"done": 0, "both": 1, "waiting": 1} {
		if list := must(s.Deliveries(t.Context(), id))(t); len(list) != want {
			t.Errorf("%s has %d deliveries, want %d", id, len(list), want)
		}
	}
	// A message stays with its last delivery.
	left := claim(t, s, "b", 3)
	if len(left) != 2 || len(left[0].Message.Body) == 0 || len(left[1].Message.Body) == 0 {
		t.Fatalf("left are %+v", left)
	}
	for _, d := range left {
		finish(t, s, outcome(d, store.Delivered))
	}
	sweep(2)
	sweep(0)
}
