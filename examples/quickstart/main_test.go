package main

import (
	"strings"
	"testing"
)

// A flag that leads nowhere is named with what happened and what to do. What the quickstart prints when all goes well
// is tested with the picture of it in docs.
func TestWrongFlagsAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		rpc, addr string
		says      []string
	}{
		"a node that is down": {
			"http://127.0.0.1:1",
			"127.0.0.1:0",
			[]string{"-evm-rpc: ", "connection refused", "leave -evm-rpc out"},
		},
		"a node without a URL": {
			"node",
			"127.0.0.1:0",
			[]string{"-evm-rpc: ", "leave -evm-rpc out"},
		},
		"an address without a port": {
			"",
			"127.0.0.1",
			[]string{"-addr: ", "missing port", "such as 127.0.0.1:8080"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), true, c.rpc, c.addr, false)
			if err == nil {
				t.Fatal("the quickstart did not fail")
			}

			for _, says := range c.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("the error is %v, without %q", err, says)
				}
			}
		})
	}
}
