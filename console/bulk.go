package console

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook"
)

// question is what is asked before letters are redriven or discarded: nothing has happened
// yet. What is done then is what was counted: letters that die later are left out.
type question struct {
	Filter url.Values `json:"filter"` // what the form sends back
	Until  time.Time  `json:"until"`
	Count  int        `json:"count"`

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
	if a.Filter, err = filterOf(q); err != nil {
		return a, err
	}
	if a.Filter.Get("state") != string(deadletter.Dead) || a.Filter.Has("redrive") {
		return a, &problem{Status: http.StatusBadRequest, Detail: "Only letters in state dead can be redriven or discarded, and not by the redrive that they were in: change the filter."}
	}
	a.Until = time.Now().UTC()
	if t, err := time.Parse(time.RFC3339, a.Filter.Get("until")); err == nil && t.Before(a.Until) {
		a.Until = t
	}
	a.Filter.Set("until", a.Until.Format(time.RFC3339Nano))
	if len(q["id"]) > 0 {
		a.Filter["id"] = q["id"]
	}
	return a, nil
}

// filter returns the letters of a question as the API wants them.
func (a *question) filter() map[string]any {
	filter := map[string]any{}
	for name, values := range a.Filter {
		if filter[name] = values[0]; name == "id" {
			delete(filter, name)
			filter["ids"] = values
		}
	}
	return filter
}

// form returns what is asked, or what was posted, which is the question that was shown.
func form(r *http.Request) (url.Values, error) {
	if r.Method != http.MethodPost {
		return r.URL.Query(), nil
	}
	if err := r.ParseForm(); err != nil || r.PostForm.Get("until") == "" {
		return nil, &problem{Status: http.StatusBadRequest, Detail: "This form cannot be read: go back and ask again."}
	}
	return r.PostForm, nil
}

// redrive counts what a redrive would send, and asks; or begins it, for a form.
func (c *Console) redrive(r *http.Request, s *session) (*view, error) {
	q, err := form(r)
	if err != nil {
		return nil, err
	}
	q.Set("queue", cmp.Or(q.Get("queue"), webhook.Queue)) // the API would choose it, too: say so
	a, err := asked(q)
	if err != nil {
		return nil, err
	}
	a.Canary = q.Get("canary") != "" || !q.Has("rate")
	a.Rate, a.Stop = queue.DefaultRate, queue.DefaultStopRatio
	for name, v := range map[string]*float64{"rate": &a.Rate, "stop_ratio": &a.Stop} {
		if text := q.Get(name); text != "" {
			if *v, err = strconv.ParseFloat(text, 64); err != nil || !(*v > 0) {
				return nil, &problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("%s: want a number above 0, got %.20q", name, text)}
			}
		}
	}
	body := map[string]any{"filter": a.filter(), "all": true, "rate": a.Rate, "stop_ratio": a.Stop, "canary": a.Canary}
	if r.Method == http.MethodPost {
		var j queue.Job
		err := c.post(r, s, "/v1/redrives", nil, body, &j)
		return &view{Location: "/redrives/" + url.PathEscape(j.ID), Said: fmt.Sprintf("A redrive of %s has begun.", letters(j.Total))}, err
	}
	body["dry_run"] = true
	err = c.post(r, s, "/v1/redrives", nil, body, &a)
	a.Takes = time.Duration(float64(a.Count) / a.Rate * float64(time.Second)).Round(time.Second)
	return &view{Title: "Redrive?", Tab: "/dead-letters", Template: "ask-redrive", Data: a}, err
}

// discard counts what would be discarded, and asks; or gives the letters up, for a form. A
// filter that names nothing is refused, as the API does: all dead letters are not discarded
// at one click.
func (c *Console) discard(r *http.Request, s *session) (*view, error) {
	q, err := form(r)
	if err != nil {
		return nil, err
	}
	a, err := asked(q)
	if err != nil {
		return nil, err
	}
	if len(a.Filter) == len([]string{"state", "until"}) {
		return nil, &problem{Status: http.StatusBadRequest, Detail: "Which letters? Without a filter all of them would be discarded: name a destination, a reason or a cause first."}
	}
	body, to := map[string]any{"filter": a.filter()}, "/dead-letters"
	if r.Method != http.MethodPost {
		body["dry_run"] = true
		err := c.post(r, s, "/v1/dead-letters/discard", nil, body, &a)
		return &view{Title: "Discard?", Tab: to, Template: "ask-discard", Data: a}, err
	}
	body["reason"] = q.Get("why")
	err = c.post(r, s, "/v1/dead-letters/discard", nil, body, &a)
	if ids := q["id"]; len(ids) == 1 {
		to += "/" + url.PathEscape(ids[0])
	}
	return &view{Location: to, Said: letters(a.Count) + " discarded."}, err
}

// letters writes how many letters.
func letters(n int) string {
	if n == 1 {
		return "1 letter"
	}
	return count(int64(n)) + " letters"
}
