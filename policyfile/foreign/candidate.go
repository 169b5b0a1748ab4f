package foreign

import (
	"path/filepath"
	"slices"
	"strings"
)

// extensions are those of files that are looked into when they are met in a folder, and
// templates those that may stand behind them. bare are those of a program's file that is
// known by its name or folder, as "nginx" or "sites-enabled/default".
var (
	extensions = []string{".yaml", ".yml", ".json", ".jsonc", ".json5", ".asl", ".toml", ".hcl", ".tf", ".conf", ".cfg", ".caddyfile", ".properties", ".ini"}
	templates  = []string{".template", ".tmpl", ".tpl", ".gotmpl", ".j2", ".jinja", ".jinja2", ".erb"}
	bare       = append([]string{"", ".inc", ".vhost"}, templates...)
	programs   = []string{"nginx", "haproxy", "envoy", "caddy", "sites-available", "sites-enabled", "conf.d"}
)

// Program reports whether a file is a program, which may hold settings. One that holds
// none is nothing that was left unread.
func Program(path string) bool { return strings.EqualFold(filepath.Ext(path), ".py") }

// Candidate reports whether a file that is met in a folder may hold what is judged,
// by its path alone: source code and pictures are not looked into.
func Candidate(path string) bool {
	path = strings.ToLower(filepath.ToSlash(path))
	ext, folder, base := filepath.Ext(path), filepath.Base(filepath.Dir(path)), filepath.Base(path)
	if Program(path) {
		return strings.Contains(base, "celery") || base == "settings.py" || base == "tasks.py" || folder == "settings"
	}
	if slices.Contains(extensions, filepath.Ext(untemplated(path))) {
		return true
	}
	// The file of AWS's SDKs; the one beside it holds secrets, and no settings.
	return folder == ".aws" && base == "config" || slices.Contains(bare, ext) && ofProgram(path)
}

// untemplated is a path in lower case without the extension of a template.
func untemplated(path string) string {
	if ext := filepath.Ext(path); slices.Contains(templates, ext) {
		return strings.TrimSuffix(path, ext)
	}
	return path
}

// ofProgram reports whether a file is a program's that is known by its name or folder.
func ofProgram(path string) bool {
	path = strings.ToLower(filepath.ToSlash(path))
	folder, base := filepath.Base(filepath.Dir(path)), filepath.Base(path)
	return slices.ContainsFunc(programs, func(s string) bool { return folder == s || strings.Contains(base, s) })
}
