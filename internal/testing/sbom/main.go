// Command sbom writes the bill of materials of a release to standard output, as CycloneDX 1.6: the modules that this
// module's packages link, with their versions, and with the hashes that go.sum holds them to. What only tests need
// is left out.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	if err := write(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// bom is a CycloneDX document. Source: cyclonedx.org/docs/1.6/json.
type bom struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// module is a module as `go list` shows it.
type module struct {
	Path, Version, Sum string
	Main               bool
}

// write writes the bill of materials of packages; none are all of the module.
func write(out io.Writer, packages []string) error {
	if len(packages) == 0 {
		packages = []string{"./..."}
	}

	linked, err := linkedModules(packages)
	if err != nil {
		return err
	}

	document := bom{
		Format:     "CycloneDX",
		Spec:       "1.6",
		Version:    1,
		Components: []component{},
	}

	for _, m := range linked {
		if m.Main {
			document.Metadata.Component = component{Type: "library", Name: m.Path}
			continue
		}

		document.Components = append(document.Components, component{
			Type:       "library",
			Name:       m.Path,
			Version:    m.Version,
			PURL:       "pkg:golang/" + m.Path + "@" + m.Version,
			Properties: []property{{Name: "golang:sum", Value: m.Sum}},
		})
	}

	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")

	return encoder.Encode(document)
}

// linkedModules returns the modules that packages are built from, each once, by path.
func linkedModules(packages []string) ([]module, error) {
	const format = `{{with .Module}}{"Path":"{{.Path}}","Version":"{{.Version}}",` +
		`"Sum":"{{.Sum}}","Main":{{.Main}}}{{end}}`

	cmd := exec.Command("go", append([]string{"list", "-deps", "-f", format}, packages...)...)
	cmd.Stderr = os.Stderr

	listed, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}

	var all []module

	for decoder := json.NewDecoder(bytes.NewReader(listed)); decoder.More(); {
		var m module
		if err := decoder.Decode(&m); err != nil {
			return nil, err
		}

		all = append(all, m)
	}

	slices.SortFunc(all, func(a, b module) int { return strings.Compare(a.Path, b.Path) })

	return slices.Compact(all), nil
}
