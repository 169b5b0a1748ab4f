package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// Only the first unfinished message of a key can be claimed. A failing
// message delays its own key, as ordering demands, and no other.
func testOrder(t *testing.T, s Store) {
	accept(t, s, true, message("k1", "k", "a"), message("k2", "k", "a"), message("k3", "k", "a"), message("x1", "x", "a"))
	ids := func(list []store.Delivery) (s string) {
		for _, d := range list {
			s += d.Message.ID + " "
		}
		return s
	}
	list := claim(t, s, "a", 10)
	if got := ids(list); got != "k1 x1 " {
		t.Fatalf("claimed %q, want the first of each key", got)
	}
	retry := outcome(list[0], store.Retried)
	// The failing message waits for long, and its key waits with it.
	retry.After = time.Hour
	finish(t, s, retry, outcome(list[1], store.Delivered))
	accept(t, s, true, message("x2", "x", "a"))
	if got := ids(claim(t, s, "a", 10)); got != "x2 " {
		t.Fatalf("claimed %q: a failing message holds its own key, and only that", got)
	}
}

func testOrderRace(t *testing.T, s Store) {
	// Whatever the interleaving of accepts and finishes, nothing stays held.
	const total = 40
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range total {
			accept(t, s, true, message(fmt.Sprintf("m%03d", i), "k", "a"))
		}
	})
	var got []string
	// The deadline only ends a test that has failed: a right store is far
	// quicker.
	for end := time.Now().Add(2 * time.Minute); len(got) < total && time.Now().Before(end); {
		list := claim(t, s, "a", 5)
		// Two of one key at once would let the second overtake the first.
		if len(list) > 1 {
			t.Fatalf("%d messages of one key at once", len(list))
		}
		for _, d := range list {
			got = append(got, d.Message.ID)
			finish(t, s, outcome(d, store.Delivered))
		}
	}
	wg.Wait()
	if len(got) != total {
		t.Fatalf("%d of %d came: the others stay held", len(got), total)
	}
	for i, id := range got {
		if id != fmt.Sprintf("m%03d", i) {
			t.Fatalf("message %d is %s", i, id)
		}
	}
}

// The order of a key is the order in which its messages arrived. Their ids
// do not count, nor does what else came with them, nor the order in which a
// call lists its endpoints.
func testOrderOfArrival(t *testing.T, s Store) {
	// Ids that sort differently from their arrival.
	want := []string{"b", "z", "m", "y", "a"}
	var batch []webhook.Message
	for i, id := range want[:3] {
		batch = append(batch, message(id, "k", "a", "b"), message(fmt.Sprint("other-", i), "", "a"))
	}
	accept(t, s, true, batch...)
	accept(t, s, true, message(want[3], "k", "b", "a"), message(want[4], "k", "a", "b"))
	for _, e := range []string{"a", "b"} {
		got := slices.DeleteFunc(deliverAll(t, s, e), func(id string) bool { return strings.HasPrefix(id, "other-") })
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("endpoint %s gets %v, want %v", e, got, want)
		}
	}
}
