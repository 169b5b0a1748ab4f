package send

import (
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// Setting is what a program sets of a client that retries by itself.
type Setting int

const (
	Attempts Setting = iota + 1 // how many it makes
	Policy                      // which failures it tries again
)

// ByClient returns the client that a call sends by and that may retry by itself,
// by the root of its import path, with the requests; "" for any other call.
func ByClient(known *fact.Table, call *ssa.Call) (client string, sends []fact.Send) {
	c := call.Common()
	name, pkg, recv := dataflow.CalleeName(c), dataflow.CalleePkg(c), dataflow.Receiver(c)
	post := []fact.Send{{Method: "POST", Param: -1}}
	switch {
	case pkg == retryable && (name == "Post" || name == "PostForm"):
		return retryable, post
	case pkg == retryable && recv == "Client" && name == "Do" && len(c.Args) > 1:
		return retryable, Methods(known.Scope(call.Parent()), c.Args[1])
	case dataflow.Under(pkg, resty) && recv == "Request" && (name == "Post" || name == "Patch"):
		return resty, []fact.Send{{Method: strings.ToUpper(name), Param: -1}}
	case dataflow.Under(pkg, resty) && recv == "Request" && name == "Execute" && len(c.Args) > 1:
		return resty, Methods(known.Scope(call.Parent()), c.Args[1])
	}
	return "", nil
}

// RetriesByDefault reports whether a client retries without being told to.
func RetriesByDefault(client string) bool { return client == retryable }

// StandsIn returns the client whose call c makes a client of net/http that
// retries by itself, or "".
func StandsIn(c *ssa.CallCommon) (client string) {
	if dataflow.CalleePkg(c) == retryable && dataflow.CalleeName(c) == "StandardClient" {
		return retryable
	}
	return ""
}

// Configures returns which client an instruction configures, what of it, and the
// value; "" when it configures none.
func Configures(in ssa.Instruction) (client string, what Setting, val ssa.Value) {
	switch in := in.(type) {
	case *ssa.Store:
		fa, ok := in.Addr.(*ssa.FieldAddr)
		if !ok || !dataflow.IsNamed(fa.X.Type(), retryable, "Client") {
			return "", 0, nil
		}
		switch dataflow.FieldOf(fa) {
		case "RetryMax":
			return retryable, Attempts, in.Val
		case "CheckRetry":
			return retryable, Policy, in.Val
		}
	case *ssa.Call:
		c := in.Common()
		if dataflow.Under(dataflow.CalleePkg(c), resty) && dataflow.CalleeName(c) == "SetRetryCount" && len(c.Args) > 1 {
			return resty, Attempts, c.Args[1]
		}
	}
	return "", 0, nil
}
