// Package porttest finds ports for the servers that tests start as processes, which
// bind them a moment later, or anew after a crash, and relays in front of them, on which
// nothing passes or connections break.
package porttest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Free returns a port of 127.0.0.1 at which no one listens. It is below those that
// the system gives to outgoing connections and to who asks for any port: such a one
// may be taken before its server has it.
func Free(t testing.TB) int {
	t.Helper()
	port, err := Pick()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// Pick is Free outside a test, in TestMain or an example.
func Pick() (port int, err error) {
	for range 100 {
		port = 10_000 + rand.IntN(22_000)
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, err
}
