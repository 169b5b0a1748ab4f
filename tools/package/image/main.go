// Command image makes a container image of what command dist has built, for both
// architectures, as an OCI layout: a folder that skopeo, crane, podman and containerd
// read. It needs no container engine.
package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/forbear-go/forbear/tools/package/internal/build"
)

// nonroot is the user of the image, by the number that distroless images have for
// theirs: Kubernetes demands a number for runAsNonRoot.
const nonroot = 65532

func main() { build.Main("image", func(j build.Job) error { return (&maker{j}).run() }) }

type maker struct{ build.Job }

// run writes the layout, in place of one that was there.
func (m *maker) run() error {
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range m.Platforms {
		if p.OS != "linux" {
			continue
		}
		image, err := m.image(p)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.OS, Architecture: p.Arch}},
		})
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	path := filepath.Join(m.Dist, "image")
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	l, err := layout.Write(path, empty.Index)
	if err != nil {
		return err
	}
	name := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": m.Version})
	if err := l.AppendIndex(index, name); err != nil {
		return err
	}
	fmt.Printf("image %s\n", digest)
	return nil
}

// image makes the image of one architecture: a layer that seldom changes, and the
// program.
func (m *maker) image(p build.Platform) (v1.Image, error) {
	program, err := os.ReadFile(filepath.Join(m.Dist, p.String(), p.Exe()))
	if err != nil {
		return nil, err
	}
	base, err := m.base()
	if err != nil {
		return nil, err
	}
	at := build.Time(m.Root)
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, files := range [][]build.File{base, {{Name: "usr/bin/forbear", Mode: 0o755, Text: program}}} {
		layer, err := layerOf(files, at)
		if err != nil {
			return nil, err
		}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: at}, CreatedBy: "make image"}}); err != nil {
			return nil, err
		}
	}
	return mutate.ConfigFile(image, m.config(image, p, at))
}

// config says how the image is run. As it is, it starts: the gateway and the metrics are
// open to the container's network, and the delivery API to the pod alone, until it
// has a token and an address.
func (m *maker) config(image v1.Image, p build.Platform, at time.Time) *v1.ConfigFile {
	c, err := image.ConfigFile()
	if err != nil {
		panic(err) // of an image that was made in memory
	}
	c = c.DeepCopy()
	c.OS, c.Architecture, c.Created = p.OS, p.Arch, v1.Time{Time: at}
	c.Config = v1.Config{
		User:       fmt.Sprintf("%d:%[1]d", nonroot),
		Entrypoint: []string{"/usr/bin/forbear"},
		Cmd:        []string{"serve", "--config", "/etc/forbear/policy.yaml", "--database", "/var/lib/forbear/forbear.db", "--listen", ":8080", "--api", "127.0.0.1:8082", "--metrics", ":9464"},
		// No FORBEAR_DATABASE: it asks for deliveries, and a gateway alone may want none.
		Env:          []string{"PATH=/usr/bin", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
		WorkingDir:   "/var/lib/forbear",
		Volumes:      map[string]struct{}{"/var/lib/forbear": {}},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}, "9464/tcp": {}},
		StopSignal:   "SIGTERM",
		// OCI has no health checks, but Docker reads this one.
		Healthcheck: &v1.HealthConfig{
			Test:     []string{"CMD", "/usr/bin/forbear", "health", "http://127.0.0.1:9464/health/ready"},
			Interval: 10 * time.Second, Timeout: 3 * time.Second, StartPeriod: 10 * time.Second,
		},
		Labels: map[string]string{
			"org.opencontainers.image.title":         "forbear",
			"org.opencontainers.image.description":   "retries that know when to stop: a gateway, and durable delivery of webhooks",
			"org.opencontainers.image.version":       m.Version,
			"org.opencontainers.image.licenses":      "Apache-2.0",
			"org.opencontainers.image.source":        "https://github.com/forbear-go/forbear",
			"org.opencontainers.image.documentation": "https://github.com/forbear-go/forbear/blob/main/docs/guides/install.md",
			"org.opencontainers.image.created":       at.Format(time.RFC3339),
		},
	}
	return c
}

// base is what the program needs around it.
func (m *maker) base() ([]build.File, error) {
	policy, err := os.ReadFile(filepath.Join(m.Root, "deploy/package/policy.yaml"))
	if err != nil {
		return nil, err
	}
	license, err := os.ReadFile(filepath.Join(m.Root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	return []build.File{
		{Name: "etc/", Mode: 0o755},
		{Name: "etc/passwd", Mode: 0o644, Text: fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:%d:%[1]d:nonroot:/var/lib/forbear:/sbin/nologin\n", nonroot)},
		{Name: "etc/group", Mode: 0o644, Text: fmt.Appendf(nil, "root:x:0:\nnonroot:x:%d:\n", nonroot)},
		{Name: "etc/forbear/", Mode: 0o755},
		{Name: "etc/forbear/policy.yaml", Mode: 0o644, Text: policy},
		{Name: "etc/ssl/certs/ca-certificates.crt", Mode: 0o644, Text: authorities()},
		{Name: "licenses/forbear/LICENSE", Mode: 0o644, Text: license},
		{Name: "tmp/", Mode: 0o1777},
		{Name: "usr/", Mode: 0o755},
		{Name: "usr/bin/", Mode: 0o755},
		{Name: "var/lib/forbear/", Mode: 0o700, Owner: nonroot},
	}, nil
}

// authorities are Mozilla's, by the Go project's module: pinned by go.sum, so that every
// machine makes the same image, and in a file, so that one may mount others over it.
// Those that may sign only what was issued before some day are left out, since a file
// cannot say so.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return b.Bytes()
}

// layerOf makes a layer of files.
func layerOf(files []build.File, at time.Time) (v1.Layer, error) {
	var b bytes.Buffer
	if err := build.Tar(&b, files, at); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
}
