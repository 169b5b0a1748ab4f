package console

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
)

// lettersPage is a page of dead letters, and the groups of all.
type lettersPage struct {
	Letters []letter `json:"dead_letters"`
	Next    string   `json:"next"`
	Groups  []group  `json:"groups"`
	// All is the filter for acts on all letters that match, and nil where it chooses some
	// that cannot be acted upon.
	All    url.Values `json:"-"`
	Filter url.Values `json:"filter"`
	Bound  bool       `json:"-"` // whether something is looked for
	More   bool       `json:"-"` // by a field that is seldom used
}

// letter is a dead letter as the API has it: with durations in words.
type letter struct {
	deadletter.Letter
	Policy  json.RawMessage `json:"policy,omitempty"`
	History []sending       `json:"attempt_history,omitempty"`
}

// group are the letters of one queue, reason and state.
type group struct {
	queue.Stat
	Others []queue.CauseStat `json:"-"` // causes that are shown on demand
}

// letterFields are the parts of their filter that are texts.
var letterFields = []string{"destination", "reason", "cause", "error_type", "event_id", "application", "queue", "redrive"}

// shownCauses is how many causes of a group are seen at once.
const shownCauses = 5

// filterOf returns the filter of an address as the API has it: of letters that are dead,
// unless it names a state.
func filterOf(q url.Values) (url.Values, error) {
	f, err := filter(q, append(letterFields, "since", "until")...)
	if state := cmp.Or(q.Get("state"), string(deadletter.Dead)); err == nil && state != "any" {
		f.Set("state", state)
	}
	return f, err
}

// letters shows the groups of all dead letters, and those that a filter chooses, the newest
// first.
func (c *Console) deadLetters(r *http.Request, s *session) (*view, error) {
	q := r.URL.Query()
	var p lettersPage
	var err error
	if p.Filter, err = filterOf(q); err != nil {
		return nil, err
	}
	p.Bound = len(p.Filter) > 1 || q.Has("state")
	p.More = slices.ContainsFunc(letterFields[2:], p.Filter.Has)
	if p.Filter.Get("state") == string(deadletter.Dead) && !p.Filter.Has("redrive") {
		p.All = p.Filter
	}
	ask := paged(p.Filter, q)
	ask.Set("newest", "true")
	if err := c.get(r, s, "/v1/dead-letters", ask, &p); err != nil {
		return nil, err
	}
	if p.Groups, err = c.groups.read(func(into any) error { return c.get(r, s, "/v1/dead-letters/stats", nil, into) }); err != nil {
		return nil, err
	}
	return &view{Title: "Dead letters", Tab: "/dead-letters", Template: "letters", Data: p}, nil
}

// groups are those of all dead letters, for a few seconds: counting many takes longer than
// a page may. An act of this console makes them new.
type groups struct {
	mu   sync.Mutex
	at   time.Time
	list []group
}

const groupsAge = 5 * time.Second

// read returns them, those that are dead first, as it happens by the names of states.
func (g *groups) read(get func(into any) error) ([]group, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Since(g.at) < groupsAge {
		return g.list, nil
	}
	var all struct{ Stats []queue.Stat }
	if err := get(&all); err != nil {
		return nil, err
	}
	g.at, g.list = time.Now(), nil
	for _, stat := range all.Stats {
		one := group{Stat: stat}
		if len(one.Causes) > shownCauses {
			one.Causes, one.Others = one.Causes[:shownCauses], one.Causes[shownCauses:]
		}
		g.list = append(g.list, one)
	}
	slices.SortStableFunc(g.list, func(a, b group) int { return cmp.Or(cmp.Compare(a.State, b.State), cmp.Compare(b.Count, a.Count)) })
	return g.list, nil
}

// forget makes the next page count anew.
func (g *groups) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at = time.Time{}
}

// letterPage is one dead letter, with what was done with it.
type letterPage struct {
	letter
	Shown    bool          `json:"-"` // with its payload
	Original payload       `json:"-"`
	Audit    []queue.Entry `json:"audit"`
}

// letter shows a dead letter beside its attempts: masked, or with its payload, as
// [Console.message] does.
func (c *Console) letter(r *http.Request, s *session) (*view, error) {
	p := letterPage{Shown: r.Method == http.MethodPost}
	if err := c.get(r, s, "/v1/dead-letters/"+url.PathEscape(r.PathValue("id")), reveal(r), &p.letter); err != nil {
		return nil, err
	}
	if err := c.get(r, s, "/v1/audit", url.Values{"target": {p.ID}, "limit": {"20"}}, &p); err != nil {
		return nil, err
	}
	p.Original = payloadOf(p.Payload)
	return &view{Title: p.ID, Tab: "/dead-letters", Template: "letter", Data: p}, nil
}
