package checkout

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// fallback is the tag of the language for visitors whose languages have no table.
const fallback = "en"

// language is a table of messages, read from lang/<tag>.json. A message may have {names} as placeholders.
type language struct {
	// Tag is the BCP 47 tag and the file's name; Name is the language's own name.
	Tag, Name string
	text      map[string]string
}

// message returns a message with its {names} replaced by the values that follow them in pairs.
func (l *language) message(key string, pairs ...string) string {
	s, ok := l.text[key]
	if !ok {
		return key
	}

	for i := 0; i+1 < len(pairs); i += 2 {
		s = strings.ReplaceAll(s, "{"+pairs[i]+"}", pairs[i+1])
	}

	return s
}

// languages are all tables, the fallback first, then by tag.
type languages []*language

// loadLanguages reads lang/*.json. The topmost layer that has a message provides it; missing messages are the
// fallback's.
func loadLanguages(files fs.FS) (languages, error) {
	names, err := fs.Glob(files, "lang/*.json")
	if err != nil {
		return nil, err
	}

	var all languages

	for _, name := range names {
		l := &language{Tag: strings.TrimSuffix(path.Base(name), ".json")}
		for _, layer := range layersOf(files) {
			data, err := fs.ReadFile(layer, name)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}

			if err != nil {
				return nil, err
			}

			if err := json.Unmarshal(data, &l.text); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}

		l.Name = l.text["language"]
		all = append(all, l)
	}

	first := slices.IndexFunc(all, func(l *language) bool { return l.Tag == fallback })
	if first < 0 {
		return nil, fmt.Errorf("lang/%s.json is missing", fallback)
	}

	all[0], all[first] = all[first], all[0]
	for _, l := range all[1:] {
		for key, s := range all[0].text {
			if _, ok := l.text[key]; !ok {
				l.text[key] = s
			}
		}
	}

	slices.SortFunc(all[1:], func(a, b *language) int { return strings.Compare(a.Tag, b.Tag) })

	return all, nil
}

// byTag returns the language of a tag such as "es" or "es-MX", or nil.
func (all languages) byTag(tag string) *language {
	primary, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
	for _, l := range all {
		if strings.ToLower(l.Tag) == primary {
			return l
		}
	}

	return nil
}

// match returns the language of the tag, else the best of an Accept-Language header, else the
// fallback (RFC 9110 section 12.5.4). Entries of the header after the 32nd are ignored.
func (all languages) match(tag, acceptLanguage string) *language {
	if l := all.byTag(tag); l != nil {
		return l
	}

	best, bestWeight := all[0], 0

	for i, item := range strings.Split(acceptLanguage, ",") {
		if i == 32 {
			break
		}

		tag, params, _ := strings.Cut(item, ";")
		if l := all.byTag(tag); l != nil {
			if w := weight(params); w > bestWeight {
				best, bestWeight = l, w
			}
		}
	}

	return best
}

// weight parses "q=0.8" as thousandths, 800 (RFC 9110 section 12.4.2). No weight is 1000, a malformed one 0.
func weight(params string) int {
	params = strings.TrimSpace(params)
	if params == "" {
		return 1000
	}

	q, ok := strings.CutPrefix(params, "q=")

	whole, fraction, _ := strings.Cut(q, ".")
	if !ok || len(fraction) > 3 || whole != "0" && whole != "1" {
		return 0
	}

	n := 0

	for _, digit := range (whole + fraction + "000")[:4] {
		if digit < '0' || digit > '9' {
			return 0
		}

		n = n*10 + int(digit-'0')
	}

	return min(n, 1000)
}
