package driver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/forbear-go/forbear/lint/internal/config"
	"github.com/forbear-go/forbear/lint/internal/retryloop"
	"github.com/forbear-go/forbear/lint/internal/table"
)

// Config is the YAML configuration of forbear lint: .forbear-lint.yaml at the
// module's root or above, or --config.
type Config struct {
	// KeyHeaders names headers that count as idempotency keys, besides those
	// with "idempoten" in their name.
	KeyHeaders []string `yaml:"key_headers"`
	// MaxAttempts is the largest number of attempts that FB1011 accepts.
	// Default 11: ten retries, the widest range of the standard.
	MaxAttempts int `yaml:"max_attempts"`
	// Retryable lists statuses that FB1035 accepts although the standard does
	// not, for dependencies that are known to need it.
	Retryable []int `yaml:"retryable"`
	// Libraries judges a user's own retry libraries, in the format of the
	// built-in table.
	Libraries []*table.Entry `yaml:"libraries"`
}

const configName = ".forbear-lint.yaml"

// configure reads the configuration, if there is any, and puts it in force.
func (o *options) configure() error {
	name := o.config
	if name == "" {
		name = discover(o.dir)
	}
	if name == "" {
		return nil
	}
	src, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	var c Config
	dec := yaml.NewDecoder(bytes.NewReader(src))
	dec.KnownFields(true)
	if err := dec.Decode(&c); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("configuration %s: %w", name, err)
	}
	if err := table.Check(c.Libraries); err != nil {
		return fmt.Errorf("configuration %s: %w", name, err)
	}
	retryloop.AddKeyNames(c.KeyHeaders...)
	table.Add(c.Libraries)
	config.Set(config.Config{MaxAttempts: c.MaxAttempts, Retryable: c.Retryable})
	return nil
}

// discover looks for the configuration in dir and the folders above, up to a
// repository's root.
func discover(dir string) string {
	at, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	for {
		name := filepath.Join(at, configName)
		if _, err := os.Stat(name); err == nil {
			return name
		}
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil || filepath.Dir(at) == at {
			return ""
		}
		at = filepath.Dir(at)
	}
}
