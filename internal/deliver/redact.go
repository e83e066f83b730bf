package deliver

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-8ee7f392/payments/internal/wire"
)

// This file decides which parts of an endpoint's answer, and of our own request, are kept in a delivery's
// log.

const (
	redacted = "[redacted]"

	// spec 2.9.6
	maxBody = 4096 // characters of an answer's body that are kept (specification part 8)
	// the number of bytes that are read: enough for maxBody characters, and to see whether there are more
	readLimit = maxBody*4 + 1

	maxHeaders     = 64   // headers of an answer that are kept, in the order of their names
	maxHeaderValue = 1024 // characters of each
)

// Names of secret-looking fields, and of headers that carry credentials. They have letters only, in lower
// case.
var (
	// secretWords mark a name as secret anywhere in it.
	secretWords = []string{
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

	// secretEndings mark a name as secret at its end.
	secretEndings = []string{
		"key",
		"auth",
		"authentication",
		"authenticate",
		"authenticationinfo",
		"csrf",
		"xsrf",
	}

	// harmlessKeys end in "key" and hold no secret.
	harmlessKeys = []string{
		"idempotencykey",
		"publickey",
		"publishablekey",
		"cachekey",
		"surrogatekey",
	}
)

// looksSecret reports whether a field or header of this name holds a secret.
func looksSecret(name string) bool {
	name = strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) {
			return -1
		}

		return unicode.ToLower(r)
	}, name)

	if slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(name, word) }) {
		return true
	}

	name = strings.TrimSuffix(name, "s") // keys
	isEnding := func(ending string) bool { return strings.HasSuffix(name, ending) }

	return slices.ContainsFunc(secretEndings, isEnding) && !slices.ContainsFunc(harmlessKeys, isEnding)
}

// keptHeaders returns an answer's headers with names in lower case, without those that carry credentials.
func keptHeaders(h http.Header) map[string]string { // spec 2.9.5
	names := make([]string, 0, len(h))
	for name := range h {
		if !looksSecret(name) {
			names = append(names, name)
		}
	}

	slices.Sort(names)

	kept := make(map[string]string, min(len(names), maxHeaders))
	for _, name := range names[:min(len(names), maxHeaders)] {
		values := h[name]
		name = strings.ToLower(printable(name))

		if slices.Contains(urlHeaders, name) {
			values = withoutQueries(values)
		}

		kept[name], _ = keptText(strings.Join(values, ", "), maxHeaderValue)
	}

	return kept
}

// urlHeaders hold URLs, whose queries may be credentials.
var urlHeaders = []string{"location", "content-location", "link", "refresh"}

// urlSecrets matches the user name and password of a URL, and its query and fragment. These end at the ">"
// that ends the URL in a Link header (RFC 8288, section 3), or else at the end.
var urlSecrets = regexp.MustCompile(`(?s)(:[/\\]*|[/\\]{2})[^/\\?#>]*@|[?#].*?(>\s*(?:[;,]|$)|$)`)

// withoutQueries returns the values of a header that holds URLs, without the parts of the URLs that may be
// secret.
func withoutQueries(values []string) []string {
	kept := make([]string, len(values))
	for i, value := range values {
		kept[i] = urlSecrets.ReplaceAllString(value, "${1}${2}")
	}

	return kept
}

// keptBody returns the part of a body that is kept, and whether the body was longer. raw is the beginning of
// the body, up to readLimit bytes. A body that is not text because it is compressed is not kept.
func keptBody(raw []byte, more bool, h http.Header) (body string, truncated bool) {
	if encoding := h.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return "", len(raw) > 0 || more
	}

	body, cut := keptText(string(raw), maxBody)

	return body, more || cut
}

// keptText returns the first characters of a text, up to limit, without its secrets, and whether it was longer.
func keptText(text string, limit int) (kept string, cut bool) {
	text = printable(text)
	// Cut before redacting: redaction may shorten the text, and text beyond the cut must not appear.
	first := wire.Cut(text, limit)
	whole := redactSecrets(redactJSON(first))
	kept = wire.Cut(whole, limit)

	return kept, len(first) < len(text) || len(kept) < len(whole)
}

// printable replaces bytes that a database cannot store as text: invalid UTF-8, and NUL.
func printable(s string) string {
	if utf8.ValidString(s) && !strings.Contains(s, "\x00") {
		return s
	}

	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// ours matches signing secrets, even if JSON or a URL escapes their "+" and "/", and signatures, even if cut.
var ours = regexp.MustCompile(
	`(whsec_)(?:[A-Za-z0-9+/=_%-]|\\+/|\\+u00[0-9A-Fa-f]{2})+|(v1=)[0-9a-f]{16,}`,
)

// redactSecrets replaces our signing secrets and signatures anywhere in a text.
func redactSecrets(s string) string {
	if !strings.Contains(s, "whsec_") && !strings.Contains(s, "v1=") {
		return s
	}

	return ours.ReplaceAllString(s, "${1}${2}"+redacted)
}

// maxNesting is how many levels of JSON texts within strings of JSON texts are redacted.
const maxNesting = 2

// redactJSON replaces the values of secret-looking fields by a marker, whatever their type. It also does so
// in JSON texts inside strings.
func redactJSON(s string) string { // spec 2.9.7
	return redactNested(redactFields(s), maxNesting)
}

var (
	// unbroken is a run of text without an unescaped quote, such as the inside of a JSON string.
	unbroken = regexp.MustCompile(`(?s)(?:[^"\\]|\\.)+`)
	// escapes is an escape of a JSON string. UTF-16 surrogates stay together.
	escapes = regexp.MustCompile(`(?s)(?:\\u[0-9A-Fa-f]{4})+|\\.`)
)

// redactNested redacts JSON texts inside strings, and those in their strings, down to depth. A text with an
// escaped quote may be JSON. It is treated as JSON anywhere, because it may be cut, or follow a stray quote.
func redactNested(s string, depth int) string {
	if depth == 0 || !strings.Contains(s, `\`) {
		return s
	}

	return unbroken.ReplaceAllStringFunc(s, func(inside string) string {
		text := unescaped(inside)
		if !strings.Contains(text, `"`) {
			return inside
		}

		kept := redactNested(redactFields(text), depth-1)
		if kept == text {
			return inside
		}

		return escaped(kept)
	})
}

// unescaped decodes the inside of a JSON string. Incomplete and invalid escapes stay.
func unescaped(inside string) string {
	if !strings.Contains(inside, `\`) {
		return inside
	}

	return escapes.ReplaceAllStringFunc(inside, func(escape string) string {
		var text string
		if json.Unmarshal([]byte(`"`+escape+`"`), &text) != nil {
			return escape
		}

		return text
	})
}

// escaped encodes a text as the inside of a JSON string.
func escaped(text string) string {
	var out strings.Builder

	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string can be encoded, and a Builder does not fail

	return strings.TrimSuffix(out.String()[1:], "\"\n")
}

// redactFields replaces the values of secret-looking fields. The text need not be complete or valid JSON,
// because it may have been cut: a value without an end is replaced to the end of the text.
func redactFields(s string) string {
	var out strings.Builder

	done := 0 // the text before it is written

	for i := 0; i < len(s); {
		if s[i] != '"' {
			i++
			continue
		}
		// Every quote may begin a key, even a closing one: a stray quote earlier in a text that is not quite
		// JSON must not hide the fields after it.
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
			i-- // it may be a stray quote, and begin a key
		}
	}

	out.WriteString(s[done:])

	return out.String()
}

// unquoted decodes a JSON string, or returns its text if it is not valid. Quotes are not letters and do not
// matter to looksSecret.
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

// valueEnd returns the index after the JSON value that begins at i. This is after the quote or bracket that
// closes it, or at a character that can follow a number or word. If the value is anything else, its end is
// unknown, and the rest of the text counts as the value.
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

// bracketEnd returns the index after the bracket that closes the one at i.
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
