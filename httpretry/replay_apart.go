package httpretry

import "sync"

// apartBlock bounds a Read that goes on by itself: it cannot read into its caller's bytes.
const apartBlock = 32 << 10

var apartBlocks = sync.Pool{New: func() any { return new([apartBlock]byte) }}

// readApart is readSource for a reader whose Close ends a Read. What the source gives
// after that is kept for the next attempt.
func (r *replay) readApart(p []byte, b *replayReader) (int, error) {
	var n int
	var err error
	block := apartBlocks.Get().(*[apartBlock]byte)
	read := make(chan struct{})
	go func() {
		n, err = r.readSource(block[:min(len(p), apartBlock)], b)
		close(read)
	}()
	select {
	case <-read:
		copy(p, block[:n])
		apartBlocks.Put(block)
		return n, err
	case <-b.left:
		return 0, errBodyClosed // the block is the Read's, which may go on
	}
}
