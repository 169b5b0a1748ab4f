package policyfile

import (
	"bytes"
	"fmt"
	"reflect"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear"
)

// Marshal writes f as a policy file that [Parse] reads back to the same
// policies. Profiles are written out: each dependency holds all that it
// inherited. What is left at its default is left out.
func Marshal(f *File) ([]byte, error) {
	// Sections come in the order of the documentation, so that two files
	// can be compared line by line.
	root := &yaml.Node{Kind: yaml.MappingNode}
	add := func(key string, n *yaml.Node) {
		if n != nil && (n.Kind == yaml.ScalarNode || len(n.Content) > 0) {
			root.Content = append(root.Content, plain(key), n)
		}
	}
	add("$schema", node(reflect.ValueOf(f.Schema), "$schema"))
	add("version", node(reflect.ValueOf(f.Version), "version"))
	add("service", node(reflect.ValueOf(f.Service), "service"))
	add("instances", node(reflect.ValueOf(f.Instances), "instances"))
	add("idempotency", node(reflect.ValueOf(f.Idempotency), "idempotency"))
	silent := &yaml.Node{Kind: yaml.MappingNode}
	if f.Observability.NoMetrics {
		silent.Content = append(silent.Content, plain("metrics"), plain("false"))
	}
	if f.Observability.NoLogs {
		silent.Content = append(silent.Content, plain("logs"), plain("false"))
	}
	add("observability", silent)
	add("dependencies", dependencyNodes(f.Dependencies, false))
	add("consumers", dependencyNodes(f.Consumers, true))
	add("webhooks", dependencyNodes(f.Webhooks, true))
	waivers := &yaml.Node{Kind: yaml.SequenceNode}
	for i := range f.Waivers {
		waivers.Content = append(waivers.Content, waiverNode(&f.Waivers[i]))
	}
	add("waivers", waivers)
	add("gateway", node(reflect.ValueOf(f.Gateway), "gateway"))
	add("lint", node(reflect.ValueOf(f.Lint), "lint"))
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return nil, fmt.Errorf("writing the policy file: %w", err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("writing the policy file: %w", err)
	}
	return b.Bytes(), nil
}

// MarshalPolicy writes a policy by the keys of a policy file, as a dependency there has
// them.
func MarshalPolicy(p forbear.Policy) string {
	b, err := yaml.Marshal(dependencyNode(Dependency{Policy: p}, false))
	if err != nil {
		return ""
	}
	return string(b)
}

// dependencyNodes writes one section; section is set for those that fix the
// kind.
func dependencyNodes(deps []Dependency, section bool) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode}
	for _, d := range deps {
		if d.SecretEnv != "" {
			// The file has secret: {env: NAME} where the struct has a
			// plain string.
			name := d.SecretEnv
			d.SecretEnv = ""
			m.Content = append(m.Content, plain(d.Name), with(dependencyNode(d, section), "secret", name))
			continue
		}
		m.Content = append(m.Content, plain(d.Name), dependencyNode(d, section))
	}
	return m
}

// dependencyNode writes one dependency, as {} when all is at its default.
func dependencyNode(d Dependency, section bool) *yaml.Node {
	if section {
		d.Policy.Kind = 0 // the section says it
	}
	n := node(reflect.ValueOf(d), "")
	if n == nil {
		n = &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	}
	return n
}

// with adds key: {env: name}.
func with(n *yaml.Node, key, name string) *yaml.Node {
	n.Style = 0
	n.Content = append(n.Content, plain(key), variable(name))
	return n
}

// variable refers to one of the environment: {env: name}.
func variable(name string) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle, Content: []*yaml.Node{plain("env"), plain(name)}}
}

// moment is a time as a waiver has it: in UTC, so that the signed payload does not depend
// on where it was written.
type moment time.Time

// MarshalText implements [encoding.TextMarshaler].
func (m moment) MarshalText() ([]byte, error) {
	return []byte(time.Time(m).UTC().Format(time.RFC3339)), nil
}

// waiverNode writes a waiver in the order of the documentation.
func waiverNode(w *Waiver) *yaml.Node {
	return node(reflect.ValueOf(struct {
		ID         string     `json:"id"`
		Rule       string     `json:"rule"`
		Dependency string     `json:"dependency"`
		Code       []string   `json:"code"`
		Files      []string   `json:"files"`
		Lifts      []string   `json:"lifts"`
		Reason     string     `json:"reason"`
		Owner      string     `json:"owner"`
		Ticket     string     `json:"ticket"`
		Created    moment     `json:"created"`
		Expires    moment     `json:"expires"`
		Approvals  []Approval `json:"approvals"`
	}{
		w.ID, w.Rule, w.Dependency, w.Code, w.Files, w.Lifts, w.Reason, w.Owner, w.Ticket, moment(w.Created), moment(w.Expires), w.Approvals,
	}), "")
}
