package serve

import (
	"os"
	"runtime/debug"
)

// heapFloor is what serve adds to its live heap in the eyes of the garbage
// collector, in bytes: the next collection comes at about twice this.
const heapFloor = 24 << 20

// reserve returns memory that is never touched, and so takes no room but in the
// collector's books: it waits until the heap has doubled. What lives in a
// gateway is a few megabytes, which it would go through many times a second
// under load, for about a tenth of the CPU. Keep it alive as long as serve runs.
//
// It is nothing where GOGC is set, as the operator has decided, and where GOMEMLIMIT
// leaves so little that these bytes would bring collections instead of sparing them.
func reserve() []byte {
	if os.Getenv("GOGC") != "" || debug.SetMemoryLimit(-1) < 4*heapFloor {
		return nil
	}
	return make([]byte, heapFloor)
}
