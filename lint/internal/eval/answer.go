package eval

import (
	"go/types"
	"regexp"
	"strings"
)

// statusName marks fields and methods that hold the status of a response, and
// codeName those that hold a gRPC code.
var (
	statusName = regexp.MustCompile(`^(Http|HTTP)?_?Status_?(Code)?$|^(get|Get)?(HTTP|Http)?(Status|Response)_?Code$|^Code$|^(HTTP|Http)Code$|^status(Code)?$|^code$|^respCode$`)
	statusText = regexp.MustCompile(`(?i)status`)
)

// ofAnswer reads a field of the response.
func (m *Machine) ofAnswer(name string, t types.Type) Value {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if Is(t, types.IsInteger) && statusName.MatchString(last) {
		return m.status(t)
	}
	if IsHeader(t) {
		return Part{"Header"}
	}
	switch t.Underlying().(type) {
	case *types.Pointer, *types.Interface, *types.Map, *types.Slice:
		if !IsError(t) {
			return Part{last}
		}
	}
	return Unknown{Told: true}
}

// ofFailure reads a field of the error of the operation, as a type that it was
// found to have.
func (m *Machine) ofFailure(name string, t types.Type) Value {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if Is(t, types.IsInteger) && statusName.MatchString(last) && (m.Scene.Outcome == Answered || m.Scene.Outcome == Coded) {
		return m.status(t)
	}
	if last == "Op" && m.Scene.Outcome == Lost { // of net.OpError: the request had gone out
		c := String("read")
		c.Told = true
		return c
	}
	if IsResponse(t) && m.Scene.Outcome == Answered {
		return Answer{}
	}
	if _, ok := t.Underlying().(*types.Pointer); ok {
		return Unknown{Told: true}
	}
	return Unknown{Told: true}
}

// status is the status of the scene.
func (m *Machine) status(types.Type) Value {
	m.Looked = true
	switch m.Scene.Outcome {
	case Success, Answered, Coded:
		c := Int(m.Scene.Status)
		c.Told = true
		return c
	}
	return Unknown{Told: true}
}

// carries reports whether a type of error holds a status, in a field or a method.
func carries(t types.Type) bool { return carriesWithin(t, 0) }

func carriesWithin(t types.Type, depth int) bool {
	if depth > 3 {
		return false
	}
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	if st, ok := t.Underlying().(*types.Struct); ok {
		for f := range st.Fields() {
			if statusName.MatchString(f.Name()) && Is(f.Type(), types.IsInteger) || IsResponse(f.Type()) {
				return true
			}
			if f.Embedded() && carriesWithin(f.Type(), depth+1) {
				return true
			}
		}
	}
	set := types.NewMethodSet(types.NewPointer(t))
	if types.IsInterface(t) {
		set = types.NewMethodSet(t)
	}
	for i := range set.Len() {
		m, _ := set.At(i).Obj().(*types.Func)
		if m != nil && statusName.MatchString(m.Name()) && m.Signature().Params().Len() == 0 && m.Signature().Results().Len() == 1 && Is(m.Signature().Results().At(0).Type(), types.IsInteger) {
			return true
		}
	}
	return false
}

// as looks into an error for one of a type, as errors.As and type assertions do. It
// returns what was found and whether it was. Assertions look at the error itself.
func (m *Machine) as(s *state, v Value, t types.Type, itself bool) (found, ok Value) {
	return m.asWithin(s, v, t, itself, 0)
}

func (m *Machine) asWithin(s *state, v Value, t types.Type, itself bool, depth int) (found, ok Value) {
	if depth > 5 {
		return Unknown{Told: true}, Unknown{Told: true}
	}
	yes, no := Bool(true), Bool(false)
	switch v := v.(type) {
	case Iface:
		if types.Identical(v.T, t) {
			return v.V, yes
		}
		if i, isInterface := t.Underlying().(*types.Interface); isInterface {
			if types.Implements(v.T, i) {
				return v, yes
			}
			if !itself {
				if inner := m.unwraps(s, v); inner != nil {
					return m.asWithin(s, inner, t, itself, depth+1)
				}
			}
			return Nil{}, no
		}
		if !itself {
			if inner := m.unwraps(s, v); inner != nil {
				return m.asWithin(s, inner, t, itself, depth+1)
			}
		}
		return zero(t), no
	case Wrap:
		if itself {
			return zero(t), no
		}
		found, ok = zero(t), Value(no)
		for _, w := range v.Of {
			for _, w := range ways(w) {
				f, is := m.asWithin(s, w, t, itself, depth+1)
				if y, n := truth(is); y && !n {
					return f, is
				} else if y {
					found, ok = join(found, f), join(ok, is)
				}
			}
		}
		return found, ok
	case Nil:
		return zero(t), no
	case Failure:
		return m.failureAs(t)
	case Made:
		if v.Told && v.ID == "result" {
			return Unknown{Told: true}, Unknown{Told: true}
		}
		return zero(t), no
	case Sym:
		return Sym{Name: v.Name}, Unknown{}
	}
	return Unknown{Told: Told(v)}, Unknown{Told: Told(v)}
}

// failureAs says whether the error of the operation has a type. An error that came
// with a status is found as the type that holds one; one of a lost response may be
// any type of the network, but none of a refusal.
func (m *Machine) failureAs(t types.Type) (found, ok Value) {
	text := types.TypeString(t, nil)
	certificate := strings.Contains(text, "crypto/x509.") || strings.Contains(text, "crypto/tls.CertificateVerificationError")
	m.Asked = m.Asked || carries(t) || isGRPCStatus(t)
	says := func(b bool) Value {
		c := Bool(b)
		c.Told = true
		return c
	}
	switch m.Scene.Outcome {
	case Untrusted:
		if certificate {
			m.Certified = true
			return Failure{}, says(true)
		}
		if strings.HasSuffix(text, "net/url.Error") || strings.HasSuffix(text, "net.OpError") {
			return Failure{}, says(true)
		}
		return zero(t), says(false)
	case Coded:
		if isGRPCStatus(t) {
			m.Looked = true
			return Failure{}, says(true)
		}
		if network(text) || certificate || carries(t) {
			return zero(t), says(false)
		}
		return Failure{}, Unknown{Told: true}
	case Answered:
		if carries(t) && !isGRPCStatus(t) {
			m.Looked = true
			return Failure{}, says(true)
		}
		if network(text) || certificate {
			return zero(t), says(false)
		}
		return Failure{}, Unknown{Told: true}
	case Lost:
		if certificate || carries(t) {
			return zero(t), says(false)
		}
		if strings.HasSuffix(text, "net/url.Error") || strings.HasSuffix(text, "net.Error") || strings.HasSuffix(text, "net.OpError") {
			return Failure{}, says(true)
		}
		return Failure{}, Unknown{Told: true}
	}
	return Failure{}, Unknown{Told: true}
}

// network reports whether a type is one of errors that no response comes with.
func network(t string) bool {
	return strings.HasSuffix(t, "net.Error") || strings.HasSuffix(t, "net.OpError") || strings.HasSuffix(t, "net/url.Error") ||
		strings.HasSuffix(t, "net.DNSError") || strings.HasSuffix(t, "syscall.Errno") || strings.HasSuffix(t, "os.SyscallError") ||
		strings.Contains(t, "Timeout() bool")
}

// isGRPCStatus reports whether a type is one that yields a status of gRPC.
func isGRPCStatus(t types.Type) bool {
	return strings.Contains(types.TypeString(t, nil), "GRPCStatus()")
}

// unwraps is the error inside one of the package's own types: what its Unwrap
// returns, or its only field that is an error.
func (m *Machine) unwraps(s *state, v Iface) Value {
	t := v.T
	p, isPtr := types.Unalias(t).(*types.Pointer)
	if isPtr {
		t = p.Elem()
	}
	st, ok := t.Underlying().(*types.Struct)
	obj, _, _ := types.LookupFieldOrMethod(v.T, true, nil, "Unwrap")
	if !ok || obj == nil {
		return nil
	}
	for i := range st.NumFields() {
		f := st.Field(i)
		if !IsError(f.Type()) {
			continue
		}
		switch x := v.V.(type) {
		case Ptr:
			return m.read(s, x.Cell+"."+f.Name(), f.Type())
		case Struct:
			return x.Fields[i]
		}
	}
	return nil
}
