package webhook

import "errors"

// The errors about endpoints and messages.
var (
	// ErrInvalid is what errors about messages, endpoints and secrets match.
	ErrInvalid = errors.New("invalid")
	// ErrNotFound says that there is no such endpoint, application or message.
	ErrNotFound = errors.New("not found")
	// ErrUnknownEndpoint refuses a message to an endpoint that does not exist.
	ErrUnknownEndpoint = errors.New("unknown endpoint")
	// ErrUnreadable says that something stored cannot be read, such as what is encrypted
	// under a key that this process lacks. A process that has the key can.
	ErrUnreadable = errors.New("cannot be read")
	// ErrVersion refuses a write of an endpoint whose stored version is not the
	// expected one. Nothing was written.
	ErrVersion = errors.New("another version is stored")
	// ErrDisabledByOperator refuses to enable an endpoint that an operator has disabled,
	// unless an operator does.
	ErrDisabledByOperator = errors.New("disabled by the operator")
)

// VersionNone, as the version that a write of an endpoint expects, says that
// there is none yet.
const VersionNone int64 = -1
