// Package retry has the signatures of avast/retry-go.
package retry

type (
	Config        struct{}
	Option        func(*Config)
	RetryableFunc func() error
	RetryIfFunc   func(error) bool
)

func Attempts(attempts uint) Option                        { return nil }
func RetryIf(retryIf RetryIfFunc) Option                   { return nil }
func Do(retryableFunc RetryableFunc, opts ...Option) error { return retryableFunc() }
