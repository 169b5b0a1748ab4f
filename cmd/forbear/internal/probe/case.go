package probe

import (
	"crypto/tls"
	"net/http"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/probe/law"
	"github.com/forbear-go/forbear/cmd/forbear/internal/probe/wire"
)

// The questions of a probe, in the order of its report.
const (
	again = iota
	often
	between
	heeds
)

// questions are their words.
var questions = [...]string{
	again: "What is sent again?", often: "How often, how long?", between: "How long between?", heeds: "Does it heed the server?",
}

// The outcomes of a case.
const (
	Holds     = "holds"
	Fails     = "fails"
	NotJudged = "not judged"
	Told      = "told" // what no rule asks for
)

// Verdict is what a case has shown, and by what.
type Verdict struct {
	Outcome string `json:"outcome"`
	Why     string `json:"why"`
}

// Case is one situation that a client is put into. Its ID is stable.
type Case struct {
	ID       string
	Title    string
	Rule     string
	question int
	// group joins the cases whose verdicts are one line of the report.
	group  string
	method string
	tls    func(*pki) *tls.Config // nil: without TLS
	script func(at *place) wire.Script
	// second is what the second server does; nil: it responds with 200.
	second wire.Step
	// of is the id of the case whose runs are judged, where it has none itself.
	of    string
	watch time.Duration
	runs  int // 0 is one
	ends  int // how many requests are enough; 0: its end
	// listens is for how long the client is watched after it was told to end.
	listens time.Duration
	// late cases come after the others, whose results they need.
	late  bool
	judge func(k *known, runs []run) Verdict
}

// known is what has been seen of the client before.
type known struct {
	*protocol
	method    string // of its request
	agent     string
	header    http.Header
	ok        int           // its exit code for a healthy response
	trusts    bool          // the authority of the probe
	sentAgain bool          // after the failure of an outage
	retries   int           // of a call that meets that alone
	lingers   time.Duration // until it has ended after that
	law       law.Found
	lawFound  bool
	waits     law.Sample
	runsByID  map[string][]run
	placeable bool // the method can be put in
	tellsTLS  bool // it is told by its command line, where it must be, when to speak TLS
}

const (
	usualWatch = 15 * time.Second
	// longWatch is longer than a synchronous call may take.
	longWatch = 40 * time.Second
	maxTotal  = 30 * time.Second
	// sequences is how many calls show the law of the waits.
	sequences = 24
)

// steps is a script of one step for each request; the last goes on.
func steps(list ...wire.Step) func(*place) wire.Script {
	return func(*place) wire.Script {
		return func(a *wire.Arrival) wire.Step { return list[min(a.Number, len(list))-1] }
	}
}

// beyond is what the second server does.
func (c *Case) beyond() wire.Step {
	if c.second == nil {
		return ok
	}
	return c.second
}

var ok = wire.Status(http.StatusOK)
