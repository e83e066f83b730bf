// Package redact prints values that hold secrets: for every verb, it shows only their name.
//
// A type that holds a secret has the method Format, which fmt calls for every verb, and slog's text handler
// through fmt. If its exported fields hold secrets, it also has MarshalText, for encoders. fmt calls no
// method on an unexported field: a struct of another package with such a value in an unexported field shows
// it, unless the secret lies behind two pointers.
package redact

import (
	"fmt"
	"io"
)

// Text returns the printed form of a value: its type, and the parts that may be shown.
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
