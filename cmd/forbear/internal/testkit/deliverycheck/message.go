package deliverycheck

import (
	"encoding/json"
	"fmt"
)

// keyName names the kth key.
func keyName(k int) string { return fmt.Sprintf("key-%02d", k) }

// id makes a new id. Ids are unique across all producers of a run; collisions come
// only from [Traffic] choosing an earlier id.
func (p *producer) id() string { return fmt.Sprintf("m%d", p.ids.Add(1)) }

// Body is what bodies say of themselves, for the reader of a report. The receiver
// does not read it: the verdict compares digests alone.
type Body struct {
	Token    string `json:"token"` // unique
	Endpoint string `json:"endpoint"`
	ID       string `json:"id"`
	Key      string `json:"key"`
	N        int    `json:"n"` // of the key's messages
}

// raw is the content type of bodies that are no JSON.
const raw = "application/octet-stream"

// content makes new content, with a body that there was never before and a key
// of the producer's own. A tenth of the bodies are raw bytes with NUL and invalid
// UTF-8, which only payload_base64 and a blob can carry.
func (p *producer) content(id, endpoint string) Content {
	c := Content{Key: p.keys[p.r.IntN(len(p.keys))]}
	if p.chance(keyless) {
		c.Key = ""
	}
	p.count[c.Key]++
	b := Body{fmt.Sprintf("t%d-%d-%s", p.n, p.count[c.Key], c.Key), endpoint, id, c.Key, p.count[c.Key]}
	text, _ := json.Marshal(b)
	c.Body = string(text)
	for _, field := range []func(*Content){p.setType, p.setSource, p.setSubject, p.setIdempotencyKey, p.setContentType, p.setHeaders} {
		if p.chance(0.3) {
			field(&c)
		}
	}
	if p.chance(0.1) {
		c.Body, c.ContentType = c.Body+"\x00\xff\r\n\t<&>", raw
	}
	return c
}

// rival makes content that differs from a victim's: a new body, or one other
// field. One field is the harder case: a product that compares bodies alone takes
// such a rival for a duplicate. The content type is not among the fields, because
// the body must still fit it.
func (p *producer) rival(victim *Offer, endpoint string) Content {
	if p.chance(0.5) {
		return p.content(victim.ID, endpoint)
	}
	c, was := victim.Content, victim.Content.Sum()
	fields := []func(*Content){p.setType, p.setSource, p.setSubject, p.setIdempotencyKey, p.setHeaders}
	for c.Sum() == was {
		fields[p.r.IntN(len(fields))](&c)
	}
	return c
}

// word makes a value for a field, one of a thousand: rivals may have it in common.
func (p *producer) word(name string) string { return fmt.Sprintf("%s.%d", name, p.r.IntN(1000)) }

func (p *producer) setType(c *Content)           { c.Type = p.word("type") }
func (p *producer) setSource(c *Content)         { c.Source = p.word("urn:source") }
func (p *producer) setSubject(c *Content)        { c.Subject = p.word("subject") }
func (p *producer) setIdempotencyKey(c *Content) { c.IdempotencyKey = p.word("idempotency") }
func (p *producer) setContentType(c *Content)    { c.ContentType = "application/vnd.check+json" }

func (p *producer) setHeaders(c *Content) {
	c.Headers = []Header{{messageHeaders[0], p.word("a")}}
	if p.chance(0.5) {
		c.Headers = append(c.Headers, Header{messageHeaders[1], p.word("b")})
	}
}
