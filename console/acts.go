package console

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/webhook/store"
)

// act is what can be done to messages, to one or to all that match.
type act struct {
	Name   string   // in addresses and in the API
	Verb   string   // on its button
	Done   string   // afterwards
	States []string // of the messages that it can be done to
	Means  string
}

var acts = []act{
	{"cancel", "Cancel", "canceled", []string{store.StateWaiting, store.StateHeld, store.StateSending}, "They are not sent any more. What is being sent is canceled unless the current attempt delivers it. A canceled message can be sent again."},
	{"send-again", "Send again", "to be sent again", []string{store.StateDelivered, store.StateDead, store.StateCanceled}, "They are sent with the same id, and a fresh count of attempts. This cannot be undone: a receiver that has one already gets it twice, and has to know it by its id. A dead letter is redriven, three times at most."},
}

// of returns the states that are asked for and that it can be done in.
func (d act) of(asked []string) (states []string) {
	for _, state := range d.States {
		if len(asked) == 0 || slices.Contains(asked, state) {
			states = append(states, state)
		}
	}
	return states
}

// tally is what became of messages so far, as the API counts it, batch by batch.
type tally struct {
	Done       int            `json:"done"`
	Refused    map[string]int `json:"refused,omitempty"`
	Unreadable int            `json:"unreadable,omitempty"`
	Next       string         `json:"next"` // where the next batch begins; "": it was the last one
}

// actPage asks whether it shall be done, or says how far it is.
type actPage struct {
	Act    act        `json:"-"`
	Filter url.Values `json:"filter"` // as in a query
	Asking bool       `json:"dry_run"`
	tally
	Of    url.Values `json:"-"` // the filter with the states that it can be done in
	SoFar string     `json:"-"` // the tally, for the request that goes on
	Wrong string     `json:"error,omitempty"`
}

// How long batches are taken in one request: for the page that asks, for one that counts
// on, and for one that does it.
const (
	firstCount = 30 * time.Millisecond
	countOn    = time.Second
	doOn       = 3 * time.Second
)

// actOf reads what a request wants to do, to which messages, and how far it is.
func actOf(r *http.Request) (p actPage, err error) {
	i := slices.IndexFunc(acts, func(d act) bool { return d.Name == r.PathValue("act") })
	if i < 0 {
		return p, errNoPage
	}
	p.Act = acts[i]
	if p.Filter, err = filter(r.URL.Query(), messageFields...); err != nil {
		return p, err
	}
	if len(p.Filter) == 0 {
		return p, &problem{Status: http.StatusBadRequest, Detail: "Which messages? Without a filter all are chosen: name a state or an endpoint first."}
	}
	p.Of = maps.Clone(p.Filter)
	if p.Of["state"] = p.Act.of(p.Filter["state"]); p.Of["state"] == nil {
		return p, &problem{Status: http.StatusConflict, Detail: "This can be done to messages that are " + strings.Join(p.Act.States, ", ") + "."}
	}
	if text := r.FormValue("so_far"); text != "" && json.Unmarshal([]byte(text), &p.tally) != nil {
		return p, &problem{Status: http.StatusBadRequest, Detail: "so_far: this is not what the page said."}
	}
	return p, nil
}

// askAct counts all that match, and asks.
func (c *Console) askAct(r *http.Request, s *session) (*view, error) {
	p, err := actOf(r)
	if err != nil {
		return nil, err
	}
	p.Asking = true
	if !p.Filter.Has("id") && !p.Filter.Has("until") { // what is accepted later is left out
		now := time.Now().UTC().Format(time.RFC3339Nano)
		p.Filter.Set("until", now)
		p.Of.Set("until", now)
	}
	long := firstCount
	if p.Next != "" {
		long = countOn
	}
	if err := c.batches(r, s, &p, long); err != nil {
		return nil, err
	}
	return p.view(), nil
}

// doAct does it to all that match, not to what a page happens to show. What takes longer
// than a request goes on with the next.
func (c *Console) doAct(r *http.Request, s *session) (*view, error) {
	p, err := actOf(r)
	if err != nil {
		return nil, err
	}
	begun := p.Next != ""
	if err = c.batches(r, s, &p, doOn); err != nil && !begun && p.Done == 0 {
		return nil, err
	}
	if err != nil {
		p.Wrong = err.Error()
	}
	if p.Next != "" {
		return p.view(), nil
	}
	return &view{Location: "/messages" + alter(p.Filter), Said: p.said()}, nil
}

// batches has the API take one batch after another.
func (c *Console) batches(r *http.Request, s *session, p *actPage, long time.Duration) error {
	filter := map[string]any{}
	for name, values := range p.Of {
		if filter[name] = values[0]; name == "endpoint" || name == "state" {
			filter[name] = values
		}
	}
	for end := time.Now().Add(long); ; {
		var batch tally
		body := map[string]any{"filter": filter, "dry_run": p.Asking, "after": p.Next}
		if err := c.post(r, s, "/v1/messages/"+p.Act.Name, nil, body, &batch); err != nil {
			return err
		}
		p.Done, p.Unreadable, p.Next = p.Done+batch.Done, p.Unreadable+batch.Unreadable, batch.Next
		for why, n := range batch.Refused {
			if p.Refused == nil {
				p.Refused = map[string]int{}
			}
			p.Refused[why] += n
		}
		if p.Next == "" || time.Now().After(end) {
			return nil
		}
	}
}

func (p actPage) view() *view {
	text, _ := json.Marshal(p.tally) // counts and texts
	p.SoFar = string(text)
	return &view{Title: p.Act.Verb, Tab: "/messages", Template: "act", Data: p}
}

// said says what was done, and what was not.
func (p *actPage) said() string {
	var said strings.Builder
	fmt.Fprintf(&said, "Messages %s: %s.", p.Act.Done, count(int64(p.Done)))
	for why, n := range p.Refused {
		fmt.Fprintf(&said, " Left as they were: %s, since %s.", count(int64(n)), why)
	}
	if p.Unreadable > 0 {
		fmt.Fprintf(&said, " %s could not be read, and were left.", count(int64(p.Unreadable)))
	}
	return said.String()
}
