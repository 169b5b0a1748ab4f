//forbear:plain rules have no goroutines; package lint runs them at once
package table_test

import (
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"

	"github.com/forbear-go/forbear/lint/attempts"
	"github.com/forbear-go/forbear/lint/fixedinterval"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/ssatest"
	"github.com/forbear-go/forbear/lint/nojitter"
	"github.com/forbear-go/forbear/lint/unkeyed"
)

// TestLibraries runs the entries on code that uses stand-ins for the libraries,
// with their names and signatures. Each has an expression that is reported and
// one like it that is not.
func TestLibraries(t *testing.T) {
	const fixed, growing, unkeyedWrite, tooMany = "FB1001", "FB1002", "FB1030", "FB1011"
	rules := map[string]*analysis.Analyzer{fixed: fixedinterval.Analyzer, growing: nojitter.Analyzer, unkeyedWrite: unkeyed.Analyzer, tooMany: attempts.Analyzer}
	tests := []struct {
		path, source, rule, bad, good string
	}{
		{"github.com/cenk/backoff", "type B struct{}\nfunc NewConstantBackOff(d time.Duration) *B { return nil }\nfunc NewExponentialBackOff() *B { return nil }", fixed, "lib.NewConstantBackOff(9)", "lib.NewExponentialBackOff()"},
		{"github.com/hashicorp/go-retryablehttp", "type Client struct { Backoff func() }\nfunc NewClient() *Client { return &Client{} }\nfunc LinearJitterBackoff() {}", growing, "lib.NewClient()", "&lib.Client{Backoff: lib.LinearJitterBackoff}"},
		{"github.com/hashicorp/go-retryablehttp", "func DefaultBackoff(min, max time.Duration, n int) time.Duration { return 0 }\nfunc LinearJitterBackoff(min, max time.Duration, n int) time.Duration { return 0 }", growing, "lib.DefaultBackoff(9, 99, 1)", "lib.LinearJitterBackoff(9, 99, 1)"},
		{"k8s.io/client-go/util/flowcontrol", "type Backoff struct{}\nfunc NewBackOff(initial, max time.Duration) *Backoff { return nil }\nfunc NewBackOffWithJitter(initial, max time.Duration, j float64) *Backoff { return nil }", growing, "lib.NewBackOff(1, 2)", "lib.NewBackOffWithJitter(1, 2, 0.1)"},
		{"github.com/gojek/heimdall/v7", heimdall, fixed, "lib.NewConstantBackoff(9, 0)", "lib.NewConstantBackoff(9, 3)"},
		{"github.com/gojek/heimdall/v7", heimdall, growing, "lib.NewExponentialBackoff(9, 99, 2, 0)", "lib.NewExponentialBackoff(9, 99, 2, 3)"},
		{"github.com/gojek/heimdall/v7/httpclient", "type Option int\nfunc WithRetryCount(n int) Option { return 0 }", tooMany, "lib.WithRetryCount(40)", "lib.WithRetryCount(4)"},
		{"github.com/Rican7/retry/strategy", strategy, growing, "lib.Backoff(nil)", "lib.BackoffWithJitter(nil, nil)"},
		{"github.com/kamilsk/retry/v5/strategy", strategy, fixed, "lib.Wait(9)", "lib.BackoffWithJitter(nil, nil)"},
		{"github.com/Rican7/retry/strategy", strategy, tooMany, "lib.Limit(40)", "lib.Limit(4)"},
		{"github.com/sethgrid/pester", pester, fixed, "lib.New()", "&lib.Client{Backoff: lib.ExponentialJitterBackoff}"},
		{"github.com/sethgrid/pester", pester, fixed, "func() any { c := lib.New(); c.MaxRetries = 3; return c }()", "func() any { c := lib.New(); c.Backoff = lib.ExponentialJitterBackoff; return c }()"},
		{"github.com/sethgrid/pester", pester, growing, "func() any { c := lib.New(); c.Backoff = lib.LinearBackoff; return c }()", "func() any { c := lib.New(); c.Backoff = lib.ExponentialJitterBackoff; return c }()"},
		{"github.com/sethgrid/pester", pester, unkeyedWrite, `lib.Post("", "", nil)`, `lib.Get("")`},
		{"github.com/PuerkitoBio/rehttp", rehttp, fixed, "lib.ConstDelay(9)", "lib.ExpJitterDelay(9, 99)"},
		{"github.com/PuerkitoBio/rehttp", rehttp, growing, "lib.ExponentialDelay(9, 99)", "lib.ExpJitterDelay(9, 99)"},
		{"github.com/ybbus/httpretry", httpretry, fixed, "lib.ConstantBackoff(9, 0)", "lib.ConstantBackoff(9, 3)"},
		{"github.com/ybbus/httpretry", httpretry, growing, "lib.ExponentialBackoff(9, 99, 0)", "lib.ExponentialBackoff(9, 99, 3)"},
		{"github.com/cloudflare/backoff", "type Backoff struct{}\nfunc New(max, interval time.Duration) *Backoff { return nil }\nfunc NewWithoutJitter(max, interval time.Duration) *Backoff { return nil }", growing, "lib.NewWithoutJitter(9, 99)", "lib.New(9, 99)"},
		{"github.com/imroc/req/v3", "type Client struct{}\nfunc C() *Client { return nil }\nfunc (c *Client) SetCommonRetryFixedInterval(d time.Duration) *Client { return c }\nfunc (c *Client) SetCommonRetryBackoffInterval(min, max time.Duration) *Client { return c }\nfunc (c *Client) SetCommonRetryCount(n int) *Client { return c }", fixed, "lib.C().SetCommonRetryFixedInterval(9)", "lib.C().SetCommonRetryCount(3).SetCommonRetryBackoffInterval(9, 99)"},
		{"github.com/juju/retry", juju, fixed, "lib.CallArgs{Delay: 9}", "lib.CallArgs{Delay: 9, BackoffFunc: lib.ExpBackoff(9, 99, 2, true)}"},
		{"github.com/juju/retry", juju, growing, "lib.CallArgs{Delay: 9, BackoffFunc: lib.DoubleDelay}", "lib.CallArgs{Delay: 9, BackoffFunc: lib.ExpBackoff(9, 99, 2, true)}"},
		{"github.com/juju/retry", juju, growing, "lib.ExpBackoff(9, 99, 2, false)", "lib.ExpBackoff(9, 99, 2, true)"},
		{"github.com/giantswarm/backoff", "func NewConstant(maxWait, interval time.Duration) any { return nil }\nfunc NewExponential(maxWait, interval time.Duration) any { return nil }", fixed, "lib.NewConstant(9, 99)", "lib.NewExponential(9, 99)"},
		{"github.com/go-pkgz/repeater", "type Repeater struct{}\nfunc NewDefault(repeats int, delay time.Duration) *Repeater { return nil }\nfunc New(s any) *Repeater { return nil }", fixed, "lib.NewDefault(3, 9)", "lib.New(nil)"},
		{"github.com/go-pkgz/repeater/strategy", "type Backoff struct { Repeats int; Factor float64; Jitter bool }\ntype FixedDelay struct{ Delay time.Duration }", growing, "lib.Backoff{Factor: 2}", "lib.Backoff{Factor: 2, Jitter: true}"},
		{"github.com/go-pkgz/repeater/strategy", "type Backoff struct { Repeats int; Factor float64; Jitter bool }\ntype FixedDelay struct{ Delay time.Duration }", growing, "lib.Backoff{Factor: 2, Jitter: false}", "lib.Backoff{Repeats: 2}"},
		{"github.com/slok/goresilience/retry", "type Config struct { WaitBase time.Duration; DisableBackoff bool; Times int }", fixed, "lib.Config{DisableBackoff: true}", "lib.Config{Times: 3, DisableBackoff: false}"},
		{"github.com/segmentio/backo-go", "func NewBacko(base time.Duration, factor uint8, jitter float64, max time.Duration) any { return nil }\nfunc DefaultBacko() any { return nil }", growing, "lib.NewBacko(9, 2, 0, 99)", "lib.NewBacko(9, 2, 0.5, 99)"},
		{"github.com/lestrrat-go/backoff/v2", lestrrat, fixed, "lib.Constant(lib.WithInterval(9))", "lib.Constant(lib.WithInterval(9), lib.WithJitterFactor(0.1))"},
		{"github.com/lestrrat-go/backoff/v2", lestrrat, growing, "lib.Exponential()", "lib.Exponential(lib.WithJitterFactor(0.1))"},
		{"github.com/rogpeppe/retry", "type Strategy struct { Delay, MaxDelay time.Duration; Factor float64 }", fixed, "lib.Strategy{Delay: 9}", "lib.Strategy{Delay: 9, Factor: 2}"},
		{"gopkg.in/retry.v1", "type Regular struct { Total, Delay time.Duration }\ntype Exponential struct { Initial time.Duration; Factor float64; Jitter bool }", fixed, "lib.Regular{Delay: 9}", "lib.Exponential{Initial: 9}"},
		{"gopkg.in/retry.v1", "type Regular struct { Total, Delay time.Duration }\ntype Exponential struct { Initial time.Duration; Factor float64; Jitter bool }", growing, "lib.Exponential{Initial: 9}", "lib.Exponential{Initial: 9, Jitter: true}"},
		{"github.com/shogo82148/go-retry", "type Policy struct { MinDelay, MaxDelay, Jitter time.Duration; MaxCount int }", growing, "lib.Policy{MinDelay: 9, MaxDelay: 99}", "lib.Policy{MinDelay: 9, MaxDelay: 99, Jitter: 3}"},
		{"github.com/shogo82148/go-retry", "type Policy struct { MinDelay, MaxDelay, Jitter time.Duration; MaxCount int }", fixed, "lib.Policy{MinDelay: 9}", "lib.Policy{MinDelay: 9, MaxDelay: 99}"},
		{"github.com/ssgreg/repeat", repeat, fixed, "lib.FixedBackoff(9)", "lib.FullJitterBackoff(9)"},
		{"github.com/acronis/repeat", repeat, growing, "lib.ExponentialBackoff(9)", "lib.ExponentialBackoff(9).WithJitter(0.5)"},
		{"github.com/libp2p/go-libp2p/p2p/discovery/backoff", "type Jitter func(d time.Duration) time.Duration\nfunc NoJitter(d time.Duration) time.Duration { return d }\nfunc FullJitter(d time.Duration) time.Duration { return d }\nfunc NewExponentialBackoff(min, max time.Duration, j Jitter) any { return nil }\nfunc NewFixedBackoff(d time.Duration) any { return nil }", growing, "lib.NewExponentialBackoff(9, 99, lib.NoJitter)", "lib.NewExponentialBackoff(9, 99, lib.FullJitter)"},
		{"github.com/Azure/go-autorest/autorest", "func DoRetryForAttempts(n int, backoff time.Duration) any { return nil }\nfunc DoCloseIfError() any { return nil }", growing, "lib.DoRetryForAttempts(3, 9)", "lib.DoCloseIfError()"},
		{"github.com/duke-git/lancet/v2/retry", "func RetryWithLinearBackoff(d time.Duration) any { return nil }\nfunc RetryTimes(n uint) any { return nil }", fixed, "lib.RetryWithLinearBackoff(9)", "lib.RetryTimes(3)"},
		{"github.com/zeromicro/go-zero/core/fx", "func WithInterval(d time.Duration) any { return nil }\nfunc WithRetry(n int) any { return nil }", fixed, "lib.WithInterval(9)", "lib.WithRetry(3)"},
		{"github.com/projectdiscovery/retryablehttp-go", "func DefaultBackoff() func() { return nil }\nfunc FullJitterBackoff() func() { return nil }", growing, "lib.DefaultBackoff()", "lib.FullJitterBackoff()"},
		{"github.com/cloudwego/kitex/pkg/retry", "type FailurePolicy struct{}\nfunc NewFailurePolicy() *FailurePolicy { return nil }\nfunc (p *FailurePolicy) WithFixedBackOff(ms int) any { return nil }\nfunc (p *FailurePolicy) WithRandomBackOff(min, max int) any { return nil }", fixed, "lib.NewFailurePolicy().WithFixedBackOff(9)", "lib.NewFailurePolicy().WithRandomBackOff(9, 99)"},
		{"github.com/gogf/gf/v2/net/gclient", "type Client struct{}\nfunc New() *Client { return nil }\nfunc (c *Client) SetRetry(n int, d time.Duration) *Client { return c }\nfunc (c *Client) SetTimeout(d time.Duration) *Client { return c }", fixed, "lib.New().SetRetry(3, 9)", "lib.New().SetTimeout(9)"},
		{"github.com/hashicorp/consul/lib/retry", "type Waiter struct { MinWait, MaxWait time.Duration; Jitter func() }\nfunc NewJitter(percent int64) func() { return nil }", growing, "lib.Waiter{MaxWait: 9}", "lib.Waiter{MaxWait: 9, Jitter: lib.NewJitter(10)}"},
		{"github.com/containers/common/pkg/retry", "type Options struct { MaxRetry int; Delay time.Duration }", fixed, "lib.Options{MaxRetry: 3, Delay: 9}", "lib.Options{MaxRetry: 3}"},
		{"github.com/cloudfoundry/bosh-utils/retrystrategy", "func NewAttemptRetryStrategy(n int, d time.Duration) any { return nil }\nfunc NewBackoffStrategy(n int, d time.Duration) any { return nil }", fixed, "lib.NewAttemptRetryStrategy(3, 9)", "lib.NewBackoffStrategy(3, 9)"},
		{"github.com/thedevsaddam/retry", "func Do(n uint, d time.Duration, fn any) any { return nil }", fixed, "lib.Do(3, 9, nil)", "nil"},
		{"github.com/vimeo/go-retry", "type Backoff struct { MaxBackoff, MinBackoff time.Duration; Jitter, ExpFactor float64 }", growing, "lib.Backoff{ExpFactor: 2}", "lib.Backoff{ExpFactor: 2, Jitter: 0.1}"},
		{"github.com/ThreeDotsLabs/watermill/message/router/middleware", "type Retry struct { MaxRetries int; Multiplier, RandomizationFactor float64 }", growing, "lib.Retry{MaxRetries: 3, Multiplier: 2}", "lib.Retry{MaxRetries: 3, Multiplier: 2, RandomizationFactor: 0.5}"},
		{"github.com/google/trillian/client/backoff", "type Backoff struct { Min, Max time.Duration; Factor float64; Jitter bool }", growing, "lib.Backoff{Factor: 2}", "lib.Backoff{Factor: 2, Jitter: true}"},
		{"github.com/google/go-containerregistry/pkg/v1/remote", "type Backoff struct { Duration time.Duration; Factor, Jitter float64; Steps int }", growing, "lib.Backoff{Factor: 2}", "lib.Backoff{Factor: 2, Jitter: 0.1}"},
		{"google.golang.org/grpc/backoff", "type Config struct { BaseDelay time.Duration; Multiplier, Jitter float64; MaxDelay time.Duration }\nvar DefaultConfig Config", growing, "lib.Config{Multiplier: 2}", "lib.DefaultConfig"},
		{"github.com/vgarvardt/backoff", "type Config struct { BaseDelay time.Duration; Multiplier, Jitter float64; MaxDelay time.Duration }", growing, "lib.Config{Multiplier: 2}", "lib.Config{Multiplier: 2, Jitter: 0.2}"},
		{"github.com/coder/retry", coder, growing, "lib.New(9, 99)", "func() any { r := lib.New(9, 99); r.Jitter = 0.1; return r }()"},
	}
	for _, tt := range tests {
		t.Run(tt.rule+" "+tt.path, func(t *testing.T) {
			stub := map[string]string{tt.path: "package lib\nimport \"time\"\nvar Used time.Duration\n" + tt.source}
			use := func(expr string) rule.Findings {
				src := "package p\nimport lib \"" + tt.path + "\"\nvar _ = lib.Used\nfunc f() any { return " + expr + " }"
				return ssatest.LoadWith(t, stub, src).Run(t, rules[tt.rule]).(rule.Findings)
			}
			if got := use(tt.bad); len(got) != 1 || strings.TrimSpace(got[0].Message) == "" {
				t.Errorf("%s: got %d findings, want 1", tt.bad, len(got))
			}
			if got := use(tt.good); len(got) != 0 {
				t.Errorf("%s: got %q, want no finding", tt.good, got[0].Message)
			}
		})
	}
}

// The stand-ins of libraries that more than one entry is about.
const (
	heimdall = `func NewConstantBackoff(d, jitter time.Duration) any { return nil }
func NewExponentialBackoff(d, max time.Duration, factor float64, jitter time.Duration) any { return nil }`
	strategy = `func Backoff(f func()) any { return nil }
func BackoffWithJitter(f, g func()) any { return nil }
func Wait(d ...time.Duration) any { return nil }
func Limit(n uint) any { return nil }`
	pester = `type Client struct { MaxRetries int; Backoff func(int) time.Duration }
func New() *Client { return nil }
func LinearBackoff(int) time.Duration { return 0 }
func ExponentialJitterBackoff(int) time.Duration { return 0 }
func Post(url, contentType string, body any) any { return nil }
func Get(url string) any { return nil }`
	rehttp = `func ConstDelay(d time.Duration) any { return nil }
func ExponentialDelay(d, base time.Duration) any { return nil }
func ExpJitterDelay(d, max time.Duration) any { return nil }`
	httpretry = `var ConstantBackoff = func(d, jitter time.Duration) any { return nil }
var ExponentialBackoff = func(d, max, jitter time.Duration) any { return nil }`
	juju = `type CallArgs struct { Delay time.Duration; BackoffFunc func(time.Duration, int) time.Duration }
func DoubleDelay(d time.Duration, n int) time.Duration { return d }
func ExpBackoff(min, max time.Duration, exp float64, jitter bool) func(time.Duration, int) time.Duration { return nil }`
	lestrrat = `type Option int
func Constant(o ...Option) any { return nil }
func Exponential(o ...Option) any { return nil }
func WithInterval(d time.Duration) Option { return 0 }
func WithJitterFactor(f float64) Option { return 0 }`
	repeat = `type B struct{}
func FixedBackoff(d time.Duration) *B { return nil }
func FullJitterBackoff(d time.Duration) *B { return nil }
func ExponentialBackoff(d time.Duration) *B { return nil }
func (b *B) WithJitter(f float64) *B { return b }`
	coder = `type Retrier struct { Jitter float64 }
func New(floor, ceil time.Duration) *Retrier { return &Retrier{} }`
)
