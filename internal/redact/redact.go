// Package redact prints values that hold secrets: whatever the verb, only their name shows.
//
// A type that holds a secret has the method Format, which fmt calls for every verb, and slog's text handler through
// fmt. One whose exported fields hold secrets has MarshalText too, for encoders. fmt calls no method on an
// unexported field: a struct of another package that holds such a value in one shows it, unless the secret
// lies behind two pointers.
package redact

import (
	"fmt"
	"io"
)

// Text returns what a value is printed as: its type, and what may be known of it.
func Text(name string, shown ...string) string {
	text := name + "("

	for i, s := range shown {
		if i > 0 {
			text += " "
		}

		text += s
	}

	return text + ")"
}

// Format writes a text for every verb and flag.
func Format(f fmt.State, text string) { _, _ = io.WriteString(f, text) }
