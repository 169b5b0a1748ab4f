package gather_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/forbear-go/forbear/internal/gather"
)

// What comes alone goes at once. What comes while a batch is under way goes
// together, in its order, as far as the bounds allow; what is larger than they
// are goes alone.
func TestBatches(t *testing.T) {
	for _, tt := range []struct {
		name              string
		width, max, bytes int
		sizes             []int // of what comes while the first is under way
		want              [][]int
	}{
		{"without bounds", 0, 0, 0, []int{1, 1, 1}, [][]int{{0}, {1, 2, 3}}},
		{"by number", 1, 2, 0, []int{1, 1, 1}, [][]int{{0}, {1, 2}, {3}}},
		{"by size", 1, 0, 10, []int{4, 4, 4, 30, 1}, [][]int{{0}, {1, 2}, {3}, {4}, {5}}},
		{"two at a time", 2, 0, 0, []int{1, 1, 1}, [][]int{{0}, {1}, {2, 3}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				goOn := make(chan struct{})
				var done [][]int
				b := gather.Batches[int]{Width: tt.width, Max: tt.max, Bytes: tt.bytes}
				turn := make(chan struct{}, 1)
				b.Do = func(batch []int) {
					turn <- struct{}{}
					done = append(done, slices.Clone(batch))
					<-turn
					<-goOn
				}
				b.Add(0, 1)
				synctest.Wait()
				for i, size := range tt.sizes {
					b.Add(i+1, size)
					synctest.Wait()
				}
				close(goOn)
				synctest.Wait()
				if !slices.EqualFunc(done, tt.want, slices.Equal) {
					t.Errorf("got %v, want %v", done, tt.want)
				}
			})
		})
	}
}
