//go:build !unix

package direct

import "net"

// canTell says that no connection can be asked whether it is open: net/http sends all.
const canTell = false

func alive(net.Conn) bool { return false }
