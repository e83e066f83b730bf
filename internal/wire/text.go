package wire

import "strings"

// HasBidiControl reports whether a text has characters that change the direction of displayed text:
// embeddings, overrides and isolates (Unicode Standard Annex 9). They can make a text look like another one.
// Arabic and Hebrew are written without them.
func HasBidiControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
	})
}
