package consume

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/deadletter"
)

// maxEvent bounds an event, in bytes.
const maxEvent = 256 << 10

// CloudEvents returns a handler that takes CloudEvents 1.0 over HTTP, in binary
// or structured mode, one a request. It answers 204 when the sender may forget
// the event, and 503 with Retry-After when it is to send it again. The sender
// keeps no [Progress], so that the claims in the store count as attempts; set
// [Options.InPlace] negative to make that exact.
func CloudEvents(c *Consumer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(io.LimitReader(r.Body, maxEvent+1))
		switch {
		case err != nil:
			w.WriteHeader(http.StatusBadRequest)
			return
		case len(body) > maxEvent:
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		e, err := decode(r.Header, body)
		if errors.Is(err, errMedia) {
			w.WriteHeader(http.StatusUnsupportedMediaType)
			return
		}
		d := Decision{}
		if err != nil {
			d = c.Poison(r.Context(), e, deadletter.ReasonUndecodable, err.Error())
		} else {
			d = c.Consume(r.Context(), e, Progress{})
		}
		if d.Acknowledge() {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		wait := time.Minute // of Hold
		if d.Action == RetryAt {
			wait = time.Until(d.At)
		}
		w.Header().Set("Retry-After", strconv.FormatInt(max(int64((wait+time.Second-1)/time.Second), 1), 10))
		w.WriteHeader(http.StatusServiceUnavailable)
	})
}

var errMedia = errors.New("media type is not taken")

// decode reads an event. On an error it returns what there is of it.
func decode(h http.Header, body []byte) (Event, error) {
	e := Event{ContentType: h.Get("Content-Type"), Data: body, Headers: headers(h), CorrelationID: h.Get("X-Correlation-Id")}
	media, _, _ := mime.ParseMediaType(e.ContentType)
	switch {
	case media == "application/cloudevents+json":
		return structured(e, body)
	case strings.HasPrefix(media, "application/cloudevents"): // a batch, or another format
		return e, errMedia
	}
	get := func(name string) string {
		v := h.Get("Ce-" + name)
		if plain, err := url.PathUnescape(v); err == nil {
			return plain
		}
		return v
	}
	e.ID, e.Source, e.Type, e.Subject, e.Key = get("id"), get("source"), get("type"), get("subject"), get("partitionkey")
	if t, err := time.Parse(time.RFC3339, get("time")); err == nil {
		e.Time = t
	}
	return e, check(get("specversion"), &e)
}

func check(version string, e *Event) error {
	switch {
	case version != "1.0":
		return fmt.Errorf("specversion %.20q is not 1.0", version)
	case e.ID == "" || e.Source == "" || e.Type == "":
		return errors.New("id, source or type is missing")
	}
	return nil
}

func structured(e Event, body []byte) (Event, error) {
	var in struct {
		SpecVersion     string          `json:"specversion"`
		ID              string          `json:"id"`
		Source          string          `json:"source"`
		Type            string          `json:"type"`
		Subject         string          `json:"subject"`
		PartitionKey    string          `json:"partitionkey"`
		Time            time.Time       `json:"time"`
		DataContentType string          `json:"datacontenttype"`
		Data            json.RawMessage `json:"data"`
		DataBase64      *string         `json:"data_base64"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return e, errors.New("the event is not JSON of the right form")
	}
	e.ID, e.Source, e.Type, e.Subject, e.Key, e.Time = in.ID, in.Source, in.Type, in.Subject, in.PartitionKey, in.Time
	if err := check(in.SpecVersion, &e); err != nil {
		return e, err
	}
	e.ContentType = in.DataContentType
	if e.Data = in.Data; in.DataBase64 != nil {
		data, err := base64.StdEncoding.DecodeString(*in.DataBase64)
		if err != nil {
			e.Data = body
			return e, errors.New("data_base64 is not base64")
		}
		e.Data = data
	}
	return e, nil
}

// headers lists the lines by name; HTTP has no order between names. A dead
// letter keeps no credentials: they are fetched anew at redrive.
func headers(h http.Header) (list []deadletter.Header) {
	for name, values := range h {
		if name == "Authorization" || name == "Cookie" || name == "Proxy-Authorization" {
			continue
		}
		for _, v := range values {
			list = append(list, deadletter.Header{Name: name, Value: v})
		}
	}
	slices.SortStableFunc(list, func(a, b deadletter.Header) int { return strings.Compare(a.Name, b.Name) })
	return list
}
