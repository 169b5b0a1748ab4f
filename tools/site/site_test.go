package site

import (
	"bytes"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// Where things are, seen from this folder.
const (
	repository = "../.."
	built      = "../../bin/site"
)

// page is one HTML file of the site.
type page struct {
	name string // slash-separated, below the site's root
	root *html.Node
	ids  map[string]bool
}

// pages reads the whole site.
func pages(t *testing.T) map[string]*page {
	t.Helper()
	all := map[string]*page{}
	err := fs.WalkDir(os.DirFS(built), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".html" {
			return err
		}
		data, err := os.ReadFile(filepath.Join(built, name))
		if err != nil {
			return err
		}
		root, err := html.Parse(bytes.NewReader(data))
		if err != nil {
			return err
		}
		p := &page{name: name, root: root, ids: map[string]bool{}}
		for n := range root.Descendants() {
			if id := attr(n, "id"); id != "" {
				if p.ids[id] {
					t.Errorf("%s: two elements have the id %q", name, id)
				}
				p.ids[id] = true
			}
		}
		all[name] = p
		return nil
	})
	if err != nil || len(all) < 50 {
		t.Fatalf("%d pages in %s (%v): make site", len(all), built, err)
	}
	return all
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// TestLinks follows each link inside the site, its anchor included. Links to other
// hosts are held to their form alone.
func TestLinks(t *testing.T) {
	all := pages(t)
	count := 0
	for _, p := range all {
		if p.name == "404.html" {
			continue // served below any path: see TestNothingIsLoadedFromElsewhere
		}
		for n := range p.root.Descendants() {
			href := attr(n, "href")
			if n.Data != "a" || href == "" {
				continue
			}
			u, err := url.Parse(href)
			if err != nil {
				t.Errorf("%s: link %q: %v", p.name, href, err)
				continue
			}
			if u.Scheme != "" {
				if u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "mailto" || u.Scheme != "mailto" && u.Host == "" {
					t.Errorf("%s: link %q: no address of a page", p.name, href)
				}
				continue
			}
			count++
			p.follow(t, all, u)
		}
	}
	if count < 1000 {
		t.Errorf("%d links inside the site: too few to be true", count)
	}
}

// follow checks that a relative link of p leads somewhere.
func (p *page) follow(t *testing.T, all map[string]*page, u *url.URL) {
	t.Helper()
	to := p
	if u.Path != "" {
		if strings.HasPrefix(u.Path, "/") {
			t.Errorf("%s: link %q is not relative: it breaks below a path", p.name, u)
			return
		}
		name := path.Join(path.Dir(p.name), u.Path)
		if strings.HasSuffix(u.Path, "/") || name == "." {
			name = path.Join(name, "index.html")
		}
		if path.Ext(name) != ".html" {
			if _, err := os.Stat(filepath.Join(built, name)); err != nil {
				t.Errorf("%s: link %q leads nowhere", p.name, u)
			}
			return
		}
		if to = all[name]; to == nil {
			t.Errorf("%s: link %q leads nowhere", p.name, u)
			return
		}
	}
	if u.Fragment != "" && !to.ids[u.Fragment] {
		t.Errorf("%s: link %q: %s has no such anchor", p.name, u, to.name)
	}
}

// TestNothingIsLoadedFromElsewhere holds each page to its own site: scripts, styles,
// pictures and icons are files of it, and no style or script of ours names another host.
func TestNothingIsLoadedFromElsewhere(t *testing.T) {
	for _, p := range pages(t) {
		for n := range p.root.Descendants() {
			src := attr(n, "src")
			if n.Data == "link" && attr(n, "rel") != "canonical" {
				src = attr(n, "href")
			}
			if src == "" || strings.HasPrefix(src, "data:") {
				continue
			}
			u, err := url.Parse(src)
			if err != nil || u.Host != "" || u.Scheme != "" {
				t.Errorf("%s: <%s> loads %q", p.name, n.Data, src)
				continue
			}
			if _, err := os.Stat(filepath.Join(built, path.Dir(p.name), u.Path)); err != nil && p.name != "404.html" {
				t.Errorf("%s: <%s> loads %q, which is not there", p.name, n.Data, src)
			}
		}
	}
	err := filepath.WalkDir(built, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !slices.Contains([]string{".css", ".js"}, filepath.Ext(name)) || d.Name() == "search-index.js" || d.Name() == "wasm_exec.js" {
			return err
		}
		data, err := os.ReadFile(name)
		for _, word := range []string{"@import", "http://", "https://", "url(//"} {
			if bytes.Contains(bytes.ReplaceAll(data, []byte("http://www.w3.org/2000/svg"), nil), []byte(word)) {
				t.Errorf("%s has %s", name, word)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestWellFormed holds the pages to what browsers mend silently: each element that is
// opened is closed, in order; one h1; no heading skips a level.
func TestWellFormed(t *testing.T) {
	for _, p := range pages(t) {
		p.balanced(t)
		level, tops := 0, 0
		for n := range p.root.Descendants() {
			if len(n.Data) != 2 || n.Data[0] != 'h' || n.Data[1] < '1' || n.Data[1] > '6' || n.Type != html.ElementNode {
				continue
			}
			now := int(n.Data[1] - '0')
			if now == 1 {
				tops++
			}
			if now > level+1 {
				t.Errorf("%s: h%d follows h%d", p.name, now, level)
			}
			level = now
		}
		if tops != 1 {
			t.Errorf("%s has %d headings of level 1", p.name, tops)
		}
	}
}

// TestTextIsAsWritten finds no typographic quotation marks, of which the documents have
// none: where they come from, --flag has become a dash, and cannot be copied.
func TestTextIsAsWritten(t *testing.T) {
	for _, p := range pages(t) {
		for n := range p.root.Descendants() {
			if i := strings.IndexAny(n.Data, "“”‘’«»"); n.Type == html.TextNode && i >= 0 {
				t.Errorf("%s: %q was made of other characters", p.name, n.Data)
			}
		}
	}
}

// void are the elements without an end.
var void = strings.Fields("area base br col embed hr img input link meta source track wbr")

func (p *page) balanced(t *testing.T) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(built, p.name))
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	inSVG := false
	z := html.NewTokenizer(bytes.NewReader(data))
	for {
		kind := z.Next()
		name, _ := z.TagName()
		switch tag := string(name); kind {
		case html.ErrorToken:
			if len(open) > 0 {
				t.Errorf("%s: not closed: %v", p.name, open)
			}
			return
		case html.StartTagToken:
			inSVG = inSVG || tag == "svg"
			if !slices.Contains(void, tag) {
				open = append(open, tag)
			}
		case html.EndTagToken:
			if len(open) == 0 || open[len(open)-1] != tag {
				t.Errorf("%s: </%s> closes nothing: open are %v", p.name, tag, open)
				return
			}
			open = open[:len(open)-1]
			inSVG = inSVG && tag != "svg"
		case html.SelfClosingTagToken:
			if !inSVG && !slices.Contains(void, tag) {
				t.Errorf("%s: <%s/> is no form of HTML", p.name, tag)
			}
		}
	}
}

// TestEveryDocumentIsAPage finds each Markdown file below docs in the site, and each
// page of the site as a file of the repository.
func TestEveryDocumentIsAPage(t *testing.T) {
	shown := map[string]bool{}
	for _, p := range pages(t) {
		source := ""
		for n := range p.root.Descendants() {
			if n.Data == "p" && attr(n, "class") == "source" {
				source = strings.TrimSpace(n.LastChild.Data[strings.LastIndex(n.LastChild.Data, "·")+len("·"):])
			}
		}
		if source == "" {
			if p.name != "404.html" {
				t.Errorf("%s does not say where it was written", p.name)
			}
			continue
		}
		shown[source] = true
		if _, err := os.Stat(filepath.Join(repository, source)); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
	}
	err := fs.WalkDir(os.DirFS(filepath.Join(repository, "docs")), ".", func(name string, _ fs.DirEntry, err error) error {
		if source := path.Join("docs", name); path.Ext(name) == ".md" && !shown[source] {
			t.Errorf("%s is no page: name it in site/data/nav.yaml", source)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
