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
		sound: map[string]error{},
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
	// sound says of packages and tests that they pass without a mutant, or why they do not.
	sound map[string]error
}

// plant runs the test of a mutant: without it first, unless that was done before, and then with it.
func (p *planter) plant(ctx context.Context, m mutant) (outcome, error) {
	mutated, err := m.mutate(p.root)
	if err != nil {
		return broken, err
	}
	key := m.Package + " " + m.Test
	before, known := p.sound[key]
	if !known {
		before = p.passes(ctx, m)
		p.sound[key] = before
	}
	if before != nil {
		return broken, before
	}

	overlay, err := p.writeOverlay(m.File, mutated)
	if err != nil {
		return broken, err
	}
	of, output := p.runTest(ctx, m, "-overlay", overlay, "-failfast")
	if of == broken {
		return broken, errors.New("with the mutant:\n" + output)
	}
	return of, nil
}

// passes makes sure that the test passes without a mutant, and that there is one.
func (p *planter) passes(ctx context.Context, m mutant) error {
	of, output := p.runTest(ctx, m)
	if of != passed {
		return errors.New("the test fails without the mutant:\n" + output)
	}

	out := "\n" + output
	if !strings.Contains(out, "\n--- PASS: ") || strings.Contains(out, "\n--- SKIP: ") {
		return fmt.Errorf("%s of %s selects no test, or one that is skipped", m.Test, m.Package)
	}
	return nil
}

// writeOverlay writes what the go command shall read instead of a file.
func (p *planter) writeOverlay(file string, mutated []byte) (string, error) {
	instead := filepath.Join(p.dir, "mutated.go")
	if err := os.WriteFile(instead, mutated, 0o600); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{
		"Replace": {
			filepath.Join(p.root, filepath.FromSlash(file)): instead,
		},
	})
	if err != nil {
		return "", err
	}

	path := filepath.Join(p.dir, "overlay.json")
	return path, os.WriteFile(path, overlay, 0o600)
}

// runTest runs the test of a mutant, and returns what it said unless it passed or failed as tests do.
func (p *planter) runTest(ctx context.Context, m mutant, flags ...string) (outcome, string) {
	dir, pkg := moduleOf(p.root, m.Package)
	args := append([]string{"test", "-count=1", "-vet=off", "-v", "-run", m.Test}, flags...)
	ctx, stop := context.WithTimeout(ctx, p.limit)
	defer stop()
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
	cmd.Dir = dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second

	said, err := cmd.CombinedOutput()
	output := string(said)
	switch {
	case ctx.Err() != nil:
		return broken, fmt.Sprintf("the test took longer than %s\n", p.limit) + tail(output)
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
