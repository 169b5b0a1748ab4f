package store_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/forbear-go/forbear/webhook/store"
)

func TestCountsAreSummedUp(t *testing.T) {
	var c, other store.Counts
	for range 94 {
		c.Add(204, 20*time.Millisecond)
	}
	for range 5 {
		other.Add(503, 300*time.Millisecond)
	}
	other.Add(0, 40*time.Second)
	text, err := json.Marshal(other)
	if err != nil {
		t.Fatal(err)
	}
	var back store.Counts
	if err := json.Unmarshal(text, &back); err != nil || back != other {
		t.Fatalf("got %+v back, %v, want %+v", back, err, other)
	}
	c.Merge(&back)
	s := c.Stats(time.Unix(0, 0))
	want := "94 6 map[2xx:94 5xx:5 none:1] 433.8ms 50ms 500ms 500ms 40s"
	if got := fmt.Sprintln(s.Delivered, s.Failed, s.Responses, s.Mean, s.P50, s.P95, s.P99, s.Longest); got != want+"\n" {
		t.Errorf("got %s, want %s", got, want)
	}
	if s := new(store.Counts).Stats(time.Unix(0, 0)); s.P99 != 0 || s.Mean != 0 || s.Failed != 0 {
		t.Errorf("of nothing: %+v", s)
	}
}
