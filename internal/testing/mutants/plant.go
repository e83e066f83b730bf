package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// outcome is what became of a run of a test.
type outcome int

const (
	passed outcome = iota
	failed
	broken // it did not build, did not run, or did not end
)

// plantAll plants mutants one after the other, says what became of each, and reports whether all were killed.
func plantAll(ctx context.Context, root string, mutants []mutant, limit time.Duration) (bool, error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)

	p := &planter{
		root:  root,
		dir:   dir,
		limit: limit,
		tests: map[string][]string{},
		said:  map[string]said{},
	}
	for _, m := range mutants {
		p.tests[m.Package] = append(p.tests[m.Package], m.Test)
	}

	var killed, survived, faults int

	for _, m := range mutants {
		began := time.Now()

		of, err := p.plant(ctx, m)
		if ctx.Err() != nil {
			return false, ctx.Err()
		}

		took := time.Since(began).Round(100 * time.Millisecond)

		switch {
		case err != nil:
			faults++

			fmt.Printf("ERROR     %s (%s): %v\n", m.ID, took, err)
		case of == failed:
			killed++

			fmt.Printf("killed    %s by %s (%s)\n", m.ID, m.Test, took)
		default:
			survived++

			fmt.Printf("SURVIVED  %s: %s; %s of %s passes (%s)\n", m.ID, m.Rule, m.Test, m.Package, took)
		}
	}

	fmt.Printf("%d mutants: %d killed, %d survived, %d errors\n", len(mutants), killed, survived, faults)

	return killed == len(mutants), nil
}

// planter plants mutants in a module.
type planter struct {
	// root is the directory of the module, dir one for what the planter writes.
	root, dir string
	// limit is how long a test may take.
	limit time.Duration
	// tests are the patterns of all tests by package, said what they said without a mutant.
	tests map[string][]string
	said  map[string]said
}

// said is how tests ended, and their output.
type said struct {
	of     outcome
	output string
}

// plant runs the test of a mutant: without it first, with the other tests of the package, and then with it.
func (p *planter) plant(ctx context.Context, m mutant) (outcome, error) {
	if err := p.passes(ctx, m); err != nil {
		return broken, err
	}

	overlay, err := p.writeOverlay(m)
	if err != nil {
		return broken, err
	}

	var env []string
	if m.Package == "./"+simulated { // seeds of its bias, and more of them than the short form plays
		env = seedsOf(m, mostSeeds)
	}

	of, output := p.runTests(ctx, m.Package, m.Test, env, "-overlay", overlay, "-failfast")
	if of == broken {
		return broken, errors.New("with the mutant:\n" + output)
	}

	return of, nil
}

// passes makes sure that the test passes without a mutant, and that there is one.
func (p *planter) passes(ctx context.Context, m mutant) error {
	before, known := p.said[m.Package]
	if !known {
		before.of, before.output = p.runTests(ctx, m.Package, strings.Join(p.tests[m.Package], "|"), nil)
		p.said[m.Package] = before
	}

	switch {
	case before.of != passed:
		return errors.New("the tests of the package fail without a mutant:\n" + before.output)
	case !strings.Contains("\n"+before.output, "\n--- PASS: "+m.testName()+" "):
		return fmt.Errorf("%s of %s selects no test, or one that is skipped", m.Test, m.Package)
	}

	return nil
}

// writeOverlay writes what the go command shall read instead of the files that a mutant changes.
func (p *planter) writeOverlay(m mutant) (string, error) {
	replaced := map[string]string{}

	for i, part := range m.parts() {
		mutated, err := part.mutate(p.root)
		if err != nil {
			return "", err
		}

		instead := filepath.Join(p.dir, fmt.Sprintf("mutated%d.go", i))
		if err := os.WriteFile(instead, mutated, 0o600); err != nil {
			return "", err
		}

		replaced[filepath.Join(p.root, filepath.FromSlash(part.File))] = instead
	}

	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replaced})
	if err != nil {
		return "", err
	}

	path := filepath.Join(p.dir, "overlay.json")

	return path, os.WriteFile(path, overlay, 0o600)
}

// runTests runs the tests of a package that a pattern selects, with more variables of the environment, and returns how
// they ended and what they said.
func (p *planter) runTests(
	ctx context.Context,
	pkg, pattern string,
	env []string,
	flags ...string,
) (outcome, string) {
	dir, local := moduleOf(p.root, pkg)

	args := append([]string{"test", "-count=1", "-vet=off", "-v", "-run", pattern}, flags...)

	ctx, stop := context.WithTimeout(ctx, p.limit)
	defer stop()

	cmd := exec.CommandContext(ctx, "go", append(args, local)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second

	raw, err := cmd.CombinedOutput()

	output := string(raw)
	switch {
	case ctx.Err() != nil:
		return broken, fmt.Sprintf("it took longer than %s\n", p.limit) + tail(output)
	case err == nil:
		return passed, output
	case strings.Contains(output, "[build failed]"), strings.Contains(output, "[setup failed]"):
		return broken, tail(output)
	case strings.Contains("\n"+output, "\n--- FAIL: "), strings.Contains(output, "\npanic: "):
		return failed, tail(output)
	}

	return broken, err.Error() + "\n" + tail(output)
}

// tail returns the end of a long output.
func tail(output string) string {
	const most = 4000
	if len(output) <= most {
		return output
	}

	return "…\n" + output[len(output)-most:]
}
