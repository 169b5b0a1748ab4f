package lsp

import "strings"

// skipSpace returns the first place from at on that is no space.
func skipSpace(text string, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\t') {
		at++
	}
	return at
}

// tokenEnd returns where the word, the quoted text or the bracket ends that begins
// at a place. Words of YAML may have spaces in them.
func tokenEnd(text string, at int) int {
	if at >= len(text) {
		return len(text)
	}
	switch text[at] {
	case '"', '\'':
		return quoteEnd(text, at)
	case '{', '[':
		return bracketEnd(text, at)
	}
	end := at
	for ; end < len(text); end++ {
		c, last := text[end], end+1 == len(text)
		if strings.IndexByte(",[]{};", c) >= 0 || c == ':' && (last || text[end+1] == ' ') || c == '#' && end > at && text[end-1] == ' ' {
			break
		}
	}
	return at + len(strings.TrimRight(text[at:end], " \t"))
}

// quoteEnd returns the place behind the quote that closes the one at a place, or the
// end of the line.
func quoteEnd(text string, at int) int {
	quote := text[at]
	for i := at + 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote == '"':
			i++
		case text[i] == quote:
			return i + 1
		}
	}
	return len(text)
}

// bracketEnd returns the place behind the bracket that closes the one at a place, or
// the end of the line.
func bracketEnd(text string, at int) int {
	depth := 0
	for i := at; i < len(text); i++ {
		switch text[i] {
		case '"', '\'':
			i = quoteEnd(text, i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(text)
}

// keyAt returns where the key ends that begins at a place, and where its colon is:
// -1 where there is none, and the word is no key.
func keyAt(text string, at int) (end, colon int) {
	end = tokenEnd(text, at)
	quoted := at < len(text) && (text[at] == '"' || text[at] == '\'')
	colon = skipSpace(text, end)
	if colon >= len(text) || text[colon] != ':' || end == at {
		return end, -1
	}
	if !quoted && colon+1 < len(text) && text[colon+1] != ' ' {
		return end, -1
	}
	return end, colon
}

// unquoted takes the quotes off a word.
func unquoted(word string) string {
	if len(word) > 1 && (word[0] == '"' || word[0] == '\'') && word[len(word)-1] == word[0] {
		return word[1 : len(word)-1]
	}
	return word
}
