package httpretry

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestKeptInBlocks: what was added comes back, from any place, and the memory counts the
// blocks behind the first.
func TestKeptInBlocks(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		k := kept{memory: NewBodyMemory(1 << 30)}
		var want []byte
		for range r.IntN(12) {
			p := make([]byte, r.IntN(3*block/2))
			for i := range p {
				p[i] = byte(r.Uint32())
			}
			k.add(p, false)
			want = append(want, p...)
		}
		var got []byte
		for len(got) < k.size {
			p := k.from(len(got))
			got = append(got, p[:1+r.IntN(len(p))]...)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("seed %d: %d bytes came back of %d, or others", seed, len(got), len(want))
		}
		if blocks := int64(max(len(want)-1, 0) / block); k.memory.Used() != blocks*block {
			t.Errorf("seed %d: %d bytes take %d", seed, len(want), k.memory.Used())
		}
		if k.drop(); k.memory.Used() != 0 || k.size != 0 {
			t.Errorf("seed %d: %d bytes stay", seed, k.memory.Used())
		}
	}
}

// TestKeptWithinMemory: what does not fit is not added, except what must be kept.
func TestKeptWithinMemory(t *testing.T) {
	k := kept{memory: NewBodyMemory(2 * block)}
	for i, tc := range []struct {
		bytes    int
		must, ok bool
		size     int
		full     bool
	}{
		{block, false, true, block, false},
		{2 * block, false, true, 3 * block, true},
		{1, false, false, 3 * block, true},
		{1, true, true, 3*block + 1, true},
		{block - 1, false, true, 4 * block, true},
	} {
		if ok := k.add(make([]byte, tc.bytes), tc.must); ok != tc.ok || k.size != tc.size || k.full() != tc.full {
			t.Errorf("step %d: %v, %d bytes, full %v; want %+v", i, ok, k.size, k.full(), tc)
		}
	}
	if used := k.memory.Used(); used != 3*block {
		t.Errorf("%d bytes are taken", used)
	}
}
