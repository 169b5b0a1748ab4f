package rabbitconsume

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// typesTravel is the header of a letter that has the values of RabbitMQ's headers which
// are no text, by their names: the letter shows them as text, and on a topic they are to
// be what they were.
const typesTravel = travels + "types"

// shown returns the text of a header's value, and whether it is one already.
func shown(v any) (text string, is bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case []byte:
		return string(v), false
	case amqp.Table, []any:
		b, _ := json.Marshal(v)
		return string(b), false
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano), false
	default:
		return fmt.Sprint(v), false
	}
}

// typed makes JSON of a header's value that says of which type it is: text and truth
// values as they are, others as an object of their type's name.
func typed(v any) any {
	switch v := v.(type) {
	case nil, bool, string:
		return v
	case amqp.Table:
		table := map[string]any{}
		for name, inner := range v {
			table[name] = typed(inner)
		}
		return map[string]any{"table": table}
	case []any:
		list := make([]any, len(v))
		for i, inner := range v {
			list[i] = typed(inner)
		}
		return map[string]any{"list": list}
	case []byte:
		return map[string]any{"bytes": v}
	case time.Time:
		return map[string]any{"time": v}
	case amqp.Decimal:
		return map[string]any{"decimal": []any{v.Scale, v.Value}}
	default: // numbers
		return map[string]any{fmt.Sprintf("%T", v): fmt.Sprint(v)}
	}
}

// untyped is the inverse of typed, of text that may have been changed since: what it does
// not know is nil.
func untyped(v any) any {
	switch v.(type) {
	case bool, string:
		return v
	}
	object, _ := v.(map[string]any)
	for kind, v := range object {
		text, _ := v.(string)
		list, _ := v.([]any)
		switch kind {
		case "table":
			table := amqp.Table{}
			inner, _ := v.(map[string]any)
			for name, v := range inner {
				table[name] = untyped(v)
			}
			return table
		case "list":
			for i := range list {
				list[i] = untyped(list[i])
			}
			return list
		case "bytes":
			var b []byte
			_ = json.Unmarshal(strconv.AppendQuote(nil, text), &b)
			return b
		case "time":
			at, _ := time.Parse(time.RFC3339Nano, text)
			return at
		case "decimal":
			var d [2]json.Number
			for i := range min(len(list), len(d)) {
				d[i], _ = list[i].(json.Number)
			}
			scale, _ := strconv.ParseUint(d[0].String(), 10, 8)
			value, _ := strconv.ParseInt(d[1].String(), 10, 32)
			return amqp.Decimal{Scale: uint8(scale), Value: int32(value)}
		}
		return number(kind, text)
	}
	return nil
}

// number reads a number of a type.
func number(kind, text string) any {
	n, err := strconv.ParseInt(text, 10, 64)
	f, errF := strconv.ParseFloat(text, 64)
	switch {
	case kind == "float32" && errF == nil:
		return float32(f)
	case kind == "float64" && errF == nil:
		return f
	case err != nil:
		return nil
	}
	switch kind {
	case "uint8":
		return uint8(n)
	case "int8":
		return int8(n)
	case "int16":
		return int16(n)
	case "int32":
		return int32(n)
	case "int":
		return int(n)
	case "int64":
		return n
	}
	return nil
}

// typesOf reads the header of that name.
func typesOf(text string) (types map[string]any) {
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	_ = dec.Decode(&types)
	return types
}
