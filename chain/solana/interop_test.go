//go:build unix

package solana_test

// Interoperability of the driver with @solana/web3.js and @solana/spl-token, in both directions.

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"testing"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// runWallet runs a job, or a list of jobs, in wallet.js and decodes its answer, or the list of answers.
func runWallet(t *testing.T, job, answer any) {
	t.Helper()

	input, err := json.Marshal(job)
	must(t, err)
	must(
		t,
		json.Unmarshal(
			testenv.SolanaNodeScript(t, "internal/testing/testenv/solana/wallet.js", input),
			answer,
		),
	)
}

// decodedTx is a transaction as web3.js and spl-token decode it.
type decodedTx struct {
	Valid            bool
	Payer, Signature string
	Instructions     []struct{ Program, Kind, From, To, Amount, Fee string }
}

func (r decodedTx) kinds() []string {
	var out []string
	for _, in := range r.Instructions {
		out = append(out, in.Kind)
	}

	return out
}

// sender builds and signs with keys of its own.
type sender struct {
	t      *testing.T
	n      *node
	d      *solana.BlockDriver
	signer *hdkey.Signer
}

func newSender(t *testing.T, n *node) *sender {
	return &sender{t: t, n: n, d: n.driver(t), signer: freshSigner(t)}
}

func (s *sender) party(role chain.Role, index uint32) chain.Party {
	s.t.Helper()

	ref := chain.KeyRef{Family: chain.Solana, Role: role, Index: index}
	key, err := s.signer.PublicKey(s.t.Context(), ref)
	must(s.t, err)
	address, err := s.d.DeriveAddress(key)
	must(s.t, err)

	return chain.Party{Key: ref, Address: address}
}

func (s *sender) fund(p chain.Party, lamports, tokens uint64) {
	s.t.Helper()

	c := controls{s.n}
	if lamports > 0 {
		must(s.t, c.Fund(s.t.Context(), p.Address, chain.Asset{Kind: chain.Native}, chain.Units(lamports)))
	}

	if tokens > 0 {
		must(s.t, c.Fund(s.t.Context(), p.Address, s.n.asset, chain.Units(tokens)))
	}
}

func (s *sender) native() chain.Asset {
	a, _ := s.d.Network().Native()
	return a
}

func (s *sender) token() chain.Asset {
	a, _ := s.d.Network().Asset("TOK")
	return a
}

func (s *sender) sign(o chain.Order) chain.Signed {
	s.t.Helper()

	tx, err := s.trySign(o)
	must(s.t, err)

	return tx
}

// trySign is sign with the error of Build.
func (s *sender) trySign(o chain.Order) (chain.Signed, error) {
	s.t.Helper()

	if o.MaxFee.IsZero() {
		fee, err := s.d.EstimateFee(s.t.Context(), o)
		must(s.t, err)

		o.MaxFee = fee
	}

	u, err := s.d.Build(s.t.Context(), o)
	if err != nil {
		return chain.Signed{}, err
	}

	signatures, err := s.signer.Sign(
		s.t.Context(),
		chain.SignRequest{Network: s.d.Network().Slug, Unsigned: u.Raw, Payloads: u.Payloads},
	)
	must(s.t, err)

	var keys []chain.PublicKey

	for _, p := range u.Payloads {
		key, err := s.signer.PublicKey(s.t.Context(), p.Key)
		must(s.t, err)

		keys = append(keys, key)
	}

	tx, err := s.d.Assemble(o, u, keys, signatures)
	must(s.t, err)

	return tx, nil
}

// include sends a transaction, has it mined and returns its status.
func (s *sender) include(tx chain.Signed) chain.TxStatus {
	s.t.Helper()
	must(s.t, s.d.Broadcast(s.t.Context(), tx))
	must(s.t, s.n.SolanaNode.Mine(5))
	st, err := s.d.Status(s.t.Context(), tx)
	must(s.t, err)

	if st.State != chain.TxIncluded || st.Reverted {
		s.t.Fatalf("the transaction is %+v", st)
	}

	return st
}

func (s *sender) balance(of chain.Address, a chain.Asset) chain.Amount {
	s.t.Helper()
	head, err := s.d.Head(s.t.Context())
	must(s.t, err)
	got, err := s.d.Balances(s.t.Context(), head.Tip, []chain.Holding{{Address: of, AssetID: a.ID}})
	must(s.t, err)

	return got[0]
}

func newAddress(t *testing.T) chain.Address {
	return chain.Address(newKey(t).PublicKey().String())
}

// TestWeb3DecodesOurTransactions verifies the signatures of our transactions with web3.js, decodes their
// instructions with spl-token, and executes them.
func TestWeb3DecodesOurTransactions(t *testing.T) {
	for _, c := range []struct {
		name       string
		program    solanago.PublicKey
		extensions []mintExtension
		transfer   string
		sweep      []string
	}{
		{
			"Token",
			solanago.TokenProgramID,
			nil,
			"TransferChecked",
			[]string{"SetComputeUnitLimit", "TransferChecked", "CloseAccount"},
		},
		{
			"Token2022WithFee",
			solanago.Token2022ProgramID,
			[]mintExtension{withFee(250, 1_000_000)},
			"TransferCheckedWithFee",
			[]string{"SetComputeUnitLimit", "TransferCheckedWithFee", "HarvestWithheldTokensToMint", "CloseAccount"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := startNode(t, c.program, c.extensions...)
			s := newSender(t, n)
			master, deposit := s.party(chain.RoleMaster, 1), s.party(chain.RoleDeposit, 1)
			s.fund(master, sol, 5_000_000)
			s.fund(deposit, 0, 3_000_000)

			to := newAddress(t)

			// What web3.js reads of each transaction is looked at in the end: each run of it takes seconds.
			var (
				signed []chain.Signed
				looks  []func(r decodedTx)
			)

			read := func(tx chain.Signed, look func(r decodedTx)) {
				signed, looks = append(signed, tx), append(looks, look)
			}

			tx := s.sign(chain.Order{
				From: master,
				Outputs: []chain.Output{
					{To: to, AssetID: s.native().ID, Amount: chain.Units(2_000_000)},
					{To: newAddress(t), AssetID: s.native().ID, Amount: chain.Units(3_000_000)},
				},
			})

			read(tx, func(r decodedTx) {
				want := []string{"SetComputeUnitLimit", "Transfer", "Transfer"}
				if !slices.Equal(r.kinds(), want) || r.Instructions[1].To != string(to) ||
					r.Instructions[1].Amount != "2000000" {
					t.Errorf("a payout of coin is %+v", r)
				}
			})

			s.include(tx)

			tx = s.sign(chain.Order{
				From:    master,
				Outputs: []chain.Output{{To: to, AssetID: s.token().ID, Amount: chain.Units(1_000_000)}},
			})
			account, err := s.d.TokenAccount(to, s.token())
			must(t, err)

			read(tx, func(r decodedTx) {
				want := []string{"SetComputeUnitLimit", "CreateIdempotent", c.transfer}
				if !slices.Equal(r.kinds(), want) || r.Instructions[2].To != string(account) {
					t.Errorf("a payout of tokens is %+v, to %s", r, account)
				}
			})

			st := s.include(tx)
			if got := s.balance(to, s.token()); got != chain.Units(1_000_000) {
				t.Errorf("%s tokens arrived of 1000000", got)
			}

			if st.Fee.Less(chain.Units(2_000_000)) {
				t.Errorf("the payout cost %s: the rent of the account that it made is missing", st.Fee)
			}

			steps, err := s.d.PlanSweep(t.Context(), chain.SweepRequest{
				Asset:   s.token(),
				Deposit: deposit,
				Master:  master,
				Amount:  s.balance(deposit.Address, s.token()),
			})
			must(t, err)

			if len(steps) != 1 {
				t.Fatalf("the plan of a release without a fee is %+v", steps)
			}

			tx = s.sign(steps[0].Order)
			read(tx, func(r decodedTx) {
				if !slices.Equal(r.kinds(), c.sweep) {
					t.Fatalf("a sweep of tokens is %+v", r)
				}
				// The authority created the deposit's token account, so it gets the rent.
				closing := r.Instructions[len(r.Instructions)-1]
				if closing.To != n.authority.PublicKey().String() {
					t.Errorf("the rent goes to %s, paid was it by %s", closing.To, n.authority.PublicKey())
				}
			})

			before := s.balance(master.Address, s.token())
			s.include(tx)

			got, planned := s.balance(master.Address, s.token()).Sub(before), steps[0].Order.Outputs[0].Amount
			if got != planned {
				t.Errorf("%s tokens arrived at the master wallet, the plan says %s", got, planned)
			}

			var left struct{ Value any }

			held, err := s.d.TokenAccount(deposit.Address, s.token())
			must(t, err)

			confirmed := map[string]string{"commitment": "confirmed"}
			must(t, n.Call(&left, "getAccountInfo", string(held), confirmed))

			if left.Value != nil {
				t.Errorf("the deposit's token account is still there: %+v", left)
			}

			var jobs []any
			for _, tx := range signed {
				jobs = append(
					jobs,
					map[string]any{"do": "read", "raw": base64.StdEncoding.EncodeToString(tx.Raw)},
				)
			}

			var answers []decodedTx
			runWallet(t, jobs, &answers)

			for i, tx := range signed {
				r := answers[i]
				if !r.Valid || r.Signature != tx.TxHash || r.Payer != string(master.Address) {
					t.Errorf("web3.js reads %+v of transaction %s", r, tx.TxHash)
				}

				looks[i](r)
			}
		})
	}
}

// TestTransfersOfWeb3Payments pays in every form with web3.js and spl-token, and finds the payments by
// block, by history and by hash.
func TestTransfersOfWeb3Payments(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	job := func(what string, more map[string]any) map[string]any {
		more["do"], more["url"], more["secret"] = what, n.URL, n.authority.String()
		return more
	}

	var minted [2]struct{ Mint chain.Address }
	runWallet(t, []any{
		job("mint", map[string]any{"decimals": 6, "program": "token"}),
		job("mint", map[string]any{
			"decimals": 9,
			"program":  "token-2022",
			"fee":      map[string]any{"bps": 300, "most": "7000"},
		}),
	}, &minted)

	plain, taxed := minted[0], minted[1]

	must(t, n.SolanaNode.Mine(6))
	d := n.driver(t, func(c *solana.Config) {
		c.Tokens = []chain.Asset{
			{
				Symbol:    "PLAIN",
				Kind:      chain.Token,
				Contract:  plain.Mint,
				Decimals:  6,
				MinAmount: chain.Units(1),
			},
			{
				Symbol:    "TAXED",
				Kind:      chain.Token,
				Contract:  taxed.Mint,
				Decimals:  9,
				MinAmount: chain.Units(1),
			},
		}
		c.Token2022 = []chain.Address{taxed.Mint}
	})
	must(t, d.Check(t.Context()))

	cases := []struct {
		symbol, form string
		sent, want   uint64
	}{
		{"SOL", "legacy", 5_000_000, 5_000_000},
		{"SOL", "v0", 6_000_000, 6_000_000},
		{"SOL", "table", 7_000_000, 7_000_000},
		{"PLAIN", "legacy", 123_456, 123_456},
		// more than an int64 or a float64 can hold
		{"PLAIN", "table", 18_446_744_073_709_000_000, 18_446_744_073_709_000_000},
		{"TAXED", "v0", 100_001, 97_000},       // 3 %, rounded up
		{"TAXED", "table", 1_000_000, 993_000}, // at most 7,000
	}

	head, err := d.Head(t.Context())
	must(t, err)

	var (
		receivers []chain.Address
		jobs      []any
		paid      []struct{ Signature string }
	)

	for _, c := range cases {
		asset, _ := d.Network().Asset(c.symbol)
		to := newAddress(t)
		receivers = append(receivers, to)

		if asset.Kind == chain.Native {
			jobs = append(jobs, job("pay", map[string]any{
				"to":       to,
				"lamports": chain.Units(c.sent).String(),
				"form":     c.form,
			}))

			continue
		}

		jobs = append(jobs, job("payTokens", map[string]any{
			"to":      to,
			"amount":  chain.Units(c.sent).String(),
			"form":    c.form,
			"mint":    asset.Contract,
			"program": map[bool]string{true: "token-2022", false: "token"}[c.symbol == "TAXED"],
		}))
	}

	runWallet(t, jobs, &paid)
	must(t, n.SolanaNode.Mine(3)) // the tip by block is two slots late
	after, err := d.Head(t.Context())
	must(t, err)

	for i, c := range cases {
		t.Run(c.symbol+"/"+c.form, func(t *testing.T) {
			asset, _ := d.Network().Asset(c.symbol)
			to, paid := receivers[i], paid[i]

			scanned, err := d.Blocks(t.Context(), head.Tip.Height+1, after.Tip.Height)
			must(t, err)
			polled, err := d.TransfersTo(
				t.Context(), []chain.Address{to}, head.Tip.Height+1, after.Tip.Height,
			)
			must(t, err)
			found, err := d.Transaction(t.Context(), paid.Signature)
			must(t, err)

			var all [][]chain.Transfer

			for _, blocks := range [][]chain.Block{scanned, polled, {{Transfers: found.Transfers}}} {
				var here []chain.Transfer

				for _, b := range blocks {
					for _, moved := range b.Transfers {
						if moved.To == to {
							here = append(here, moved)
						}
					}
				}

				all = append(all, here)
			}

			for i, how := range []string{"in its block", "in its history", "by its hash"} {
				if len(all[i]) != 1 || all[i][0].TxHash != paid.Signature || all[i][0].AssetID != asset.ID ||
					all[i][0].Amount != chain.Units(c.want) ||
					all[i][0].Index != all[0][0].Index {
					t.Errorf(
						"%s: %+v, want %d base units of %s in %s",
						how, all[i], c.want, c.symbol, paid.Signature,
					)
				}
			}

			if all[0][0].From != chain.Address(n.authority.PublicKey().String()) {
				t.Errorf("the sender is %q", all[0][0].From)
			}
		})
	}
}

// TestAddressesOfWallets compares derived addresses with what wallets show for the same words, and
// token accounts with spl-token's.
func TestAddressesOfWallets(t *testing.T) {
	// Source: Solana Cookbook, "How to restore a keypair from a mnemonic", BIP-44 wallets: m/44'/501'/n'/0'.
	const words = "neither lonely flavor argue grass remind eye tag avocado spot unusual intact"

	want := []string{
		"5vftMkHL72JaJG6ExQfGAsT2uGVHpRR7oTNUPMs68Y2N", "GcXbfQ5yY3uxCyBNDPBbR5FjumHf89E7YHXuULfGDBBv",
		"7QPgyQwNLqnoSwHEuK8wKy2Y3Ani6EHoZRihTuWkwxbc", "5aE8UprEEWtpVskhxo3f8ETco2kVKiZT9SS3D5Lcg8s2",
		"5n6afo6LZmzH1J4R38ZCaNSwaztLjd48nWwToLQkCHxp", "2Gr1hWnbaqGXMghicSTHncqV7GVLLddNFJDC7YJoso8M",
		"BNMDY3tCyYbayMzBjZm8RW59unpDWcQRfVmWXCJhLb7D", "9CySTpi4iC85gMW6G4BMoYbNBsdyJrfseHoGmViLha63",
		"ApteF7PmUWS8Lzm6tJPkWgrxSFW5LwYGWCUJ2ByAec91", "6frdqXQAgJMyKwmZxkLYbdGjnYTvUceh6LNhkQt2siQp",
	}
	signer, err := hdkey.New(words, "")
	must(t, err)

	const usdc = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v"

	open := func(change func(*solana.Config)) *solana.Driver {
		t.Helper()

		c := solana.Config{
			Network: solana.Local("11111111111111111111111111111111"),
			RPC:     "http://127.0.0.1:1",
			Tokens:  []chain.Asset{{Symbol: "TOK", Contract: usdc, Decimals: 6}},
		}
		change(&c)
		d, err := solana.NewDriver(c)
		must(t, err)

		return d
	}
	plain := open(func(*solana.Config) {})
	newer := open(func(c *solana.Config) { c.Token2022 = []chain.Address{usdc} })

	var keys []string

	for i := range want {
		key, err := signer.PublicKey(
			t.Context(),
			chain.KeyRef{Family: chain.Solana, Livemode: true, Role: chain.RoleDeposit, Index: uint32(i)},
		)
		must(t, err)

		keys = append(keys, hex.EncodeToString(key.Bytes))
		got, err := plain.DeriveAddress(key)
		must(t, err)

		if string(got) != want[i] {
			t.Errorf("address %d is %s, wallets show %s", i, got, want[i])
		}
	}

	var others []struct{ Address, Token, Token2022 string }
	runWallet(t, map[string]any{"do": "addresses", "keys": keys, "mint": usdc}, &others)

	for i, other := range others {
		token, _ := plain.Network().Asset("TOK")
		one, err := plain.TokenAccount(chain.Address(want[i]), token)
		must(t, err)
		two, err := newer.TokenAccount(chain.Address(want[i]), token)
		must(t, err)

		if other.Address != want[i] || other.Token != string(one) || other.Token2022 != string(two) {
			t.Errorf("account %d: spl-token has %+v, we %s and %s", i, other, one, two)
		}
	}
}
