package deadletter

import "net/textproto"

// Masked stands for values that are not shown, in letters and wherever else forbear
// leaves out a secret. It is not a value: configuration that contains it is refused.
const Masked = "***"

// secretHeaders carry credentials, whatever their values look like.
var secretHeaders = map[string]bool{
	"Authorization": true, "Proxy-Authorization": true, "Cookie": true, "Set-Cookie": true,
	"X-Api-Key": true, "Api-Key": true, "X-Auth-Token": true, "X-Csrf-Token": true,
}

// plainHeaders are those whose values are shown: they say how a message is written and
// where it comes from, in terms that standards have given them. What another header
// holds is not known.
var plainHeaders = map[string]bool{
	"Accept": true, "Accept-Encoding": true, "Content-Encoding": true, "Content-Language": true, "Content-Length": true, "Content-Type": true,
	"Date": true, "User-Agent": true, "Traceparent": true, "X-Correlation-Id": true, "X-Request-Id": true, "Webhook-Id": true, "Webhook-Timestamp": true,
	"X-Retry-Attempt": true, "Ce-Id": true, "Ce-Source": true, "Ce-Specversion": true, "Ce-Time": true, "Ce-Type": true, "Ce-Dataschema": true,
}

// UnreadableHeaders is the name under which a letter keeps headers that could
// not be read, as they were. They may hold anything.
const UnreadableHeaders = "(unreadable)"

// CarriesCredential reports whether the named header is one of those that carry
// credentials by definition. Dead letters of events keep its name, and
// [Masked] for its value.
func CarriesCredential(name string) bool {
	return secretHeaders[textproto.CanonicalMIMEHeaderKey(name)]
}

// Mask returns l without its payload and without the values of headers but those
// that are known to be harmless, and without what its errors quote, which may be the
// payload's. Lists and exports show this form; more is shown only on request, and
// the request is recorded.
func (l Letter) Mask() Letter {
	l.Headers, l.Payload = MaskHeaders(l.Headers), nil
	history := make([]Attempt, len(l.History))
	for i, a := range l.History {
		a.Response, a.Error = "", unquoted(a.Error)
		history[i] = a
	}
	l.History = history
	l.Error, l.Panic = unquoted(l.Error), unquoted(l.Panic)
	return l
}

// MaskHeaders returns header lines without the values that may be secret.
func MaskHeaders(list []Header) []Header {
	masked := make([]Header, len(list))
	for i, h := range list {
		if !plainHeaders[textproto.CanonicalMIMEHeaderKey(h.Name)] {
			h.Value = Masked
		}
		masked[i] = h
	}
	return masked
}

// Erased returns l without anything of the original but its id, and without what
// was responded: why and when it died stays.
func (l Letter) Erased() Letter {
	kept := Letter{
		ID: l.ID, Queue: l.Queue, Destination: l.Destination, Application: l.Application, EventID: l.EventID, Policy: l.Policy, PolicyVersion: l.PolicyVersion,
		Reason: l.Reason, ErrorType: l.ErrorType, Status: l.Status, Description: l.Description,
		Attempts: l.Attempts, MaxAttempts: l.MaxAttempts, Postponed: l.Postponed, EnqueuedAt: l.EnqueuedAt,
		FirstAttempt: l.FirstAttempt, LastAttempt: l.LastAttempt, DeadAt: l.DeadAt, State: l.State,
		Redrives: l.Redrives, RedrivenAt: l.RedrivenAt, RedrivenBy: l.RedrivenBy, Job: l.Job, Outcome: l.Outcome, Discard: l.Discard,
	}
	for _, a := range l.History {
		a.Error, a.Chain, a.Response = "", nil, ""
		kept.History = append(kept.History, a)
	}
	return kept
}
