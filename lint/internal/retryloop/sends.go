package retryloop

import (
	"go/constant"
	"go/types"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/tools/go/ssa"
)

// keyWord marks a header, a field or a variable as an idempotency key; so do
// the names that a user has set.
const keyWord = "idempoten"

var keyNames atomic.Pointer[[]string]

// IsKeyName reports whether a header or field name is that of an idempotency
// key.
func IsKeyName(s string) bool {
	s = strings.ToLower(s)
	if strings.Contains(s, keyWord) {
		return true
	}
	names := keyNames.Load()
	return names != nil && slices.ContainsFunc(*names, func(n string) bool { return strings.Contains(s, n) })
}

// SetKeyNames sets the header names that a user's servers read keys from,
// instead of those set before. It must be called before any analysis runs.
func SetKeyNames(names ...string) {
	lower := make([]string, 0, len(names))
	for _, n := range names {
		lower = append(lower, strings.ToLower(n))
	}
	keyNames.Store(&lower)
}

// mentionsKey reports whether fn sets or carries an idempotency key: a string
// constant, a field or a callee of that name. It errs on the side of silence.
func mentionsKey(fn *ssa.Function) bool {
	for _, b := range fn.Blocks {
		for _, in := range b.Instrs {
			switch in := in.(type) {
			case *ssa.FieldAddr:
				if IsKeyName(FieldName(in.X.Type(), in.Field)) {
					return true
				}
			case *ssa.Call:
				if IsKeyName(CalleeName(in.Common())) {
					return true
				}
			}
			for _, op := range in.Operands(nil) {
				if *op == nil {
					continue
				}
				if s, ok := ConstString(*op); ok && len(s) < 200 && IsKeyName(s) {
					return true
				}
				if g, ok := (*op).(*ssa.Global); ok && IsKeyName(g.Name()) {
					return true
				}
			}
		}
	}
	return false
}

// ConstString returns the value of a string constant.
func ConstString(v ssa.Value) (string, bool) {
	c, ok := v.(*ssa.Const)
	if !ok || c.Value == nil || c.Value.Kind() != constant.String {
		return "", false
	}
	return constant.StringVal(c.Value), true
}

// methodArg reads the HTTP method from argument i of a call: a constant, or a
// parameter of the enclosing function.
func methodArg(c *ssa.CallCommon, i int) (method string, param int) {
	if i >= len(c.Args) {
		return "", -1
	}
	a := strip(c.Args[i])
	if s, ok := ConstString(a); ok {
		if s == "" {
			s = "GET"
		}
		return strings.ToUpper(s), -1
	}
	if p, ok := a.(*ssa.Parameter); ok {
		for n, q := range p.Parent().Params {
			if q == p {
				return "", n
			}
		}
	}
	return "", -1
}

// directSend recognizes the calls that make a request of a known method.
func directSend(c *ssa.CallCommon) []Send {
	name, pkg := CalleeName(c), CalleePkg(c)
	arg := -1
	switch {
	case pkg == "net/http" && name == "NewRequest", pkg == "github.com/hashicorp/go-retryablehttp" && name == "NewRequest":
		arg = 0
	case pkg == "net/http" && name == "NewRequestWithContext", pkg == "github.com/hashicorp/go-retryablehttp" && name == "NewRequestWithContext":
		arg = 1
	case (pkg == "net/http" || pkg == "golang.org/x/net/context/ctxhttp" || pkg == "github.com/hashicorp/go-retryablehttp") && (name == "Post" || name == "PostForm"):
		return []Send{{Method: "POST", Param: -1}}
	case under(pkg, "github.com/go-resty/resty") && (name == "Post" || name == "Patch") && isResty(c, "Request"):
		return []Send{{Method: strings.ToUpper(name), Param: -1}}
	default:
		return nil
	}
	method, param := methodArg(c, arg)
	if method == "" && param < 0 {
		return nil
	}
	return []Send{{Method: method, Param: param}}
}

func isResty(c *ssa.CallCommon, recv string) bool {
	f := Callee(c)
	if f == nil {
		return false
	}
	r := f.Type().(*types.Signature).Recv()
	if r == nil {
		return false
	}
	t := r.Type()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == recv
}
