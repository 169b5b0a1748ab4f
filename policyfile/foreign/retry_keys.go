package foreign

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// setting is a key by which a product sets retries, and that no reader reads. Where other
// software has the same key, it is the product's in a resource of its type.
type setting struct{ product, resource, key, means string }

// settings are those whose meaning is known. Case, dashes and underscores in a key do not
// matter. Others are known by [retryKey], and named without a meaning.
var settings = []setting{
	{"Amazon SQS", "", "maxReceiveCount", "how often a message is received before it is dead-lettered"},
	{"AWS Lambda, EventBridge, Pipes and Scheduler", "", "MaximumRetryAttempts", "how often a failed event is retried; -1 means forever"},
	{"Google Cloud Tasks", "google_cloud_tasks_queue", "retry_config", "how often a task is tried, by max_attempts; -1 means forever"},
	{"Google Cloud Scheduler", "google_cloud_scheduler_job", "retry_count", "how often a job is run again"},
	{"Google Pub/Sub", "", "max_delivery_attempts", "how often a message is delivered before it goes to the dead-letter topic"},
	{"Azure Service Bus", "", "max_delivery_count", "how often a message is delivered before it is dead-lettered"},
	{"the OpenTelemetry Collector", "", "retry_on_failure", "how an exporter retries; max_elapsed_time 0 means forever"},
	{"RocketMQ", "", "retry-times-when-send-failed", "how often a producer sends again"},
	{"RocketMQ", "", "retry-times-when-send-async-failed", "how often a producer sends again"},
	{"RocketMQ", "", "max-reconsume-times", "how often a message is consumed again"},
}

// settingOf returns what is known of a key in a resource, by its last part if it has several.
func settingOf(key, resource string) *setting {
	i := slices.IndexFunc(settings, func(s setting) bool {
		return tree.Same(s.key, key[strings.LastIndexByte(key, '.')+1:]) && (s.resource == "" || s.resource == resource)
	})
	if i < 0 {
		return nil
	}
	return &settings[i]
}

// describe says of a key what it sets: for a type of resource such as AWS::SQS::Queue, or
// for the product that is known to have it.
func describe(key, resource string) string {
	s := settingOf(key, resource)
	if s == nil {
		return strings.TrimSuffix(key+" of "+resource, " of ")
	}
	return key + " of " + cmp.Or(resource, s.product) + ": " + s.means
}

// retryKey matches the keys by which software of all kinds sets retries. Where nothing
// reads them, the report says that they may matter.
var retryKey = regexp.MustCompile(`(?i)^(max|num|number|perform|no)?[_.-]?(of[_.-]?)?(retry|retries|attempts|max[_.-]?attempts|retry[_.-]?(policy|on|limit|count|strategy|([a-z]+[_.-]?)?attempts|max|times|options?|config)|max[_.-]?retr(y|ies)([_.-]?attempts)?|backoff[_.-]?limit|max[_.-]?hedged[_.-]?attempts)$`)

// aboutRetries reports whether a key sets retries, by its last part if it has several.
func aboutRetries(key string) bool {
	return retryKey.MatchString(key[strings.LastIndexByte(key, '.')+1:]) || settingOf(key, "") != nil
}

// variableAboutRetries reports whether a variable of an environment sets retries: its name has
// what it is for before that, as in CLIENT_MAX_RETRIES.
func variableAboutRetries(name string) bool {
	for found := name != "" && name == strings.ToUpper(name); found; _, name, found = strings.Cut(name, "_") {
		if aboutRetries(name) {
			return true
		}
	}
	return false
}

// isProbe reports whether a map is a health check, as Compose, ECS and Nomad have them: no
// one's call is behind it, and its retries say how many failures make it unhealthy.
func isProbe(key string, n *tree.Node) bool {
	return tree.Same(key, "healthcheck") || n.Has("retries") && n.Has("interval") && (n.Has("test") || n.Has("start_period"))
}

// isText reports whether a value is prose, or switches something off: the key of a
// documentation, or of a report, sets nothing.
func isText(n *tree.Node) bool {
	const long = 60 // more than any setting has
	return n.Text() == "false" || len(n.Text()) > long && strings.Count(n.Text(), " ") > 5
}

// schemaTypes are those of JSON Schema, and schemaWords the keywords of which a property
// without a type has one.
var (
	schemaTypes = []string{"object", "array", "string", "number", "integer", "boolean", "null"}
	schemaWords = []string{"$ref", "enum", "const", "anyOf", "oneOf", "allOf", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"}
)

// isSchema reports whether a map has the properties of a JSON Schema, as of a resource of
// Kubernetes or the values of a chart: it says what may be set, and sets nothing.
func isSchema(key string, n *tree.Node) bool {
	property := func(v *tree.Node) bool {
		kind := v.Get("type")
		return slices.Contains(schemaTypes, kind.Text()) || len(kind.List()) > 0 || slices.ContainsFunc(schemaWords, v.Has)
	}
	return (key == "properties" || key == "definitions" || key == "$defs") && len(n.Pairs) > 0 &&
		!slices.ContainsFunc(n.Pairs, func(p tree.Pair) bool { return !property(p.Value) })
}

// resourceOf returns the type of a resource that a map is, or "": of CloudFormation by its
// Type, of Terraform's JSON by the keys above it.
func resourceOf(path []string, n *tree.Node) string {
	if kind := n.Get("Type").Text(); strings.HasPrefix(kind, "AWS::") {
		return kind
	}
	if len(path) == 2 && path[0] == "resource" {
		return path[1]
	}
	return ""
}

// patched returns the path of a JSON Patch's operation (RFC 6902) that sets retries
// where no key of the file names them, or nil.
func patched(n *tree.Node) *tree.Node {
	path := n.Get("path")
	if !n.Has("op") || !n.Has("value") || !strings.HasPrefix(path.Text(), "/") {
		return nil
	}
	for part := range strings.SplitSeq(path.Text(), "/") {
		if aboutRetries(part[strings.LastIndex(part, "~1")+1:]) {
			return path
		}
	}
	return nil
}
