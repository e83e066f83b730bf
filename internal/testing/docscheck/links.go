package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

var (
	linkTarget = regexp.MustCompile(`(?:\]\(|src=")([^)"\s]+)[)"]`)
	headerLine = regexp.MustCompile(`^#+ (.*)$`)
	anchorTag  = regexp.MustCompile(`<a id="([^"]+)">`)
)

// brokenLinks returns the links of a page that lead to no file or heading of the repository. Links to other hosts are
// not followed.
func brokenLinks(page string) ([]string, error) {
	text, err := prose(page)
	if err != nil {
		return nil, err
	}

	var broken []string

	for _, found := range linkTarget.FindAllStringSubmatch(text, -1) {
		target := found[1]
		if strings.Contains(target, "://") {
			continue
		}

		file, anchor, _ := strings.Cut(target, "#")

		to := page
		if file != "" {
			to = filepath.Join(filepath.Dir(page), file)
		}

		if _, err := os.Stat(to); err != nil {
			broken = append(broken, fmt.Sprintf("%s: no file for the link %s", page, target))
			continue
		}

		if anchor == "" {
			continue
		}

		if there, err := hasAnchor(to, anchor); err != nil {
			return nil, err
		} else if !there {
			broken = append(broken, fmt.Sprintf("%s: no heading for the link %s", page, target))
		}
	}

	return broken, nil
}

// prose returns a page without its fenced blocks.
func prose(page string) (string, error) {
	content, err := os.ReadFile(page)
	if err != nil {
		return "", err
	}

	var (
		b      strings.Builder
		inside bool
	)

	for line := range strings.Lines(string(content)) {
		if strings.HasPrefix(line, "```") {
			inside = !inside
		} else if !inside {
			b.WriteString(line)
		}
	}

	return b.String(), nil
}

// hasAnchor reports whether a page has a heading or an anchor of the name.
func hasAnchor(page, name string) (bool, error) {
	text, err := prose(page)
	if err != nil {
		return false, err
	}

	for line := range strings.Lines(text) {
		if header := headerLine.FindStringSubmatch(
			strings.TrimSpace(line),
		); header != nil &&
			slug(header[1]) == name {
			return true, nil
		}

		for _, anchor := range anchorTag.FindAllStringSubmatch(line, -1) {
			if anchor[1] == name {
				return true, nil
			}
		}
	}

	return false, nil
}

// slug returns the anchor of a heading: lower case, hyphens for spaces, letters, digits, hyphens and underscores.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, heading)
}
