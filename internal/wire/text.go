package wire

import "strings"

// HasBidiControl reports whether a text has characters that change the direction in which others are shown:
// embeddings, overrides and isolates (Unicode Standard Annex 9). With them a text for people can read as
// another one. Arabic and Hebrew are written without them.
func HasBidiControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
	})
}
