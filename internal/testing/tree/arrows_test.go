package tree_test

import (
	"os/exec"
	"strings"
	"testing"
)

// The imports of the module, as far as the linker sees them: an application links the drivers and
// stores that it imports, and no others.
func TestArrows(t *testing.T) {
	const module = "github.com/seed-8ee7f392/payments"

	heavy := []string{
		"github.com/ethereum/",
		"github.com/btcsuite/",
		"github.com/gagliardetto/",
		"modernc.org/",
		"github.com/jackc/",
		"github.com/jmoiron/",
		"github.com/redis/",
		"github.com/pressly/",
	}
	drivers := []string{
		module + "/chain/evm",
		module + "/chain/bitcoin",
		module + "/chain/solana",
		module + "/chain/tron",
		module + "/chain/sim",
	}
	above := []string{module, module + "/httpapi", module + "/httpapi/checkout", module + "/conformance"}
	domains := []string{
		module + "/invoice",
		module + "/settlement",
		module + "/payout",
		module + "/webhook",
		module + "/account",
	}

	mechanism := []string{
		module + "/internal/follow",
		module + "/internal/ingest",
		module + "/internal/txmgr",
		module + "/internal/sweep",
		module + "/internal/deliver",
		module + "/internal/auditor",
		module + "/internal/engine",
	}

	for _, c := range []struct {
		pkg       string
		forbidden [][]string
	}{
		{".", [][]string{heavy, drivers, above[1:], {module + "/store/"}}},
		{"./internal/engine", [][]string{heavy, drivers, above, {module + "/store/"}}},
		{"./internal/gate", [][]string{heavy, drivers, above, {module + "/store"}, mechanism}},
		{"./internal/auditor", [][]string{heavy, drivers, above, {module + "/store"}, mechanism[:5]}},
		{"./audit", [][]string{heavy, drivers, domains, above, mechanism}},
		{"./health", [][]string{{module + "/"}}},
		{"./store/memory", [][]string{heavy, drivers, above}},
		{"./httpapi", [][]string{heavy, drivers, {module + "/conformance", module + "/store/memory"}}},
		{"./httpapi/checkout", [][]string{heavy, drivers, {module + "/conformance", module + "/store/memory"}}},
		{"./fault", [][]string{{module + "/"}}},
		{"./chain", [][]string{heavy, domains, above, {module + "/store"}}},
		{"./event", [][]string{{module + "/chain", module + "/store", module + "/internal"}, domains, above}},
		{"./chain/scan", [][]string{heavy, drivers, domains, above, {module + "/internal"}}},
		{"./internal/follow", [][]string{heavy, drivers, domains, above}},
		{
			"./chain/wallet",
			[][]string{heavy, drivers, domains, above, {module + "/internal"}},
		},
		{
			"./internal/txmgr",
			[][]string{
				heavy,
				drivers,
				{module + "/invoice", module + "/settlement", module + "/payout", module + "/account"},
				above,
			},
		},
		{"./chain/hdkey", [][]string{domains, above, {"github.com/ethereum/"}}},
		{"./chain/sim", [][]string{heavy, domains, above}},
		{"./internal/testing/sim", [][]string{heavy, drivers, domains, above}},
		{"./chain/internal/agree", [][]string{heavy, drivers, domains, above, {module + "/store"}}},
		{
			"./chain/internal/failover",
			[][]string{heavy, drivers, domains, above, {module + "/store"}}, // it speaks chain.NodeState
		},
		{
			"./webhook",
			[][]string{
				heavy,
				drivers,
				{
					module + "/invoice",
					module + "/settlement",
					module + "/payout",
					module + "/account",
					module + "/chain",
				},
				above,
			},
		},
		{
			"./internal/deliver",
			[][]string{heavy, drivers, {module + "/invoice", module + "/settlement", module + "/payout"}, above},
		},
		{"./invoice", [][]string{heavy, drivers, {module + "/settlement", module + "/payout"}, above, mechanism}},
		{"./internal/ingest", [][]string{heavy, drivers, {module + "/payout"}, above}},
		{"./settlement", [][]string{heavy, drivers, {module + "/invoice", module + "/payout"}, above, mechanism}},
		{"./payout", [][]string{heavy, drivers, {module + "/invoice", module + "/settlement"}, above, mechanism}},
		{
			"./internal/uncovered",
			[][]string{
				heavy,
				drivers,
				{module + "/invoice", module + "/settlement", module + "/store"},
				above,
				mechanism,
			},
		},
		{
			"./internal/ledger",
			[][]string{heavy, drivers, {module + "/invoice", module + "/payout", module + "/store"}, above, mechanism},
		},
		{"./internal/sweep", [][]string{heavy, drivers, {module + "/invoice", module + "/payout"}, above}},
		{
			"./conformance",
			[][]string{
				{"github.com/ethereum/", "modernc.org/", "github.com/jackc/"},
				drivers,
				{module + "/store/memory", module + "/store/sqlite", module + "/store/postgres"},
			},
		},
		{
			"./store/sqlite",
			[][]string{{"github.com/ethereum/", "github.com/jackc/", "github.com/go-sql-driver/"}, drivers, above},
		},
		{
			"./store/sqlstore",
			[][]string{
				{"github.com/ethereum/", "github.com/jackc/", "github.com/go-sql-driver/", "modernc.org/"},
				drivers,
				above,
			},
		},
		{
			"./store/mysql",
			[][]string{{"github.com/ethereum/", "github.com/jackc/", "modernc.org/"}, drivers, above},
		},
		{"./chain/evm", [][]string{{"modernc.org/", "github.com/jackc/"}, domains, above}},
		{"./chain/bitcoin", [][]string{{"github.com/ethereum/", "modernc.org/", "github.com/jackc/"}, domains, above}},
		{
			"./chain/solana",
			[][]string{
				{"github.com/ethereum/", "github.com/btcsuite/", "modernc.org/", "github.com/jackc/"},
				domains,
				above,
			},
		},
		{"./chain/tron", [][]string{{"github.com/gagliardetto/", "modernc.org/", "github.com/jackc/"}, domains, above}},
		{
			"./store/redis",
			[][]string{
				{
					"github.com/ethereum/",
					"github.com/btcsuite/",
					"modernc.org/",
					"github.com/jackc/",
					"github.com/pressly/",
				},
				drivers,
				above,
			},
		},
		{
			"./store/postgres",
			[][]string{{"github.com/ethereum/", "github.com/btcsuite/", "modernc.org/"}, drivers, above},
		},
	} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", c.pkg).CombinedOutput()
		if err != nil {
			t.Fatalf("go list -deps %s: %v\n%s", c.pkg, err, out)
		}

		deps := strings.Fields(string(out))

		for _, list := range c.forbidden {
			for _, bad := range list {
				for _, dep := range deps {
					self := dep == module+strings.TrimPrefix(c.pkg, ".")
					if !self && (dep == bad || strings.HasSuffix(bad, "/") && strings.HasPrefix(dep, bad)) {
						// store/lease is a leaf that every worker imports; internal packages serve them all.
						if strings.HasPrefix(dep, module+"/store/lease") ||
							strings.HasPrefix(dep, module+"/internal/") && bad == module+"/" {
							continue
						}

						t.Errorf("%s links %s", c.pkg, dep)
					}
				}
			}
		}
	}
}

// What the tests run is imported by tests, and by the packages with which an embedder tests.
func TestTestingIsForTests(t *testing.T) {
	const (
		module  = "github.com/seed-8ee7f392/payments"
		testing = module + "/internal/testing/"
	)

	out, err := exec.CommandContext(
		t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...",
	).CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}

	for line := range strings.Lines(string(out)) {
		imports := strings.Fields(line)
		pkg := strings.TrimPrefix(imports[0], module+"/")

		if strings.HasPrefix(imports[0], testing) || pkg == "chain/sim" || pkg == "paymentstest" ||
			strings.HasPrefix(pkg, "conformance") {
			continue
		}

		for _, imported := range imports[1:] {
			if strings.HasPrefix(imported, testing) {
				t.Errorf("%s imports %s", pkg, imported)
			}
		}
	}
}
