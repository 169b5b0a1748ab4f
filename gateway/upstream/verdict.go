package upstream

import (
	"errors"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/internal/mismatch"
)

// verdict is what an attempt says of its address.
type verdict uint8

const (
	nothing verdict = iota
	good
	bad
)

// judge tells the failures of an address from those of the call. A server that
// responds at all is a good address, whatever it says of the request, except that it
// fails. 429 is a limit of the caller's, and the same at each address. What leaves no
// doubt that the address is not the dependency is a failure of it, too: a certificate
// of someone else is surfaced for each call that met it, and there need not be
// more of these.
func judge(f *forbear.Failure) verdict {
	switch f.Class {
	case forbear.ClassSuccess, forbear.ClassThrottled, forbear.ClassUnauthorized:
		return good
	case forbear.ClassTransient, forbear.ClassTimeout:
		if f.Type == errtype.Resend || f.Type == errtype.Silent { // the connection was old, and says nothing of a new one
			return nothing
		}
		if f.Type == errtype.InProgress {
			return good
		}
		return bad
	case forbear.ClassCertificate, forbear.ClassDNS: // an endpoint may be a name
		return bad
	case forbear.ClassTerminal, forbear.ClassUnknown:
		if _, status := f.Err.(httpretry.StatusError); status {
			return good
		}
		if f.Unsent || f.Type == "tls_alert" || f.Type == "tls_record" {
			return bad
		}
		if _, other := errors.AsType[mismatch.Error](f.Err); other {
			return bad
		}
	}
	return nothing // among them that the caller has left
}
