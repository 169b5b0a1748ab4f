package policyfile

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/internal/label"
	"github.com/forbear-go/forbear/policyfile/strict"
)

// Addresses are those that the gateway listens on. In the file a single one is
// text, and several are a list. Each is a host and port, "unix:" with the path of a
// socket, or "systemd:" with or without the name of a socket that systemd passes.
type Addresses []string

// node writes a single address as text, as people write it.
func (a Addresses) node() *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for _, address := range a {
		n := plain(address)
		n.Style = yaml.DoubleQuotedStyle
		list.Content = append(list.Content, n)
	}
	if len(a) == 1 {
		return list.Content[0]
	}
	return list
}

// addresses reads one address or a list. The same one twice is a fault: the second
// could not be opened.
func (d *decoder) addresses(v *yaml.Node, into *Addresses) {
	nodes := []*yaml.Node{v}
	if v = strict.Resolve(v); v.Kind == yaml.SequenceNode {
		if nodes = d.Items(v, "gateway.listen"); len(nodes) == 0 {
			d.Fault(v, "gateway.listen is an empty list: want an address such as 127.0.0.1:8080")
		}
	}
	for _, n := range nodes {
		address, ok := d.address(n)
		switch {
		case !ok:
		case slices.Contains(*into, address):
			d.Fault(n, "gateway.listen has %s twice", strict.Quote(address))
		default:
			*into = append(*into, address)
		}
	}
}

// address reads one address. The host may be empty, which means all interfaces.
func (d *decoder) address(n *yaml.Node) (string, bool) {
	want := "an address such as 127.0.0.1:8080"
	s, ok := d.Scalar(n, "gateway.listen", want)
	if !ok {
		return "", false
	}
	if strings.HasPrefix(s, "unix:") {
		want = fmt.Sprintf("a path of at most %d bytes, such as unix:/run/forbear/gateway.sock", maxSocketPath)
	}
	if !listenable(s) {
		d.Fault(n, "gateway.listen is %s: want %s", strict.Quote(s), want)
		return "", false
	}
	return s, true
}

// maxSocketPath is the longest path of a socket that every system takes, in bytes.
const maxSocketPath = 103

// listenable reports whether a gateway could listen on s. Whether the place is free is
// found out when it is opened.
func listenable(s string) bool {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		return path != "" && path != "@" && len(path) <= maxSocketPath && !strings.ContainsFunc(path, label.Control)
	}
	if name, ok := strings.CutPrefix(s, "systemd:"); ok {
		return len(name) <= 255 && !strings.Contains(name, ":") && !strings.ContainsFunc(name, label.Control)
	}
	_, port, err := net.SplitHostPort(s)
	return err == nil && isPort(port)
}
