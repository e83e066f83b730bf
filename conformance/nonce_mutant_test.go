package conformance_test

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// noncedDriver is what the drivers of sim.Windows have that the mutants break.
type noncedDriver interface {
	chain.Driver
	chain.AddressScanner
	chain.Agreed
	chain.Finder
	chain.Balancer
	chain.Deriver
	chain.URIBuilder
	chain.FeeEstimator
	chain.Sender
	chain.Sweeper
	chain.Decoder
	chain.DurableNonces
	chain.Checker
}

// faultyNonces is a driver with durable nonces with calls of it replaced.
type faultyNonces struct {
	noncedDriver
	accounts func(chain.Address) []chain.Address
	read     func(context.Context, chain.Address, []chain.Address) ([]chain.NonceAccount, error)
	used     func(context.Context, chain.DurableNonce) (bool, chain.Ref, error)
	build    func(context.Context, chain.Order) (chain.Unsigned, error)
	status   func(context.Context, chain.Signed) (chain.TxStatus, error)
	decode   func([]byte) (chain.Decoded, error)
}

func (f *faultyNonces) NonceAccounts(a chain.Address) []chain.Address { return f.accounts(a) }

func (f *faultyNonces) ReadNonces(
	ctx context.Context,
	owner chain.Address,
	accounts []chain.Address,
) ([]chain.NonceAccount, error) {
	return f.read(ctx, owner, accounts)
}

func (f *faultyNonces) NonceUsed(ctx context.Context, n chain.DurableNonce) (bool, chain.Ref, error) {
	return f.used(ctx, n)
}

func (f *faultyNonces) Build(ctx context.Context, o chain.Order) (chain.Unsigned, error) {
	return f.build(ctx, o)
}

func (f *faultyNonces) Status(ctx context.Context, tx chain.Signed) (chain.TxStatus, error) {
	return f.status(ctx, tx)
}

func (f *faultyNonces) Decode(raw []byte) (chain.Decoded, error) { return f.decode(raw) }

type nonceMutant struct {
	fails  string
	change func(d noncedDriver, w *sim.Windows) chain.Driver
}

// mutateNonces replaces calls of a driver.
func mutateNonces(
	change func(f *faultyNonces, w *sim.Windows),
) func(noncedDriver, *sim.Windows) chain.Driver {
	return func(d noncedDriver, w *sim.Windows) chain.Driver {
		f := &faultyNonces{
			noncedDriver: d,
			accounts:     d.NonceAccounts,
			read:         d.ReadNonces,
			used:         d.NonceUsed,
			build:        d.Build,
			status:       d.Status,
			decode:       d.Decode,
		}
		change(f, w)

		return f
	}
}

// mutateRead changes what ReadNonces answers.
func mutateRead(
	change func(owner chain.Address, read []chain.NonceAccount, tip chain.Ref),
) func(noncedDriver, *sim.Windows) chain.Driver {
	return mutateNonces(func(f *faultyNonces, w *sim.Windows) {
		f.read = func(
			ctx context.Context,
			owner chain.Address,
			accounts []chain.Address,
		) ([]chain.NonceAccount, error) {
			read, err := w.ReadNonces(ctx, owner, accounts)
			if head, failed := w.Head(ctx); err == nil && failed == nil {
				change(owner, read, head.Tip)
			}

			return read, err
		}
	})
}

// mutateUsed changes what NonceUsed answers.
func mutateUsed(
	change func(used bool, at chain.Ref, tip chain.Ref) (bool, chain.Ref),
) func(noncedDriver, *sim.Windows) chain.Driver {
	return mutateNonces(func(f *faultyNonces, w *sim.Windows) {
		f.used = func(ctx context.Context, n chain.DurableNonce) (bool, chain.Ref, error) {
			used, at, err := w.NonceUsed(ctx, n)
			if head, failed := w.Head(ctx); err == nil && failed == nil {
				used, at = change(used, at, head.Tip)
			}

			return used, at, err
		}
	})
}

// mutateNonceOrder changes what Build is asked.
func mutateNonceOrder(
	change func(o *chain.Order, w *sim.Windows),
) func(noncedDriver, *sim.Windows) chain.Driver {
	return mutateNonces(func(f *faultyNonces, w *sim.Windows) {
		f.build = func(ctx context.Context, o chain.Order) (chain.Unsigned, error) {
			change(&o, w)
			return w.Build(ctx, o)
		}
	})
}

// mutateNonceStatus changes what Status answers about a transaction at a nonce.
func mutateNonceStatus(
	change func(tx chain.Signed, st *chain.TxStatus),
) func(noncedDriver, *sim.Windows) chain.Driver {
	return mutateNonces(func(f *faultyNonces, w *sim.Windows) {
		f.status = func(ctx context.Context, tx chain.Signed) (chain.TxStatus, error) {
			st, err := w.Status(ctx, tx)
			if err == nil && tx.DurableNonce != nil {
				change(tx, &st)
			}

			return st, err
		}
	})
}

// nonceMutants are drivers that break a sentence of chain.DurableNonces. They read histories.
var nonceMutants = map[string]nonceMutant{
	"an account is missing": {
		"AccountsAreThoseOfTheAddress",
		mutateNonces(func(f *faultyNonces, w *sim.Windows) {
			f.accounts = func(a chain.Address) []chain.Address { return w.NonceAccounts(a)[1:] }
		}),
	},
	"nonce accounts are read in an order of their own": {
		"ReadAtAFinalBlockInOrder",
		mutateRead(func(_ chain.Address, read []chain.NonceAccount, _ chain.Ref) {
			slices.SortFunc(read, func(a, b chain.NonceAccount) int {
				return slices.Compare([]byte(a.Account), []byte(b.Account))
			})
		}),
	},
	"nonces are read at the tip": {
		"ReadAtAFinalBlockInOrder",
		mutateRead(func(_ chain.Address, read []chain.NonceAccount, tip chain.Ref) {
			for i := range read {
				read[i].Height = tip.Height
			}
		}),
	},
	"every account can be used": {
		"OthersCannotBeUsed",
		mutateRead(func(_ chain.Address, read []chain.NonceAccount, _ chain.Ref) {
			for i := range read {
				read[i].Unusable = ""
			}
		}),
	},
	"a nonce is not used by the bytes": {
		"BytesNeverRunOut",
		mutateNonceOrder(func(o *chain.Order, _ *sim.Windows) { o.DurableNonce = nil }),
	},
	"what is not included runs out": {
		"BytesNeverRunOut",
		mutateNonceStatus(func(_ chain.Signed, st *chain.TxStatus) {
			if st.State == chain.TxUnknown {
				st.State, st.Reason = chain.TxDead, chain.ReasonExpired
			}
		}),
	},
	"no nonce is ever used": {
		"UsedAtAFinalBlock",
		mutateUsed(func(bool, chain.Ref, chain.Ref) (bool, chain.Ref) { return false, chain.Ref{} }),
	},
	"every nonce is used": {
		"UsedAtAFinalBlock",
		mutateUsed(func(_ bool, at, _ chain.Ref) (bool, chain.Ref) { return true, at }),
	},
	"a node that is behind shows a use": {
		"UsedAtAFinalBlock",
		mutateNonces(func(f *faultyNonces, w *sim.Windows) {
			f.used = func(ctx context.Context, n chain.DurableNonce) (bool, chain.Ref, error) {
				n.Height = 0
				return w.NonceUsed(ctx, n)
			}
		}),
	},
	"a use is shown by the tip": {
		"UsedAtAFinalBlock",
		mutateUsed(func(used bool, _, tip chain.Ref) (bool, chain.Ref) { return used, tip }),
	},
	"a nonce is used before that is final": {
		"UsedAtAFinalBlock",
		mutateNonces(func(f *faultyNonces, w *sim.Windows) {
			sent := map[chain.DurableNonce]chain.Signed{}
			f.status = func(ctx context.Context, tx chain.Signed) (chain.TxStatus, error) {
				if tx.DurableNonce != nil {
					sent[*tx.DurableNonce] = tx
				}

				return w.Status(ctx, tx)
			}
			f.used = func(ctx context.Context, n chain.DurableNonce) (bool, chain.Ref, error) {
				st, err := w.Status(ctx, sent[n])
				return st.State == chain.TxIncluded, st.Block, err
			}
		}),
	},
	"a lost transaction is never dead": {
		"OneTransactionOfANonce",
		mutateNonceStatus(func(_ chain.Signed, st *chain.TxStatus) {
			if st.State == chain.TxDead {
				*st = chain.TxStatus{State: chain.TxUnknown}
			}
		}),
	},
	"what lost its nonce ran out": {
		"OneTransactionOfANonce",
		mutateNonceStatus(func(_ chain.Signed, st *chain.TxStatus) {
			if st.State == chain.TxDead {
				st.Reason = chain.ReasonExpired
			}
		}),
	},
	"what waits is dead": {
		"ForkGivesTheNonceBack",
		mutateNonceStatus(func(_ chain.Signed, st *chain.TxStatus) {
			if st.State == chain.TxUnknown {
				st.State, st.Reason = chain.TxDead, chain.ReasonConflict
			}
		}),
	},
	"a replacement is at another nonce": {
		"ReplacementKeepsTheNonce",
		mutateNonceOrder(func(o *chain.Order, w *sim.Windows) {
			if o.Replaces != nil {
				other := *o.DurableNonce
				other.Account = w.NonceAccounts(o.From.Address)[1]
				o.DurableNonce = &other
			}
		}),
	},
	"a replacement costs the same": {
		"ReplacementKeepsTheNonce",
		mutateNonceOrder(func(o *chain.Order, _ *sim.Windows) { o.Replaces = nil }),
	},
	"bytes do not show their nonce": {
		"BytesNameTheNonce",
		mutateNonces(func(f *faultyNonces, w *sim.Windows) {
			f.decode = func(raw []byte) (chain.Decoded, error) {
				decoded, err := w.Decode(raw)
				decoded.Spends = nil

				return decoded, err
			}
		}),
	},
}
