//go:build unix

package testenv

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestModuleRootPassesByNestedModules(t *testing.T) {
	root := t.TempDir()
	nested := filepath.Join(root, "internal", "nested")
	write := func(dir, module string) {
		t.Helper()

		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}

		if err := os.WriteFile(
			filepath.Join(dir, "go.mod"), []byte("module "+module+"\n\ngo 1.26.0\n"), 0o644,
		); err != nil {
			t.Fatal(err)
		}
	}
	write(root, modulePath)
	write(nested, modulePath+"/internal/nested")
	t.Chdir(nested)

	got, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	// The system may name the temporary directory by another path.
	want, err := filepath.EvalSymlinks(root)
	if err != nil {
		t.Fatal(err)
	}

	if got, err = filepath.EvalSymlinks(got); err != nil || got != want {
		t.Errorf("module root %s (%v), want %s", got, err, want)
	}
}

func TestModuleRootOutsideTheModule(t *testing.T) {
	t.Chdir(t.TempDir())

	if root, err := moduleRoot(); err == nil || !strings.Contains(err.Error(), modulePath) {
		t.Errorf("module root %q, error %v; want an error that names the module", root, err)
	}
}

func TestLockShutsOutOthers(t *testing.T) {
	t.Chdir(t.TempDir())

	if err := os.WriteFile("go.mod", []byte("module "+modulePath+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	// A lock belongs to an open file, so a second one in this process stands for another process.
	tryLock := func() error {
		f, err := os.OpenFile(filepath.Join(".cache", "test.lock"), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()

		return retryInterrupted(
			func() error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) },
		)
	}

	var while error

	if err := withLock("test", func() error {
		while = tryLock()
		return nil
	}); err != nil {
		t.Fatal(err)
	}

	if !errors.Is(while, syscall.EWOULDBLOCK) {
		t.Errorf("while it is held, another gets %v, want %v", while, syscall.EWOULDBLOCK)
	}

	if err := tryLock(); err != nil {
		t.Errorf("afterwards another gets %v", err)
	}
}
