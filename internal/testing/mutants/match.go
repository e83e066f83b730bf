package main

import (
	"fmt"
	"go/scanner"
	"go/token"
)

// word is one token of Go source and where it stands.
type word struct {
	text     string
	from, to int
}

// words splits source into tokens. What formatting may add or take away is left out: comments, the semicolons
// that newlines stand for, and commas before a closing bracket.
func words(src []byte) ([]word, error) {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(src))

	var (
		faults scanner.ErrorList
		s      scanner.Scanner
	)
	s.Init(file, src, faults.Add, 0)

	var out []word

	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return out, faults.Err()
		}

		if tok == token.SEMICOLON && lit == "\n" {
			continue
		}

		if closes(tok) && len(out) > 0 && out[len(out)-1].text == "," {
			out = out[:len(out)-1]
		}

		text := lit
		if text == "" || tok == token.SEMICOLON {
			text = tok.String()
		}

		at := file.Offset(pos)
		out = append(out, word{
			text: text,
			from: at,
			to:   at + len(text),
		})
	}
}

// closes reports whether a token is a closing bracket.
func closes(tok token.Token) bool {
	return tok == token.RPAREN || tok == token.RBRACK || tok == token.RBRACE
}

// replace puts a snippet in place of another one, which must be found exactly once in src[from:to].
func replace(src []byte, from, to int, old, new string) ([]byte, error) {
	body, err := words(src[from:to])
	if err != nil {
		return nil, err
	}

	snippet, err := words([]byte(old))
	if err != nil {
		return nil, fmt.Errorf("the snippet %q: %w", old, err)
	}

	if len(snippet) == 0 {
		return nil, fmt.Errorf("the snippet %q holds no token", old)
	}

	var at []int

	for i := range body {
		if begins(body[i:], snippet) {
			at = append(at, i)
		}
	}

	if len(at) != 1 {
		return nil, fmt.Errorf("the snippet %q is found %d times", old, len(at))
	}

	first, last := body[at[0]], body[at[0]+len(snippet)-1]
	out := append([]byte(nil), src[:from+first.from]...)
	out = append(out, new...)

	return append(out, src[from+last.to:]...), nil
}

// begins reports whether a text begins with the words of a snippet.
func begins(text, snippet []word) bool {
	if len(text) < len(snippet) {
		return false
	}

	for i := range snippet {
		if text[i].text != snippet[i].text {
			return false
		}
	}

	return true
}
