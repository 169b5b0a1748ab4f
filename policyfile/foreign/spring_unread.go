package foreign

import (
	"slices"
	"strings"

	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// springRead are the groups of settings whose retries are read, here or by the reader of
// resilience4j.
var springRead = []string{
	"resilience4j", "feign", "spring.cloud.gateway", "spring.cloud.openfeign", "spring.cloud.stream.bindings",
	"spring.cloud.stream.default", "spring.rabbitmq.listener", "spring.rabbitmq.template", "spring.kafka.retry.topic",
}

// springUnread notes the settings for retries that nothing reads: of other parts of
// Spring, such as Consul's, and of the program itself.
func (r *reader) springUnread(doc springDoc) {
	var visit func(n *tree.Node, path string)
	visit = func(n *tree.Node, path string) {
		for _, p := range n.Fields() {
			below := strings.TrimPrefix(path+"."+p.Key, ".")
			n, known := count(p.Value)
			switch {
			case slices.ContainsFunc(springRead, func(s string) bool { return tree.Same(s, below) }):
			case !aboutRetries(p.Key), slices.ContainsFunc(springRead, func(s string) bool { return strings.HasPrefix(s, strings.ToLower(below)+".") }):
				visit(p.Value, below)
			case known && n == 0, p.Value.Text() == "false", p.Value.Map() && !springTrue(p.Value.Fold("enabled"), true):
				// It is switched off.
			default:
				for v := p.Value; len(v.Fields()) == 1; v = v.Pairs[0].Value {
					below += "." + v.Pairs[0].Key // as it may stand in the file
				}
				r.unjudged(p.At, "", "%s says something of retries, and is not judged", below)
			}
		}
	}
	visit(doc.scope[0], "")
}
