package webhook

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/forbear-go/forbear/deadletter"
)

// Application is a tenant: one of the parties to whom a service sends messages,
// with endpoints of its own. A message to an application goes to each of its
// endpoints that subscribes to the message's type. The zero value of each field
// is its default; ID is required.
type Application struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"` // for people
	// Secrets sign the attempts to those of its endpoints that have none of their
	// own. They are what [Endpoint.Secrets] may be.
	Secrets []string `json:"secrets,omitempty"`
	// Rate bounds how many messages a second one process accepts for the
	// application, whose excess is refused. 0 means no bound. What comes by the
	// outbox is accepted already, and not counted.
	Rate float64 `json:"rate,omitempty"`
	// MaxEndpoints bounds its endpoints, at most 1000. Default 100.
	MaxEndpoints int `json:"max_endpoints,omitempty"`

	// Suspended refuses messages to the application, and its endpoints are not sent to:
	// what waits for them waits as for a disabled endpoint. Reason says why; a tenant
	// may read it.
	Suspended bool   `json:"suspended,omitempty"`
	Reason    string `json:"reason,omitempty"`

	// What follows is the store's.

	// Version counts the configurations, as that of an [Endpoint] does.
	Version int64     `json:"version"`
	Created time.Time `json:"created_at,omitzero"`
	// OldSecrets and MadeSecret are what they are of an [Endpoint].
	OldSecrets []OldSecret `json:"old_secrets,omitempty"`
	MadeSecret string      `json:"-"`
	// Error is why the configuration cannot be read, as [Endpoint.Error] is. Of the
	// configuration there is the id alone then. It is never stored.
	Error string `json:"error,omitempty"`
}

// maxReason bounds why an application is suspended or an endpoint disabled, in bytes.
const maxReason = 256

// The bounds of an application's endpoints. A message goes to all of them in one
// transaction.
const (
	DefaultEndpoints = 100
	maxEndpoints     = 1000
)

// The errors about applications.
var (
	// ErrUnknownApplication refuses what names an application that does not exist.
	ErrUnknownApplication = errors.New("unknown application")
	// ErrInUse refuses to delete an application that has endpoints.
	ErrInUse = errors.New("the application still has endpoints: delete them first")
	// ErrTaken refuses an endpoint under an id that is, or was, another application's.
	ErrTaken = errors.New("the id is taken: choose another")
	// ErrTooManyEndpoints refuses an endpoint beyond its application's bound.
	ErrTooManyEndpoints = errors.New("the application has reached its max_endpoints")
	// ErrSuspended refuses what is for an application that is suspended.
	ErrSuspended = errors.New("the application is suspended")
)

// CheckSuspended returns an error that matches [ErrSuspended] and has the reason, or
// nil when the application is not suspended, or a is nil.
func (a *Application) CheckSuspended() error {
	switch {
	case a == nil || !a.Suspended:
		return nil
	case a.Reason == "":
		return fmt.Errorf("application %q: %w", a.ID, ErrSuspended)
	}
	return fmt.Errorf("application %q: %w: %s", a.ID, ErrSuspended, a.Reason)
}

// Limit returns how many endpoints the application may have.
func (a *Application) Limit() int {
	if a.MaxEndpoints == 0 {
		return DefaultEndpoints
	}
	return a.MaxEndpoints
}

// Mask returns a without its secrets. References to secrets are not secrets. What
// it returns cannot be put: the placeholders are refused.
func (a Application) Mask() Application {
	a.Secrets, a.OldSecrets, a.MadeSecret = maskSecrets(a.Secrets), maskOld(a.OldSecrets), ""
	return a
}

// Validate refuses an application with all of its faults at once. It does not look
// up what the references name.
func (a *Application) Validate() error {
	f := faults{of: "application"}
	f.when(!name(a.ID), "id "+nameRule)
	f.when(len(a.Name) > 256 || !printable(a.Name), "name is longer than 256 bytes, is not UTF-8, or has control characters")
	f.when(a.Rate < 0, "rate %v is negative", a.Rate)
	f.when(a.MaxEndpoints < 0 || a.MaxEndpoints > maxEndpoints, "max_endpoints %d is outside 1-%d", a.MaxEndpoints, maxEndpoints)
	f.when(len(a.Reason) > maxReason || !printable(a.Reason), reasonRule, maxReason)
	f.when(a.Reason != "" && !a.Suspended, "reason is only for a suspended application")
	f.when(a.Version < VersionNone, versionRule, a.Version, VersionNone)
	for _, field := range maskedSecrets(a.Secrets) {
		f.when(true, placeholderRule, field, deadletter.Masked)
	}
	return f.join()
}

// maxTypes bounds the patterns of one endpoint.
const maxTypes = 100

// Subscribes reports whether the endpoint wants messages of a type: whether one of
// its Types matches. Without any it wants all. A pattern is a type, or its
// beginning and ".*", which stands for one part or more, or "*".
func (e *Endpoint) Subscribes(messageType string) bool {
	for _, pattern := range e.Types {
		if matches(pattern, messageType) {
			return true
		}
	}
	return len(e.Types) == 0
}

// matches reports whether a pattern stands for a type: "order.*" for
// "order.shipped" and "order.item.added", and not for "order".
func matches(pattern, messageType string) bool {
	if pattern == "*" {
		return true
	}
	begin, ok := strings.CutSuffix(pattern, "*")
	if !ok {
		return pattern == messageType
	}
	return len(messageType) > len(begin) && strings.HasPrefix(messageType, begin)
}

// pattern reports whether s can be one of an endpoint's types. A star stands at the
// end and behind a dot: elsewhere it would look like more than it is.
func pattern(s string) bool {
	if s == "*" {
		return true
	}
	plain := strings.TrimSuffix(s, ".*")
	return plain != "" && len(s) <= 256 && printable(s) && !strings.Contains(plain, "*")
}
