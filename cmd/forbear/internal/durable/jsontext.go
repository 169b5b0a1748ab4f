package durable

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// members calls f with the name and the value of each field of an object, in their order.
// text is valid JSON.
func members(text []byte, f func(name string, value json.RawMessage) error) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	if _, err := dec.Token(); err != nil {
		return err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		if err := f(name.(string), value); err != nil {
			return err
		}
	}
	return nil
}

// badEscape says which escape of a string stands for no character: half of a surrogate
// pair, which a decoder would replace (RFC 8259 section 8.2), or a zero, which databases
// refuse.
func badEscape(raw []byte) string {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return ""
		}
		if raw = raw[i+1:]; raw[0] != 'u' {
			raw = raw[1:]
			continue
		}
		unit := hex(raw[1:5])
		raw = raw[5:]
		switch {
		case unit == 0:
			return "a zero character"
		case unit < 0xd800 || unit > 0xdfff:
		case unit > 0xdbff || len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' || hex(raw[2:6])&0xfc00 != 0xdc00:
			return "half of a surrogate pair, which is not a character"
		default:
			raw = raw[6:]
		}
	}
}

// hex reads the four digits of an escape.
func hex(digits []byte) uint64 {
	n, _ := strconv.ParseUint(string(digits), 16, 16)
	return n
}
