package retryloop

import (
	"go/constant"
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// keyWords mark a header, a field or a variable as an idempotency key.
var keyWords = []string{"idempoten"}

// IsKeyName reports whether a header or field name is that of an idempotency
// key.
func IsKeyName(s string) bool {
	s = strings.ToLower(s)
	for _, w := range keyWords {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// AddKeyNames adds header names that a user's servers read keys from. It must
// be called before any analysis runs.
func AddKeyNames(names ...string) {
	for _, n := range names {
		keyWords = append(keyWords, strings.ToLower(n))
	}
}

// mentionsKey reports whether fn sets or carries an idempotency key: a string
// constant, a field or a callee of that name. It errs on the side of silence.
func mentionsKey(fn *ssa.Function) bool {
	for _, b := range fn.Blocks {
		for _, in := range b.Instrs {
			switch in := in.(type) {
			case *ssa.FieldAddr:
				if IsKeyName(fieldName(in.X.Type(), in.Field)) {
					return true
				}
			case *ssa.Call:
				if IsKeyName(calleeName(in.Common())) {
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
	name, pkg := calleeName(c), calleePkg(c)
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
	f := callee(c)
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
