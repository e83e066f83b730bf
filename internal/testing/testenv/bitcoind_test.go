//go:build unix

package testenv

import (
	"errors"
	"net"
	"testing"
)

func TestBitcoindAnswersOnRegtest(t *testing.T) {
	n := Bitcoind(t, BitcoindOptions{})

	var info struct {
		Chain  string
		Blocks int
	}
	if err := n.Call(
		t.Context(), &info, "getblockchaininfo",
	); err != nil || info.Chain != "regtest" ||
		info.Blocks != 0 {
		t.Fatalf("%+v, %v", info, err)
	}

	var version struct{ Version int }
	if err := n.Call(t.Context(), &version, "getnetworkinfo"); err != nil || version.Version < 290000 {
		t.Errorf("version %+v, %v; the tests are written for 29", version, err)
	}

	err := n.Call(t.Context(), nil, "getblockhash", 7)
	if refused, ok := errors.AsType[*BitcoinError](err); !ok || refused.Code != -8 {
		t.Errorf("a block above the tip: %v", err)
	}
}

func TestBitcoindKilled(t *testing.T) {
	n := Bitcoind(t, BitcoindOptions{NoTxIndex: true})
	n.Kill()

	if conn, err := net.Dial("tcp", n.Addr); err == nil {
		conn.Close()
		t.Error("something listens after Kill")
	}
}
