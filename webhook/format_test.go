package webhook

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// JSON whose bytes are no text would make the whole event unreadable.
func TestStructuredKeepsWhatIsNoText(t *testing.T) {
	m := Message{ID: "m1", Body: []byte("\"caf\xe9\"")}
	body, err := m.Encode(FormatStructured, http.Header{})
	if err != nil || !utf8.Valid(body) || !strings.Contains(string(body), `"data_base64":"ImNhZuki"`) {
		t.Errorf("got %q, %v", body, err)
	}
}

func TestCloudEvents(t *testing.T) {
	m := &Message{ID: "m1", Type: "order.made", Source: "/shop", Subject: "a\"b%ü", Body: []byte(`{"n":1}`), Created: time.Unix(1, 0)}
	h := http.Header{}
	body, err := m.Encode(FormatStructured, h)
	if err != nil {
		t.Fatal(err)
	}
	var e map[string]any
	if err := json.Unmarshal(body, &e); err != nil {
		t.Fatal(err)
	}
	if h.Get("Content-Type") != "application/cloudevents+json" || e["specversion"] != "1.0" || e["id"] != "m1" || e["source"] != "/shop" || e["type"] != "order.made" ||
		e["datacontenttype"] != "application/json" || e["data"].(map[string]any)["n"] != 1.0 || e["time"] != "1970-01-01T00:00:01Z" {
		t.Errorf("structured: %v %s", h, body)
	}
	m.ContentType, m.Body = "application/x-thing", []byte{0, 1}
	body, _ = m.Encode(FormatStructured, http.Header{})
	if !strings.Contains(string(body), `"data_base64":"AAE="`) {
		t.Errorf("binary data: %s", body)
	}
	h = http.Header{}
	body, _ = m.Encode(FormatBinary, h)
	if string(body) != "\x00\x01" || h.Get("Content-Type") != "application/x-thing" || h.Get("Ce-Id") != "m1" || h.Get("Ce-Specversion") != "1.0" || h.Get("Ce-Subject") != "a%22b%25%C3%BC" {
		t.Errorf("binary: %v %q", h, body)
	}
}
