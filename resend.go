package forbear

import (
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/reason"
)

// sendAnew reports whether a request that the server has disowned, or never got, is sent
// again: once, whatever its method (RFC 9113 sections 6.8 and 8.7).
func sendAnew(f *Failure, s *State) bool { return f.Disowned && s.Resends == 0 }

// free reports whether a retry after f, granted for the reason why, adds no load that a
// budget must limit. It replaces a send that met a dead connection, that the server has
// disowned or that carried an expired token, or it fetches the response of its own work
// when the server has said to. The count, the single refresh and the total
// duration bound such retries.
func (f *Failure) free(why Reason) bool {
	return f.Type == errtype.Resend || f.Type == errtype.Silent || why == reason.Resend || why == reason.Refresh || f.asked()
}

// asked reports whether the server is still at work on the call itself and has said
// when to come again.
func (f *Failure) asked() bool {
	return f.Type == errtype.InProgress && f.Hint.Floor > 0
}
