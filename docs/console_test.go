package docs_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

const (
	consoleFile    = "images/quickstart.svg"
	consoleCommand = "go run ./examples/quickstart -once"
	consoleColumns = 100
)

// Sizes of the picture in pixels. A character of a monospaced font is 0.6 of the font's size wide.
const (
	consoleFont   = 13
	consoleLine   = 20
	consoleMargin = 20
	consoleTitle  = 34
)

// changing is what differs from run to run: ids, hashes, addresses and amounts.
var changing = regexp.MustCompile(`(sim1)?[0-9a-f]{10,}`)

// TestConsolePicture runs the quickstart: the picture of the README shows what it prints, and is drawn from the text
// that the picture has as its description.
func TestConsolePicture(t *testing.T) {
	printed := runQuickstart(t)

	if *update {
		if err := os.WriteFile(consoleFile, []byte(drawConsole(t, printed)), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	picture, err := os.ReadFile(consoleFile)
	if err != nil {
		t.Fatal(err)
	}

	shown := describedBy(t, picture)
	want, got := changing.ReplaceAllString(printed, "…"), changing.ReplaceAllString(shown, "…")

	if got != want {
		t.Errorf(
			"the picture shows\n%s\nthe quickstart prints\n%s\ndraw it with `go test ./docs -update`",
			got,
			want,
		)
	}

	if string(picture) != drawConsole(t, shown) {
		t.Errorf("%s is not drawn from its description: draw it with `go test ./docs -update`", consoleFile)
	}
}

// runQuickstart returns what the quickstart prints.
func runQuickstart(t *testing.T) string {
	t.Helper()

	cmd := exec.CommandContext(
		t.Context(), "go", "run", "./examples/quickstart", "-once", "-addr", "127.0.0.1:0",
	)
	cmd.Dir = ".."

	var log bytes.Buffer

	cmd.Stderr = &log

	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the quickstart ended with %v\n%s%s", err, out, log.Bytes())
	}

	return string(out)
}

// describedBy returns the text that a picture is described by.
func describedBy(t *testing.T, picture []byte) string {
	t.Helper()

	var svg struct {
		Description string `xml:"desc"`
	}

	if err := xml.Unmarshal(picture, &svg); err != nil {
		t.Fatalf("%s: %v", consoleFile, err)
	}

	return svg.Description
}

// drawConsole returns a picture of a terminal that shows the command and what it printed.
func drawConsole(t *testing.T, printed string) string {
	t.Helper()

	var lines []string
	for line := range strings.Lines(printed) {
		lines = append(lines, wrap(strings.TrimRight(line, "\n"))...)
	}

	width := 2*consoleMargin + consoleColumns*consoleFont*6/10
	height := consoleTitle + (len(lines)+1)*consoleLine + consoleMargin

	var b strings.Builder

	fmt.Fprintf(
		&b,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" `+
			`role="img" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" `+
			`font-size="%[3]d">`+"\n",
		width,
		height,
		consoleFont,
	)
	fmt.Fprintf(&b, "<desc>%s</desc>\n", escaped(t, printed))
	fmt.Fprintf(&b, `<rect width="%d" height="%d" rx="10" fill="#161b22"/>`+"\n", width, height)

	for i, colour := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		fmt.Fprintf(&b, `<circle cx="%d" cy="17" r="6" fill="%s"/>`+"\n", consoleMargin+6+20*i, colour)
	}

	y := consoleTitle + consoleLine
	fmt.Fprintf(&b, `<text x="%d" y="%d" fill="#7ee787">$ <tspan fill="#ffffff">%s</tspan></text>`+"\n",
		consoleMargin, y, escaped(t, consoleCommand))

	for _, line := range lines {
		y += consoleLine

		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="#c9d1d9" xml:space="preserve">%s</text>`+"\n",
			consoleMargin, y, escaped(t, line))
	}

	b.WriteString("</svg>\n")

	return b.String()
}

// wrap breaks a line at spaces so that it fits into the terminal. What follows is indented.
func wrap(line string) []string {
	const indentation = "  "

	var lines []string

	for len(line) > consoleColumns {
		at := strings.LastIndex(line[:consoleColumns+1], " ")
		if at <= len(indentation) {
			at = consoleColumns
		}

		lines = append(lines, line[:at])
		line = indentation + strings.TrimPrefix(line[at:], " ")
	}

	return append(lines, line)
}

func escaped(t *testing.T, text string) string {
	t.Helper()

	var b bytes.Buffer
	if err := xml.EscapeText(&b, []byte(text)); err != nil {
		t.Fatal(err)
	}

	return strings.ReplaceAll(b.String(), "&#xA;", "\n")
}
