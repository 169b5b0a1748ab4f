package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/export"
	"github.com/forbear-go/forbear/policyfile/export/internal/shapetest"
)

// bodyLimit is that of every policy, in bytes.
const bodyLimit = 9 << 20

// exported calls test with each policy of the package's own tests, written for a
// software.
func exported(t *testing.T, format string, test func(t *testing.T, p forbear.Policy, out *export.Export)) {
	t.Helper()
	data, err := os.ReadFile("../testdata/policies.json")
	if err != nil {
		t.Fatal(err)
	}
	var policies map[string]string
	if err := json.Unmarshal(data, &policies); err != nil || len(policies) < 5 {
		t.Fatalf("%d policies: %v", len(policies), err)
	}
	all := append(shapetest.All(200), shapetest.Shape{ // whose files are not here, as nginx wants them
		Name: "mutual", Text: "{owner: a, idempotency: generate, url: 'https://pay.example/v1', http2: only, tls: {ca: a.pem, cert: a.crt, key: a.key, min_version: 1.3}}",
	})
	for _, text := range policies {
		all = append(all, shapetest.Shape{Name: "payments", Text: text})
	}
	for _, s := range all {
		t.Run(s.Name+" "+s.Text, func(t *testing.T) {
			f, err := policyfile.Parse("p.yaml", s.File())
			if err != nil {
				t.Fatal(err)
			}
			d := &f.Dependencies[0]
			if strings.Contains(d.URL, "[") && format == "istio" {
				return // no mesh knows it
			}
			if d.Policy.Kind == forbear.GRPC && format == "gatewayapi" {
				return // it has no retries of gRPC
			}
			d.BodyLimit = bodyLimit // as a route says it
			out, err := export.Write(format, d)
			if err != nil {
				t.Fatal(err)
			}
			p := d.Policy.WithDefaults()
			if steps := p.Backoff.Schedule; len(steps) > 1 {
				p.Backoff.Base, p.Backoff.Cap = steps[1], steps[len(steps)-1]
			}
			for _, d := range []*time.Duration{&p.Total, &p.PerAttempt, &p.Backoff.Base, &p.Backoff.Cap} {
				if *d > 0 {
					*d = max(d.Round(time.Millisecond), time.Millisecond)
				}
			}
			test(t, p, out)
		})
	}
}

// retries reports whether a mesh retries anything: all calls of gRPC are POST.
func retries(p *forbear.Policy) bool {
	return p.Retries() > 0 && (p.Kind != forbear.GRPC || p.Idempotent || p.Keys != forbear.KeyRefuse)
}

// documents are those of a YAML text, each as JSON.
func documents(t *testing.T, text []byte) (all [][]byte) {
	t.Helper()
	dec := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc any
		if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		data, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data)
	}
}

// strictly reads JSON into a message. A field that the message does not have is a
// failure, and so is a type of an extension that the tests do not know.
func strictly(t *testing.T, data []byte, into proto.Message) {
	t.Helper()
	if err := protojson.Unmarshal(data, into); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
}
