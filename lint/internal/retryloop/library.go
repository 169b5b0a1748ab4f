package retryloop

import (
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// retriers are functions of the common libraries that call a function again
// when it fails. They count where the code of a library says nothing: a driver
// without facts about it, or a library that keeps the function in a field.
// The keys are import path and function; a missing version costs findings and
// makes none false.
var retriers = map[string]map[string]bool{
	"github.com/cenkalti/backoff":                               {"Retry": true, "RetryNotify": true, "RetryWithData": true, "RetryNotifyWithData": true},
	"github.com/cenkalti/backoff/v3":                            {"Retry": true, "RetryNotify": true},
	"github.com/cenkalti/backoff/v4":                            {"Retry": true, "RetryNotify": true, "RetryWithData": true, "RetryNotifyWithData": true},
	"github.com/cenkalti/backoff/v5":                            {"Retry": true},
	"github.com/avast/retry-go":                                 {"Do": true},
	"github.com/avast/retry-go/v3":                              {"Do": true},
	"github.com/avast/retry-go/v4":                              {"Do": true, "DoWithData": true},
	"github.com/avast/retry-go/v5":                              {"Do": true, "DoWithData": true},
	"github.com/sethvargo/go-retry":                             {"Do": true, "DoValue": true, "Constant": true, "Exponential": true, "Fibonacci": true},
	"github.com/failsafe-go/failsafe-go":                        {"Run": true, "Get": true, "RunWithExecution": true, "GetWithExecution": true, "With": true},
	"github.com/buildkite/roko":                                 {"Do": true, "DoWithContext": true, "DoFunc": true},
	"k8s.io/client-go/util/retry":                               {"OnError": true, "RetryOnConflict": true},
	"github.com/googleapis/gax-go/v2":                           {"Invoke": true},
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/retry": {"RetryContext": true},
}

// pollers are the functions of Kubernetes' wait package that call another until it
// says that it is done: by their names, where the interval is among what they are
// given, and where the function. Their code hides both behind a timer's interface.
var pollers = map[string]struct{ every, param int }{
	"Poll":                             {0, 2},
	"PollImmediate":                    {0, 2},
	"PollInfinite":                     {0, 1},
	"PollImmediateInfinite":            {0, 1},
	"PollUntil":                        {0, 1},
	"PollImmediateUntil":               {0, 1},
	"PollWithContext":                  {1, 3},
	"PollImmediateWithContext":         {1, 3},
	"PollInfiniteWithContext":          {1, 2},
	"PollImmediateInfiniteWithContext": {1, 2},
	"PollUntilWithContext":             {1, 2},
	"PollImmediateUntilWithContext":    {1, 2},
	"PollUntilContextCancel":           {1, 3},
	"PollUntilContextTimeout":          {1, 4},
}

// knownRetrier returns what the lists say of the function that c calls, or nil.
// Of a function that retries, neither the parameter nor the waits are known then.
func knownRetrier(c *ssa.CallCommon) *fact.Retrier {
	pkg, name := dataflow.CalleePkg(c), dataflow.CalleeName(c)
	if at, ok := pollers[name]; ok && pkg == "k8s.io/apimachinery/pkg/util/wait" {
		return &fact.Retrier{Contract: fact.UntilDone, Delay: fact.Fixed, Every: at.every, Param: at.param}
	}
	if !retriers[pkg][name] {
		return nil
	}
	return &fact.Retrier{Param: -1, Every: -1, Spoken: true, Library: pkg}
}

// sdks are clients that retry by themselves, with the attempts that they make by
// default: retries around them multiply.
var sdks = []struct {
	pkg      string
	attempts int
}{
	{"github.com/aws/aws-sdk-go-v2/service", 3},
	{"github.com/aws/aws-sdk-go/service", 4},
	{"github.com/hashicorp/go-retryablehttp", 5},
	{"github.com/minio/minio-go", 10},
	{"github.com/stripe/stripe-go", 3},
	{"github.com/Azure/azure-sdk-for-go/sdk", 4},
	{"github.com/hetznercloud/hcloud-go", 5},
	{"github.com/cloudflare/cloudflare-go", 4},
	{"github.com/openai/openai-go", 3},
	{"github.com/anthropics/anthropic-sdk-go", 3},
}

// RetryingSDK returns the number of attempts that the client behind c makes by
// default, when it is known to retry.
// The prefix covers versions and services. A client that is configured to make
// one attempt is not seen, so findings by it stay below high confidence.
func RetryingSDK(c *ssa.CallCommon) (attempts int, ok bool) {
	pkg := dataflow.CalleePkg(c)
	for _, s := range sdks {
		if strings.HasPrefix(pkg, s.pkg) && len(c.Signature().Params().String()) > 0 {
			return s.attempts, true
		}
	}
	return 0, false
}
