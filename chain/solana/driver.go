package solana

import (
	"context"
	"net/url"
	"slices"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Driver serves one Solana network. It is safe for concurrent use.
type Driver struct {
	config  Config
	network chain.Network
	native  chain.Asset
	mints   map[solanago.PublicKey]mint // enabled tokens
	nodes   *failover.Set[*endpoint]
	slots   *slotMemory
	rests   *restMemory
}

// BlockDriver is a Driver that also reads whole blocks.
type BlockDriver struct{ *Driver }

var _ interface {
	chain.Driver
	chain.AddressScanner
	chain.Finder
	chain.Balancer
	chain.Deriver
	chain.TokenAccounter
	chain.URIBuilder
	chain.FeeEstimator
	chain.Sender
	chain.Sweeper
	chain.Checker
} = (*Driver)(nil)

var _ chain.BlockScanner = (*BlockDriver)(nil)

// Network describes the network, its assets complete with ids. The caller may keep and change it.
func (d *Driver) Network() chain.Network {
	n := d.network
	n.Assets, n.Tiers = slices.Clone(n.Assets), slices.Clone(n.Tiers)

	return n
}

// Check asks every node for its genesis hash and every token for its mint. Another network is
// fault.Stopped with code chain_id_mismatch; a token that is not there, counts differently, belongs
// to another program or can be taken away is fault.Stopped with code token_mismatch or
// token_unsafe; a node without an answer is fault.Unavailable.
func (d *Driver) Check(ctx context.Context) error {
	for _, e := range d.nodes.Nodes {
		if err := d.verify(ctx, e); err != nil {
			return failover.Fault(d.network.Slug, err)
		}

		if err := d.checkMints(ctx, e); err != nil {
			return failover.Fault(d.network.Slug, err)
		}
	}

	return nil
}

// ParseAddress returns an address: 32 bytes in base58. Anything else is fault.Invalid. Base58 has
// one spelling per value.
func (d *Driver) ParseAddress(s string) (chain.Address, error) {
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

// DeriveAddress returns the address of an Ed25519 public key, which is the key in base58. Another
// key is fault.Invalid.
func (d *Driver) DeriveAddress(key chain.PublicKey) (chain.Address, error) {
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

// TokenAccount returns the associated token account of an owner.
func (d *Driver) TokenAccount(owner chain.Address, asset chain.Asset) (chain.Address, error) {
	key, err := parseKey(string(owner))
	if err != nil {
		return "", err
	}

	m, ok := d.mintOf(asset.ID)
	if !ok {
		return "", fault.New(
			fault.Invalid, "asset_unknown", "network %s has no token with id %q",
			d.network.Slug, asset.ID,
		)
	}

	account, err := m.accountOf(key)
	if err != nil {
		return "", err
	}

	return chain.Address(account.String()), nil
}

// mintOf returns the token of an asset id.
func (d *Driver) mintOf(assetID string) (mint, bool) {
	a, ok := d.network.AssetByID(assetID)
	if !ok || a.Kind != chain.Token {
		return mint{}, false
	}

	m, ok := d.mints[solanago.MustPublicKeyFromBase58(string(a.Contract))]

	return m, ok
}

// accountOf returns the associated token account of an owner.
func (m mint) accountOf(owner solanago.PublicKey) (solanago.PublicKey, error) {
	account, _, err := solanago.FindAssociatedTokenAddressWithProgram(owner, m.key, m.program)
	if err != nil {
		return account, fault.Wrap(
			err, fault.Invalid, "address_invalid", "%s has no associated token account for %s",
			owner, m.Symbol,
		)
	}

	return account, nil
}

// PaymentURI returns a Solana Pay transfer request: solana:<to>?amount=<whole units>, with
// spl-token=<mint> for a token. Source: docs.solanapay.com, transfer request.
func (d *Driver) PaymentURI(to chain.Address, asset chain.Asset, amount chain.Amount) string {
	q := "?amount=" + amount.Decimal(asset.Decimals).String()
	if asset.Kind == chain.Token {
		q += "&spl-token=" + url.QueryEscape(string(asset.Contract))
	}

	return "solana:" + string(to) + q
}
