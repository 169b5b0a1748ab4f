package tree

import (
	"bytes"
	"strings"
	"testing"
)

// What is assigned is read, and what only looks like an assignment is not.
func TestPython(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"constants", "a = True\nb = None\nc = False\n", `{a:"true"@1:5 b:"None"@2:5 c:"false"@3:5}`},
		{"numbers", "a = -1.5\nb = 60 * 60\nc = 1_000\n", `{a:"-1.5"@1:5 b:"3600"@2:5 c:"1000"@3:5}`},
		{"no literals", "a = 2 ** 3\nb = 1 + 1\nc = 3 if x else 50\nd = None or 5\ne = '3'.strip()\nf = (2\n + 3)\n", `{a:"an expression"@1:5 b:"an expression"@2:5 c:"an expression"@3:5 d:"an expression"@4:5 e:"an expression"@5:5 f:"an expression"@6:6}`},
		{"one of two dicts", "a = {'b': 1} if x else {'b': 50}\n", `{a:{b:"1"@1:11 **:""@1:5}}`},
		{"texts", "a = 'x' \"y\"\nb = r'\\d'\nc = f'{x}'\nd = '''#\n= 1'''\n", `{a:"xy"@1:5 b:"\\d"@2:5 c:"an expression"@3:5 d:"#\n= 1"@4:5}`},
		{"a dict", "a = {'b': [1, (2,), (3)], **c, d: dict(e=1)}\n", `{a:{b:["1"@1:12 ["2"@1:16] "3"@1:22] **:""@1:27 d:{e:"1"@1:42}}}`},
		{"a comprehension", "a = {k: 1 for k in b}\n", `{a:{k:"an expression"@1:9 **:""@1:6}}`},
		{"an expression", "a = env.int('N', default=3)\nb = x or 3\n", `{a:"env.int"@1:5 b:"x"@2:5}`},
		{"a time", "a = timedelta(minutes=1, seconds=5)\nb = datetime.timedelta(days=n)\nc = timedelta(hours=1).total_seconds()\n", `{a:"65"@1:5 b:"datetime.timedelta"@2:5 c:"3600"@3:5}`},
		{"a type", "a: dict[str, int] = {}\n", `{a:{}}`},
		{"conf", "app.conf.a = 1\napp.conf['b'] = 2\napp.conf.update(c=3, **x)\napp.conf.update({'d': 4})\n", `{a:"1"@1:14 b:"2"@2:17 c:"3"@3:19 **:""@3:22 d:"4"@4:23}`},
		{"dicts within conf", "app.conf.a['b'] = 1\nconf['a']['b'] = 2\napp.conf.a.update(b=3)\na |= {'b': 4}\n", `{a:{b:"1"@1:19} a:{b:"2"@2:18} a:{b:"3"@3:21} a:{b:"4"@4:12}}`},
		{"settings of another program", "app.config['A'] = 1\nsettings.B = 2\napp.config.from_mapping(C=dict(d=3))\n", `{A:"1"@1:19 B:"2"@2:14 C:{d:"3"@3:34}}`},
		{"what is handed over unseen", "app.conf.update(a())\napp.config_from_object('a.b', namespace='C')\n", `{**:""@1:17 namespace:"C"@2:41}`},
		{"the constructor", "app = Celery(__name__, 'x', a={'b': 1}, **c)\n", `{a:{b:"1"@1:37} **:""@1:41 app:"Celery"@1:7}`},
		{"a dict that is returned", "def f():\n    return {'a': 1}\nreturn [2]\n", `{return:{a:"1"@2:18}}`},
		{"a key that stands twice", "a = {'b': 1, 'b': 2, c: 3, c: 4}\n", `{a:{b:"2"@1:19 c:"3"@1:25 c:"4"@1:31}}`},
		{"texts on several lines", "a = {'b': 'c'\n  'd', 'e': 1}\n", `{a:{b:"cd"@1:11 e:"1"@2:13}}`},
		{"others' attributes", "self.a = 1\nx['b'] = 2\nx.update(c=3)\nx.append(d=4)\n", `{self:{a:"1"@1:10} x:{b:"2"@2:10} x:{c:"3"@3:12}}`},
		{"within blocks", "if x == 1: a = 1\nclass C(B):\n    b = 2\n    def f(self, c=3) -> None:\n        d = 4\n", `{a:"1"@1:16 b:"2"@3:9 d:"4"@5:13}`},
		{"comparisons", "a == 1\nassert b == 2\nc(d=3)\nreturn e\nf += 1\n", `{}`},
		{"a decorator", "@app.task(x=1)\n@other\nasync def f(): pass\n", `{@app.task:{x:"1"@1:13 def:"f"@3:11} @other:{def:"f"@3:11}}`},
		{"a decorator with arguments that are not known", "@app.task(*a, **b)\ndef f(): pass\n", `{@app.task:{*:""@1:11 **:""@1:15 def:"f"@2:5}}`},
		{"one that is no function's", "@app.task\nclass A: pass\ndef f(): pass\n", `{@app.task:{}}`},
		{"texts that hold code", "\"\"\"\na = 1\n\"\"\"\nx('''\nb = 2\n''') # c = 3\n", `{}`},
		{"joined lines", "a = \\\n  1\nb = (2 ,\n c)\nd = \\\r\n 3\r\n", `{a:"1"@2:3 b:["2"@3:6 "c"@4:2] d:"3"@6:2}`},
		{"columns in characters", "a = 'ä—'; b = 1\nä = {'ö': 2}\n", `{a:"ä—"@1:5 b:"1"@1:15 ä:{ö:"2"@2:11}}`},
		{"without an end", "a = {'b': 'c", `{a:{b:"c"@1:11}}`},
		{"what closes nothing", ")}]\na = 1\n", `{a:"1"@2:5}`},
	} {
		if got := outline(Python("f.py", []byte(tt.text))); got != tt.want {
			t.Errorf("%s: got %s\nwant %s", tt.name, got, tt.want)
		}
	}
	// Values within each other are bounded, and read once.
	const deep = 200_000
	for _, text := range []string{"a = " + strings.Repeat("{'b': ", deep), "a = " + strings.Repeat("[", deep), "a = " + strings.Repeat("dict(b=", deep), strings.Repeat("@(", deep), "a = " + strings.Repeat("1 * ", deep), "a = " + strings.Repeat("'x' ", 5*deep), strings.Repeat("a[", deep), strings.Repeat("a.", deep) + "b = 1"} {
		Python("f.py", []byte(text))
	}
}

// No text makes the reader panic, and all that it finds has a place in the text.
func FuzzPython(f *testing.F) {
	for _, seed := range []string{
		"a = {'b': [1, (2,)], **c}\n", "@app.task(max_retries=3, **x)\nasync def f(): return {'a': 1}\n", "app.conf['a']['b'].update(c=timedelta(1), d=f'')\n",
		"a: b = \\\r\n'''x''' \"y\"", "a = 1 * 2 if x else {k: v for k in b}\nCelery(*a, b=1", "a |= dict(\x00[b", "\ufeffä.conf.update({",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := 1 + bytes.Count(data, []byte("\n"))
		Python("f", data).Walk(func(n *Node) bool {
			if n.At.Line < 1 || n.At.Line > lines || n.At.Column < 1 || n.At.File != "f" {
				t.Errorf("a node at %+v", n.At)
			}
			return true
		})
	})
}
