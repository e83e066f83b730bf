package systemtest

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/conformance"
)

// moverControls are a mover's as the driver suite uses them. The development account is the payer of all payments.
type moverControls struct{ *mover }

// NewAddress returns an address that nobody has the key of.
func (moverControls) NewAddress(context.Context) (chain.Address, error) {
	var address common.Address

	_, err := rand.Read(address[:])

	return chain.Address(address.Hex()), err
}

// Fund gives an address coin or tokens.
func (m moverControls) Fund(
	_ context.Context,
	to chain.Address,
	asset chain.Asset,
	amount chain.Amount,
) error {
	m.fund(to, asset, amount)
	return nil
}

// Pay puts a payment into the pool.
func (m moverControls) Pay(
	_ context.Context,
	to chain.Address,
	asset chain.Asset,
	amount chain.Amount,
) (string, error) {
	return m.post(m.paying(to, asset, amount, "transfer")).Hex(), nil
}

// PayZero pays nothing.
func (m moverControls) PayZero(ctx context.Context, to chain.Address, asset chain.Asset) (string, error) {
	return m.Pay(ctx, to, asset, chain.Amount{})
}

// Mine makes blocks.
func (m moverControls) Mine(_ context.Context, n int) error {
	for range n {
		m.backend.Commit()
	}

	return nil
}

// Settle has nothing to wait for.
func (moverControls) Settle(context.Context) error { return nil }

// The driver suite passes on go-ethereum's node, under today's rules and under Amsterdam's.
func TestDriverUnderEveryRuleOfGas(t *testing.T) {
	for rules, option := range rulesOfGas {
		t.Run(rules, func(t *testing.T) {
			m := newMover(t, rules, option)
			m.fund(m.payer(), m.token, chain.Pow10(18))

			driver := func(t *testing.T, change func(*evm.Config)) chain.Driver {
				t.Helper()

				c := evm.Config{
					Network:   evm.Local(simulatedChainID, m.token),
					RPC:       m.url,
					WebSocket: "ws" + strings.TrimPrefix(m.url, "http"),
				}
				change(&c)

				d, err := evm.New(c)
				if err != nil {
					t.Fatal(err)
				}

				return d
			}

			conformance.TestDriver(t, func(t *testing.T) conformance.DriverHarness {
				mnemonic, err := hdkey.NewMnemonic(rand.Reader, 128)
				if err != nil {
					t.Fatal(err)
				}

				signer, err := hdkey.New(mnemonic, "")
				if err != nil {
					t.Fatal(err)
				}

				mine := *m // a subtest of its own has its own end
				mine.t = t

				return conformance.DriverHarness{
					Driver:  driver(t, func(*evm.Config) {}),
					Network: moverControls{&mine},
					Signer:  signer,
					Absent: []string{
						// not of an account network with logs
						"chain.RequestURIBuilder",
						"chain.AddressScanner",
						"chain.TokenAccounter",
						"chain.DurableNonces",
						"chain.Recoverer",
						"chain.StrayLister",
						"chain.FeeChecker",
						"chain.InputPricer",
						"chain.Bumper",
						"chain.Batcher",
						"control.CoinLister",
						"control.CheapPayer",
						// tested on anvil, and not what gas decides
						"control.VariablePayer",
						"control.NodeFaker",
						"control.HeaderUpgrader",
						"control.Pruner",
						"control.Forker",
						"control.Freezer",
						"control.FailingPayer",
					},
					Unreachable: driver(t, func(c *evm.Config) {
						c.RPC, c.WebSocket, c.Attempts = "http://127.0.0.1:1", "ws://127.0.0.1:1", 1
					}),
					Misconfigured: driver(t, func(c *evm.Config) { c.Network.ChainID++ }),
					BadAddresses:  []string{"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1Beaed"},
					Spellings: map[string]chain.Address{
						"0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
					},
					Patience: 30 * time.Second,
				}
			})
		})
	}
}
