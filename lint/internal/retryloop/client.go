package retryloop

import (
	"go/types"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
	"github.com/forbear-go/forbear/lint/internal/send"
)

// ownClient is how the package configures a client that retries by itself.
type ownClient struct {
	off    bool   // it makes one attempt
	on     bool   // it is told to retry, where it does not by default
	policy Choice // what its policy asks the method for
}

// byClient returns the repetition that a client makes by itself, by which c
// sends, or nil. The client is configured elsewhere, as a rule: in a constructor
// or an option. What the package says of any such client counts for all of them.
func (p *finders) byClient(c *ssa.Call) *Repeat {
	client, sends := send.ByClient(p.Known, c)
	if client == "" {
		client, sends = p.byStandIn(c)
	}
	if len(sends) == 0 {
		return nil
	}
	own := p.configured()[client]
	if own.off || !own.on && !send.RetriesByDefault(client) {
		return nil
	}
	return &Repeat{Fn: c.Parent(), Call: c, Sends: sends, ByMethod: own.policy}
}

// byStandIn returns the client behind one of net/http that c sends by, with the
// requests: the package has made it of a client that retries, and keeps it in a
// variable or in a field that never holds another.
func (p *finders) byStandIn(c *ssa.Call) (client string, sends []fact.Send) {
	com := c.Common()
	if len(com.Args) == 0 || !dataflow.IsNamed(com.Args[0].Type(), "net/http", "Client") {
		return "", nil
	}
	from := com.Args[0]
	if u, ok := from.(*ssa.UnOp); ok {
		from = p.heldClients()[dataflow.FieldVar(u.X)]
	}
	if made, ok := from.(*ssa.Call); ok {
		if client = send.StandsIn(made.Common()); client != "" {
			return client, send.Of(p.Known.Scope(c.Parent()), []*ssa.Call{c})
		}
	}
	return "", nil
}

// heldClients returns, for each field that holds a client of net/http, what alone
// is stored in it; nil for one that may hold several.
func (p *finders) heldClients() map[*types.Var]ssa.Value {
	if p.held != nil {
		return p.held
	}
	p.held = map[*types.Var]ssa.Value{}
	for _, fn := range p.Known.Funcs() {
		for st := range dataflow.Instrs[*ssa.Store](fn) {
			v := dataflow.FieldVar(st.Addr)
			if v == nil || !dataflow.IsNamed(v.Type(), "net/http", "Client") {
				continue
			}
			if _, again := p.held[v]; again {
				p.held[v] = nil
			} else {
				p.held[v] = st.Val
			}
		}
	}
	return p.held
}

// StandsFor returns whether c makes a client of net/http that repeats every
// request by itself, by the policy of its library or one that does not look at
// the method.
func (p *finders) StandsFor(c *ssa.Call) bool {
	client := send.StandsIn(c.Common())
	own := p.configured()[client]
	return client != "" && !own.off && own.policy == Blind
}

// configured returns the clients that the package configures.
func (p *finders) configured() map[string]ownClient {
	if p.clients != nil {
		return p.clients
	}
	p.clients = map[string]ownClient{}
	for _, fn := range p.Known.Funcs() {
		for in := range dataflow.Instrs[ssa.Instruction](fn) {
			client, setting, val := send.Configures(in)
			if client == "" {
				continue
			}
			own := p.clients[client]
			n, isConst := dataflow.ConstInt(dataflow.Strip(val))
			switch setting {
			case send.Attempts:
				own.off = own.off || isConst && n == 0
				own.on = own.on || !isConst || n > 0
			case send.Policy:
				own.policy = max(own.policy, p.policy(fn, val))
			}
			p.clients[client] = own
		}
	}
	return p.clients
}

// policy says whether a function that decides what is tried again looks at the
// method. One of a library does not; one that cannot be read may.
func (p *finders) policy(in *ssa.Function, v ssa.Value) Choice {
	fn := p.function(in, v)
	switch {
	case fn != nil && p.Known.Own(fn):
		return p.byMethod(fn)
	case fn != nil:
		return Blind
	}
	if f, ok := dataflow.Strip(v).(*ssa.Function); ok && f.Pkg != nil {
		return Blind
	}
	return Perhaps
}
