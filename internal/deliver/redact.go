package deliver

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-8ee7f392/payments/internal/wire"
)

// This file holds what of an endpoint's answer, and of our own request, may be kept in a delivery's log.

const (
	redacted = "[redacted]"

	// spec 2.9.6
	maxBody = 4096 // characters of an answer's body that are kept (specification part 8)
	// bytes that are read to have as many characters, and to see whether there are more
	readLimit = maxBody*4 + 1

	maxHeaders     = 64   // headers of an answer that are kept, in the order of their names
	maxHeaderValue = 1024 // characters of each
)

// secretWords are what a secret-looking name contains, once it is in lower case and without separators.
var secretWords = []string{
	"secret",
	"password",
	"passwd",
	"passphrase",
	"pwd",
	"token",
	"apikey",
	"accesskey",
	"privatekey",
	"signingkey",
	"authorization",
	"credential",
	"cookie",
	"session",
	"signature",
	"mnemonic",
	"seedphrase",
	"bearer",
	"jwt",
	"whsec",
}

// credentialHeaders carry credentials though their names do not say so.
var credentialHeaders = []string{
	"www-authenticate",
	"proxy-authenticate",
	"authentication-info",
	"proxy-authentication-info",
	"x-auth",
	"x-csrf",
	"x-xsrf",
}

var separators = strings.NewReplacer("_", "", "-", "", ".", "", " ", "")

func looksSecret(name string) bool {
	name = separators.Replace(strings.ToLower(name))
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(name, word) })
}

// keptHeaders returns an answer's headers with names in lower case, without those that carry credentials.
func keptHeaders(h http.Header) map[string]string { // spec 2.9.5
	names := make([]string, 0, len(h))
	for name := range h {
		if !looksSecret(name) && !slices.Contains(credentialHeaders, strings.ToLower(name)) {
			names = append(names, name)
		}
	}

	slices.Sort(names)

	kept := make(map[string]string, min(len(names), maxHeaders))
	for _, name := range names[:min(len(names), maxHeaders)] {
		kept[strings.ToLower(printable(name))] = wire.Cut(
			redactSecrets(printable(strings.Join(h[name], ", "))), maxHeaderValue,
		)
	}

	return kept
}

// keptBody returns what is kept of a body of which raw is the beginning, up to readLimit bytes, and
// whether the body was longer. A body that is not text because it is compressed is not kept.
func keptBody(raw []byte, more bool, h http.Header) (body string, truncated bool) {
	if encoding := h.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return "", len(raw) > 0 || more
	}

	text := printable(string(raw))
	// Cut before redacting: text beyond the cut must not appear because redaction shortened the
	// text before it.
	body = wire.Cut(text, maxBody)
	truncated = more || len(body) < len(text)
	kept := redactSecrets(redactJSON(body))
	body = wire.Cut(kept, maxBody)

	return body, truncated || len(body) < len(kept)
}

// printable replaces what a database cannot store as text: bytes that are not UTF-8, and NUL.
func printable(s string) string {
	if utf8.ValidString(s) && !strings.Contains(s, "\x00") {
		return s
	}

	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

var ours = regexp.MustCompile(`(whsec_)[A-Za-z0-9+/=_-]+|(v1=)[0-9a-f]{64}`)

// redactSecrets replaces our signing secrets and signatures wherever they stand.
func redactSecrets(s string) string {
	if !strings.Contains(s, "whsec_") && !strings.Contains(s, "v1=") {
		return s
	}

	return ours.ReplaceAllString(s, "${1}${2}"+redacted)
}

// redactJSON replaces the values of secret-looking fields by a marker, whatever their type. The text need not
// be whole or valid JSON, since it may have been cut: a value that does not end is replaced to the end.
func redactJSON(s string) string { // spec 2.9.7
	var out strings.Builder

	done := 0 // what is before it was written

	for i := 0; i < len(s); {
		if s[i] != '"' {
			i++
			continue
		}
		// Every quote is taken for the beginning of a key, closing ones too: a stray quote earlier
		// in a text that is not quite JSON must not hide the fields behind it.
		end := stringEnd(s, i)

		value := skipSpace(s, end)
		if value == len(s) || s[value] != ':' {
			i++
			continue
		}

		value = skipSpace(s, value+1)
		if !looksSecret(unquoted(s[i:end])) {
			i = value
			continue
		}

		if value == len(s) {
			break
		}

		i = valueEnd(s, value)
		out.WriteString(s[done:value])
		out.WriteString(`"` + redacted + `"`)

		done = i
		if s[i-1] == '"' {
			i-- // it may have closed nothing, and begin a key
		}
	}

	out.WriteString(s[done:])

	return out.String()
}

// unquoted returns what a JSON string says, or its text when it is not a valid one.
func unquoted(quoted string) string {
	var s string
	if strings.Contains(quoted, `\`) && json.Unmarshal([]byte(quoted), &s) == nil {
		return s
	}

	return quoted
}

// stringEnd returns the index after the string that begins at i.
func stringEnd(s string, i int) int {
	for i++; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}

	return len(s)
}

// valueEnd returns the index after the JSON value that begins at i: behind the quote or bracket
// that closes it, or at what can follow a number or word. Of something else nobody can say where it
// ends: the rest of the text is its.
func valueEnd(s string, i int) int {
	end := len(s)
	switch s[i] {
	case '"':
		end = stringEnd(s, i)
	case '{', '[':
		end = bracketEnd(s, i)
	default:
		if n := strings.IndexAny(s[i:], "\",]} \t\r\n"); n >= 0 {
			end = i + n
		}
	}

	if !json.Valid([]byte(s[i:end])) {
		return len(s)
	}

	return end
}

// bracketEnd returns the index behind the bracket that closes the one at i.
func bracketEnd(s string, i int) int {
	depth := 0

	for i < len(s) {
		switch s[i] {
		case '"':
			i = stringEnd(s, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}

		i++
	}

	return len(s)
}

func skipSpace(s string, i int) int {
	for i < len(s) && strings.IndexByte(" \t\r\n", s[i]) >= 0 {
		i++
	}

	return i
}
