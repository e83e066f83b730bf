package main

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"
)

const modulePath = "github.com/seed-8ee7f392/payments"

// writeProxy makes a module proxy in dir that serves the committed state of the repository as one version. Its
// layout is that of GOPROXY's protocol (https://go.dev/ref/mod#goproxy-protocol).
func writeProxy(repo, dir, version string) error {
	at := filepath.Join(dir, filepath.FromSlash(modulePath), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}

	mod, err := git(repo, "show", "HEAD:go.mod")
	if err != nil {
		return err
	}

	info := fmt.Sprintf(
		"{%q: %q, %q: %q}\n",
		"Version",
		version,
		"Time",
		time.Now().UTC().Format(time.RFC3339),
	)

	for name, text := range map[string]string{
		"list":            version + "\n",
		version + ".info": info,
		version + ".mod":  mod,
	} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o644); err != nil {
			return err
		}
	}

	return writeZip(repo, filepath.Join(at, version+".zip"), version)
}

// writeZip writes the module's archive: every committed file that belongs to no nested module.
func writeZip(repo, name, version string) (err error) {
	listing, err := git(repo, "ls-tree", "-r", "--name-only", "-z", "HEAD")
	if err != nil {
		return err
	}

	files := strings.Split(strings.TrimSuffix(listing, "\x00"), "\x00")
	nested := map[string]bool{}

	for _, file := range files {
		if path.Base(file) == "go.mod" && file != "go.mod" {
			nested[path.Dir(file)] = true
		}
	}

	out, err := os.Create(name)
	if err != nil {
		return err
	}

	defer func() {
		if closed := out.Close(); err == nil {
			err = closed
		}
	}()

	archive := zip.NewWriter(out)

	for _, file := range files {
		if within(nested, file) {
			continue
		}

		entry, err := archive.Create(modulePath + "@" + version + "/" + file)
		if err != nil {
			return err
		}

		content, err := git(repo, "show", "HEAD:"+file)
		if err != nil {
			return err
		}

		if _, err := io.WriteString(entry, content); err != nil {
			return err
		}
	}

	return archive.Close()
}

// within reports whether a file lies in one of the directories.
func within(dirs map[string]bool, file string) bool {
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		if dirs[dir] {
			return true
		}
	}

	return false
}

func git(repo string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = repo

	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}

	return string(out), nil
}
