//go:build unix

package solana_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/fault"
)

// forgeAccounts has a node change accounts that it is asked for, by their key. What becomes nil does not exist.
func (f *faultyNode) forgeAccounts(change func(key string, account map[string]any) any) {
	f.set(func(method string, params []any, result any) (any, int) {
		if method == "getMultipleAccounts" {
			accounts := result.(map[string]any)["value"].([]any)

			for i, key := range params[0].([]any) {
				account, _ := accounts[i].(map[string]any)
				accounts[i] = change(key.(string), account)
			}
		}

		return result, 0
	})
}

// holding returns an account that holds more or less coin, or more or less of a token, in base units.
func holding(account map[string]any, change int64) map[string]any {
	data, _ := base64.StdEncoding.DecodeString(account["data"].([]any)[0].(string))
	if len(data) == 0 {
		held, _ := account["lamports"].(json.Number).Int64()
		account["lamports"] = held + change

		return account
	}

	binary.LittleEndian.PutUint64(data[64:], binary.LittleEndian.Uint64(data[64:])+uint64(change))
	account["data"] = []string{base64.StdEncoding.EncodeToString(data), "base64"}

	return account
}

// What one node of two says of a deposit address, of other accounts or of the rent minimum plans no sweep.
func TestOneNodePlansNoSweep(t *testing.T) {
	const unreachable = "http://127.0.0.1:1"

	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)
	master, deposit := s.party(chain.RoleMaster, 1), s.party(chain.RoleDeposit, 1)
	s.fund(master, sol, 0)
	s.fund(deposit, 10_000_000, 1_000_000)

	requests := map[string]chain.SweepRequest{
		"coin":   {Asset: s.native(), Amount: chain.Units(10_000_000), Fee: chain.Units(50_000)},
		"tokens": {Asset: s.token(), Amount: chain.Units(1_000_000)},
	}
	feeAddress := newAddress(t) // it does not exist, so that so small a fee is not paid

	forgeAddress := func(change int64) func(f *faultyNode) {
		tokens := n.accountOf(solanago.MustPublicKeyFromBase58(string(deposit.Address))).String()

		return func(f *faultyNode) {
			f.forgeAccounts(func(key string, account map[string]any) any {
				if key == string(deposit.Address) || key == tokens {
					return holding(account, change)
				}

				return account
			})
		}
	}
	lies := map[string]struct {
		forge  func(f *faultyNode)
		assets []string
	}{
		"more than there is": {forgeAddress(5_000_000), []string{"coin", "tokens"}},
		"dust":               {forgeAddress(1), []string{"coin", "tokens"}},
		"less than there is": {forgeAddress(-500_000), []string{"coin", "tokens"}},
		"the fee address": {func(f *faultyNode) {
			f.forgeAccounts(func(key string, account map[string]any) any {
				if key == string(feeAddress) {
					return map[string]any{
						"lamports": 1_000_000,
						"owner":    solanago.SystemProgramID.String(),
						"data":     []string{"", "base64"},
					}
				}

				if account == nil {
					return nil
				}

				return account
			})
		}, []string{"coin"}},
		"the rent minimum": {func(f *faultyNode) {
			f.set(func(method string, _ []any, result any) (any, int) {
				if method == "getMinimumBalanceForRentExemption" {
					return 40_000, 0
				}

				return result, 0
			})
		}, []string{"coin"}},
	}

	for name, lie := range lies {
		for _, asset := range lie.assets {
			t.Run(name+"/"+asset, func(t *testing.T) {
				liar := newFaultyNode(t, n)
				lie.forge(liar)

				r := requests[asset]
				r.Deposit, r.Master, r.FeeAddress = deposit, master, feeAddress

				honest, err := s.d.PlanSweep(t.Context(), r)
				must(t, err)

				for _, c := range []struct {
					nodes []string
					code  string // of the error that it waits with
				}{
					{nodes: []string{n.URL, n.URL}},
					{nodes: []string{liar.URL, n.URL}, code: "nodes_disagree"},
					{nodes: []string{n.URL, liar.URL}, code: "nodes_disagree"},
					{nodes: []string{liar.URL, n.URL, n.URL}},
					{nodes: []string{n.URL, unreachable}, code: "node_unavailable"},
				} {
					d := n.driver(t, func(config *solana.Config) {
						config.RPC, config.RPCs = c.nodes[0], c.nodes[1:]
					})

					steps, err := d.PlanSweep(t.Context(), r)
					if fault.Code(err) != c.code || err != nil && !errors.Is(err, fault.Unavailable) {
						t.Errorf("%v: %+v, %v; want code %q", c.nodes, steps, err, c.code)
					}

					if c.code == "" && (err != nil || !reflect.DeepEqual(steps, honest)) {
						t.Errorf("%v: %+v, %v; want %+v", c.nodes, steps, err, honest)
					}
				}
			})
		}
	}
}

// What arrives while two nodes are asked, one of them behind, disturbs no plan.
func TestSweepIsPlannedWhileDustArrives(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)
	master, deposit := s.party(chain.RoleMaster, 1), s.party(chain.RoleDeposit, 1)
	s.fund(master, sol, 0)
	s.fund(deposit, 10_000_000, 1_000_000)

	behind, err := n.Backends(2)
	must(t, err)

	for _, asset := range []chain.Asset{s.native(), s.token()} {
		n.pay(t, deposit.Address, asset, 3)
		must(t, n.SolanaNode.Mine(1))

		amount := s.balance(deposit.Address, asset).Sub(chain.Units(3))

		for _, nodes := range [][]string{{n.URL, behind}, {behind, n.URL}} {
			d := n.driver(t, func(config *solana.Config) { config.RPC, config.RPCs = nodes[0], nodes[1:] })

			steps, err := d.PlanSweep(t.Context(), chain.SweepRequest{
				Asset:   asset,
				Deposit: deposit,
				Master:  master,
				Amount:  amount,
			})
			if err != nil || len(steps) != 1 || !steps[0].Order.Close ||
				steps[0].Order.Outputs[0].Amount != amount {
				t.Errorf("%s at %v: %+v, %v", asset.Symbol, nodes, steps, err)
			}
		}
	}
}

// A sweep that dust made fail, as the only node that answered said that more would remain, is one that closes: so it is
// made again, and leaves the account open.
func TestSweepOfAWrongBalanceIsMadeAgain(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)
	master, deposit := s.party(chain.RoleMaster, 1), s.party(chain.RoleDeposit, 1)
	s.fund(master, sol, 0)
	s.fund(deposit, 10_000_000, 0)

	liar := newFaultyNode(t, n)
	liar.forgeAccounts(func(key string, account map[string]any) any {
		switch {
		case account == nil:
			return nil
		case key == string(deposit.Address):
			return holding(account, 5_000_000)
		}

		return account
	})

	r := chain.SweepRequest{
		Asset:   s.native(),
		Deposit: deposit,
		Master:  master,
		Amount:  chain.Units(10_000_000),
	}

	steps, err := n.driver(t, func(config *solana.Config) { config.RPC = liar.URL }).PlanSweep(t.Context(), r)
	must(t, err)

	swept := s.sign(steps[0].Order)

	n.pay(t, deposit.Address, nativeAsset, 1)
	must(t, n.SolanaNode.Mine(1))

	options := map[string]any{"encoding": "base64", "skipPreflight": true}
	must(t, n.Call(nil, "sendTransaction", base64.StdEncoding.EncodeToString(swept.Raw), options))
	must(t, n.SolanaNode.Mine(5))

	st, err := s.d.Status(t.Context(), swept)
	must(t, err)

	if !st.Reverted || !steps[0].Order.Close {
		t.Fatalf("a sweep that dust makes fail: reverted %t, closes %t", st.Reverted, steps[0].Order.Close)
	}

	r.KeepOpen, r.Spent = true, st.Fee

	steps, err = s.d.PlanSweep(t.Context(), r)
	must(t, err)

	again := s.sign(steps[0].Order)

	n.pay(t, deposit.Address, nativeAsset, 1)
	s.include(again)
}
