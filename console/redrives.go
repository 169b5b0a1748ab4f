package console

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/forbear-go/forbear/console/internal/page"
	"github.com/forbear-go/forbear/deadletter/queue"
)

// redrivesPage is a page of redrives.
type redrivesPage struct {
	Redrives []queue.Job `json:"redrives"`
	Next     string      `json:"next"`
}

// redrives lists redrives, the newest first.
func (c *Console) redrives(r *http.Request, s *session) (*view, error) {
	var p redrivesPage
	err := c.get(r, s, "/v1/redrives", paged(url.Values{}, r.URL.Query()), &p)
	return &view{Title: "Redrives", Tab: "/dead-letters", Template: "redrives", Data: p}, err
}

// redrivePage is one redrive. It goes on whether or not someone looks at it.
type redrivePage struct {
	queue.Job
	Open  bool          `json:"-"`
	Known int           `json:"-"` // outcomes
	Left  time.Duration `json:"-"` // until all are sent
	OOB   bool          `json:"-"`
}

func (c *Console) job(r *http.Request, s *session) (p redrivePage, err error) {
	err = c.get(r, s, "/v1/redrives/"+url.PathEscape(r.PathValue("id")), nil, &p.Job)
	p.Open, p.Known = p.State.Open(), p.Delivered+p.Failing
	if p.State == queue.JobRunning && p.Rate > 0 {
		p.Left = time.Duration(float64(max(p.Total-p.Begun, 0)) / p.Rate * float64(time.Second)).Round(time.Second)
	}
	return p, err
}

// redriveJob shows how far a redrive is.
func (c *Console) redriveJob(r *http.Request, s *session) (*view, error) {
	p, err := c.job(r, s)
	return &view{Title: "Redrive " + p.ID, Tab: "/dead-letters", Template: "redrive", Data: p}, err
}

// redriveLive follows it until it ends. Its buttons are a part of their own, so that they
// stay under a pointer while figures change.
func (c *Console) redriveLive(r *http.Request) look {
	return func(s *session) (map[string]page.Markup, error) {
		p, err := c.job(r, s)
		if err != nil {
			return nil, err
		}
		p.OOB = true
		parts := map[string]page.Markup{}
		for _, name := range []string{"redrive-progress", "redrive-state"} {
			if parts[name], err = c.pages.Execute(name, shown{p, s, nil}); err != nil {
				return nil, err
			}
		}
		if !p.Open { // the last event: without its element the page asks no more
			parts["redrive-live"], err = c.pages.Execute("redrive-live", p)
		}
		return parts, err
	}
}

// jobActs are what is done with a redrive, and what is said of it then.
var jobActs = map[string]string{"pause": "paused", "resume": "resumed", "cancel": "canceled"}

// actOnJob pauses, resumes or cancels a redrive.
func (c *Console) actOnJob(r *http.Request, s *session) (*view, error) {
	act := r.PathValue("act")
	if jobActs[act] == "" {
		return nil, errNoPage
	}
	at := "/redrives/" + url.PathEscape(r.PathValue("id"))
	if err := c.post(r, s, "/v1"+at+"/"+act, nil, nil, nil); err != nil {
		return nil, err
	}
	return &view{Location: at, Said: fmt.Sprintf("The redrive is %s.", jobActs[act])}, nil
}

// auditPage is a page of the audit trail.
type auditPage struct {
	Audit []queue.Entry `json:"audit"`
	Next  string        `json:"next"`
}

// audit shows who did what, the newest first.
func (c *Console) audit(r *http.Request, s *session) (*view, error) {
	f, err := filter(r.URL.Query(), "who", "action", "target", "since", "until")
	if err != nil {
		return nil, err
	}
	var p auditPage
	err = c.get(r, s, "/v1/audit", paged(f, r.URL.Query()), &p)
	return &view{Title: "Audit trail", Tab: "/dead-letters", Template: "audit", Data: p}, err
}
