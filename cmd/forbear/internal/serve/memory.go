package serve

import "os"

// heapFloor is what serve adds to its live heap in the eyes of the garbage
// collector, in bytes: the next collection comes at about twice this.
const heapFloor = 24 << 20

// reserve returns memory that is never touched, and so takes no room but in the
// collector's books: it waits until the heap has doubled. What lives in a
// gateway is a few megabytes, which it would go through many times a second
// under load, for about a tenth of the CPU. Keep it alive as long as serve runs.
//
// It is nothing where GOGC or GOMEMLIMIT are set: the operator has decided.
func reserve() []byte {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	return make([]byte, heapFloor)
}
