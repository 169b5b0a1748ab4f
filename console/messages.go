package console

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/forbear-go/forbear/webhook/store"
)

// messagesPage is a page of messages, each at one endpoint.
type messagesPage struct {
	Messages   []store.MessageInfo `json:"messages"`
	Unreadable int                 `json:"unreadable,omitempty"`
	Next       string              `json:"next"`
	// Back is how far back a search has looked that has not filled the page; zero: it has
	// looked at all there is, or need not look further.
	Back   time.Time `json:"looked_back_to,omitzero"`
	Looks  int       `json:"-"` // the number of the next look
	On     bool      `json:"-"` // whether a script looks further by itself
	States []string  `json:"-"`
	Acts   []act     `json:"-"` // what can be done to all that match
}

// messageStates are the states of messages, in the order of their lives.
var messageStates = []string{
	store.StateWaiting, store.StateHeld, store.StateSending, store.StateCanceling, store.StateDelivered, store.StateDead, store.StateCanceled,
}

// A search among many messages for a few may take long. The first look leaves the page
// quick; those that follow are worth their request, and end with the reader's patience.
const (
	firstLook = "40ms"
	longLook  = "1s"
	maxLooks  = 60
)

// messageFields are the parts of their filter.
var messageFields = []string{"id", "endpoint", "application", "type", "key", "state", "since", "until"}

// messages lists the messages that a filter chooses, the newest first.
func (c *Console) messages(r *http.Request, s *session) (*view, error) {
	q := r.URL.Query()
	f, err := filter(q, messageFields...)
	if err != nil {
		return nil, err
	}
	looks, _ := strconv.Atoi(q.Get("looks"))
	p, ask := messagesPage{Looks: looks + 1, States: messageStates}, paged(f, q)
	ask.Set("patience", firstLook)
	if looks > 0 {
		ask.Set("patience", longLook)
	}
	if err := c.get(r, s, "/v1/messages", ask, &p); err != nil {
		return nil, err
	}
	if len(p.Messages) < pageRows && p.Next != "" {
		if p.Back, err = c.acceptedAt(r, s, p.Next); err != nil {
			return nil, err
		}
		p.On = len(p.Messages) == 0 && looks < maxLooks
	}
	for _, d := range acts {
		if s.Write && len(f) > 0 && len(d.of(f["state"])) > 0 {
			p.Acts = append(p.Acts, d)
		}
	}
	return &view{Title: "Messages", Tab: "/messages", Template: "messages", Data: p}, nil
}

// acceptedAt returns when the newest message below a cursor was accepted.
func (c *Console) acceptedAt(r *http.Request, s *session, after string) (time.Time, error) {
	var p messagesPage
	err := c.get(r, s, "/v1/messages", url.Values{"after": {after}, "limit": {"1"}}, &p)
	if err != nil || len(p.Messages) == 0 {
		return time.Time{}, err
	}
	return p.Messages[0].Created, nil
}

// messagePage is one message: what it is, and what has become of it at each endpoint.
type messagePage struct {
	ID         string     `json:"id"`
	Contents   []content  `json:"contents"`
	Deliveries []delivery `json:"deliveries"`
	Shown      bool       `json:"-"` // with its payload
}

// content is what is sent, with its payload as text.
type content struct {
	store.MessageContent
	Original payload `json:"-"`
}

// delivery is a message at one endpoint.
type delivery struct {
	store.DeliveryInfo
	History []sending `json:"attempt_history"`
}

// sending is one attempt of a delivery, with durations in words.
type sending struct {
	Number    int       `json:"attempt"`
	At        time.Time `json:"at"`
	Took      string    `json:"took"`
	Wait      string    `json:"wait,omitempty"`
	ErrorType string    `json:"error_type,omitempty"`
	Status    int       `json:"status,omitempty"`
	Class     string    `json:"error_class,omitempty"`
	Error     string    `json:"error,omitempty"`
	Response  string    `json:"response,omitempty"`
}

// message shows a message: masked, or with its payload once that was asked for by a form,
// which the API records first.
func (c *Console) message(r *http.Request, s *session) (*view, error) {
	p := messagePage{Shown: r.Method == http.MethodPost}
	if err := c.get(r, s, "/v1/messages/"+url.PathEscape(r.PathValue("id")), reveal(r), &p); err != nil {
		return nil, err
	}
	for i := range p.Contents {
		p.Contents[i].Original = payloadOf(p.Contents[i].Payload)
	}
	return &view{Title: p.ID, Tab: "/messages", Template: "message", Data: p}, nil
}
