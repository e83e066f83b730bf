package systemtest

import (
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/seed-8ee7f392/payments/chain"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv/contracts"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/settlement"
)

// create deploys a contract without arguments.
func (m *mover) create(contract contracts.Contract) common.Address {
	m.t.Helper()
	return m.call(nil, nil, common.FromHex(contract.Bytecode)).ContractAddress
}

// invoke makes a block with a call of a contract's method by the development account.
func (m *mover) invoke(
	contract contracts.Contract,
	at common.Address,
	value chain.Amount,
	method string,
	args ...any,
) *types.Receipt {
	m.t.Helper()

	parsed, err := abi.JSON(strings.NewReader(contract.ABI))
	m.must(err)
	data, err := parsed.Pack(method, args...)
	m.must(err)

	return m.call(&at, value.Big(), data)
}

// transfersIn returns the transfers in the block of a receipt, which must verify.
func (m *mover) transfersIn(receipt *types.Receipt) []chain.Transfer {
	m.t.Helper()

	height := receipt.BlockNumber.Uint64()
	blocks, err := m.Driver.(chain.BlockScanner).Blocks(m.t.Context(), height, height)
	m.must(err)

	if blocks[0].Unverified != "" {
		m.t.Errorf("%s: the block is unverified: %s", m.rules, blocks[0].Unverified)
	}

	return blocks[0].Transfers
}

// Under Amsterdam's rules a block shows what contracts pay (EIP-7708), with or without coin of the transaction itself;
// under today's it shows the transaction's own.
func TestCoinOfContractsUnderEveryRule(t *testing.T) {
	for rules, option := range rulesOfGas {
		t.Run(rules, func(t *testing.T) {
			m := newMover(t, rules, option)
			forwarder, payer := m.create(contracts.Forwarder), m.create(contracts.StatePayer)
			one, other := stranger(1), stranger(2)

			moved := func(index uint32, from, to chain.Address, amount uint64) chain.Transfer {
				return chain.Transfer{
					Index:   index,
					From:    from,
					To:      to,
					AssetID: m.native.ID,
					Amount:  chain.Units(amount),
				}
			}
			of := func(contract common.Address) chain.Address { return chain.Address(contract.Hex()) }

			sender := of(common.HexToAddress(string(m.payer())))
			receipts := []*types.Receipt{
				m.invoke(
					contracts.Forwarder, forwarder, chain.Units(12), "forwardMany",
					[]common.Address{common.HexToAddress(string(one)), common.HexToAddress(string(other))},
					[]*big.Int{big.NewInt(5), big.NewInt(7)},
				),
				m.call(&payer, big.NewInt(20), nil),
				m.invoke(
					contracts.StatePayer,
					payer,
					chain.Amount{},
					"pay",
					common.Address{},
					common.HexToAddress(string(one)),
					common.HexToAddress(string(other)),
					big.NewInt(9),
				),
			}
			want := [][]chain.Transfer{
				{
					moved(
						0,
						sender,
						of(forwarder),
						12,
					),
					moved(2, of(forwarder), one, 5),
					moved(3, of(forwarder), other, 7),
				},
				{moved(0, sender, of(payer), 20)},
				{moved(1, of(payer), one, 9)},
			}

			for i, receipt := range receipts {
				for k := range want[i] {
					want[i][k].TxHash = receipt.TxHash.Hex()
				}

				if rules == "osaka" {
					want[i] = slices.DeleteFunc(want[i], func(m chain.Transfer) bool { return m.Index > 0 })
				}

				found, err := m.Driver.(chain.Finder).Transaction(t.Context(), receipt.TxHash.Hex())
				m.must(err)

				for _, got := range [][]chain.Transfer{m.transfersIn(receipt), found.Transfers} {
					if !slices.Equal(got, want[i]) {
						t.Errorf("%s: transaction %d transfers\n%+v, want\n%+v", rules, i, got, want[i])
					}
				}
			}
		})
	}
}

// A contract pays a deposit address before and after a network passes to Amsterdam's rules: the balance shows it
// before, its block after. Both are released, and the audit is clean.
func TestContractPaysAcrossTheFork(t *testing.T) {
	f := newForked(t, uint64(time.Now().Add(24*time.Hour).Unix()))
	forwarder := f.create(contracts.Forwarder)

	d, err := f.Engine.Invoices.CreateDeposit(
		t.Context(), invoice.DepositParams{Owner: f.Owner, Network: f.Network},
	)
	f.must(err)

	to := common.HexToAddress(string(d.Address))
	payments := func() []invoice.Payment {
		all, _, err := f.Engine.Invoices.ListPayments(t.Context(), invoice.PaymentFilter{
			Owner: f.Owner, DepositAddressID: d.ID, Limit: 100,
		})
		f.must(err)

		return all
	}
	confirmed := func(n int) func() bool {
		return func() bool {
			all := payments()

			return len(all) == n && !slices.ContainsFunc(all, func(p invoice.Payment) bool {
				return p.Status != invoice.Confirmed
			})
		}
	}

	f.invoke(contracts.Forwarder, forwarder, chain.Pow10(17), "forward", to)
	f.Until("the balance is confirmed", 1, func() bool {
		_, err := internal.Of(f.Engine).Ingester.CheckBalances(t.Context(), f.Network)
		f.must(err)

		return confirmed(1)()
	})
	f.must(f.backend.AdjustTime(36 * time.Hour))
	f.backend.Commit()

	receipt := f.invoke(contracts.Forwarder, forwarder, chain.Pow10(17), "forward", to)
	f.Until("the coin that logs is confirmed", 1, confirmed(2))

	for _, p := range payments() {
		switch {
		case p.TxHash == "" && p.DetectedBy == invoice.ByBalance:
		case p.TxHash == receipt.TxHash.Hex() && p.TxIndex == 2 && p.DetectedBy == invoice.ByPoll &&
			p.FromAddress == chain.Address(forwarder.Hex()):
		default:
			t.Errorf("the payment %+v", p)
		}
	}

	for _, s := range f.settlements() {
		f.must(f.Engine.Settlements.ReleaseNow(t.Context(), f.Owner, s.ID))
	}

	f.Until("both are released", 1, func() bool {
		return !slices.ContainsFunc(f.settlements(), func(s settlement.Settlement) bool {
			return s.Status != settlement.Released
		})
	})

	if left := f.mover.balance(d.Address); !left.IsZero() {
		t.Errorf("%s wei are left", left)
	}

	f.Clean()
}
