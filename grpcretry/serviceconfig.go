package grpcretry

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/internal/grpccode"
)

// watchedCalls is how many calls of a connection are looked at for gRPC's own
// retries. Its service config may arrive a little after the first.
const watchedCalls = 64

// watch warns once when gRPC itself retries the method below the interceptor:
// when its service config has a retryPolicy. Whether the connection was dialed
// with grpc.WithDisableRetry gRPC does not say.
func (c *client) watch(cc *grpc.ClientConn, method string) {
	if cc == nil || c.watched.Add(1) > watchedCalls {
		c.warned.Store(true)
		return
	}
	if cc.GetMethodConfig(method).RetryPolicy == nil || c.warned.Swap(true) {
		return
	}
	c.logger.LogAttrs(context.Background(), slog.LevelWarn,
		"grpcretry: gRPC's own retries are on below, with a jitter that R-1 forbids: dial with grpcretry.DialOptions, or with grpc.WithDisableRetry and the option WithRetryDisabled",
		slog.String("target", cc.Target()), slog.String("method", method), slog.String("dependency", c.retryer.Dependency()))
}

// WithRetryDisabled is the word that the connection was dialed with
// grpc.WithDisableRetry, for those who use an interceptor without
// [DialOptions], which would otherwise warn once.
func WithRetryDisabled() Option {
	return func(c *client) { c.warned.Store(true) }
}

// Import is what a retryPolicy of a gRPC service config becomes.
type Import struct {
	// Methods are those that the policy is for, as the interceptor sees them:
	// "/package.Service/Method", "/package.Service/*", or "*" for all. They
	// are the methods that are declared safe to retry.
	Methods []string
	Policy  forbear.Policy
	// Throttle is the config's retryThrottling, as a budget, or nil.
	Throttle *budget.GRPC
	// Findings say what the standard forbids in it, and what became of it.
	Findings []Finding
}

// Finding is one way in which a retryPolicy leaves the standard, or cannot be
// kept.
type Finding struct {
	Field  string // "retryPolicy.maxAttempts"
	Rule   string // "R-2", or "" where it is a matter of form
	Detail string
}

// String returns "retryPolicy.maxAttempts: ... (R-2)".
func (f Finding) String() string {
	if f.Rule == "" {
		return f.Field + ": " + f.Detail
	}
	return f.Field + ": " + f.Detail + " (" + f.Rule + ")"
}

// serviceConfig is the part of a gRPC service config that this package reads.
type serviceConfig struct {
	MethodConfig []struct {
		Name []struct {
			Service string `json:"service"`
			Method  string `json:"method"`
		} `json:"name"`
		Timeout     string       `json:"timeout"`
		RetryPolicy *retryPolicy `json:"retryPolicy"`
		Hedging     any          `json:"hedgingPolicy"`
	} `json:"methodConfig"`
	RetryThrottling *struct {
		MaxTokens  float64 `json:"maxTokens"`
		TokenRatio float64 `json:"tokenRatio"`
	} `json:"retryThrottling"`
}

// retryPolicy is gRPC's own (gRFC A6), in its JSON form.
type retryPolicy struct {
	MaxAttempts          int     `json:"maxAttempts"`
	InitialBackoff       string  `json:"initialBackoff"`
	MaxBackoff           string  `json:"maxBackoff"`
	BackoffMultiplier    float64 `json:"backoffMultiplier"`
	RetryableStatusCodes []any   `json:"retryableStatusCodes"`
}

// ImportServiceConfig reads the retry policies of a gRPC service config in
// JSON, one Import for each methodConfig that has one. Every Policy is one that
// [forbear.New] accepts: what the standard forbids is brought within its bounds
// and reported.
func ImportServiceConfig(data []byte) ([]Import, error) {
	var config serviceConfig
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("service config: %w", err)
	}
	var imports []Import
	for i, m := range config.MethodConfig {
		where := "methodConfig[" + strconv.Itoa(i) + "]"
		if m.Hedging != nil {
			return nil, fmt.Errorf("service config: %s has a hedgingPolicy, which forbear does not do", where)
		}
		if m.RetryPolicy == nil {
			continue
		}
		im := Import{Policy: forbear.Policy{Kind: forbear.GRPC}}
		for _, n := range m.Name {
			im.Methods = append(im.Methods, methodPattern(n.Service, n.Method))
		}
		if err := im.read(m.RetryPolicy); err != nil {
			return nil, fmt.Errorf("service config: %s: %w", where, err)
		}
		if err := im.timeout(m.Timeout); err != nil {
			return nil, fmt.Errorf("service config: %s: %w", where, err)
		}
		if t := config.RetryThrottling; t != nil {
			im.Throttle = budget.NewGRPC(t.MaxTokens, t.TokenRatio)
		} else {
			im.find("retryThrottling", "R-7", "is missing: retries were not bounded by a budget; forbear's own applies")
		}
		imports = append(imports, im)
	}
	return imports, nil
}

// methodPattern spells a name of the config as the interceptor does. A name
// without a service is the config's default for all.
func methodPattern(service, method string) string {
	switch {
	case service == "":
		return "*"
	case method == "":
		return "/" + service + "/*"
	}
	return "/" + service + "/" + method
}

// find records a finding.
func (im *Import) find(field, rule, format string, args ...any) {
	im.Findings = append(im.Findings, Finding{field, rule, fmt.Sprintf(format, args...)})
}

// read takes over a policy. What gRPC itself would refuse is an error; what the
// standard refuses is a finding, and the policy stays within its bounds.
func (im *Import) read(p *retryPolicy) error {
	if p.MaxAttempts < 2 {
		return fmt.Errorf("retryPolicy.maxAttempts %d is below 2", p.MaxAttempts)
	}
	retries := p.MaxAttempts - 1
	_, _, high := forbear.GRPC.Range()
	if retries > high {
		im.find("retryPolicy.maxAttempts", "R-2", "%d attempts are %d retries, at most %d are allowed: %d", p.MaxAttempts, retries, high, high)
		retries = high
	}
	im.Policy.MaxRetries = retries
	base, err := protoDuration("retryPolicy.initialBackoff", p.InitialBackoff)
	if err != nil {
		return err
	}
	limit, err := protoDuration("retryPolicy.maxBackoff", p.MaxBackoff)
	if err != nil {
		return err
	}
	im.backoff(base, limit)
	if p.BackoffMultiplier <= 0 {
		return fmt.Errorf("retryPolicy.backoffMultiplier %v is not positive", p.BackoffMultiplier)
	}
	if p.BackoffMultiplier != 2 {
		im.find("retryPolicy.backoffMultiplier", "R-1", "%v is not 2: the backoff doubles", p.BackoffMultiplier)
	}
	im.find("retryPolicy", "R-1", "gRPC spreads its waits by 20 %% only: forbear draws from the whole range")
	if len(p.RetryableStatusCodes) == 0 {
		return fmt.Errorf("retryPolicy.retryableStatusCodes is empty")
	}
	return im.readCodes(p.RetryableStatusCodes)
}

// backoff takes base and cap as far as they are allowed: the cap is at most the
// minute of R-1, and no longer than the budget's window, in which a retry after a
// longer wait would find its call forgotten.
func (im *Import) backoff(base, limit time.Duration) {
	const most = time.Minute
	if limit > most {
		im.find("retryPolicy.maxBackoff", "R-1", "%v is over %v: %v", limit, most, most)
		limit = most
	}
	if base > limit {
		im.find("retryPolicy.initialBackoff", "R-1", "%v is over the cap of %v: %v", base, limit, limit)
		base = limit
	}
	im.Policy.Backoff = forbear.Backoff{Base: base, Cap: limit}
	if window := im.Policy.WithDefaults().Budget.Window; limit > window {
		im.find("retryPolicy.maxBackoff", "R-7", "%v is longer than the budget's window of %v: the cap is %v", limit, window, window)
		im.Policy.Backoff.Cap = window
		im.Policy.Backoff.Base = min(base, window)
	}
}

// readCodes compares the listed codes with R-4's. A code that R-4 retries and the
// list does not is made terminal; one that R-4 does not retry is not retried.
func (im *Import) readCodes(list []any) error {
	listed := map[string]bool{}
	for _, v := range list {
		name, err := codeName(v)
		if err != nil {
			return err
		}
		listed[name] = true
		switch c, _ := ParseCode(name); {
		case classOf(c).Retryable():
		case name == "UNAUTHENTICATED":
			im.find("retryPolicy.retryableStatusCodes", "R-9", "UNAUTHENTICATED gets one refreshed token, not a retry")
		default:
			im.find("retryPolicy.retryableStatusCodes", "R-4", "%s must not be retried: left out", name)
		}
	}
	for i, name := range grpccode.Names {
		if !listed[name] && classOf(codes.Code(i)).Retryable() {
			if im.Policy.Classify == nil {
				im.Policy.Classify = map[string]forbear.Class{}
			}
			im.Policy.Classify[grpccode.Label(uint32(i))] = forbear.ClassTerminal
		}
	}
	return nil
}

// codeName reads a code by name, in any case, or by number, as gRPC does.
func codeName(v any) (string, error) {
	switch v := v.(type) {
	case string:
		name := strings.ToUpper(v)
		if name == "CANCELED" {
			name = "CANCELLED"
		}
		if _, ok := ParseCode(name); ok {
			return name, nil
		}
	case float64:
		if n := int(v); float64(n) == v && n >= 0 && n < len(grpccode.Names) {
			return grpccode.Names[n], nil
		}
	}
	return "", fmt.Errorf("retryPolicy.retryableStatusCodes has an unknown code %v", v)
}

// timeout takes the method's own timeout as the total. gRPC counts all attempts
// and waits into it, as the policy does.
func (im *Import) timeout(value string) error {
	if value == "" {
		return nil
	}
	d, err := protoDuration("timeout", value)
	if err != nil {
		return err
	}
	if most := im.Policy.WithDefaults().Total; d > most {
		im.find("timeout", "R-3", "%v is over %v: %v", d, most, most)
		d = most
	}
	im.Policy.Total = d
	return nil
}

// protoDuration reads the JSON form of google.protobuf.Duration: "1.5s".
func protoDuration(field, value string) (time.Duration, error) {
	number, ok := strings.CutSuffix(value, "s")
	seconds, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(seconds > 0) || strings.ContainsAny(number, "eExXpPiInN_+") {
		return 0, fmt.Errorf("%s %q is no positive duration in seconds, such as \"1.5s\"", field, value)
	}
	if seconds > math.MaxInt64/float64(time.Second) {
		return math.MaxInt64, nil
	}
	return max(time.Duration(seconds*float64(time.Second)), 1), nil
}
