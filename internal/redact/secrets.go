package redact

import (
	"net/url"
	"regexp"
	"strings"
)

var (
	// address is a URL in a text.
	address = regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'<>]+`)
	// long is a word that may be a key: at least 24 characters of an encoding.
	long = regexp.MustCompile(`[A-Za-z0-9+/_=-]{24,}`)
	// digit distinguishes an encoded key from a long word.
	digit = regexp.MustCompile(`[0-9]`)
)

// shownOfLong is how many characters of a long word are shown, to distinguish it from others.
const shownOfLong = 6

// Secrets returns a text of unknown origin for a log. It cuts URLs after their host, and long words with
// digits, which may be keys, after their beginning.
func Secrets(text string) string {
	text = address.ReplaceAllStringFunc(text, func(found string) string {
		u, err := url.Parse(found)
		if err != nil || u.Host == "" {
			return "…"
		}

		shown := u.Scheme + "://" + u.Host
		if strings.Trim(u.RequestURI(), "/") != "" {
			shown += "/…"
		}

		return shown
	})

	return long.ReplaceAllStringFunc(text, func(found string) string {
		if !digit.MatchString(found) {
			return found
		}

		return found[:shownOfLong] + "…"
	})
}
