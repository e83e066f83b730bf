package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/internal/testenv"
)

// decoding is a network whose bytes always say the same.
type decoding struct {
	payments.ChainDriver
	says chain.Decoded
}

func (decoding) Network() chain.Network                 { return evm.Local(31337) }
func (d decoding) Decode([]byte) (chain.Decoded, error) { return d.says, nil }

func TestPolicy(t *testing.T) {
	local := evm.Local(31337)
	digest := []byte("what the bytes say is to be signed")

	says := chain.Decoded{
		Outputs: []chain.Output{{AssetID: local.Assets[0].ID, Amount: chain.Units(11)}},
		Digests: [][]byte{digest},
	}
	policy := newPolicy(
		[]payments.ChainDriver{decoding{says: says}}, map[string]chain.Amount{"ETH": chain.Units(10)},
	)

	right, other := chain.Payload{Data: digest}, chain.Payload{Data: []byte("other")}

	for name, c := range map[string]struct {
		network  string
		kind     string
		payloads []chain.Payload
		refusal  string
	}{
		"a sweep above the payouts' limit": {"local", "sweep", []chain.Payload{right}, ""},
		"a payout above the limit":         {"local", "payout", []chain.Payload{right}, "too_large"},
		"another digest":                   {"local", "sweep", []chain.Payload{other}, "digest_differs"},
		"one digest more":                  {"local", "sweep", []chain.Payload{right, right}, "bytes_unreadable"},
		"a network that is not served":     {"base", "sweep", []chain.Payload{right}, "network_unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			err := policy(t.Context(), chain.SignRequest{
				Network:  c.network,
				Payloads: c.payloads,
				Intent:   chain.Intent{Kind: c.kind},
			})

			var refusal *chain.Refusal
			if errors.As(err, &refusal); (refusal == nil) != (c.refusal == "") ||
				refusal != nil && refusal.Reason != c.refusal {
				t.Errorf("the policy answers %v, not %q", err, c.refusal)
			}
		})
	}
}

// TestRemoteSigner checks that keys, signatures and refusals arrive as the signer gave them.
func TestRemoteSigner(t *testing.T) {
	refusal := &chain.Refusal{Reason: "too_large"}

	keys, err := hdkey.New(
		testenv.WellKnownDevMnemonic, "",
		hdkey.WithPolicy(func(_ context.Context, request chain.SignRequest) error {
			if request.Intent.Kind == "payout" {
				return refusal
			}

			return nil
		}),
	)
	if err != nil {
		t.Fatal(err)
	}

	socket := filepath.Join(t.TempDir(), "s")

	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}

	server := &http.Server{Handler: signerHandler(keys)}
	go func() { _ = server.Serve(listener) }()

	defer server.Close()

	remote := newRemoteSigner(socket)
	key := chain.KeyRef{Family: chain.EVM, Role: chain.RoleDeposit, Index: 7}

	got, err := remote.PublicKey(t.Context(), key)
	want, _ := keys.PublicKey(t.Context(), key)

	if err != nil || got.Curve != want.Curve || string(got.Bytes) != string(want.Bytes) {
		t.Errorf("the public key is %v, %v, not %v", got, err, want)
	}

	request := chain.SignRequest{
		Network:  "local",
		Payloads: []chain.Payload{{Key: key, Data: make([]byte, 32)}},
		Intent:   chain.Intent{Kind: "sweep"},
	}

	signed, err := remote.Sign(t.Context(), request)
	if err != nil || len(signed) != 1 || len(signed[0]) != 65 {
		t.Errorf("the signatures are %x, %v", signed, err)
	}

	request.Intent.Kind = "payout"

	var seen *chain.Refusal
	if _, err := remote.Sign(t.Context(), request); !errors.As(err, &seen) || *seen != *refusal {
		t.Errorf("a refused signature is %v", err)
	}
}
