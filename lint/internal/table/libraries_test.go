//forbear:plain rules have no goroutines; package lint runs them at once
package table_test

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"testing"

	"golang.org/x/tools/go/analysis"

	"github.com/forbear-go/forbear/lint/internal/table"
)

// TestLibraries runs the entries on code that uses stand-ins for the libraries,
// with their names and signatures. Each has an expression that is reported and
// one like it that is not.
func TestLibraries(t *testing.T) {
	const (
		fixed, growing, equal = table.Fixed, table.NoJitter, table.EqualJitter
		unkeyedWrite, counted = table.Unkeyed, table.Attempts
	)
	tests := []struct {
		path, source string
		verdict      table.Verdict
		bad, good    string
	}{
		{"github.com/cenk/backoff", "type B struct{}\nfunc NewConstantBackOff(d time.Duration) *B { return nil }\nfunc NewExponentialBackOff() *B { return nil }", fixed, "lib.NewConstantBackOff(9)", "lib.NewExponentialBackOff()"},
		{"github.com/hashicorp/go-retryablehttp", "type Client struct { Backoff func() }\nfunc NewClient() *Client { return &Client{} }\nfunc LinearJitterBackoff() {}", growing, "lib.NewClient()", "&lib.Client{Backoff: lib.LinearJitterBackoff}"},
		{"github.com/hashicorp/go-retryablehttp", "func DefaultBackoff(min, max time.Duration, n int) time.Duration { return 0 }\nfunc LinearJitterBackoff(min, max time.Duration, n int) time.Duration { return 0 }", growing, "lib.DefaultBackoff(9, 99, 1)", "lib.LinearJitterBackoff(9, 99, 1)"},
		{"github.com/hashicorp/go-retryablehttp", retryablehttp, growing, "lib.DefaultBackoff(9, 99, 1)", "func(rand int) any { return lib.DefaultBackoff(9, 99, rand) }(1)"},
		{"k8s.io/client-go/util/flowcontrol", "type Backoff struct{}\nfunc NewBackOff(initial, max time.Duration) *Backoff { return nil }\nfunc NewBackOffWithJitter(initial, max time.Duration, j float64) *Backoff { return nil }", growing, "lib.NewBackOff(1, 2)", "lib.NewBackOffWithJitter(1, 2, 0.1)"},
		{"github.com/gojek/heimdall/v7", heimdall, fixed, "lib.NewConstantBackoff(9, 0)", "lib.NewConstantBackoff(9, 3)"},
		{"github.com/gojek/heimdall/v7", heimdall, growing, "lib.NewExponentialBackoff(9, 99, 2, 0)", "lib.NewExponentialBackoff(9, 99, 2, 3)"},
		{"github.com/gojek/heimdall/v7/httpclient", "type Option int\nfunc WithRetryCount(n int) Option { return 0 }", counted, "lib.WithRetryCount(40)", "nil"},
		{"github.com/Rican7/retry/strategy", strategy, growing, "lib.Backoff(nil)", "lib.BackoffWithJitter(nil, nil)"},
		{"github.com/kamilsk/retry/v5/strategy", strategy, fixed, "lib.Wait(9)", "lib.BackoffWithJitter(nil, nil)"},
		{"github.com/Rican7/retry/strategy", strategy, counted, "lib.Limit(40)", "lib.Wait(40)"},
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
		{"github.com/hashicorp/go-retryablehttp", retryablehttp, fixed, "lib.Client{RetryMax: 5, Backoff: lib.DefaultBackoff}", "lib.Client{RetryMax: 5, RetryWaitMin: 9, Backoff: lib.DefaultBackoff}"},
		{"github.com/hashicorp/go-retryablehttp", retryablehttp, fixed, "lib.Client{RetryMax: 5, Backoff: lib.LinearJitterBackoff}", "lib.Client{RetryMax: 5, Backoff: func(min, max lib.Duration, n int) lib.Duration { return 9 }}"},
		{"github.com/hashicorp/go-retryablehttp", retryablehttp, growing, "&lib.Client{RetryWaitMin: 9, Backoff: lib.DefaultBackoff}", "&lib.Client{RetryWaitMin: 9, Backoff: lib.LinearJitterBackoff}"},
		{"github.com/hashicorp/go-retryablehttp", retryablehttp, unkeyedWrite, `lib.NewClient().Post("", "", nil)`, `lib.NewClient().Get("")`},
		{"github.com/hashicorp/go-retryablehttp", retryablehttp, unkeyedWrite, `lib.Post("", "", nil)`, `lib.NewClient().Get("")`},
		{"github.com/grpc-ecosystem/go-grpc-middleware/retry", grpcRetry, fixed, "lib.BackoffLinear(9)", "lib.BackoffLinearWithJitter(9, 0.1)"},
		{"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry", grpcRetry, fixed, "lib.BackoffLinear(9)", "lib.BackoffLinearWithJitter(9, 0.1)"},
		{"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry", grpcRetry, growing, "lib.BackoffExponential(9)", "lib.BackoffExponentialWithJitter(9, 0.1)"},
		{"github.com/sethvargo/go-retry", sethvargo, fixed, "lib.WithMaxRetries(3, lib.NewConstant(9))", "lib.WithJitterPercent(5, lib.NewConstant(9))"},
		{"github.com/sethvargo/go-retry", sethvargo, growing, "lib.NewExponential(9)", "lib.WithJitter(3, lib.NewExponential(9))"},
		{"github.com/sethvargo/go-retry", sethvargo, growing, "lib.NewFibonacci(9)", "lib.WithFullJitter(lib.NewFibonacci(9))"},
		{"github.com/sethvargo/go-retry", sethvargo, counted, "lib.WithMaxRetries(40, nil)", "lib.NewConstant(9)"},
		{"github.com/avast/retry-go/v4", avast, fixed, "lib.DelayType(lib.FixedDelay)", "lib.DelayType(lib.CombineDelay(lib.FixedDelay, lib.RandomDelay))"},
		{"github.com/avast/retry-go", avast, growing, "lib.DelayType(lib.BackOffDelay)", "lib.DelayType(lib.CombineDelay(lib.BackOffDelay, lib.RandomDelay))"},
		{"github.com/avast/retry-go/v5", avast, growing, "lib.MaxJitter(0)", "lib.MaxJitter(9)"},
		{"github.com/jpillora/backoff", "type Backoff struct { Factor float64; Jitter bool; Min, Max time.Duration }", growing, "&lib.Backoff{Min: 9}", "&lib.Backoff{Min: 9, Jitter: true}"},
		{"k8s.io/apimachinery/pkg/util/wait", wait, growing, "lib.Backoff{Duration: 9, Factor: 2}", "lib.Backoff{Duration: 9, Factor: 2, Jitter: 0.1}"},
		{"k8s.io/apimachinery/pkg/util/wait", wait, fixed, "lib.OnError(lib.Backoff{Duration: 9, Steps: 3})", "lib.PollUntilContextTimeout(9, lib.Backoff{Duration: 9, Steps: 3})"},
		{"github.com/Rican7/retry/jitter", "func Equal(r any) any { return nil }\nfunc Full(r any) any { return nil }", equal, "lib.Equal(nil)", "lib.Full(nil)"},
		{"github.com/hetznercloud/hcloud-go/v2/hcloud", hcloud, fixed, "lib.WithRetryOpts(lib.ConstantBackoff(9))", "lib.WithPollOpts(lib.ConstantBackoff(9))"},
		{"github.com/hetznercloud/hcloud-go/v2/hcloud", hcloud, growing, "lib.WithRetryOpts(lib.ExponentialBackoff(2, 9))", "lib.WithPollOpts(lib.ExponentialBackoff(2, 9))"},
		{"github.com/hetznercloud/hcloud-go/v2/hcloud", hcloud, growing, "lib.WithRetryOpts(lib.ExponentialBackoffOpts{Base: 9})", "lib.WithRetryOpts(lib.ExponentialBackoffOpts{Base: 9, Jitter: true})"},
		{"github.com/coder/retry", coder, growing, "lib.New(9, 99)", "func() any { r := lib.New(9, 99); r.Jitter = 0.1; return r }()"},
	}
	for _, tt := range tests {
		t.Run(string(tt.verdict)+" "+tt.path, func(t *testing.T) {
			got := find(t, tt.path, tt.source, tt.bad, tt.verdict)
			places := map[token.Pos]bool{} // a likely fault may be a certain one too
			for _, m := range got {
				places[m.Node.Pos()] = true
				if tt.verdict == counted && (m.Value == nil || m.Value.Kind() != constant.Int) {
					t.Errorf("%s: got the count %v", tt.bad, m.Value)
				}
			}
			if len(places) != 1 {
				t.Errorf("%s: got %d places, want 1", tt.bad, len(places))
			}
			for _, m := range find(t, tt.path, tt.source, tt.good, tt.verdict) {
				t.Errorf("%s: got %q, want no match", tt.good, m.Entry.Message)
			}
		})
	}
}

// find returns what the table says of an expression that uses a library.
func find(t *testing.T, path, source, expr string, v table.Verdict) []table.Match {
	t.Helper()
	packages := stands{}
	packages.check(t, "time", "package time\ntype Duration int64", nil)
	packages.check(t, path, "package lib\nimport \"time\"\nvar Used time.Duration\n"+source, nil)
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	file := packages.check(t, "p", "package p\nimport lib \""+path+"\"\nvar _ = lib.Used\nfunc f() any { return "+expr+" }", info)
	return table.Find(&analysis.Pass{Files: []*ast.File{file}, Pkg: packages["p"], TypesInfo: info}, v)
}

// stands are packages that stand in for others, by import path.
type stands map[string]*types.Package

// Import returns a package that was checked before.
func (s stands) Import(path string) (*types.Package, error) { return s[path], nil }

// check type-checks the source of a package.
func (s stands) check(t *testing.T, path, source string, info *types.Info) *ast.File {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "a.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if s[path], err = (&types.Config{Importer: s}).Check(path, fset, []*ast.File{file}, info); err != nil {
		t.Fatal(err)
	}
	return file
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
	retryablehttp = `type Duration = time.Duration
type Client struct { CheckRetry func(); RetryMax int; RetryWaitMin, RetryWaitMax time.Duration; Backoff func(min, max time.Duration, n int) time.Duration }
func NewClient() *Client { return &Client{} }
func DefaultBackoff(min, max time.Duration, n int) time.Duration { return 0 }
func LinearJitterBackoff(min, max time.Duration, n int) time.Duration { return 0 }
func Post(url, contentType string, body any) any { return nil }
func (c *Client) Post(url, contentType string, body any) any { return nil }
func (c *Client) Get(url string) any { return nil }`
	grpcRetry = `func BackoffLinear(d time.Duration) any { return nil }
func BackoffLinearWithJitter(d time.Duration, f float64) any { return nil }
func BackoffExponential(d time.Duration) any { return nil }
func BackoffExponentialWithJitter(d time.Duration, f float64) any { return nil }`
	sethvargo = `type Backoff interface{}
func NewConstant(d time.Duration) Backoff { return nil }
func NewExponential(d time.Duration) Backoff { return nil }
func NewFibonacci(d time.Duration) Backoff { return nil }
func WithMaxRetries(n uint64, b Backoff) Backoff { return b }
func WithJitter(d time.Duration, b Backoff) Backoff { return b }
func WithJitterPercent(n uint64, b Backoff) Backoff { return b }
func WithFullJitter(b Backoff) Backoff { return b }`
	avast = `type Delay func(n uint) time.Duration
func DelayType(d Delay) any { return nil }
func MaxJitter(d time.Duration) any { return nil }
func FixedDelay(n uint) time.Duration { return 0 }
func BackOffDelay(n uint) time.Duration { return 0 }
func RandomDelay(n uint) time.Duration { return 0 }
func CombineDelay(d ...Delay) Delay { return nil }`
	wait = `type Backoff struct { Duration time.Duration; Factor, Jitter float64; Steps int }
func OnError(b Backoff) any { return nil }
func PollUntilContextTimeout(d time.Duration, b Backoff) any { return nil }`
	hcloud = `type ExponentialBackoffOpts struct { Base time.Duration; Jitter bool }
func ConstantBackoff(d time.Duration) any { return nil }
func ExponentialBackoff(f float64, d time.Duration) any { return nil }
func WithRetryOpts(b any) any { return nil }
func WithPollOpts(b any) any { return nil }`
	coder = `type Retrier struct { Jitter float64 }
func New(floor, ceil time.Duration) *Retrier { return &Retrier{} }`
)
