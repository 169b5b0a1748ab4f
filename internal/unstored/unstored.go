// Package unstored names the response headers that are never stored with a response,
// whatever a service's options say: the duplicates of a request must not get what was
// for its first caller alone.
package unstored

import "strings"

// names are lower case. Each belongs to one exchange or one connection, or is a
// credential.
var names = map[string]bool{
	"set-cookie": true, "set-cookie2": true, "www-authenticate": true, "authentication-info": true, "authorization": true,
	"proxy-authenticate": true, "proxy-authentication-info": true, "proxy-authorization": true,
	"connection": true, "keep-alive": true, "proxy-connection": true, "te": true, "trailer": true, "transfer-encoding": true,
	"upgrade": true, "date": true, "content-length": true, "retry-after": true,
}

// Is reports whether a header of that name, in any spelling, is not stored.
func Is(name string) bool { return names[strings.ToLower(name)] }
