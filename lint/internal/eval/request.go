package eval

import (
	"go/constant"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// http carries out package net/http, but for the calls that send.
func (c *carrier) http(in ssa.CallInstruction, com *ssa.CallCommon, name string, recv Value, args []Value) (Value, bool) {
	switch name {
	case "NewRequest", "NewRequestWithContext":
		cell := c.fresh(in.(ssa.Value))
		at := len(args) - 3
		if at < 0 {
			return nil, false
		}
		method, body := args[at], args[at+2]
		if k, ok := method.(Const); ok && k.key() == `""` {
			method = String("GET")
		}
		c.s.set(cell+".Method", method)
		c.s.set(cell+".Body", body)
		c.s.set(cell+".Header", Ptr{cell + ".Header"})
		return Tuple{Of: []Value{Ptr{cell}, Nil{}}}, true
	case "FromRequest":
		if len(args) == 1 {
			return Tuple{Of: []Value{args[0], Nil{}}}, true
		}
	case "WithContext", "Clone":
		if len(args) > 0 {
			return args[0], true
		}
	case "Get", "Values":
		if len(com.Args) > 0 && IsHeader(com.Args[0].Type()) {
			if Told(args[0]) {
				return join(Const{V: constant.MakeString(""), Told: true}, Server{}), true
			}
			return Unknown{}, true
		}
	case "Set", "Add":
		if len(args) == 3 && IsHeader(com.Args[0].Type()) {
			c.header(args)
			return Tuple{}, true
		}
	case "StatusText":
		return Unknown{Told: Told(args[0])}, true
	}
	return nil, false
}

// header notes the name of a header that is set on a request.
func (c *carrier) header(args []Value) {
	k, ok := args[1].(Const)
	if !ok || k.V.Kind() != constant.String {
		return
	}
	for _, h := range ways(args[0]) {
		if cell, ok := cellOf(h); ok {
			c.s.set(cell+"!"+strings.ToLower(constant.StringVal(k.V)), args[2])
		}
	}
}

// retryable is the path of a client whose requests are built as those of net/http.
const retryable = "github.com/hashicorp/go-retryablehttp"
