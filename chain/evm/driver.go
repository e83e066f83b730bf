package evm

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// driver serves one EVM network. It is safe for concurrent use.
type driver struct {
	network          chain.Network
	native           chain.Asset
	tokens           map[common.Address]chain.Asset
	nodes            *failover.Set[*endpoint]
	l1GasPriceOracle *common.Address
	pool             PoolSource
	traces           bool
	attempts         int
	maxBatch         int
	concurrency      int
	maxGasPrice      chain.Amount // wei per gas
	maxGas           uint64       // of a transaction; 0: as much as a block takes
	shown            shownBlocks

	format *format
	held   sync.Map // names of the checks that hold on this network
}

var _ interface {
	chain.Driver
	chain.TipReader
	chain.BlockScanner
	chain.Agreed
	chain.Mempool
	chain.Finder
	chain.Balancer
	chain.Deriver
	chain.URIBuilder
	chain.FeeEstimator
	chain.Nonces
	chain.Sender
	chain.FitChecker
	chain.GasReader
	chain.Sweeper
	chain.Checker
} = (*driver)(nil)

// Network returns the network and its assets with their ids. The caller may change the result.
func (d *driver) Network() chain.Network {
	n := d.network
	n.Assets, n.Tiers = slices.Clone(n.Assets), slices.Clone(n.Tiers)

	return n
}

// Check asks every node for its chain id and for the decimals of every token. Errors:
//
//   - fault.Stopped (chain_id_mismatch): a node serves another network
//   - fault.Stopped (token_mismatch): a contract is no token or has other decimals
//   - fault.Stopped (base_fee_missing): the network has no base fee (EIP-1559)
//   - fault.Unavailable: a node did not answer
func (d *driver) Check(ctx context.Context) error {
	for _, node := range d.nodes.Nodes {
		if err := d.nodes.Check(ctx, node); err != nil {
			return failover.Fault(d.network.Slug, err)
		}

		if err := d.checkBaseFee(ctx, node); err != nil {
			return failover.Fault(d.network.Slug, err)
		}

		if err := d.checkTokens(ctx, node); err != nil {
			return failover.Fault(d.network.Slug, err)
		}
	}

	return nil
}

// checkBaseFee returns fault.Stopped (base_fee_missing) where the newest block has no base fee: this driver
// offers prices by EIP-1559.
func (d *driver) checkBaseFee(ctx context.Context, node *endpoint) error {
	latest := newCall("eth_getBlockByNumber", "latest", false)
	if err := node.do(ctx, latest); err != nil {
		return err
	}

	var header headerJSON
	if err := latest.decode(node, &header); err != nil {
		return err
	}

	if header.BaseFeePerGas == nil {
		return fault.New(
			fault.Stopped,
			"base_fee_missing",
			"network %s has no base fee (EIP-1559), so nothing can be sent on it: remove it from the configuration",
			d.network.Slug,
		)
	}

	return nil
}

// ParseAddress returns the EIP-55 form of an address: 0x and 40 hex digits, of one case or with a
// correct checksum. Anything else is fault.Invalid (address_invalid).
func (d *driver) ParseAddress(text string) (chain.Address, error) {
	address, err := parseAddress(text)
	if err != nil {
		return "", err
	}

	return canonical(address), nil
}

// parseAddress returns the 20 bytes of an address; see ParseAddress.
func parseAddress(text string) (common.Address, error) {
	var address common.Address

	digits, ok := strings.CutPrefix(text, "0x")
	if !ok || len(digits) != 2*common.AddressLength {
		return address, invalidAddress(text, "write 0x and 40 hexadecimal digits")
	}

	if _, err := hex.Decode(address[:], []byte(digits)); err != nil {
		return address, invalidAddress(text, "write 0x and 40 hexadecimal digits")
	}

	if digits != strings.ToLower(digits) && digits != strings.ToUpper(digits) && address.Hex() != text {
		return address, invalidAddress(text, "its checksum (EIP-55) is wrong: copy it again")
	}

	return address, nil
}

// invalidAddress returns fault.Invalid (address_invalid), with text cut to 64 bytes.
func invalidAddress(text, what string) error {
	if len(text) > 64 {
		text = text[:64] + "…"
	}

	return fault.New(fault.Invalid, "address_invalid", "%q is not an EVM address: %s", text, what)
}

// canonical returns the EIP-55 form.
func canonical(address common.Address) chain.Address { return chain.Address(address.Hex()) }

// DeriveAddress returns the address of a compressed secp256k1 public key: the last 20 bytes of the
// Keccak-256 of the uncompressed point. Another key is fault.Invalid (key_invalid).
func (d *driver) DeriveAddress(key chain.PublicKey) (chain.Address, error) {
	if key.Curve != chain.Secp256k1 {
		return "", fault.New(
			fault.Invalid, "key_invalid", "an EVM address needs a secp256k1 key, not %s",
			key.Curve,
		)
	}

	pub, err := crypto.DecompressPubkey(key.Bytes)
	if err != nil {
		return "", fault.Wrap(
			err, fault.Invalid, "key_invalid", "the public key is not a compressed secp256k1 point",
		)
	}

	return canonical(crypto.PubkeyToAddress(*pub)), nil
}
