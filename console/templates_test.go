package console

import (
	"bytes"
	"html/template"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/console/internal/page"
	"github.com/forbear-go/forbear/deadletter/queue"
)

// samples has the data of each template. A new template needs a line here, and is then held
// against html/template.
func samples() map[string]any {
	q := func(data any) shown { return shown{Data: data, Session: &session{}, Query: url.Values{}} }
	return map[string]any{
		"frame": frame{view: &view{}, Session: &session{}}, "problem": q(&problem{}), "signin": q(signInForm{}),
		"now": q(nowPage{}), "row": row{}, "news": 3, "dependency": q(dependencyPage{}), "seen": dependencyPage{}, "call": seen{}, "new-calls": []seen{}, "why": q(whyPage{}),
		"cell-trouble": row{}, "cell-hour": row{}, "cell-calls": row{}, "cell-saved": row{}, "cell-budget": row{}, "cell-breaker": row{}, "cell-pace": row{}, "cell-latency": row{},
		"keys": q(keysPage{}), "key": q(keyPage{}),
		"messages": q(messagesPage{}), "message": q(messagePage{}), "message-state": "", "act": q(actPage{}),
		"endpoints": q(endpointsPage{}), "endpoint": q(endpointPage{}), "endpoint-state": endpoint{}, "attempts-in": attemptStats{},
		"letters": q(lettersPage{}), "letter": q(letterPage{}), "causes": []queue.CauseStat{}, "asked": question{}, "asked-fields": question{},
		"ask-redrive": q(question{}), "ask-discard": q(question{}), "audit": q(auditPage{}), "audit-lines": []queue.Entry{},
		"redrives": q(redrivesPage{}), "redrive": q(redrivePage{}), "redrive-state": q(redrivePage{}), "redrive-progress": q(redrivePage{}), "redrive-live": redrivePage{},
	}
}

// filling is what all fields of some data are set to.
type filling struct {
	text  string
	yes   bool
	empty bool     // no numbers, and nothing in lists
	names []string // of a query
}

func (f filling) fill(v reflect.Value, depth int) {
	switch {
	case depth > 9:
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]():
		for _, field := range v.Fields() {
			f.fill(field, depth+1)
		}
	case v.Kind() == reflect.Pointer && !v.IsNil():
		f.fill(v.Elem(), depth+1)
	case !v.CanSet():
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), depth+1)
	case v.Kind() == reflect.Interface && !v.IsNil():
		filled := reflect.New(v.Elem().Type()).Elem()
		filled.Set(v.Elem())
		f.fill(filled, depth+1)
		v.Set(filled)
	case v.Type() == reflect.TypeFor[page.Markup]():
		v.SetString("markup")
	case v.Kind() == reflect.String:
		v.SetString(f.text)
	case v.Kind() == reflect.Bool:
		v.SetBool(f.yes)
	case f.empty:
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(1e9, 5)))
	case v.CanInt():
		v.SetInt(3)
	case v.CanUint():
		v.SetUint(3)
	case v.CanFloat():
		v.SetFloat(0.5)
	case v.Kind() == reflect.Slice:
		n := 1
		if depth < 5 {
			n = 2 // below it they would multiply
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			f.fill(v.Index(i), depth+1)
		}
	case v.Kind() == reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, name := range append(f.names, f.text) {
			element := reflect.New(v.Type().Elem()).Elem()
			f.fill(element, depth+1)
			v.SetMapIndex(reflect.ValueOf(name).Convert(v.Type().Key()), element)
		}
	}
}

// addresses are the functions whose results are parts of addresses, escaped as such.
var addresses = []string{"path", "query", "alter"}

// reference returns the same templates, parsed by html/template, and their text.
func reference(t testing.TB) (set *template.Template, text string) {
	wrapped := template.FuncMap{}
	for name, f := range funcs {
		wrapped[name] = func(args ...any) any {
			in, of := []reflect.Value{}, reflect.TypeOf(f)
			for i, a := range args {
				want := of.In(min(i, of.NumIn()-1))
				if of.IsVariadic() && i >= of.NumIn()-1 {
					want = want.Elem()
				}
				if in = append(in, reflect.Zero(want)); a != nil {
					in[i] = reflect.ValueOf(a).Convert(want)
				}
			}
			switch out := reflect.ValueOf(f).Call(in)[0].Interface().(type) {
			case page.Markup:
				return template.HTML(out)
			case string:
				if slices.Contains(addresses, name) {
					return template.URL(out)
				}
				return out
			default:
				return out
			}
		}
	}
	set = template.Must(template.New("").Funcs(wrapped).ParseGlob("templates/*.html"))
	files, _ := filepath.Glob("templates/*.html")
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text += string(b)
	}
	return set, text
}

// words are the texts that templates compare with, so that each branch is taken.
func words(text, pattern string) (list []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// FuzzTemplates writes all templates with a text in all places, here and by html/template.
func FuzzTemplates(f *testing.F) {
	for _, text := range []string{
		"", `"`, `'`, "`", `<script>alert(1)</script>`, `</title></textarea></script><!--`, `]]>`, `javascript:alert(1)`, ` JaVaScRiPt:alert(1)`, "java\nscript:x", `data:text/html,x`,
		"a\x00b", "\xff\xfe", "a+b=c&d;&amp;&lt;", `" onmouseover="x`, `//evil.example`, `http://a.example/"'<`, `https://a.example/b?c=d&e=f#g`, "http://é\u2028\ufffe\U0001f600", `{{.}}`, "%zz%41", "../..\\", "a\tb\r\nc",
	} {
		f.Add(text)
	}
	set, text := reference(f)
	compared := words(text, `{{[^}]*(?:eq|ne) [^}]*?"([^"]+)"`)
	for _, word := range compared {
		f.Add(word)
	}
	names := words(text, `\$q\.(\w+)`)
	ours := New(Config{}).pages
	f.Fuzz(func(t *testing.T, text string) {
		fillings := []filling{{text, true, false, names}, {text, false, false, names}, {text, true, true, names}}
		if slices.Contains(compared, text) {
			fillings = fillings[:1] // enough to take its branch
		}
		for _, filled := range fillings {
			for name, data := range samples() {
				holder := reflect.ValueOf(&data).Elem()
				filled.fill(holder, 0)
				got, err := ours.Execute(name, data)
				if err != nil {
					t.Fatal(err)
				}
				var want bytes.Buffer
				if err := set.ExecuteTemplate(&want, name, data); err != nil {
					t.Fatal(err)
				}
				if string(got) != want.String() {
					t.Fatalf("template %s with %q: %s", name, text, difference(string(got), want.String()))
				}
			}
		}
	})
}

// difference shows where two texts begin to differ.
func difference(got, want string) string {
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	cut := func(s string) string { return s[max(0, i-60):min(len(s), i+60)] }
	return "got\n" + cut(got) + "\nwant\n" + cut(want)
}

// What html/template does to the value of each action shows in which place it stands: in
// all branches, also in those that no sample takes.
func TestTemplatesWriteOnlyWhereOneEscapingIsRight(t *testing.T) {
	set, text := reference(t)
	for _, name := range New(Config{}).pages.Names() {
		data, ok := samples()[name]
		if !ok {
			if !strings.HasPrefix(name, "templates/") { // a file, apart from its definitions
				t.Errorf("template %q has no line in samples", name)
			}
			continue
		}
		// Executing escapes what it needs; what it writes does not matter here.
		filling{yes: true}.fill(reflect.ValueOf(&data).Elem(), 0)
		_ = set.ExecuteTemplate(&bytes.Buffer{}, name, data)
		for _, action := range regexp.MustCompile(`{{[^}]*_html_template_[^}]*}}`).FindAllString(set.Lookup(name).Tree.Root.String(), -1) {
			value, escapers, _ := strings.Cut(strings.Trim(action, "{}"), " | _html_template_")
			function, _, _ := strings.Cut(value, " ")
			markup := slices.Contains([]string{"when", "line"}, function) || strings.HasSuffix(value, ".Content")
			switch escapers {
			case "htmlescaper":
			case "attrescaper", "rcdataescaper":
				ok = !markup
			case "urlnormalizer | _html_template_attrescaper":
				ok = function == "path" || function == "alter"
			case "urlescaper | _html_template_attrescaper":
				ok = function == "query"
			case "urlfilter | _html_template_urlnormalizer | _html_template_attrescaper":
				ok = function == "link" || function == "alter" // which begins with "?"
			default: // a script, a style, a comment, an attribute without quotes
				ok = false
			}
			if !ok {
				t.Errorf("template %s: %s: a value may not stand here as it is", name, action)
			}
			ok = true
		}
	}
	// Of these attributes html/template does not know that they are addresses or programs.
	for _, m := range regexp.MustCompile(`\s(hx-[a-z:-]+="[^"]*{{|sse-connect="[^"/]*{{)`).FindAllString(text, -1) {
		t.Errorf("a value in %s", m)
	}
}
