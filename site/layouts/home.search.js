{{- /* The index: one entry for each part of a page that has a heading:
[page, anchor, title of the page, heading, text]. */ -}}
window.forbearIndex = [
{{- range partialCached "pages.html" "" -}}
  {{- $href := strings.TrimPrefix ("" | relURL) (partial "href.html" .) -}}
  {{- $title := .Title -}}
  {{- range $i, $part := split (replaceRE `<h[1-6] id="` "\u0001" .Content) "\u0001" -}}
    {{- $id := "" -}}{{- $heading := "" -}}{{- $text := $part -}}
    {{- if gt $i 0 -}}
      {{- $id = index (split $part `"`) 0 -}}
      {{- $heading = index (findRE `(?s)>.*?<a class="anchor"` $part 1) 0 | strings.TrimPrefix ">" | replaceRE `<a class="anchor"$` "" | plainify | htmlUnescape | strings.TrimSpace -}}
      {{- $text = replaceRE `(?s)^.*?</h[1-6]>` "" $part 1 -}}
    {{- end -}}
    {{- $text = replaceRE `\s+` " " ($text | plainify | htmlUnescape) | strings.TrimSpace -}}
    {{- if or $text $heading -}}
      {{- slice $href $id $title $heading $text | jsonify -}},{{ "\n" }}
    {{- end -}}
  {{- end -}}
{{- end -}}
];
