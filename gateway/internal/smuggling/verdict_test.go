package smuggling

// refused is a request that the gateway does not pass on and after which it
// trusts nothing more on the connection.
func refused(status int) verdict { return verdict{status: []int{status}, conn: closed} }

// declined is one whose framing is plain: it is not passed on, and whether the
// connection stays is left open.
func declined(status int) verdict { return verdict{status: []int{status}, conn: either} }

// passed is a request that reaches the upstream under that line, with those
// fields; the caller gets the response.
func passed(line string, fields ...string) verdict {
	return verdict{status: []int{200}, requests: []request{{line: line, fields: fields}}}
}

// with gives the passed request a body.
func (v verdict) with(body string) verdict {
	v.requests[0].body = body
	return v
}

// trailing gives the passed request trailer fields.
func (v verdict) trailing(fields ...string) verdict {
	v.requests[0].trailer = fields
	return v
}

// then says what becomes of the connection.
func (v verdict) then(c conn) verdict {
	v.conn = c
	return v
}

// and adds a second request that reaches the upstream, and its response.
func (v verdict) and(line string) verdict {
	v.status = append(v.status, 200)
	v.requests = append(v.requests, request{line: line})
	return v
}

// sees is what a caller gets for a GET of /up/x: the statuses, and fields of the
// last.
func sees(status ...int) verdict {
	return verdict{status: status, requests: []request{{line: "GET /base/x HTTP/1.1"}}}
}

// having adds fields of the last response.
func (v verdict) having(fields ...string) verdict {
	v.fields = fields
	return v
}

// reading sets the body of the last response.
func (v verdict) reading(body string) verdict {
	v.body = &body
	return v
}

// ending sets trailer fields of the last response.
func (v verdict) ending(fields ...string) verdict {
	v.trailer = fields
	return v
}

// breaking says that the last response breaks off.
func (v verdict) breaking() verdict {
	v.broken, v.conn = true, closed
	return v
}
