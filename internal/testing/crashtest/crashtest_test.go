package crashtest_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/seed-8ee7f392/payments/internal/testing/crashtest"
)

var errEffect = errors.New("the effect failed")

func TestProcessDiesAtTheChosenEffect(t *testing.T) {
	for _, after := range []bool{false, true} {
		ended := 0
		p := &crashtest.Process{End: func() { ended++ }}
		happened := []string{}

		do := func(name string) error {
			return p.Do(name, func() error { happened = append(happened, name); return errEffect })
		}
		if err := do("before it was armed"); !errors.Is(err, errEffect) || p.Dead() {
			t.Fatalf("an effect that is not counted answered %v", err)
		}

		p.Arm(3, after)
		p.Aside(func() {
			if err := do("aside"); !errors.Is(err, errEffect) {
				t.Errorf("an effect aside answered %v", err)
			}
		})

		for i, want := range []error{errEffect, errEffect, crashtest.ErrKilled, crashtest.ErrKilled} {
			if err := do([]string{"a", "b", "c", "d"}[i]); !errors.Is(err, want) {
				t.Errorf("effect %d answered %v, want %v", i+1, err, want)
			}
		}

		if !p.Dead() || ended != 2 {
			t.Errorf("dead: %v, and ended %d times", p.Dead(), ended)
		}

		want := []string{"before it was armed", "aside", "a", "b"}
		if after {
			want = append(want, "c")
		}

		if !slices.Equal(happened, want) {
			t.Errorf("happened: %q, want %q", happened, want)
		}

		p.Next()

		if err := do("e"); !errors.Is(err, errEffect) || p.Dead() {
			t.Errorf("the next process heard %v", err)
		}

		if counted := p.Disarm(); !slices.Equal(counted, []string{"a", "b", "c", "e"}) {
			t.Errorf("counted %q", counted)
		}
	}
}

func TestProcessThatDiesAfterACallHasItsEffect(t *testing.T) {
	for _, after := range []bool{false, true} {
		var p crashtest.Process
		p.Arm(1, after)

		if err := p.Call("a"); (err == nil) != after || !p.Dead() {
			t.Errorf("after=%v: the call it dies of answered %v, dead: %v", after, err, p.Dead())
		}

		if err := p.Call("b"); !errors.Is(err, crashtest.ErrKilled) {
			t.Errorf("after=%v: the next call answered %v", after, err)
		}
	}
}
