package conformance_test

// The suites are tested too: each mutant breaks one sentence of an interface, and the subtest of
// that sentence has to fail. A mutant runs in a process of its own, since a failed subtest fails
// its process.

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/conformance/control"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

const mutantVariable = "CONFORMANCE_MUTANT"

func TestMutantsFail(t *testing.T) {
	if os.Getenv(mutantVariable) != "" {
		t.Fatal("a mutant must not breed")
	}

	for name, m := range driverMutants {
		t.Run(name, func(t *testing.T) { expectFailure(t, name, "TestDriverOfSim/"+m.fails) })
	}

	t.Run("what is unknown ran out", func(t *testing.T) {
		expectFailure(t, "what is unknown is dead", "TestDriverOfExpiringSim/Sender/ExpiredIsDeadAtFinality")
	})

	for name, m := range lightMutants {
		t.Run(name, func(t *testing.T) { expectFailure(t, name, "TestDriverOfLightSim/"+m.fails) })
	}

	for name, m := range notifyMutants {
		t.Run(
			name,
			func(t *testing.T) { expectFailure(t, name, "TestDriverThatIsNotified/HeadNotifier/"+m.fails) },
		)
	}

	for name, m := range tipMutants {
		t.Run(name, func(t *testing.T) { expectFailure(t, name, "TestDriverThatReadsItsTipAlone/"+m.fails) })
	}

	for name, m := range severalMutants {
		t.Run(name, func(t *testing.T) { expectFailure(t, name, "TestDriverOfSeveralSims/"+m.fails) })
	}

	for name, m := range utxoMutants {
		t.Run(name, func(t *testing.T) { expectFailure(t, name, "TestDriverOfUTXO/"+m.fails) })
	}

	for name, m := range nonceMutants {
		t.Run(name, func(t *testing.T) {
			expectFailure(t, name, "TestDriverOfWindows/ByAddressWithNonces/DurableNonces/"+m.fails)
		})
	}

	for name, m := range signerMutants {
		t.Run(name, func(t *testing.T) { expectFailure(t, name, "TestSignerOfSim/"+m.fails) })
	}

	for name, m := range allStoreMutants() {
		t.Run(name, func(t *testing.T) { expectFailure(t, name, "TestStoreOfMemory/"+m.fails) })
	}

	for name, m := range allBackendMutants() {
		t.Run(name, func(t *testing.T) { expectFailure(t, name, "TestBackendOfModel/"+m.fails) })
	}
}

func expectFailure(t *testing.T, mutant, subtest string) {
	t.Parallel()

	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}

	pattern := "^" + strings.ReplaceAll(subtest, "/", "$/^") + "$"
	cmd := exec.CommandContext(
		t.Context(), binary, "-test.run="+pattern, "-test.v", "-test.count=1", "-test.timeout=60s",
	)

	cmd.Env = append(os.Environ(), mutantVariable+"="+mutant)

	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--- FAIL: "+subtest) {
		t.Errorf("%s passes a driver that breaks its sentence (%v):\n%s", subtest, err, out)
	}

	if strings.Contains(string(out), "panic:") {
		t.Errorf("%s panics instead of failing:\n%s", subtest, out)
	}
}

type driverMutant struct {
	fails  string
	change func(h *conformance.DriverHarness, c *sim.Chain)
}

// faulty is the simulated driver with calls of it replaced.
type faulty struct {
	*sim.Chain
	head        func(context.Context) (chain.Head, error)
	refAt       func(context.Context, uint64) (chain.Ref, error)
	parse       func(string) (chain.Address, error)
	blocks      func(context.Context, uint64, uint64) ([]chain.Block, error)
	pool        func(context.Context) ([]chain.PoolTx, error)
	transaction func(context.Context, string) (chain.FoundTx, error)
	balances    func(context.Context, chain.Ref, []chain.Holding) ([]chain.Amount, error)
	derive      func(chain.PublicKey) (chain.Address, error)
	estimate    func(context.Context, chain.Order) (chain.Amount, error)
	nonce       func(context.Context, chain.Address) (uint64, error)
	build       func(context.Context, chain.Order) (chain.Unsigned, error)
	assemble    func(chain.Order, chain.Unsigned, []chain.PublicKey, [][]byte) (chain.Signed, error)
	broadcast   func(context.Context, chain.Signed) error
	status      func(context.Context, chain.Signed) (chain.TxStatus, error)
	plan        func(context.Context, chain.SweepRequest) ([]chain.SweepStep, error)
	decode      func([]byte) (chain.Decoded, error)
}

func (f *faulty) Head(ctx context.Context) (chain.Head, error) { return f.head(ctx) }
func (f *faulty) RefAt(ctx context.Context, height uint64) (chain.Ref, error) {
	return f.refAt(ctx, height)
}
func (f *faulty) ParseAddress(s string) (chain.Address, error) { return f.parse(s) }
func (f *faulty) Blocks(ctx context.Context, from, to uint64) ([]chain.Block, error) {
	return f.blocks(ctx, from, to)
}
func (f *faulty) Pool(ctx context.Context) ([]chain.PoolTx, error) { return f.pool(ctx) }
func (f *faulty) Transaction(ctx context.Context, hash string) (chain.FoundTx, error) {
	return f.transaction(ctx, hash)
}

func (f *faulty) Balances(ctx context.Context, at chain.Ref, h []chain.Holding) ([]chain.Amount, error) {
	return f.balances(ctx, at, h)
}
func (f *faulty) DeriveAddress(k chain.PublicKey) (chain.Address, error) { return f.derive(k) }
func (f *faulty) EstimateFee(ctx context.Context, o chain.Order) (chain.Amount, error) {
	return f.estimate(ctx, o)
}

func (f *faulty) Nonce(ctx context.Context, a chain.Address) (uint64, error) { return f.nonce(ctx, a) }

func (f *faulty) Build(ctx context.Context, o chain.Order) (chain.Unsigned, error) {
	return f.build(ctx, o)
}

func (f *faulty) Assemble(
	o chain.Order,
	u chain.Unsigned,
	k []chain.PublicKey,
	s [][]byte,
) (chain.Signed, error) {
	return f.assemble(o, u, k, s)
}

func (f *faulty) Broadcast(ctx context.Context, tx chain.Signed) error { return f.broadcast(ctx, tx) }

func (f *faulty) Status(ctx context.Context, tx chain.Signed) (chain.TxStatus, error) {
	return f.status(ctx, tx)
}

func (f *faulty) PlanSweep(ctx context.Context, r chain.SweepRequest) ([]chain.SweepStep, error) {
	return f.plan(ctx, r)
}

func (f *faulty) Decode(raw []byte) (chain.Decoded, error) { return f.decode(raw) }

// mutate replaces calls of the driver.
func mutate(change func(f *faulty, c *sim.Chain)) func(*conformance.DriverHarness, *sim.Chain) {
	return func(h *conformance.DriverHarness, c *sim.Chain) {
		f := &faulty{
			Chain:       c,
			head:        c.Head,
			refAt:       c.RefAt,
			parse:       c.ParseAddress,
			blocks:      c.Blocks,
			pool:        c.Pool,
			transaction: c.Transaction,
			balances:    c.Balances,
			derive:      c.DeriveAddress,
			estimate:    c.EstimateFee,
			nonce:       c.Nonce,
			build:       c.Build,
			assemble:    c.Assemble,
			broadcast:   c.Broadcast,
			status:      c.Status,
			plan:        c.PlanSweep,
			decode:      c.Decode,
		}
		change(f, c)
		h.Driver = f
	}
}

// mutateStatus changes what Status answers.
func mutateStatus(
	change func(tx chain.Signed, st *chain.TxStatus),
) func(*conformance.DriverHarness, *sim.Chain) {
	return mutate(func(f *faulty, c *sim.Chain) {
		f.status = func(ctx context.Context, tx chain.Signed) (chain.TxStatus, error) {
			st, err := c.Status(ctx, tx)
			change(tx, &st)

			return st, err
		}
	})
}

// mutateBlocks changes what Blocks answers.
func mutateBlocks(
	change func(blocks []chain.Block) []chain.Block,
) func(*conformance.DriverHarness, *sim.Chain) {
	return mutate(func(f *faulty, c *sim.Chain) {
		f.blocks = func(ctx context.Context, from, to uint64) ([]chain.Block, error) {
			blocks, err := c.Blocks(ctx, from, to)
			return change(blocks), err
		}
	})
}

// mutateRelease changes what PlanSweep is asked.
func mutateRelease(
	change func(c *sim.Chain, r *chain.SweepRequest),
) func(*conformance.DriverHarness, *sim.Chain) {
	return mutate(func(f *faulty, c *sim.Chain) {
		f.plan = func(ctx context.Context, r chain.SweepRequest) ([]chain.SweepStep, error) {
			change(c, &r)
			return c.PlanSweep(ctx, r)
		}
	})
}

// mutateOrder changes what Build is asked.
func mutateOrder(change func(o *chain.Order)) func(*conformance.DriverHarness, *sim.Chain) {
	return mutate(func(f *faulty, c *sim.Chain) {
		f.build = func(ctx context.Context, o chain.Order) (chain.Unsigned, error) {
			o.Outputs = slices.Clone(o.Outputs)
			change(&o)

			return c.Build(ctx, o)
		}
	})
}

// failingReporter is a network whose driver reports failed payments; see the mutant that uses it.
type failingReporter struct {
	oneNode
	failed map[string]chain.Transfer
}

func (r failingReporter) PayFailing(
	ctx context.Context,
	to chain.Address,
	a chain.Asset,
	amount chain.Amount,
) (string, error) {
	hash, err := r.oneNode.PayFailing(ctx, to, a, amount)
	r.failed[hash] = chain.Transfer{TxHash: hash, To: to, AssetID: a.ID, Amount: amount}

	return hash, err
}

var driverMutants = map[string]driverMutant{
	"a capability is missing without a word": {
		"Capabilities",
		func(h *conformance.DriverHarness, c *sim.Chain) {
			h.Driver = struct {
				chain.Driver
				chain.BlockScanner
				chain.Balancer
				chain.Deriver
			}{c, c, c, c}
		},
	},
	"a capability is declared absent and there": {
		"Capabilities",
		func(h *conformance.DriverHarness, _ *sim.Chain) {
			h.Absent = append(h.Absent, "chain.Mempool")
		},
	},
	"a control is missing without a word": {
		"Capabilities",
		func(h *conformance.DriverHarness, c *sim.Chain) {
			h.Network = struct{ control.Base }{simControls{c}}
		},
	},
	"the tip is not canonical": {
		"Driver/HeadIsOrderedAndCanonical",
		mutate(func(f *faulty, c *sim.Chain) {
			f.head = func(ctx context.Context) (chain.Head, error) {
				head, err := c.Head(ctx)
				head.Final.Hash = head.Tip.Hash

				return head, err
			}
		}),
	},
	"a height above the tip is the tip": {
		"Driver/RefAtAboveTheTipIsNotFound",
		mutate(func(f *faulty, c *sim.Chain) {
			f.refAt = func(ctx context.Context, height uint64) (chain.Ref, error) {
				if ref, err := c.RefAt(ctx, height); err == nil {
					return ref, nil
				}

				head, err := c.Head(ctx)

				return head.Tip, err
			}
		}),
	},
	"blocks are remembered through a fork": {
		"Driver/RefAtTellsForksApart",
		mutate(func(f *faulty, c *sim.Chain) {
			seen := map[uint64]chain.Ref{}
			f.head = func(ctx context.Context) (chain.Head, error) {
				head, err := c.Head(ctx)
				seen[head.Tip.Height] = head.Tip

				return head, err
			}
			f.refAt = func(ctx context.Context, height uint64) (chain.Ref, error) {
				if ref, ok := seen[height]; ok {
					return ref, nil
				}

				return c.RefAt(ctx, height)
			}
		}),
	},
	"every address is good": {
		"Driver/ParseAddressRefusesWhatIsNone",
		mutate(func(f *faulty, _ *sim.Chain) {
			f.parse = func(s string) (chain.Address, error) { return chain.Address(s), nil }
		}),
	},
	"addresses keep their spelling": {
		"Driver/ParseAddressIsCanonical",
		mutate(func(f *faulty, c *sim.Chain) {
			f.parse = func(s string) (chain.Address, error) {
				_, err := c.ParseAddress(s)
				return chain.Address(s), err
			}
		}),
	},
	"a block is skipped": {
		"BlockScanner/BlocksAreLinkedAndCanonical",
		mutateBlocks(func(b []chain.Block) []chain.Block {
			if len(b) > 2 {
				b = append(b[:1], b[2:]...)
			}

			return b
		}),
	},
	"the index counts through the block": {
		"BlockScanner/IndexSurvivesAFork",
		mutateBlocks(func(b []chain.Block) []chain.Block {
			for _, block := range b {
				for i := range block.Transfers {
					block.Transfers[i].Index += uint32(i)
				}
			}

			return b
		}),
	},
	"the amount is that of another unit": {
		"BlockScanner/PaymentIsFound",
		mutateBlocks(func(b []chain.Block) []chain.Block {
			for _, block := range b {
				for i := range block.Transfers {
					block.Transfers[i].Amount = block.Transfers[i].Amount.Mul(10)
				}
			}

			return b
		}),
	},
	"failed payments are reported": {
		"BlockScanner/FailedPaymentIsLeftOut",
		func(h *conformance.DriverHarness, c *sim.Chain) {
			network := failingReporter{oneNode{simControls{c}}, map[string]chain.Transfer{}}
			h.Network = network
			mutateBlocks(func(b []chain.Block) []chain.Block {
				for _, t := range network.failed {
					if n := len(b); n > 0 {
						b[n-1].Transfers = append(b[n-1].Transfers, t)
					}
				}

				return b
			})(h, c)
		},
	},
	"the pool is empty": {
		"Mempool/WaitingPaymentIsShown",
		mutate(func(f *faulty, _ *sim.Chain) {
			f.pool = func(context.Context) ([]chain.PoolTx, error) { return nil, nil }
		}),
	},
	"what waits uses nothing up": {
		"Mempool/WaitingPaymentIsShown",
		mutate(func(f *faulty, c *sim.Chain) {
			f.pool = func(ctx context.Context) ([]chain.PoolTx, error) {
				txs, err := c.Pool(ctx)
				for i := range txs {
					txs[i].Spent = nil
				}

				return txs, err
			}
		}),
	},
	"blocks use up other nonces": {
		"BlockScanner/UsedNoncesAreReported",
		mutateBlocks(func(blocks []chain.Block) []chain.Block {
			for i := range blocks {
				for k := range blocks[i].Spent {
					blocks[i].Spent[k].Nonce++
				}
			}

			return blocks
		}),
	},
	"an unknown transaction is no error": {
		"Finder/UnknownIsNotFound",
		mutate(func(f *faulty, c *sim.Chain) {
			f.transaction = func(ctx context.Context, hash string) (chain.FoundTx, error) {
				found, _ := c.Transaction(ctx, hash)
				return found, nil
			}
		}),
	},
	"a failed transaction is found as a good one": {
		"Finder/FailedIsSaid",
		mutate(func(f *faulty, c *sim.Chain) {
			f.transaction = func(ctx context.Context, hash string) (chain.FoundTx, error) {
				found, err := c.Transaction(ctx, hash)
				found.Failed = false

				return found, err
			}
		}),
	},
	"balances are those of the tip": {
		"Balancer/BalanceIsThatAfterTheBlock",
		mutate(func(f *faulty, c *sim.Chain) {
			f.balances = func(ctx context.Context, _ chain.Ref, h []chain.Holding) ([]chain.Amount, error) {
				head, err := c.Head(ctx)
				if err != nil {
					return nil, err
				}

				return c.Balances(ctx, head.Tip, h)
			}
		}),
	},
	"balances of unknown blocks are guessed": {
		"Balancer/UnknownBlockIsUnavailable",
		mutate(func(f *faulty, c *sim.Chain) {
			f.balances = func(ctx context.Context, at chain.Ref, h []chain.Holding) ([]chain.Amount, error) {
				if got, err := c.Balances(ctx, at, h); err == nil {
					return got, nil
				}

				return make([]chain.Amount, len(h)), nil
			}
		}),
	},
	"balances come in another order": {
		"Balancer/AnswersAreInTheOrderAsked",
		mutate(func(f *faulty, c *sim.Chain) {
			f.balances = func(ctx context.Context, at chain.Ref, h []chain.Holding) ([]chain.Amount, error) {
				got, err := c.Balances(ctx, at, h)
				slices.Reverse(got)

				return got, err
			}
		}),
	},
	"all keys have one address": {
		"Keys/DeriveAddress",
		mutate(func(f *faulty, c *sim.Chain) {
			f.derive = func(k chain.PublicKey) (chain.Address, error) {
				first, err := sim.NewSigner(1, nil).
					PublicKey(context.Background(), chain.KeyRef{Family: chain.Sim, Role: chain.RoleMaster})
				if err != nil {
					return "", err
				}

				return c.DeriveAddress(first)
			}
		}),
	},
	"the estimate leaves no room": {
		"Sender/EstimateCoversWhatIsTaken",
		mutate(func(f *faulty, c *sim.Chain) {
			f.estimate = func(ctx context.Context, o chain.Order) (chain.Amount, error) {
				fee, err := c.EstimateFee(ctx, o)
				return fee.Share(chain.Units(1), chain.Units(2)), err
			}
		}),
	},
	"waiting transactions count as nonces": {
		"Sender/NonceIsTheOrders",
		mutate(func(f *faulty, c *sim.Chain) {
			f.nonce = func(ctx context.Context, a chain.Address) (uint64, error) {
				n, err := c.Nonce(ctx, a)

				pool, _ := c.Pool(ctx)
				for _, tx := range pool {
					if tx.Transfers[0].From == a {
						n++
					}
				}

				return n, err
			}
		}),
	},
	"the sweep leaves dust": {
		"Sender/SubtractFeeIsExact",
		mutateOrder(func(o *chain.Order) {
			if o.SubtractFee {
				o.Outputs[0].Amount = o.Outputs[0].Amount.Sub(chain.Units(1))
			}
		}),
	},
	"the maximum fee is ignored": {
		"Orders/FeeAboveMaximumIsLimited",
		mutateOrder(func(o *chain.Order) {
			o.MaxFee = chain.Pow10(30)
		}),
	},
	"a replacement pays no more": {
		"Replacement/ReplacementDisplaces",
		mutateOrder(func(o *chain.Order) {
			o.Replaces = nil
		}),
	},
	"signatures are not checked": {
		"Orders/AssembleChecksSignatures",
		mutate(func(f *faulty, c *sim.Chain) {
			good := map[string]chain.Signed{}
			f.assemble = func(o chain.Order, u chain.Unsigned, k []chain.PublicKey, s [][]byte) (chain.Signed, error) {
				tx, err := c.Assemble(o, u, k, s)
				if err == nil {
					good[string(u.Raw)] = tx
				}

				if known, ok := good[string(u.Raw)]; ok && len(s) == 1 && len(s[0]) == 65 {
					return known, nil
				}

				return tx, err
			}
		}),
	},
	"the same bytes are refused": {
		"Sender/SameBytesTwice",
		mutate(func(f *faulty, c *sim.Chain) {
			f.broadcast = func(ctx context.Context, tx chain.Signed) error {
				if st, err := c.Status(ctx, tx); err == nil && st.State == chain.TxIncluded {
					return fmt.Errorf("nonce too low")
				}

				return c.Broadcast(ctx, tx)
			}
		}),
	},
	"every refusal says nothing": {
		"Sender/MalformedBytesAreInvalid",
		mutate(func(f *faulty, c *sim.Chain) {
			f.broadcast = func(ctx context.Context, tx chain.Signed) error {
				if err := c.Broadcast(ctx, tx); err != nil {
					return sim.Unavailable()
				}

				return nil
			}
		}),
	},
	"the fee is the maximum": {
		"Sender/LifeOfATransaction",
		mutateStatus(func(tx chain.Signed, st *chain.TxStatus) {
			if st.State == chain.TxIncluded {
				st.Fee = tx.MaxFee
			}
		}),
	},
	"every block is final": {
		"Sender/LifeOfATransaction",
		mutateStatus(func(_ chain.Signed, st *chain.TxStatus) {
			st.Final = st.State == chain.TxIncluded
		}),
	},
	"the block before is final": {
		"Sender/LifeOfATransaction",
		mutate(func(f *faulty, c *sim.Chain) {
			f.status = func(ctx context.Context, tx chain.Signed) (chain.TxStatus, error) {
				st, err := c.Status(ctx, tx)
				if head, failed := c.Head(ctx); failed == nil && st.State == chain.TxIncluded {
					st.Final = st.Block.Height <= head.Final.Height+1
				}

				return st, err
			}
		}),
	},
	"the status forgets the transfers": {
		"Sender/LifeOfATransaction",
		mutateStatus(func(_ chain.Signed, st *chain.TxStatus) {
			st.Transfers = nil
		}),
	},
	"what is unknown is dead": {
		"Sender/NothingIsKnownBeforeBroadcast",
		mutateStatus(func(_ chain.Signed, st *chain.TxStatus) {
			if st.State == chain.TxUnknown {
				st.State, st.Reason = chain.TxDead, chain.ReasonConflict
			}
		}),
	},
	"a failed execution goes unsaid": {
		"Sender/FailedExecutionIsReverted",
		mutateStatus(func(_ chain.Signed, st *chain.TxStatus) {
			st.Reverted = false
		}),
	},
	"death comes before finality": {
		"Replacement/DeathIsReadAtFinality",
		mutate(func(f *faulty, c *sim.Chain) {
			f.status = func(ctx context.Context, tx chain.Signed) (chain.TxStatus, error) {
				st, err := c.Status(ctx, tx)
				if n, _ := c.Nonce(ctx, tx.From); st.State == chain.TxUnknown && n > tx.Nonce {
					return chain.TxStatus{State: chain.TxDead, Reason: chain.ReasonConflict}, nil
				}

				return st, err
			}
		}),
	},
	"blocks do not say who used up what": {
		"Replacement/DeathIsReadAtFinality",
		mutateBlocks(func(b []chain.Block) []chain.Block {
			for i := range b {
				b[i].Spent = nil
			}

			return b
		}),
	},
	"the last of several outputs is left out": {
		"Batcher/EveryOutputIsPaid",
		mutateOrder(func(o *chain.Order) {
			o.Outputs = o.Outputs[:max(1, len(o.Outputs)-1)]
		}),
	},
	"outputs to one destination are merged": {
		"Batcher/EveryOutputIsPaid",
		mutateOrder(func(o *chain.Order) {
			if n := len(o.Outputs); n > 1 && o.Outputs[n-1].To == o.Outputs[n-2].To {
				o.Outputs[n-2].Amount = o.Outputs[n-2].Amount.Add(o.Outputs[n-1].Amount)
				o.Outputs = o.Outputs[:n-1]
			}
		}),
	},
	"a replacement pays the first destination only": {
		"Batcher/ReplacementPaysTheSame",
		mutateOrder(func(o *chain.Order) {
			if o.Replaces != nil {
				o.Outputs = o.Outputs[:1]
			}
		}),
	},
	"outputs beyond the limit are cut off": {
		"Batcher/MoreThanMaxOutputsIsUnsupported",
		mutateOrder(func(o *chain.Order) {
			o.Outputs = o.Outputs[:min(8, len(o.Outputs))]
		}),
	},
	"what cannot be paid of several is left out": {
		"Batcher/OneBadDestinationRefusesAll",
		mutateOrder(func(o *chain.Order) {
			o.Outputs = slices.DeleteFunc(
				o.Outputs,
				func(out chain.Output) bool { return !strings.HasPrefix(string(out.To), "sim") },
			)
		}),
	},
	"the sweep takes the whole balance": {
		"Sweeper/OtherDepositsStayWhereTheyAre",
		mutateRelease(func(c *sim.Chain, r *chain.SweepRequest) {
			r.Amount, r.Spent = c.Balance(r.Deposit.Address, r.Asset.Symbol), chain.Amount{}
		}),
	},
	"what was spent is forgotten": {
		"Sweeper/NativeReleaseBalances",
		mutateRelease(func(_ *sim.Chain, r *chain.SweepRequest) {
			r.Spent = chain.Amount{}
		}),
	},
	"the residue is forgotten": {
		"Sweeper/ResidueSavesATopUp",
		mutateRelease(func(_ *sim.Chain, r *chain.SweepRequest) {
			r.Residue = chain.Amount{}
		}),
	},
	"done steps are planned again": {
		"Sweeper/ConfirmedStepsAreDone",
		mutateRelease(func(_ *sim.Chain, r *chain.SweepRequest) {
			r.Done = nil
		}),
	},
	"accounts are closed all the same": {
		"Sweeper/AccountsStayOpenWhenAsked",
		mutate(func(f *faulty, c *sim.Chain) {
			f.plan = func(ctx context.Context, r chain.SweepRequest) ([]chain.SweepStep, error) {
				steps, err := c.PlanSweep(ctx, r)
				if len(steps) > 0 {
					steps[len(steps)-1].Order.Close = true
				}

				return steps, err
			}
		}),
	},
	"contexts are ignored": {
		"Calls/EndedContextIsHonoured",
		mutate(func(f *faulty, c *sim.Chain) {
			f.status = func(ctx context.Context, tx chain.Signed) (chain.TxStatus, error) {
				return c.Status(context.WithoutCancel(ctx), tx)
			}
		}),
	},
	"without a node there is a guess": {
		"Calls/NoNodeIsUnavailable",
		func(h *conformance.DriverHarness, _ *sim.Chain) {
			h.Unreachable = sim.New(sim.Config{})
		},
	},
}

type lightMutant struct {
	fails  string
	change func(light) chain.Driver
}

// everybody reports the transfers to all addresses.
type everybody struct{ light }

func (d everybody) TransfersTo(
	ctx context.Context,
	_ []chain.Address,
	from, to uint64,
) ([]chain.Block, error) {
	return d.scanner.Blocks(ctx, from, to)
}

// backwards reports the newest block first.
type backwards struct{ light }

func (d backwards) TransfersTo(
	ctx context.Context,
	a []chain.Address,
	from, to uint64,
) ([]chain.Block, error) {
	blocks, err := d.light.TransfersTo(ctx, a, from, to)
	slices.Reverse(blocks)

	return blocks, err
}

// shared has one token account for everybody.
type shared struct{ light }

func (d shared) TokenAccount(_ chain.Address, asset chain.Asset) (chain.Address, error) {
	return asset.Contract, nil
}

var lightMutants = map[string]lightMutant{
	"everybody's transfers are reported": {
		"AddressScanner/TransfersToTheAddressesAskedFor",
		func(l light) chain.Driver { return everybody{l} },
	},
	"blocks come in another order": {
		"AddressScanner/TransfersToTheAddressesAskedFor",
		func(l light) chain.Driver { return backwards{l} },
	},
	"all owners share a token account": {
		"Keys/TokenAccount",
		func(l light) chain.Driver { return shared{l} },
	},
}
