package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// simulated is the package that plays seeds.
const simulated = "internal/testing/simulation"

// mostSeeds is how many seeds a fault may need that a test of that package is named for.
const mostSeeds = 100

// finding is what the simulation made of one mutant.
type finding struct {
	mutant mutant
	// seeds is the number of seeds until it was found; 0: it was not.
	seeds int
	// rule is the rule of the oracle that reported it.
	rule string
	took time.Duration
	err  error
}

// simulateAll compiles all mutants into one program, plays up to so many seeds with each of them on, two at a time, and
// reports whether each was found. The seeds until then are played without a mutant as well.
func simulateAll(ctx context.Context, root string, mutants []mutant, seeds, jobs int) (bool, error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)

	program, err := compile(ctx, root, dir, mutants)
	if err != nil {
		return false, err
	}

	findings := make([]finding, len(mutants))
	waiting := make(chan int)

	var workers sync.WaitGroup
	for range max(jobs, 1) {
		workers.Go(func() {
			for i := range waiting {
				findings[i] = playSeeds(ctx, root, program, mutants[i], seeds)
				findings[i].print()
			}
		})
	}

	for i := range mutants {
		waiting <- i
	}

	close(waiting)
	workers.Wait()

	if ctx.Err() != nil {
		return false, ctx.Err()
	}

	summarize(findings)

	if err := playClean(ctx, root, program, findings); err != nil {
		return false, err
	}

	return !slices.ContainsFunc(findings, func(f finding) bool { return f.seeds == 0 }), nil
}

func (f finding) print() {
	took := f.took.Round(100 * time.Millisecond)

	switch {
	case f.err != nil:
		fmt.Printf("ERROR      %s (%s): %v\n", f.mutant.ID, took, f.err)
	case f.seeds == 0:
		fmt.Printf("NOT FOUND  %s: %s (%s)\n", f.mutant.ID, f.mutant.Rule, took)
	default:
		fmt.Printf("found      %s after %d seeds: %s (%s)\n", f.mutant.ID, f.seeds, f.rule, took)
	}
}

// playClean plays, by bias, as many seeds without a mutant as were needed to find one.
func playClean(ctx context.Context, root, program string, findings []finding) error {
	most := map[string]int{}
	for _, f := range findings {
		most[f.mutant.Bias] = max(most[f.mutant.Bias], f.seeds)
	}

	for _, bias := range slices.Sorted(maps.Keys(most)) {
		clean := playSeeds(ctx, root, program, mutant{Bias: bias}, most[bias])
		if clean.err != nil {
			return fmt.Errorf("without a mutant: %w", clean.err)
		}

		if clean.seeds > 0 {
			return fmt.Errorf("without a mutant: seed %d breaks %q", clean.seeds, clean.rule)
		}

		fmt.Printf("without a mutant %d seeds (bias %q) find nothing\n", most[bias], bias)
	}

	return nil
}

// summarize prints how many mutants were found, and the median of the seeds to find one, with those that were not found
// counted as found last.
func summarize(findings []finding) {
	var counts []int

	for _, f := range findings {
		if f.seeds > 0 {
			counts = append(counts, f.seeds)
		}
	}

	fmt.Printf("%d planted faults: %d found\n", len(findings), len(counts))

	if len(counts) == 0 {
		return
	}

	slices.Sort(counts)

	if half := (len(findings) - 1) / 2; half < len(counts) {
		fmt.Printf("seeds until they were found: median %d, most %d\n", counts[half], counts[len(counts)-1])
	}
}

// seedsOf has internal/testing/simulation play so many seeds of a mutant's bias, up to the first that finds it.
func seedsOf(m mutant, seeds int) []string {
	return []string{"COUNT=first", "BIAS=" + m.Bias, "SEED=1", "SEEDS=" + strconv.Itoa(seeds)}
}

// playSeeds has the program play seeds with one mutant on.
func playSeeds(ctx context.Context, root, program string, m mutant, seeds int) (f finding) {
	f.mutant = m

	began := time.Now()
	defer func() { f.took = time.Since(began) }()

	cmd := exec.CommandContext(ctx, program, "-test.run", "^TestSimulate$", "-test.timeout", "0")
	cmd.Dir = filepath.Join(root, filepath.FromSlash(simulated))

	cmd.Env = append(append(os.Environ(), "PLANTED="+m.ID), seedsOf(m, seeds)...)

	raw, err := cmd.CombinedOutput()
	output := string(raw)

	_, found, counted := strings.Cut(output, "found in 1 of ")
	if !counted {
		if err != nil {
			f.err = fmt.Errorf("%w\n%s", err, tail(output))
		}

		return f
	}

	found, _, _ = strings.Cut(found, "\n")
	if _, err := fmt.Sscanf(found, "%d seeds", &f.seeds); err != nil {
		f.err = err
	}

	_, f.rule, _ = strings.Cut(found, "(")
	f.rule = strings.TrimSuffix(f.rule, ")")

	return f
}

// compile makes a test program of the simulation in which each mutant is planted behind a switch: the environment
// variable PLANTED names the one that is on.
func compile(ctx context.Context, root, dir string, mutants []mutant) (program string, err error) {
	byFile := map[string][]mutant{}

	for _, m := range mutants {
		for _, part := range m.parts() {
			byFile[part.File] = append(byFile[part.File], part)
		}
	}

	module, err := modulePath(root)
	if err != nil {
		return "", err
	}

	overlay := map[string]string{}
	add := func(file string, src []byte) error {
		instead := filepath.Join(dir, fmt.Sprintf("file%d.go", len(overlay)))
		overlay[filepath.Join(root, filepath.FromSlash(file))] = instead

		return os.WriteFile(instead, src, 0o600)
	}

	if err := add("internal/planted/planted.go", []byte(switchSource)); err != nil {
		return "", err
	}

	for file, of := range byFile {
		src, err := plantTogether(root, file, module, of)
		if err != nil {
			return "", err
		}

		if err := add(file, src); err != nil {
			return "", err
		}
	}

	listing, err := json.Marshal(map[string]map[string]string{"Replace": overlay})
	if err != nil {
		return "", err
	}

	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, listing, 0o600); err != nil {
		return "", err
	}

	return buildSimulation(ctx, root, dir, path)
}

// buildSimulation compiles the test program of the simulation with an overlay into dir.
func buildSimulation(ctx context.Context, root, dir, overlay string) (program string, err error) {
	program = filepath.Join(dir, "simulation.test")
	cmd := exec.CommandContext(
		ctx,
		"go",
		"test",
		"-c",
		"-vet=off",
		"-overlay",
		overlay,
		"-o",
		program,
		"./"+simulated,
	)
	cmd.Dir = root

	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compiling the mutants: %w\n%s", err, output)
	}

	return program, nil
}

// switchSource is a package that exists in the overlay alone.
const switchSource = `package planted

import "os"

var on = os.Getenv("PLANTED")

func Is(id string) bool { return on == id }
`

// plantTogether returns a file with several mutants, each behind its switch: a mutated copy of the function's body goes
// in front of the body.
func plantTogether(root, file, module string, mutants []mutant) ([]byte, error) {
	src, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		return nil, err
	}

	type insertion struct {
		at   int
		text string
	}

	var inserted []insertion

	for _, m := range mutants {
		from, to, results, err := functionBody(src, m.Func)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.ID, err)
		}

		mutated, err := replace(src, from, to, m.Old, m.New)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.ID, err)
		}

		body := string(mutated[from : to+len(mutated)-len(src)])
		if !results {
			body = "{" + body + "; return }"
		}

		inserted = append(inserted, insertion{
			at:   from + 1,
			text: fmt.Sprintf("\nif planted.Is(%q) %s\n", m.ID, body),
		})
	}

	slices.SortStableFunc(inserted, func(a, b insertion) int { return b.at - a.at })

	for _, i := range inserted {
		src = slices.Insert(src, i.at, []byte(i.text)...)
	}

	at, err := packageClauseEnd(src)
	if err != nil {
		return nil, err
	}

	return slices.Insert(src, at, []byte(fmt.Sprintf("\n\nimport %q", module+"/internal/planted"))...), nil
}

// modulePath returns the path of a module.
func modulePath(root string) (string, error) {
	src, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return "", err
	}

	for line := range bytes.Lines(src) {
		if path, found := bytes.CutPrefix(line, []byte("module ")); found {
			return string(bytes.TrimSpace(path)), nil
		}
	}

	return "", errors.New("go.mod names no module")
}
