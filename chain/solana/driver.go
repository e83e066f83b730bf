// Package solana implements the driver for Solana: SOL, SPL Token and Token-2022.
//
// The driver calls full nodes over JSON-RPC. It finds payments in the signature histories of addresses
// (chain.AddressScanner), which every provider serves. With Config.WholeBlocks it also reads whole blocks
// (chain.BlockScanner), for a node of one's own. It builds, assembles and broadcasts transactions through
// chain.Sender, and plans sweeps through chain.Sweeper.
//
// Heights are block heights, as getBlockHeight counts them. A slot without a block has no height, so
// blocks are linked without gaps, and Signed.ValidToHeight is the network's last valid block height.
// The tip is the newest block of commitment "confirmed", which is also the safe block, or of "finalized" at nodes that
// know no other. The final block is the newest of commitment "finalized".
//
// Transfers are computed from a transaction's balances before and after, never from its instructions.
// So a transfer fee is not counted, and a payment by a program is. Tokens belong to the owner's
// associated token account and are reported with the owner's address. Any other token account is
// reported with its own address and never credited.
//
// No RPC shows what a block's hash commits to, so blocks cannot be verified against a root; those of
// chain.Block.Unverified are none. They are cross-checked: heights, slots and parents must link, no
// transaction may be there twice, and none may leave more lamports than it found. Histories must explain the
// balances of their accounts. A node that fails a check is passed over. Where two are
// configured, two nodes must agree on a hash and on what a block holds before payments in it confirm (AgreedBlock), and
// on the outcome and the expiry of a transaction (Status).
//
// Blocks and histories say who signed. Transactions are read from the accounts and balances that the node names,
// which have one form for every version. One that the node cannot show is in chain.Block.Unread.
//
// It is one package because reading, sending and planning share one pool of nodes, one pace of requests and one
// wire format, and a host imports one driver.
package solana

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// driver serves one Solana network. It is safe for concurrent use.
type driver struct {
	config  Config
	network chain.Network
	native  chain.Asset
	mints   map[solanago.PublicKey]mint // of the enabled tokens
	nodes   *failover.Set[*endpoint]
	slots   *slotCache
	seen    *seenAccounts
	head    atomic.Pointer[blockHeader] // newest block that Head returned

	// doubted are the hashes of transactions with durable nonces that a node refused; noncesOver is set once the
	// network was seen to take none.
	doubted    sync.Map
	noncesOver atomic.Bool
}

// blockDriver is a driver that also reads whole blocks.
type blockDriver struct{ *driver }

var _ interface {
	chain.Driver
	chain.AddressScanner
	chain.AddressPoller
	chain.ParentReader
	chain.Agreed
	chain.Finder
	chain.Balancer
	chain.Deriver
	chain.TokenAccounter
	chain.RequestURIBuilder
	chain.FeeEstimator
	chain.Sender
	chain.Sweeper
	chain.Checker
} = (*driver)(nil)

var _ interface {
	chain.BlockScanner
	chain.Agreed
	chain.Sender
} = (*blockDriver)(nil)

// Network returns the network's description, with the ids of its assets. The caller may change it.
func (d *driver) Network() chain.Network {
	n := d.network
	n.Assets, n.Tiers = slices.Clone(n.Assets), slices.Clone(n.Tiers)

	return n
}

// Check compares every node's genesis hash and every token's mint with the configuration. Errors:
//   - fault.Stopped, code chain_id_mismatch: a node serves another network;
//   - fault.Stopped, code token_mismatch: a mint is missing, has other decimals or another program;
//   - fault.Stopped, code token_unsafe: a mint's extension makes it unusable for payments;
//   - fault.Unavailable: a node does not answer.
func (d *driver) Check(ctx context.Context) error {
	for _, e := range d.nodes.Nodes {
		if err := d.verify(ctx, e); err != nil {
			return failover.Fault(d.network.Slug, err)
		}

		if err := d.checkMints(ctx, e, slices.Collect(maps.Keys(d.mints))); err != nil {
			return failover.Fault(d.network.Slug, err)
		}
	}

	return nil
}

// ParseAddress returns an address: 32 bytes in base58, which has one spelling per value. Anything else
// is fault.Invalid.
func (d *driver) ParseAddress(s string) (chain.Address, error) {
	key, err := parseKey(s)
	if err != nil {
		return "", err
	}

	return chain.Address(key.String()), nil
}

func parseKey(s string) (solanago.PublicKey, error) {
	if len(s) >= 32 && len(s) <= 44 {
		if key, err := solanago.PublicKeyFromBase58(s); err == nil && key.String() == s {
			return key, nil
		}
	}

	if len(s) > 64 {
		s = s[:64] + "…"
	}

	return solanago.PublicKey{}, fault.New(
		fault.Invalid, "address_invalid",
		"%q is not a Solana address: write the 32 to 44 base58 characters of a public key",
		s,
	)
}

// DeriveAddress returns the address of an Ed25519 public key: the key in base58. Another key is
// fault.Invalid.
func (d *driver) DeriveAddress(key chain.PublicKey) (chain.Address, error) {
	if key.Curve != chain.Ed25519 || len(key.Bytes) != solanago.PublicKeyLength ||
		!solanago.IsOnCurve(key.Bytes) {
		return "", fault.New(
			fault.Invalid, "key_invalid",
			"a Solana address needs an Ed25519 public key of 32 bytes, not %d bytes of %s",
			len(key.Bytes), key.Curve,
		)
	}

	return chain.Address(solanago.PublicKeyFromBytes(key.Bytes).String()), nil
}

// TokenAccount returns the associated token account of an owner. A bad address or an unknown token is
// fault.Invalid.
func (d *driver) TokenAccount(owner chain.Address, asset chain.Asset) (chain.Address, error) {
	key, err := parseKey(string(owner))
	if err != nil {
		return "", err
	}

	m, ok := d.mintOf(asset.ID)
	if !ok {
		return "", fault.New(
			fault.Invalid, "asset_not_enabled", "network %s has no token with id %q",
			d.network.Slug, asset.ID,
		)
	}

	account, err := m.accountOf(key)
	if err != nil {
		return "", err
	}

	return chain.Address(account.String()), nil
}

func (d *driver) unknownAsset(assetID string) error {
	return fault.New(
		fault.Invalid, "asset_not_enabled", "network %s has no asset with id %q",
		d.network.Slug, assetID,
	)
}
