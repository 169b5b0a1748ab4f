package completion

import (
	"flag"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/internal/flaghint"
)

// candidate is a word that may stand where Tab was pressed, with what it means,
// which may be nothing.
type candidate struct{ word, meaning string }

// String is a line for the scripts. Shells show the meaning on one line, so that
// its first sentence has to do.
func (c candidate) String() string {
	meaning, _, _ := strings.Cut(strings.ReplaceAll(c.meaning, "`", ""), "\n")
	if meaning == "" {
		return c.word
	}
	return c.word + "\t" + meaning
}

// complete returns what the last of words may be, which are those behind the
// program's name. None leaves the word to the shell, which offers files.
func complete(p cli.Program, words []string) []candidate {
	if len(words) == 0 {
		return nil
	}
	typed, before := words[len(words)-1], words[:len(words)-1]
	if len(before) == 0 {
		return beginning(typed, commands(p))
	}
	c, ok := p.Find(before[0])
	if !ok {
		return nil
	}
	return beginning(typed, inCommand(p, c, before[1:], typed))
}

// inCommand returns what may follow the words of a command.
func inCommand(p cli.Program, c *cli.Command, before []string, typed string) []candidate {
	f := c.Registered()
	operands, awaiting, open := parse(f, before)
	switch name, inline, isFlag := flaghint.Cut(typed); {
	case awaiting != nil:
		return choices("", awaiting)
	case open && inline:
		if fl := f.Lookup(name); fl != nil {
			return choices(typed[:strings.Index(typed, "=")+1], fl)
		}
		return nil
	case open && (isFlag || typed == "-" || typed == "--"):
		return flags(f)
	case operands > 0:
		return nil
	case strings.Contains(c.Usage, "[COMMAND]"):
		return commands(p)
	}
	var verbs []candidate
	for _, v := range c.Verbs() {
		verbs = append(verbs, candidate{v, ""})
	}
	return verbs
}

// parse goes through the words of a command line as [cli.Command.Operands] does. It
// counts the operands, returns the flag whose value comes next, if one does, and
// whether flags may still follow.
func parse(f *flag.FlagSet, words []string) (operands int, awaiting *flag.Flag, open bool) {
	for i := 0; i < len(words); i++ {
		if words[i] == "--" {
			return operands + len(words) - i - 1, nil, false
		}
		name, inline, isFlag := flaghint.Cut(words[i])
		if !isFlag {
			operands++
			continue
		}
		fl := f.Lookup(name)
		if fl == nil || inline || flaghint.IsBool(fl) {
			continue
		}
		if i++; i == len(words) {
			return operands, fl, true
		}
	}
	return operands, nil, true
}

// beginning keeps what begins with what was typed. A flag counts with one dash as
// well, which package flag takes for the same.
func beginning(typed string, all []candidate) []candidate {
	return slices.DeleteFunc(all, func(c candidate) bool {
		oneDash := len(typed) > 1 && typed[0] == '-' && strings.HasPrefix(c.word, "-"+typed)
		return !oneDash && !strings.HasPrefix(c.word, typed)
	})
}

func commands(p cli.Program) (all []candidate) {
	for _, c := range p {
		all = append(all, candidate{c.Name, c.Summary})
	}
	return all
}

func flags(f *flag.FlagSet) (all []candidate) {
	f.VisitAll(func(fl *flag.Flag) { all = append(all, candidate{flaghint.Dashed(fl.Name), fl.Usage}) })
	return append(all, candidate{"--help", "the manual of the command"})
}

func choices(prefix string, fl *flag.Flag) (all []candidate) {
	for _, v := range cli.Choices(fl) {
		all = append(all, candidate{prefix + v, ""})
	}
	return all
}
