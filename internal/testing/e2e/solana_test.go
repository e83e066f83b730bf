//go:build unix

package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// solanaPayer is an outsider whose wallet is made of @solana/web3.js and @solana/spl-token.
type solanaPayer struct {
	t    *testing.T
	node *testenv.SolanaNode
	key  solanago.PrivateKey
}

func newSolanaPayer(t *testing.T, node *testenv.SolanaNode) *solanaPayer {
	t.Helper()

	key, err := solanago.NewRandomPrivateKey()
	if err != nil {
		t.Fatal(err)
	}

	p := &solanaPayer{t: t, node: node, key: key}
	p.must(node.Airdrop(key.PublicKey().String(), 100_000_000_000_000))

	return p
}

func (p *solanaPayer) in(t *testing.T) *solanaPayer {
	c := *p
	c.t = t

	return &c
}

func (p *solanaPayer) must(err error) {
	p.t.Helper()

	if err != nil {
		p.t.Fatal(err)
	}
}

// wallet has the wallet do a job and returns what it says.
func (p *solanaPayer) wallet(job map[string]any) map[string]string {
	p.t.Helper()
	job["url"], job["secret"] = p.node.URL, p.key.String()
	input, err := json.Marshal(job)
	p.must(err)

	var answer map[string]string
	p.must(
		json.Unmarshal(
			testenv.SolanaNodeScript(p.t, "internal/testing/testenv/solana/wallet.js", input),
			&answer,
		),
	)

	return answer
}

func (p *solanaPayer) native(to chain.Address, v chain.Amount, form string) string {
	p.t.Helper()
	return p.wallet(map[string]any{"do": "pay", "to": to, "lamports": v.String(), "form": form})["signature"]
}

// solanaToken is a token that the payer can make as much of as it likes.
type solanaToken struct {
	asset   chain.Asset
	program string
}

func (p *solanaPayer) mint(symbol, program string, fee map[string]any) solanaToken {
	p.t.Helper()

	job := map[string]any{"do": "mint", "program": program, "decimals": 6}
	if fee != nil {
		job["fee"] = fee
	}

	mint := chain.Address(p.wallet(job)["mint"])

	return solanaToken{
		program: program,
		asset: chain.Asset{
			Symbol:    symbol,
			Kind:      chain.Token,
			Contract:  mint,
			Decimals:  6,
			MinAmount: chain.Units(10_000),
		},
	}
}

func (p *solanaPayer) tokens(
	tok solanaToken,
	to chain.Address,
	v chain.Amount,
	form string,
) map[string]string {
	p.t.Helper()

	return p.wallet(
		map[string]any{
			"do":      "payTokens",
			"mint":    tok.asset.Contract,
			"program": tok.program,
			"to":      to,
			"amount":  v.String(),
			"form":    form,
		},
	)
}

// balance asks the node, not the driver.
func (p *solanaPayer) balance(of chain.Address) chain.Amount {
	p.t.Helper()

	var answer struct{ Value uint64 }
	p.must(p.node.Call(&answer, "getBalance", string(of), map[string]string{"commitment": "confirmed"}))

	return chain.Units(answer.Value)
}

// tokenBalance reads an owner's associated token account; opened says whether there is one.
func (p *solanaPayer) tokenBalance(tok solanaToken, owner chain.Address) (held chain.Amount, opened bool) {
	p.t.Helper()

	var answer struct {
		Value *struct{ Data [2]string }
	}
	p.must(
		p.node.Call(
			&answer, "getAccountInfo", string(p.accountOf(tok, owner)),
			map[string]string{"commitment": "confirmed", "encoding": "base64"},
		),
	)

	if answer.Value == nil {
		return chain.Amount{}, false
	}

	data, err := base64.StdEncoding.DecodeString(answer.Value.Data[0])
	p.must(err)

	return chain.Units(binary.LittleEndian.Uint64(data[64:72])), true
}

func (p *solanaPayer) accountOf(tok solanaToken, owner chain.Address) chain.Address {
	p.t.Helper()

	program := solanago.TokenProgramID
	if tok.program == "token-2022" {
		program = solanago.Token2022ProgramID
	}

	account, _, err := solanago.FindAssociatedTokenAddressWithProgram(
		solanago.MustPublicKeyFromBase58(
			string(owner),
		),
		solanago.MustPublicKeyFromBase58(string(tok.asset.Contract)),
		program,
	)
	p.must(err)

	return chain.Address(account.String())
}

// gain is by how much a transaction changed the coin of an account.
func (p *solanaPayer) gain(signature, account string) int64 {
	p.t.Helper()

	var tx struct {
		Meta        struct{ PreBalances, PostBalances []int64 }
		Transaction struct {
			Message struct{ AccountKeys []string }
		}
	}
	p.must(
		p.node.Call(
			&tx, "getTransaction", signature,
			map[string]string{"commitment": "confirmed", "encoding": "json"},
		),
	)

	i := slices.Index(tx.Transaction.Message.AccountKeys, account)
	if i < 0 {
		p.t.Fatalf("transaction %s does not name %s", signature, account)
	}

	return tx.Meta.PostBalances[i] - tx.Meta.PreBalances[i]
}

// freshAddress is an address whose key nobody keeps.
func (p *solanaPayer) freshAddress() chain.Address {
	p.t.Helper()

	key, err := solanago.NewRandomPrivateKey()
	p.must(err)

	return chain.Address(key.PublicKey().String())
}

// TestSolana plays the main job on the real virtual machine and compares what the API says with
// what the node holds, to the base unit: with a driver that reads histories and one that reads
// blocks.
func TestSolana(t *testing.T) {
	t.Parallel()

	t.Run("Histories", func(t *testing.T) {
		t.Parallel()
		solanaScenario(t, solana.New)
	})
	t.Run("Blocks", func(t *testing.T) {
		t.Parallel()
		solanaScenario(
			t,
			func(c solana.Config) (payments.ChainDriver, error) {
				c.WholeBlocks = true
				return solana.New(c)
			},
		)
	})
}

func solanaScenario(t *testing.T, open func(solana.Config) (payments.ChainDriver, error)) {
	shop := openSolanaShop(t, open)
	s, p, usdc, taxed := shop.service, shop.p, shop.usdc, shop.taxed
	slug, master, feeTo := shop.slug, shop.master, shop.feeTo

	t.Run("coin, paid in two parts by transactions of two forms", func(t *testing.T) {
		s, p := s.in(t), p.in(t)
		inv := s.order("100", "SOL", slug)
		due, to := amount(t, inv.Options[0].AmountDue), inv.Options[0].Address
		feesBefore, masterBefore := p.balance(feeTo), p.balance(master)
		half := due.Share(chain.Units(1), chain.Units(2))
		p.native(to, half, "v0")
		s.await(inv.ID, "underpaid", func(v invoiceView) bool { return v.Status == "underpaid" })
		p.native(to, due.Sub(half), "table")
		s.await(inv.ID, "paid", func(v invoiceView) bool { return v.Status == "paid" && len(v.Flags) == 0 })

		var gross, net, fee, network chain.Amount
		for _, pay := range s.released(inv.ID, 2) {
			gross, net = gross.Add(
				amount(t, pay.Settlement.Gross),
			), net.Add(
				amount(t, pay.Settlement.NetReleased),
			)
			fee, network = fee.Add(
				amount(t, pay.Settlement.FeePaid),
			), network.Add(
				amount(t, pay.Settlement.NetworkFees),
			)
		}

		if gross != due || gross != net.Add(fee).Add(network) {
			t.Errorf(
				"due %s, gross %s = net %s + fee %s + network fees %s does not balance",
				due, gross, net, fee, network,
			)
		}

		if got := p.balance(master).Sub(masterBefore); got != net {
			t.Errorf("the master wallet got %s, the API says %s", got, net)
		}

		if got := p.balance(feeTo).Sub(feesBefore); got != fee || fee.IsZero() {
			t.Errorf("the fee address got %s, the API says %s", got, fee)
		}

		if left := p.balance(to); !left.IsZero() {
			t.Errorf("%s is left at the deposit address", left)
		}
	})

	for _, tok := range []solanaToken{usdc, taxed} {
		t.Run(
			tok.program+", overpaid",
			func(t *testing.T) { s.in(t).overpaidInTokens(p.in(t), tok, slug, master, feeTo) },
		)
	}

	t.Run("the audit finds no difference", func(t *testing.T) {
		s.auditOf(t, func(audit.Network) bool { return true })
	})

	t.Run("two equal payouts, and a refund", func(t *testing.T) {
		s, p := s.in(t), p.in(t)
		to := p.freshAddress()
		_, key, err := s.engine.Accounts.CreateKey(t.Context(), account.KeyParams{
			AccountID:    s.account.ID,
			Scopes:       account.AllScopes(),
			Destinations: []chain.Destination{{Address: to}},
		})
		p.must(err)
		eventually(t, "the master wallet's balance is known", func() (bool, string) {
			_, b := s.do("GET", "/v1/balances", key, "")
			return bytes.Contains(b, []byte(`"asset":"USDC"`)), string(b)
		})

		body := map[string]string{
			"asset":       "USDC",
			"network":     slug,
			"amount":      "1250000",
			"destination": string(to),
		}
		first, second := s.pay(key, "/v1/payouts", "one", body), s.pay(key, "/v1/payouts", "two", body)

		one, two := s.sent(
			key, "/v1/payouts/"+first, "confirmed",
		), s.sent(
			key, "/v1/payouts/"+second, "confirmed",
		)
		if one == two {
			t.Errorf("two equal payouts are one transaction: %s", one)
		}

		if got, _ := p.tokenBalance(usdc, to); got != chain.Units(2_500_000) {
			t.Errorf("%s arrived of two payouts of 1250000", got)
		}

		inv := s.order("30", "USDC", slug)
		due := amount(t, inv.Options[0].AmountDue)
		p.tokens(usdc, inv.Options[0].Address, due, "legacy")
		s.await(inv.ID, "paid", func(v invoiceView) bool { return v.Status == "paid" })
		refund := s.pay(
			key, "/v1/refunds", "three",
			map[string]string{"invoice_id": inv.ID, "destination": string(to)},
		)
		s.sent(key, "/v1/refunds/"+refund, "succeeded")

		if got, _ := p.tokenBalance(usdc, to); got != due.Add(chain.Units(2_500_000)) {
			t.Errorf("%s at the destination after a refund of %s", got, due)
		}
	})

	t.Run("a fork takes a payment back, and a hint finds it again", func(t *testing.T) {
		s, p := s.in(t), p.in(t)
		inv := s.order("50", "SOL", slug)
		due, to := amount(t, inv.Options[0].AmountDue), inv.Options[0].Address

		p.must(p.node.Hold(true)) // the payment must not get too deep for the fork
		p.native(to, due, "legacy")
		p.must(p.node.Mine(1))
		eventually(t, "the payment is seen", func() (bool, string) {
			list := s.payments(inv.ID)
			return len(list) == 1, fmt.Sprint(list)
		})
		p.must(p.node.Fork(2))
		p.must(p.node.Hold(false))
		eventually(t, "the payment is orphaned", func() (bool, string) {
			list := s.payments(inv.ID)
			return len(list) == 1 && list[0].Status == "orphaned", fmt.Sprintf("%+v", list)
		})

		s.await(inv.ID, "open again", func(v invoiceView) bool { return v.Status == "open" })

		signature := p.native(to, due, "legacy")

		eventually(t, "the hint finds it", func() (bool, string) {
			result, err := s.engine.Invoices.Hint(t.Context(), inv.ID, signature)
			return fmt.Sprint(result) == "found", fmt.Sprint(result, err)
		})
		s.await(inv.ID, "paid", func(v invoiceView) bool { return v.Status == "paid" })
	})
}

// overpaidInTokens has an invoice paid with more tokens than asked for, and released.
func (s *service) overpaidInTokens(
	p *solanaPayer,
	tok solanaToken,
	slug string,
	master, feeTo chain.Address,
) {
	t := s.t
	inv := s.order("40", tok.asset.Symbol, slug)
	due, to := amount(t, inv.Options[0].AmountDue), inv.Options[0].Address
	sent := due.Add(chain.Units(5_000_000))
	tax := func(v chain.Amount) chain.Amount {
		if tok.program == "token" {
			return chain.Amount{}
		}

		return chaindata.Min(
			v.Mul(100).Add(chain.Units(9_999)).Share(chain.Units(1), chain.Units(10_000)),
			chain.Units(1_000_000),
		)
	}
	arrives := sent.Sub(tax(sent))
	feesBefore, masterBefore := p.balance(feeTo), p.balance(master)
	tokensBefore, openedBefore := p.tokenBalance(tok, master)

	paid := p.tokens(tok, to, sent, "table")
	if want := string(p.accountOf(tok, to)); paid["account"] != want || !s.shows(inv.ID, want) {
		t.Errorf("spl-token pays to %s; the option should show the token account %s", paid["account"], want)
	}

	s.await(
		inv.ID, "paid and overpaid",
		func(v invoiceView) bool { return v.Status == "paid" && slices.Contains(v.Flags, "overpaid") },
	)

	set := s.released(inv.ID, 1)[0].Settlement
	if amount(t, set.Gross) != arrives || amount(t, set.NetReleased) != arrives.Sub(tax(arrives)) {
		t.Errorf("%s arrived of %s, gross %s, net released %s", arrives, sent, set.Gross, set.NetReleased)
	}

	if got, _ := p.tokenBalance(tok, master); got.Sub(tokensBefore) != amount(t, set.NetReleased) {
		t.Errorf("the master wallet got %s tokens, the API says %s", got.Sub(tokensBefore), set.NetReleased)
	}

	if left, opened := p.tokenBalance(tok, to); opened {
		t.Errorf("the deposit's token account is still open and holds %s", left)
	}

	size := map[string]int{"token": 165, "token-2022": 182}[tok.program]

	var rent uint64
	p.must(p.node.Call(&rent, "getMinimumBalanceForRentExemption", size))

	if got := p.gain(set.SweepTx, paid["payer"]); got != int64(rent) {
		t.Errorf(
			"the sweep gave the payer %d lamports, who paid %d for the deposit's token account",
			got, rent,
		)
	}

	fee := amount(t, set.FeePaid)
	if got := p.balance(feeTo).Sub(feesBefore); got != fee || fee.IsZero() {
		t.Errorf("the fee address got %s, the API says %s", got, fee)
	}

	if spent, want := masterBefore.Sub(
		p.balance(master),
	), fee.Add(
		amount(t, set.NetworkFees),
	); spent != want {
		t.Errorf(
			"the master wallet spent %s; fee + network fees is %s (its token account existed: %v)",
			spent, want, openedBefore,
		)
	}
}

// shows reports whether the API names an address in an invoice.
func (s *service) shows(id, address string) bool {
	s.t.Helper()
	_, b := s.do("GET", "/v1/invoices/"+id, s.key, "")

	return bytes.Contains(b, []byte(`"token_account":"`+address+`"`))
}

// pay asks for a payout or refund and returns its id.
func (s *service) pay(key, path, idempotency string, body map[string]string) string {
	s.t.Helper()

	var answer struct{ ID string }

	eventually(s.t, path+" is taken", func() (bool, string) {
		text, err := json.Marshal(body)
		if err != nil {
			s.t.Fatal(err)
		}

		req, err := http.NewRequestWithContext(
			s.t.Context(), http.MethodPost, s.base+path, bytes.NewReader(text),
		)
		if err != nil {
			s.t.Fatal(err)
		}

		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", idempotency)

		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			s.t.Fatal(err)
		}
		defer resp.Body.Close()

		var b bytes.Buffer

		_, _ = b.ReadFrom(resp.Body)
		if resp.StatusCode != http.StatusOK {
			idempotency += "+" // a refusal is an answer that is kept
			return false, b.String()
		}

		return json.Unmarshal(b.Bytes(), &answer) == nil && answer.ID != "", b.String()
	})

	return answer.ID
}

// sent waits until a payout or refund has a status and returns its transaction.
func (s *service) sent(key, path, status string) string {
	s.t.Helper()

	var answer struct {
		Status string `json:"status"`
		TxHash string `json:"tx_hash"`
	}

	eventually(s.t, path+" is "+status, func() (bool, string) {
		_, b := s.do("GET", path, key, "")
		return json.Unmarshal(b, &answer) == nil && answer.Status == status, string(b)
	})

	return answer.TxHash
}
