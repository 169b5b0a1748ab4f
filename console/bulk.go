package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook"
)

// question is what is asked before letters are redriven or discarded: nothing has happened
// yet. What is done then is what was counted: letters that die later are left out.
type question struct {
	Fields []field   `json:"filter"` // what the form sends back
	Words  []string  `json:"-"`      // the filter, for people
	Until  time.Time `json:"until"`
	Count  int       `json:"count"`

	// How letters are redriven, and how long that takes.
	Rate   float64       `json:"rate,omitempty"`
	Stop   float64       `json:"stop_ratio,omitempty"`
	Canary bool          `json:"canary,omitempty"`
	Takes  time.Duration `json:"takes_ns,omitempty"`
}

// asked returns the question about the letters of a form: those with an id, or all that
// match a filter. A form without either chooses nothing, and never all.
func asked(q url.Values) (a question, err error) {
	if len(q["id"]) == 0 && !q.Has("all") {
		return a, &problem{Status: http.StatusBadRequest, Detail: "Choose letters first: mark some, or act on all that match."}
	}
	filter, err := filterOf(q)
	if err != nil {
		return a, err
	}
	if cmp.Or(q.Get("state"), string(deadletter.Dead)) != string(deadletter.Dead) || q.Get("redrive") != "" {
		return a, &problem{Status: http.StatusBadRequest, Detail: "Only letters in state dead can be redriven or discarded, and a redrive is no filter for that: change the filter."}
	}
	a.Until = time.Now().UTC()
	for _, id := range q["id"] {
		a.Fields = append(a.Fields, field{"id", id})
		a.Words = append(a.Words, id)
	}
	for _, f := range filter {
		if f.Name == "until" {
			if t, err := time.Parse(time.RFC3339, f.Value); err == nil && t.Before(a.Until) {
				a.Until = t
			}
			continue
		}
		a.Fields = append(a.Fields, f)
		a.Words = append(a.Words, strings.ReplaceAll(f.Name, "_", " ")+" "+f.Value)
	}
	a.Fields = append(a.Fields, field{"until", a.Until.Format(time.RFC3339Nano)})
	return a, nil
}

// filter returns the letters of a question as the API wants them.
func (a *question) filter() map[string]any {
	filter, ids := map[string]any{}, []string{}
	for _, f := range a.Fields {
		if f.Name == "id" {
			ids = append(ids, f.Value)
			filter["ids"] = ids
			continue
		}
		filter[f.Name] = f.Value
	}
	return filter
}

// form returns what was posted, which is the question that was shown.
func form(r *http.Request) (url.Values, error) {
	if err := r.ParseForm(); err != nil || r.PostForm.Get("until") == "" {
		return nil, &problem{Status: http.StatusBadRequest, Detail: "This form cannot be read: go back and ask again."}
	}
	return r.PostForm, nil
}

// redriving returns the question of a redrive, and what the API is asked for.
func redriving(q url.Values) (a question, body map[string]any, err error) {
	q.Set("queue", cmp.Or(q.Get("queue"), webhook.Queue)) // the API would choose it, too: say so
	if a, err = asked(q); err != nil {
		return a, nil, err
	}
	a.Canary = q.Get("canary") != "" || !q.Has("rate")
	a.Rate, a.Stop = queue.DefaultRate, queue.DefaultStopRatio
	for name, v := range map[string]*float64{"rate": &a.Rate, "stop_ratio": &a.Stop} {
		if text := q.Get(name); text != "" {
			if *v, err = strconv.ParseFloat(text, 64); err != nil || !(*v > 0) {
				return a, nil, &problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("%s: want a number above 0, got %.20q", name, text)}
			}
		}
	}
	return a, map[string]any{"filter": a.filter(), "all": true, "rate": a.Rate, "stop_ratio": a.Stop, "canary": a.Canary}, nil
}

// askRedrive counts what a redrive would send, and asks.
func (c *Console) askRedrive(r *http.Request, s *session) (*view, error) {
	a, body, err := redriving(r.URL.Query())
	if err != nil {
		return nil, err
	}
	body["dry_run"] = true
	if err := c.post(r, s, "/v1/redrives", nil, body, &a); err != nil {
		return nil, err
	}
	a.Takes = time.Duration(float64(a.Count) / a.Rate * float64(time.Second)).Round(time.Second)
	return &view{Title: "Redrive?", Tab: "/dead-letters", Template: "ask-redrive", Data: a}, nil
}

// redrive begins it.
func (c *Console) redrive(r *http.Request, s *session) (*view, error) {
	q, err := form(r)
	if err != nil {
		return nil, err
	}
	a, body, err := redriving(q)
	if err != nil {
		return nil, err
	}
	c.beginning.Lock()
	defer c.beginning.Unlock()
	var j queue.Job
	if at, err := c.underWay(r, s, &a); at != "" || err != nil {
		return &view{Location: at, Said: "This redrive has begun already."}, err
	}
	if err := c.post(r, s, "/v1/redrives", nil, body, &j); err != nil {
		return nil, err
	}
	return &view{Location: "/redrives/" + url.PathEscape(j.ID), Said: fmt.Sprintf("A redrive of %s has begun.", letters(j.Total))}, nil
}

// underWay returns the address of the open redrive that a question has begun already, or "":
// a second click begins no second one, which would go on when the first is paused.
func (c *Console) underWay(r *http.Request, s *session, a *question) (string, error) {
	var latest redrivesPage
	var f queue.Filter
	text, err := json.Marshal(a.filter())
	if err = cmp.Or(err, json.Unmarshal(text, &f), c.get(r, s, "/v1/redrives", url.Values{"limit": {"20"}}, &latest)); err != nil {
		return "", err
	}
	for _, j := range latest.Redrives {
		if f.MaxRedrives = j.Filter.MaxRedrives; j.State.Open() && reflect.DeepEqual(f, j.Filter) {
			return "/redrives/" + url.PathEscape(j.ID), nil
		}
	}
	return "", nil
}

// discarding returns the question of discarding. A filter that names nothing is refused,
// as the API does: all dead letters are not discarded at one click.
func discarding(q url.Values) (a question, err error) {
	a, err = asked(q)
	if err == nil && len(a.Fields) == len([]string{"state", "until"}) {
		err = &problem{Status: http.StatusBadRequest, Detail: "Which letters? Without a filter all of them would be discarded: name a destination, a reason or a cause first."}
	}
	return a, err
}

// askDiscard counts what would be discarded, and asks.
func (c *Console) askDiscard(r *http.Request, s *session) (*view, error) {
	a, err := discarding(r.URL.Query())
	if err != nil {
		return nil, err
	}
	if err := c.post(r, s, "/v1/dead-letters/discard", nil, map[string]any{"filter": a.filter(), "dry_run": true}, &a); err != nil {
		return nil, err
	}
	return &view{Title: "Discard?", Tab: "/dead-letters", Template: "ask-discard", Data: a}, nil
}

// discard gives the letters up.
func (c *Console) discard(r *http.Request, s *session) (*view, error) {
	q, err := form(r)
	if err != nil {
		return nil, err
	}
	a, err := discarding(q)
	if err != nil {
		return nil, err
	}
	if err := c.post(r, s, "/v1/dead-letters/discard", nil, map[string]any{"filter": a.filter(), "reason": q.Get("why")}, &a); err != nil {
		return nil, err
	}
	to := "/dead-letters"
	if ids := q["id"]; len(ids) == 1 {
		to += "/" + url.PathEscape(ids[0])
	}
	return &view{Location: to, Said: letters(a.Count) + " discarded."}, nil
}

// letters writes how many letters.
func letters(n int) string {
	if n == 1 {
		return "1 letter"
	}
	return count(int64(n)) + " letters"
}
