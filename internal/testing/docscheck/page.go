package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// block is one fenced block of a page and what its mark says about it.
type block struct {
	line int    // of the opening fence, from 1
	verb string // of the mark; "" without one
	args string // what follows the verb
	text string // the lines between the fences
}

// verbs are what a mark may say, with whether words have to follow.
var verbs = map[string]bool{
	"file":   true,  // write the block to the file that is named
	"run":    false, // run it with bash in the page's directory, or in the repository's with "repo"
	"start":  true,  // run it in the background until its output has the words that follow
	"set":    true,  // do not run it: set the variable named first from the output of what was started
	"output": false, // compare it with the output of the block before
	"quote":  true,  // find its lines, in order, in the file that is named
	"skip":   true,  // do not run it, for the reason that follows
}

var (
	markLine  = regexp.MustCompile(`^<!-- check: ([a-z]+) ?(.*) -->$`)
	fenceLine = regexp.MustCompile("^(```+)([a-z]*)$")
)

// readPage returns the blocks of a page in order. Diagrams are left out.
//
// Errors: a block without a mark, a mark without a block, or an unknown verb.
func readPage(path string) ([]block, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}

	return parsePage(path, strings.Split(string(content), "\n"))
}

func parsePage(path string, lines []string) ([]block, error) {
	var (
		blocks []block
		mark   []string
	)

	for i := 0; i < len(lines); i++ {
		fence := fenceLine.FindStringSubmatch(lines[i])

		if fence == nil {
			if mark != nil {
				return nil, fmt.Errorf("%s:%d: a mark without a block below it", path, i)
			}

			mark = markLine.FindStringSubmatch(lines[i])

			continue
		}

		length := slices.Index(lines[i+1:], fence[1])
		if length < 0 {
			return nil, fmt.Errorf("%s:%d: the block has no end", path, i+1)
		}

		b := block{line: i + 1, text: strings.Join(lines[i+1:i+1+length], "\n") + "\n"}
		i += length + 1

		if mark != nil {
			b.verb, b.args = mark[1], mark[2]
		} else if fence[2] == "mermaid" {
			continue
		}

		mark = nil

		needsWords, known := verbs[b.verb]
		if !known {
			return nil, fmt.Errorf("%s:%d: the block has no mark, or one with an unknown verb", path, b.line)
		}

		if needsWords && b.args == "" {
			return nil, fmt.Errorf("%s:%d: the mark %q lacks its words", path, b.line, b.verb)
		}

		blocks = append(blocks, b)
	}

	return blocks, nil
}

// missing returns the first line of want that got does not have, in order; "" if there is none. An ellipsis in a
// line of want stands for any text. Blank lines and the space around lines do not count.
func missing(want, got string) string {
	rest := strings.Split(got, "\n")

	for line := range strings.Lines(want) {
		line = strings.TrimSpace(line)
		if line == "" || line == "…" {
			continue
		}

		pattern := strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*")
		matches := regexp.MustCompile("^" + pattern + "$")

		at := slices.IndexFunc(rest, func(s string) bool { return matches.MatchString(strings.TrimSpace(s)) })
		if at < 0 {
			return line
		}

		rest = rest[at+1:]
	}

	return ""
}
