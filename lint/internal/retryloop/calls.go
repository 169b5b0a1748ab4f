package retryloop

import (
	"go/token"
	"go/types"
	"regexp"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// Callee returns the function that c calls, or the interface method; nil for a
// call of a function value.
func Callee(c *ssa.CallCommon) *types.Func {
	if c.IsInvoke() {
		return c.Method
	}
	if f := c.StaticCallee(); f != nil {
		if f.Origin() != nil {
			f = f.Origin()
		}
		obj, _ := f.Object().(*types.Func)
		return obj
	}
	return nil
}

// static returns the body behind a static call, a call of a closure, of a
// method value or of an instance of a generic function.
func static(c *ssa.CallCommon) *ssa.Function {
	f := c.StaticCallee()
	if f == nil {
		return nil
	}
	if m := boundMethod(f); m != nil {
		return m
	}
	if o := f.Origin(); o != nil && len(o.Blocks) > 0 {
		return o
	}
	return f
}

// boundMethod returns the method behind f when f is a method value: send :=
// c.send. Its calls leave the receiver out.
func boundMethod(f *ssa.Function) *ssa.Function {
	if f.Parent() != nil || len(f.FreeVars) != 1 || !strings.HasSuffix(f.Name(), "$bound") {
		return nil
	}
	obj, _ := f.Object().(*types.Func)
	if obj == nil {
		return nil
	}
	return f.Prog.FuncValue(obj)
}

func CalleeName(c *ssa.CallCommon) string {
	if f := Callee(c); f != nil {
		return f.Name()
	}
	if b, ok := c.Value.(*ssa.Builtin); ok {
		return b.Name()
	}
	return valueName(c.Value)
}

func CalleePkg(c *ssa.CallCommon) string {
	if f := Callee(c); f != nil && f.Pkg() != nil {
		return f.Pkg().Path()
	}
	return ""
}

// valueName is the source name of a function value: a parameter, a field, a
// captured variable.
func valueName(v ssa.Value) string {
	switch v := v.(type) {
	case *ssa.Parameter:
		return v.Name()
	case *ssa.FreeVar:
		return v.Name()
	case *ssa.Global:
		return v.Name()
	case *ssa.Alloc:
		return v.Comment
	case *ssa.Phi:
		return v.Comment
	case *ssa.UnOp:
		return valueName(v.X)
	case *ssa.FieldAddr:
		return FieldName(v.X.Type(), v.Field)
	case *ssa.Field:
		return FieldName(v.X.Type(), v.Field)
	case *ssa.MakeClosure:
		return v.Fn.Name()
	}
	return ""
}

func FieldName(t types.Type, i int) string {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	if s, ok := t.Underlying().(*types.Struct); ok && i < s.NumFields() {
		return s.Field(i).Name()
	}
	return ""
}

// Describe names a call for people: "http.Client.Do", "connect", "fn (a
// function value)".
func Describe(c *ssa.CallCommon) string {
	f := Callee(c)
	if f == nil {
		if n := valueName(c.Value); n != "" {
			return n
		}
		return "a function value"
	}
	sig := f.Type().(*types.Signature)
	if recv := sig.Recv(); recv != nil {
		t := recv.Type()
		if p, ok := t.(*types.Pointer); ok {
			t = p.Elem()
		}
		if n, ok := types.Unalias(t).(*types.Named); ok {
			if n.Obj().Pkg() == nil {
				return n.Obj().Name() + "." + f.Name()
			}
			return n.Obj().Pkg().Name() + "." + n.Obj().Name() + "." + f.Name()
		}
		return f.Name()
	}
	if f.Pkg() != nil {
		return f.Pkg().Name() + "." + f.Name()
	}
	return f.Name()
}

// isError reports whether t is error, or an error type of a package: an
// interface, or a pointer that says so by its name.
func isError(t types.Type) bool {
	n, ok := types.Unalias(t).(*types.Named)
	if ok && n.Obj().Pkg() == nil && n.Obj().Name() == "error" {
		return true
	}
	if ok && types.IsInterface(n) {
		return types.Implements(n, errorType)
	}
	p, ok := types.Unalias(t).(*types.Pointer)
	return ok && strings.Contains(typeName(p), "Err") && types.Implements(p, errorType)
}

func IsNamed(t types.Type, pkg, name string) bool {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == name && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == pkg
}

// typeName is the name of t, or of what it points to, without its package.
func typeName(t types.Type) string {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := types.Unalias(t).(*types.Named); ok {
		return n.Obj().Name()
	}
	return ""
}

func isDuration(t types.Type) bool { return IsNamed(t, "time", "Duration") }

// IsContext reports whether t is context.Context.
func IsContext(t types.Type) bool { return IsNamed(t, "context", "Context") }

// purePkgs hold operations that no retry is about: their failure does not
// depend on the time.
var purePkgs = map[string]bool{
	"strconv": true, "fmt": true, "errors": true, "bufio": true, "io": true, "bytes": true, "strings": true,
	"regexp": true, "time": true, "context": true, "sort": true, "slices": true, "maps": true, "reflect": true,
	"unicode": true, "net/url": true, "net/netip": true, "flag": true, "runtime": true, "sync": true, "sync/atomic": true,
	"compress/gzip": true, "archive/tar": true, "archive/zip": true, "path": true, "path/filepath": true, "io/fs": true, "log": true, "log/slog": true,
	"debug/elf": true, "golang.org/x/time/rate": true, "hash": true, "embed": true, "text/template": true, "html/template": true,
}

// onlyComputes reports whether the operations of a package fail for no reason
// that a retry could mend.
func onlyComputes(pkg string) bool { return purePkgs[pkg] }

// localPkgs hold operations that never leave the machine; the standard speaks
// of integration boundaries.
var localPkgs = map[string]bool{
	"os": true, "syscall": true, "os/exec": true, "io/ioutil": true, "os/user": true, "os/signal": true,
	"golang.org/x/sys/unix": true, "golang.org/x/sys/windows": true, "github.com/fsnotify/fsnotify": true,
	"github.com/gofrs/flock": true, "golang.org/x/sys/windows/registry": true, "golang.org/x/sys/windows/svc/mgr": true,
}

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

func under(pkg, root string) bool {
	return pkg == root || strings.HasPrefix(pkg, root+"/")
}

var pureCall = regexp.MustCompile(`^(Err|Cause|Accept.*|TryLock|TryRLock|Lock|RLock|Unlock|RUnlock|SetNX|CompareAndSwap.*|CAS|Scan|Unmarshal.*|Marshal.*|Parse.*|Decode.*|Encode.*|Validate.*|String|Error|Close|Lookup.*Env|Readdir.*|ReadByte|ReadRune|ReadLine|ReadString|ReadBytes|ReadAll|Tell|Seek|EOF|Token|Elect|Campaign|AcquireLock|Acquire|TryAcquire.*|Obtain|Listen.*|Flock|Wrap.*|Errorf|WithStack|WithMessage.*|NewRequest.*)$`)

// gathersErrors reports whether c joins errors, whatever the package.
func gathersErrors(c *ssa.CallCommon) bool {
	if n := CalleeName(c); n != "Append" && n != "Join" && n != "Combine" {
		return false
	}
	for p := range c.Signature().Params().Variables() {
		t := p.Type()
		if s, ok := t.Underlying().(*types.Slice); ok {
			t = s.Elem()
		}
		if isError(t) {
			return true
		}
	}
	return false
}

// ignoredOp reports whether a failure of c is none that a retry is about.
func ignoredOp(c *ssa.CallCommon) bool {
	pkg := CalleePkg(c)
	if purePkgs[pkg] || strings.HasPrefix(pkg, "encoding") || strings.HasPrefix(pkg, "math") ||
		strings.HasPrefix(pkg, "crypto") && pkg != "crypto/tls" || strings.HasPrefix(pkg, "go/") {
		return true
	}
	return pureCall.MatchString(CalleeName(c)) || gathersErrors(c)
}

// Boundary says where an operation goes.
type Boundary int

const (
	Unknown Boundary = iota
	Local            // never leaves the machine
	Remote           // crosses an integration boundary
)

func boundaryOf(c *ssa.CallCommon) Boundary {
	pkg := CalleePkg(c)
	if localPkgs[pkg] {
		return Local
	}
	if pkg == "net" || pkg == "crypto/tls" {
		if strings.HasPrefix(CalleeName(c), "Dial") || strings.HasPrefix(CalleeName(c), "Lookup") {
			return Remote
		}
		return Unknown
	}
	for _, r := range remotePkgs {
		if pkg == r || strings.HasPrefix(pkg, r+"/") {
			return Remote
		}
	}
	return Unknown
}

// ifOf returns the If that ends b, or nil.
func ifOf(b *ssa.BasicBlock) *ssa.If {
	if len(b.Instrs) == 0 {
		return nil
	}
	i, _ := b.Instrs[len(b.Instrs)-1].(*ssa.If)
	return i
}

func isNil(v ssa.Value) bool {
	c, ok := v.(*ssa.Const)
	return ok && c.IsNil()
}

// flip turns "c op x" into "x op' c".
func flip(op token.Token) token.Token {
	switch op {
	case token.LSS:
		return token.GTR
	case token.GTR:
		return token.LSS
	case token.LEQ:
		return token.GEQ
	case token.GEQ:
		return token.LEQ
	}
	return op
}
