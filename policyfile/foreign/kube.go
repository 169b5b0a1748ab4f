package foreign

import (
	"slices"
	"strings"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// resource reports whether n is a resource of Kubernetes of one of the kinds, in any
// version of a group. The group of the core is "v1".
func resource(n *tree.Node, group string, kinds ...string) bool {
	of, _, _ := strings.Cut(n.Get("apiVersion").Text(), "/")
	return of == group && slices.Contains(kinds, n.Get("kind").Text())
}

// annotation returns an annotation of a resource, or nil.
func annotation(n *tree.Node, key string) *tree.Node {
	return n.Get("metadata").Get("annotations").Get(key)
}

// title is a resource's namespace and name, which tell it apart in a file.
func title(n *tree.Node) string {
	meta := n.Get("metadata")
	return strings.TrimPrefix(meta.Get("namespace").Text()+"/"+meta.Get("name").Text(), "/")
}

// kubeService is a dependency on a service of the cluster. One whose namespace is not
// known is called by its name alone, which stands for every service of that name.
func kubeService(name, namespace string, at policyfile.Position) policyfile.Dependency {
	d := policyfile.Dependency{Name: name, At: at, Protocol: "http"}
	if namespace != "" {
		d.Name, d.Service = name+"."+namespace, name+"."+namespace+".svc"
	}
	return d
}

// gist writes a small part of a configuration on one line, as a name for it that
// does not hang on its place in the file.
func gist(n *tree.Node) string {
	if n == nil {
		return ""
	}
	const most = 200
	var b strings.Builder
	n.Walk(func(n *tree.Node) bool {
		for _, p := range n.Pairs {
			b.WriteString(p.Key + "=" + p.Value.Text() + " ")
		}
		for _, item := range n.Items {
			b.WriteString(item.Text() + " ")
		}
		return b.Len() < most
	})
	return strings.TrimSpace(b.String())
}

// words is a scalar of Envoy's kind, for a list that a product writes instead.
func words(list *tree.Node, at policyfile.Position) *tree.Node {
	var all []string
	for _, item := range list.List() {
		all = append(all, item.Text())
	}
	return &tree.Node{Value: strings.Join(all, ","), At: placed(list, at)}
}
