package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// report is what the pages need of a report of forbear probe.
type report struct {
	*setUp
	version string
	taken   time.Time // when it was written
	Policy  string    `json:"policy"`
	Command []string  `json:"command"`
	Cases   []struct {
		ID      string `json:"id"`
		Title   string `json:"title"`
		Rule    string `json:"rule"`
		Outcome string `json:"outcome"`
		Why     string `json:"why"`
		Runs    []struct {
			Conns    []struct{} `json:"connections"`
			Arrivals []struct {
				At time.Duration `json:"at_ns"`
			} `json:"arrivals"`
		} `json:"runs"`
	} `json:"cases"`
	Law *struct {
		Law      struct{ Name string } `json:"law"`
		Ceilings []time.Duration       `json:"ceilings_ns"`
	} `json:"law"`
}

// setUp is a line of zoo.tsv: a client as it is started.
type setUp struct {
	name, language, command string
	script                  string // its file below probe/zoo
	of                      *client
}

// client is a client with advice, as cmd/forbear/internal/probe/advice has it. One that
// there is no advice for has a name alone.
type client struct {
	Name    string            `json:"name"`
	Version string            `json:"version"`
	Zoo     []string          `json:"zoo"`
	Sources []string          `json:"sources"`
	Advice  map[string]string `json:"advice"`
}

// zoo has the set-ups by their names.
type zoo map[string]*setUp

// readZoo reads the set-ups, and which client each is one of.
func readZoo(root string) (zoo, error) {
	text, err := os.ReadFile(filepath.Join(root, "probe/zoo/zoo.tsv"))
	if err != nil {
		return nil, err
	}
	z := zoo{}
	for line := range strings.Lines(string(text)) {
		field := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(field) != 4 {
			return nil, fmt.Errorf("zoo.tsv: want four fields, got %q", field)
		}
		z[field[0]] = &setUp{field[0], field[1], field[3], script(root, field[3]), &client{Name: field[0]}}
	}
	text, err = os.ReadFile(filepath.Join(root, "cmd/forbear/internal/probe/advice/clients.json"))
	if err != nil {
		return nil, err
	}
	var clients []*client
	if err := json.Unmarshal(text, &clients); err != nil {
		return nil, fmt.Errorf("clients.json: %w", err)
	}
	for _, c := range clients {
		for _, name := range c.Zoo {
			if z[name] == nil {
				return nil, fmt.Errorf("clients.json: %s: no set-up has the name %q", c.Name, name)
			}
			z[name].of = c
		}
	}
	return z, nil
}

// script is the file of a set-up below probe/zoo: that of its program, or the table itself
// for a program that needs none.
func script(root, command string) string {
	for word := range strings.FieldsSeq(command) {
		for _, file := range []string{word, "java/" + word + ".java"} {
			if filepath.IsLocal(file) && strings.Contains(file, "/") && !strings.HasPrefix(file, ".") {
				if _, err := os.Stat(filepath.Join(root, "probe/zoo", file)); err == nil {
					return file
				}
			}
		}
		if strings.HasSuffix(word, "/zoo-go") {
			return "go/main.go"
		}
	}
	return "zoo.tsv"
}

var number = regexp.MustCompile(`\d+(\.\d+)+|\b\d+\b`)

// read reads the reports of those clients that called, by language and name.
func (z zoo) read(files []string) (list []*report, err error) {
	for _, file := range files {
		stem := strings.TrimSuffix(file, ".json")
		r := &report{setUp: z[filepath.Base(stem)]}
		if r.setUp == nil {
			continue // of a set-up that is gone
		}
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, r)
		}
		if err != nil {
			return nil, err
		}
		if r.taken, err = modified(file); err != nil {
			return nil, err
		}
		v, _ := os.ReadFile(stem + ".version")
		r.version = number.FindString(string(v))
		if r.sends("healthy", 0) > 0 {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *report) int {
		return cmp.Or(cmp.Compare(a.language, b.language), cmp.Compare(a.name, b.name))
	})
	return list, nil
}

func modified(file string) (time.Time, error) {
	info, err := os.Stat(file)
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// outcome is that of a case, or "".
func (r *report) outcome(id string) string {
	for i := range r.Cases {
		if r.Cases[i].ID == id {
			return r.Cases[i].Outcome
		}
	}
	return ""
}

// sends is how many requests came in a run of a case.
func (r *report) sends(id string, run int) int {
	for i := range r.Cases {
		if c := &r.Cases[i]; c.ID == id && len(c.Runs) > run {
			return len(c.Runs[run].Arrivals)
		}
	}
	return 0
}
