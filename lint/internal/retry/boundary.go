package retry

import (
	"go/constant"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/eval"
)

// Boundary says where an operation goes. The standard speaks of integration
// boundaries, so that a retry of what stays on the machine is none of its matter.
type Boundary int

// The boundaries. Farther is greater.
const (
	Unknown Boundary = iota // no evidence either way
	Local                   // never leaves the machine
	Remote                  // crosses an integration boundary
)

// BoundaryOf says where a call goes: by the package of what it calls, or by all that
// the function behind it calls in turn.
func (p *Package) BoundaryOf(c *ssa.CallCommon) Boundary {
	if b := p.byPackage(c); b != Unknown {
		return b
	}
	if param, ok := c.Value.(*ssa.Parameter); ok && !c.IsInvoke() {
		return p.handedBoundary(param)
	}
	fn := eval.Static(c)
	if c.IsInvoke() {
		if fn = p.Implementer(c.Method); fn != nil && p.inside(fn, 0) == Remote {
			return Remote
		}
		return Unknown // others may implement it, too
	}
	if fn == nil || len(fn.Blocks) == 0 {
		if f := p.fact(c); f != nil {
			return f.Boundary
		}
		return Unknown
	}
	return p.inside(fn, 0)
}

// Exchanges reports whether a function takes a request and yields a response.
func Exchanges(sig *types.Signature) bool {
	takes := false
	for v := range sig.Params().Variables() {
		takes = takes || IsNamed(v.Type(), "net/http", "Request")
	}
	return takes && sig.Results().Len() == 2 && IsNamed(sig.Results().At(0).Type(), "net/http", "Response") && eval.IsError(sig.Results().At(1).Type())
}

// handedBoundary says where the functions go that the package hands over as a
// parameter: to the farthest, when all callers are known.
func (p *Package) handedBoundary(param *ssa.Parameter) (b Boundary) {
	fn := param.Parent()
	i := slices.Index(fn.Params, param)
	calls := p.callers[fn]
	all := len(calls) > 0
	for _, c := range calls {
		if i < 0 || i >= len(c.Common().Args) {
			return Unknown
		}
		to := Unknown
		if f := FuncOf(c.Common().Args[i]); f != nil {
			to = p.BoundaryOf(&ssa.CallCommon{Value: f})
		}
		all = all && to != Unknown
		b = max(b, to)
	}
	if b == Local && !all {
		return Unknown
	}
	return b
}

// touches reports whether a function, or what it calls, touches files or processes of
// the machine.
func (p *Package) touches(fn *ssa.Function, depth int) bool {
	for c := range Calls(fn) {
		if p.byPackage(c.Common()) == Local {
			return true
		}
		if f := eval.Static(c.Common()); f != nil && len(f.Blocks) > 0 && depth > 0 && p.touches(f, depth-1) {
			return true
		}
	}
	return false
}

// inside is where a function of the package goes: to the farthest of its calls, and
// Local only when each of them computes or stays.
func (p *Package) inside(fn *ssa.Function, depth int) Boundary {
	if b, ok := p.reach[fn]; ok {
		return b
	}
	p.reach[fn] = Unknown // for those that call each other
	b, all := Unknown, true
	if len(fn.Blocks) == 0 {
		all = false
	}
	for _, blk := range fn.Blocks {
		for _, in := range blk.Instrs {
			ci, ok := in.(ssa.CallInstruction)
			if !ok {
				switch in.(type) {
				case *ssa.Send, *ssa.Select:
					all = false
				}
				continue
			}
			if _, ok := in.(*ssa.Go); ok {
				all = false
			}
			c := ci.Common()
			if _, builtin := c.Value.(*ssa.Builtin); builtin || purePkgs[eval.CalleePkg(c)] && !c.IsInvoke() || c.IsInvoke() && eval.CalleePkg(c) == "" {
				continue
			}
			to := Unknown
			if depth < 8 {
				to = p.byPackage(c)
				if f := eval.Static(c); to == Unknown && f != nil && len(f.Blocks) > 0 {
					to = p.inside(f, depth+1)
				} else if to == Unknown {
					if f := p.fact(c); f != nil {
						to = f.Boundary
					}
				}
			}
			all = all && to == Local
			b = max(b, to)
			if _, dynamic := c.Value.(*ssa.Function); !dynamic && !c.IsInvoke() {
				all = false
			}
		}
	}
	switch {
	case b == Local && !all:
		b = Unknown
	case b == Unknown && all: // it touches nothing but the memory of the program
		b = Local
	}
	p.reach[fn] = b
	return b
}

// byPackage says where a call goes by its package alone, or by its form. Of net and
// crypto/tls only what dials or looks up a name leaves the machine for certain.
func (p *Package) byPackage(c *ssa.CallCommon) Boundary {
	pkg, name := eval.CalleePkg(c), eval.CalleeName(c)
	switch {
	case pkg == "io/ioutil" && (name == "ReadAll" || name == "NopCloser"):
		return Unknown
	case localPkgs[pkg], under(pkg, "golang.org/x/sys"):
		return Local
	case pkg == "net" || pkg == "crypto/tls":
		if slices.ContainsFunc(c.Args, ofUnix) {
			return Local
		}
		if strings.HasPrefix(name, "Dial") || strings.HasPrefix(name, "Lookup") {
			return Remote
		}
		return Unknown
	case pkg == "net/http":
		if eval.SendWord.MatchString(name) {
			return Remote
		}
		return Unknown
	case Exchanges(c.Signature()):
		return Remote
	case pkg == p.SSA.Pkg.Path():
		return Unknown // it is a client itself, and not all of it sends
	case slices.ContainsFunc(remotePkgs, func(root string) bool { return under(pkg, root) }):
		return Remote
	}
	return Unknown
}

// holdsClient reports whether a type is a connection or a client of another machine, or
// holds one.
func holdsClient(t types.Type, depth int) bool {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	if !ok || n.Obj().Pkg() == nil || depth > 2 {
		return false
	}
	pkg, name := n.Obj().Pkg().Path(), n.Obj().Name()
	if pkg == "net" && name == "Conn" || pkg == "net/http" && (name == "Client" || name == "RoundTripper") ||
		(strings.HasSuffix(name, "Client") || strings.HasSuffix(name, "Conn") || name == "DB") && slices.ContainsFunc(remotePkgs, func(root string) bool { return under(pkg, root) }) {
		return true
	}
	if s, ok := n.Underlying().(*types.Struct); ok {
		for f := range s.Fields() {
			if holdsClient(f.Type(), depth+1) {
				return true
			}
		}
	}
	return false
}

// under reports whether a path is root or lies below it.
func under(path, root string) bool {
	return path == root || strings.HasPrefix(path, root) && path[len(root)] == '/'
}

// ofUnix reports whether v names the network of the machine's own sockets.
func ofUnix(v ssa.Value) bool {
	k, ok := v.(*ssa.Const)
	if !ok || k.Value == nil || k.Value.Kind() != constant.String {
		return false
	}
	return strings.HasPrefix(constant.StringVal(k.Value), "unix")
}

// purePkgs hold operations that no retry is about: their failure does not depend on
// the time.
var purePkgs = map[string]bool{
	"strconv": true, "fmt": true, "errors": true, "bufio": true, "io": true, "bytes": true, "strings": true,
	"regexp": true, "time": true, "context": true, "sort": true, "slices": true, "maps": true, "reflect": true,
	"unicode": true, "net/url": true, "net/netip": true, "flag": true, "runtime": true, "sync": true, "sync/atomic": true,
	"compress/gzip": true, "archive/tar": true, "archive/zip": true, "path": true, "path/filepath": true, "io/fs": true, "log": true, "log/slog": true,
	"golang.org/x/time/rate": true, "hash": true, "embed": true, "text/template": true, "html/template": true, "math/big": true, "unicode/utf8": true,
}

// localPkgs hold operations that never leave the machine.
var localPkgs = map[string]bool{
	"os": true, "syscall": true, "os/exec": true, "io/ioutil": true, "os/user": true, "os/signal": true,
	"github.com/fsnotify/fsnotify": true,
}

// remotePkgs are the roots of packages whose calls leave the machine: clients of
// databases, brokers and clouds that Go programs use most. One that is missing is
// Unknown, which costs confidence alone.
var remotePkgs = []string{
	"net/rpc", "database/sql", "google.golang.org/grpc", "net/smtp", "github.com/go-resty/resty",
	"github.com/redis/go-redis", "github.com/go-redis/redis", "github.com/jackc/pgx", "cloud.google.com/go",
	"google.golang.org/api", "github.com/aws/aws-sdk-go", "github.com/Azure/azure-sdk-for-go", "github.com/nats-io/nats.go",
	"go.mongodb.org/mongo-driver", "github.com/gocql/gocql", "k8s.io/client-go", "github.com/segmentio/kafka-go",
	"github.com/IBM/sarama", "github.com/Shopify/sarama", "github.com/elastic/go-elasticsearch", "github.com/streadway/amqp",
	"github.com/rabbitmq/amqp091-go", "go.etcd.io/etcd/client", "github.com/hashicorp/vault/api", "github.com/hashicorp/consul/api",
	"github.com/gorilla/websocket", "golang.org/x/crypto/ssh", "github.com/minio/minio-go", "github.com/eclipse/paho.mqtt.golang",
	"github.com/hashicorp/go-retryablehttp", "github.com/docker/docker/client", "github.com/gomodule/redigo", "github.com/valyala/fasthttp",
	"golang.org/x/oauth2", "golang.org/x/net/websocket", "github.com/miekg/dns",
}

// pureCall names calls of any package that no retry is about: locks, elections and
// compare-and-swap loops wait for others, parsers and readers work on what is there,
// and the failure of a Close changes nothing.
var pureCall = regexp.MustCompile(`^(Err|Cause|Unwrap|Is|As|Accept.*|TryLock|TryRLock|Lock|RLock|Unlock|RUnlock|SetNX|CompareAndSwap.*|CAS|Scan|Unmarshal.*|Marshal.*|Parse.*|Decode.*|Encode.*|Validate.*|String|Error|Close|Lookup.*Env|Readdir.*|ReadByte|ReadRune|ReadLine|ReadString|ReadBytes|ReadAll|Tell|Seek|EOF|Elect|Campaign|AcquireLock|Acquire|TryAcquire.*|Obtain|Listen.*|Flock|Wrap.*|Errorf|WithStack|WithMessage.*|NewRequest.*)$`)

// ignored reports whether a failure of a call is none that a retry is about.
func ignored(c *ssa.CallCommon) bool {
	pkg, name := eval.CalleePkg(c), eval.CalleeName(c)
	if _, builtin := c.Value.(*ssa.Builtin); builtin {
		return true
	}
	if purePkgs[pkg] || strings.HasPrefix(pkg, "encoding") || strings.HasPrefix(pkg, "debug/") || strings.HasPrefix(pkg, "math") ||
		strings.HasPrefix(pkg, "crypto") && pkg != "crypto/tls" || strings.HasPrefix(pkg, "go/") {
		return true
	}
	if f := eval.Callee(c); f != nil && name == "Scan" && f.Signature().Recv() != nil && strings.HasSuffix(f.Signature().Recv().Type().String(), "Row") {
		return false // which hands on the failure of the query
	}
	return pureCall.MatchString(name) || gathers(c, name)
}

// gathers reports whether a call joins errors: it only reports what has failed
// before.
func gathers(c *ssa.CallCommon, name string) bool {
	if name != "Append" && name != "Join" && name != "Combine" {
		return false
	}
	for v := range c.Signature().Params().Variables() {
		t := v.Type()
		if s, ok := t.Underlying().(*types.Slice); ok {
			t = s.Elem()
		}
		if eval.IsError(t) {
			return true
		}
	}
	return false
}
