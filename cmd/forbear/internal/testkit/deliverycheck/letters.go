package deliverycheck

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// Letter is a dead letter as the API shows it. The JSON names are the API's; fields
// that no rule needs are left out.
type Letter struct {
	ID             string   `json:"id"`
	Destination    string   `json:"destination"`
	EventID        string   `json:"event_id"`
	Source         string   `json:"source"`
	Type           string   `json:"type"`
	Subject        string   `json:"subject"`
	Key            string   `json:"partition_key"`
	IdempotencyKey string   `json:"idempotency_key"`
	ContentType    string   `json:"content_type"`
	Payload        []byte   `json:"payload"`
	Headers        []Header `json:"headers"`
	Reason         string   `json:"reason"`
	Description    string   `json:"description"`
}

// content returns what the letter holds. A letter must keep the content byte for
// byte, or a redrive would send another message.
func (l *Letter) content() Content {
	return Content{string(l.Payload), l.Type, l.Source, l.Subject, l.Key, l.IdempotencyKey, l.ContentType, l.Headers}
}

// String gives all facts of a letter.
func (l *Letter) String() string {
	c := l.content()
	return fmt.Sprintf("letter %s reason %s destination %s event_id %s content %s: %s; payload %s", l.ID, l.Reason, l.Destination, l.EventID, c.Sum(), l.Description, clip(string(l.Payload)))
}

// readers is how many calls read letters at a time. One at a time would take minutes
// after a long run; many more would measure the API and not read it.
const readers = 8

// ReadLetters lists all dead letters and reads each with its payload, which a list
// does not show. It pages by id, so letters that come meanwhile do not shift a page.
// Every call reveals a payload, and the API records that in the audit.
func ReadLetters(ctx context.Context, addr string) ([]Letter, error) {
	var list []Letter
	for after, more := "", true; more; {
		var page struct {
			Letters []Letter `json:"dead_letters"`
			Next    string   `json:"next"`
		}
		if err := call(ctx, http.MethodGet, "http://"+addr+"/v1/dead-letters?limit=1000&after="+url.QueryEscape(after), nil, &page); err != nil {
			return nil, err
		}
		list, after, more = append(list, page.Letters...), page.Next, page.Next != ""
	}
	errs := make([]error, readers)
	var wg sync.WaitGroup
	for w := range readers {
		wg.Go(func() {
			for i := w; i < len(list) && errs[w] == nil; i += readers {
				shown := Letter{}
				errs[w] = call(ctx, http.MethodGet, "http://"+addr+"/v1/dead-letters/"+url.PathEscape(list[i].ID)+"?reveal=true", nil, &shown)
				// A row to an application with one endpoint is a row to that.
				shown.Destination = strings.TrimPrefix(shown.Destination, "application/"+applicationOf(""))
				list[i] = shown
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return list, nil
}
