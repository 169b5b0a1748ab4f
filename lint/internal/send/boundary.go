// Package send says what a call does beyond the program: whether it crosses an
// integration boundary, which HTTP requests it sends, and whether an idempotency
// key goes with them.
package send

import (
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// Boundary says where an operation goes. The standard speaks of integration
// boundaries, so a retry of what stays on the machine is judged with less
// confidence or not at all. Farther is greater: a region has the farthest of its
// operations.
// The zero value is Unknown: no evidence either way.
type Boundary int

const (
	Unknown Boundary = iota
	Local            // never leaves the machine
	Remote           // crosses an integration boundary
)

// BoundaryOf says where a call goes: by the package of what it calls, by what is
// known of the function behind it, by what it is handed to carry out, or by all
// that it calls in turn.
// The package comes first, since it is certain; the body of a helper comes last,
// since a search of it is dear.
func BoundaryOf(known *fact.Table, c *ssa.CallCommon) Boundary {
	if b := direct(c); b != Unknown {
		return b
	}
	if s := known.Of(c); s != nil {
		switch {
		case s.Remote:
			return Remote
		// One that touches a file and does what is not known may go anywhere.
		case s.Local && known.Body(c) == nil:
			return Local
		}
	}
	if fn := known.Handed(c); fn != nil {
		if b := carriedOut(known, fn); b != Unknown {
			return b
		}
	}
	if inside(known, c, map[*ssa.Function]bool{}) {
		return Local
	}
	return Unknown
}

// carriedOut says where a function goes that an operation is handed. One that is
// given something may only look at what the operation has fetched, so that its own
// files say nothing.
func carriedOut(known *fact.Table, fn *ssa.Function) Boundary {
	switch s := known.Local(fn); {
	case s.Remote:
		return Remote
	case s.Local && fn.Signature.Params().Len() == 0 && inside(known, &ssa.CallCommon{Value: fn}, map[*ssa.Function]bool{}):
		return Local
	}
	return Unknown
}

// direct says where a call goes by its package alone. Of net and crypto/tls,
// only what dials or looks up a name leaves the machine for certain.
func direct(c *ssa.CallCommon) Boundary {
	pkg := dataflow.CalleePkg(c)
	if localPkgs[pkg] && !onlyReads(c) || dataflow.Under(pkg, "golang.org/x/sys") {
		return Local
	}
	if pkg == "net" || pkg == "crypto/tls" {
		if slices.ContainsFunc(c.Args, ofUnix) {
			return Local
		}
		if strings.HasPrefix(dataflow.CalleeName(c), "Dial") || strings.HasPrefix(dataflow.CalleeName(c), "Lookup") {
			return Remote
		}
		return Unknown
	}
	if slices.ContainsFunc(remotePkgs, func(root string) bool { return dataflow.Under(pkg, root) }) {
		return Remote
	}
	return Unknown
}

// onlyReads reports whether a call only reads what it is given, wherever that comes
// from: functions that are those of io today.
func onlyReads(c *ssa.CallCommon) bool {
	name := dataflow.CalleeName(c)
	return dataflow.CalleePkg(c) == "io/ioutil" && (name == "ReadAll" || name == "NopCloser")
}

// ofUnix reports whether v names the network of the machine's own sockets.
func ofUnix(v ssa.Value) bool {
	s, ok := dataflow.ConstString(v)
	return ok && (s == "unix" || s == "unixgram" || s == "unixpacket")
}

// inside reports whether a call certainly touches nothing but the memory, the
// files and the processes of the machine: all that it calls is known, down to
// packages that only compute or stay local. A
// function that hands something to a goroutine or a channel is not known: what
// receives it may go anywhere.
// One function that is not inside settles the question, so that seen holds those
// that need not be entered again. A hundred of them are too many to say.
func inside(known *fact.Table, call *ssa.CallCommon, seen map[*ssa.Function]bool) bool {
	fn := known.Body(call)
	if fn == nil || len(seen) > 100 {
		return false
	}
	if seen[fn] {
		return true
	}
	seen[fn] = true
	for in := range dataflow.Instrs[ssa.Instruction](fn) {
		switch in := in.(type) {
		case *ssa.Go, *ssa.Send, *ssa.Select:
			return false
		case ssa.CallInstruction:
			c := in.Common()
			if _, builtin := c.Value.(*ssa.Builtin); builtin || purePkgs[dataflow.CalleePkg(c)] && !c.IsInvoke() || onlyReads(c) {
				continue
			}
			if c.IsInvoke() && dataflow.CalleePkg(c) == "" || direct(c) == Local { // error.Error
				continue
			}
			if s := known.Of(c); s != nil && s.Local && !s.Remote && known.Body(c) == nil {
				continue
			}
			if !inside(known, c, seen) {
				return false
			}
		}
	}
	return true
}

// purePkgs hold operations that no retry is about: their failure does not
// depend on the time. A limiter is among them, since it refuses for the
// caller's own sake.
var purePkgs = map[string]bool{
	"strconv": true, "fmt": true, "errors": true, "bufio": true, "io": true, "bytes": true, "strings": true,
	"regexp": true, "time": true, "context": true, "sort": true, "slices": true, "maps": true, "reflect": true,
	"unicode": true, "net/url": true, "net/netip": true, "flag": true, "runtime": true, "sync": true, "sync/atomic": true,
	"compress/gzip": true, "archive/tar": true, "archive/zip": true, "path": true, "path/filepath": true, "io/fs": true, "log": true, "log/slog": true,
	"golang.org/x/time/rate": true, "hash": true, "embed": true, "text/template": true, "html/template": true,
}

// OnlyComputes reports whether the operations of a package fail for no reason
// that a retry could mend.
func OnlyComputes(pkg string) bool { return purePkgs[pkg] }

// localPkgs hold operations that never leave the machine; the standard speaks
// of integration boundaries.
var localPkgs = map[string]bool{
	"os": true, "syscall": true, "os/exec": true, "io/ioutil": true, "os/user": true, "os/signal": true,
	"github.com/fsnotify/fsnotify": true,
}

// remotePkgs are the roots of packages whose calls leave the machine: the
// standard library's clients, and those of databases, brokers and clouds that
// Go programs use most. A client that is missing is Unknown, which costs
// confidence and no finding.
var remotePkgs = []string{
	"net/http", "net/rpc", "database/sql", "google.golang.org/grpc", "net/smtp", "github.com/go-resty/resty",
	"github.com/redis/go-redis", "github.com/go-redis/redis", "github.com/jackc/pgx", "cloud.google.com/go",
	"google.golang.org/api", "github.com/aws/aws-sdk-go", "github.com/Azure/azure-sdk-for-go", "github.com/nats-io/nats.go",
	"go.mongodb.org/mongo-driver", "github.com/gocql/gocql", "k8s.io/client-go", "github.com/segmentio/kafka-go",
	"github.com/IBM/sarama", "github.com/Shopify/sarama", "github.com/elastic/go-elasticsearch", "github.com/streadway/amqp",
	"github.com/rabbitmq/amqp091-go", "go.etcd.io/etcd/client", "github.com/hashicorp/vault/api", "github.com/hashicorp/consul/api",
	"github.com/gorilla/websocket", "golang.org/x/crypto/ssh", "github.com/minio/minio-go", "github.com/eclipse/paho.mqtt.golang",
	"github.com/hashicorp/go-retryablehttp", "github.com/docker/docker/client", "github.com/gomodule/redigo", "github.com/valyala/fasthttp",
	"golang.org/x/oauth2", "golang.org/x/net/websocket", "github.com/miekg/dns",
}

// pureCall names calls of any package that no retry is about: locks, elections
// and compare-and-swap loops wait for others, parsers and readers work on what
// is there, and the failure of a Close changes nothing.
var pureCall = regexp.MustCompile(`^(Err|Cause|Accept.*|TryLock|TryRLock|Lock|RLock|Unlock|RUnlock|SetNX|CompareAndSwap.*|CAS|Scan|Unmarshal.*|Marshal.*|Parse.*|Decode.*|Encode.*|Validate.*|String|Error|Close|Lookup.*Env|Readdir.*|ReadByte|ReadRune|ReadLine|ReadString|ReadBytes|ReadAll|Tell|Seek|EOF|Elect|Campaign|AcquireLock|Acquire|TryAcquire.*|Obtain|Listen.*|Flock|Wrap.*|Errorf|WithStack|WithMessage.*|NewRequest.*)$`)

// gathersErrors reports whether c joins errors, whatever the package.
// Such a call can fail at nothing; it only reports what has failed before.
func gathersErrors(c *ssa.CallCommon) bool {
	if n := dataflow.CalleeName(c); n != "Append" && n != "Join" && n != "Combine" {
		return false
	}
	for p := range c.Signature().Params().Variables() {
		t := p.Type()
		if s, ok := t.Underlying().(*types.Slice); ok {
			t = s.Elem()
		}
		if dataflow.IsError(t) {
			return true
		}
	}
	return false
}

// Ignored reports whether a failure of c is none that a retry is about.
func Ignored(c *ssa.CallCommon) bool {
	pkg := dataflow.CalleePkg(c)
	if purePkgs[pkg] || strings.HasPrefix(pkg, "encoding") || strings.HasPrefix(pkg, "debug/") || strings.HasPrefix(pkg, "math") ||
		strings.HasPrefix(pkg, "crypto") && pkg != "crypto/tls" || strings.HasPrefix(pkg, "go/") {
		return true
	}
	if dataflow.Receiver(c) == "Row" && dataflow.CalleeName(c) == "Scan" {
		return false // which hands on the failure of the query
	}
	return pureCall.MatchString(dataflow.CalleeName(c)) || gathersErrors(c)
}
