package tron

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/seed-8ee7f392/payments/chain"
)

// publishedAnswer reads one of the answers of real nodes that the TRON documentation prints; the
// file names its source.
func publishedAnswer(t *testing.T, path string, v any) {
	t.Helper()

	text, err := os.ReadFile("../../internal/testing/testenv/tron/published.json")
	if err != nil {
		t.Fatal(err)
	}

	var file struct {
		Answers map[string]json.RawMessage `json:"answers"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}

	if file.Answers[path] == nil {
		t.Fatalf("no answer of %s was published", path)
	}

	if err := json.Unmarshal(file.Answers[path], v); err != nil {
		t.Fatal(err)
	}
}

// What this package reads of answers is what real nodes write.
func TestPublishedAnswersAreRead(t *testing.T) {
	d := testDriver(t)
	node := d.nodes.Nodes[0]

	var block blockJSON
	publishedAnswer(t, "/wallet/getnowblock", &block)

	want := chain.Ref{
		Height: 66987627,
		Hash:   "0000000003fe266bf6b6d392f654dc2e5011601546ed04623d9fcc4e9d439a25",
		Time:   time.UnixMilli(1777445307000).UTC(),
	}
	if ref, err := block.ref(node); err != nil || ref != want || block.Header.Raw.TxRoot == emptyTxRoot {
		t.Errorf("%+v, %v", ref, err)
	}

	var infos []infoJSON
	publishedAnswer(t, "/wallet/gettransactioninfobyblocknum", &infos)

	if len(infos) != 2 || infos[0].failed() || infos[0].Fee != 267_000 || infos[0].BlockNumber != 66987565 {
		t.Errorf("%+v", infos)
	}

	var info infoJSON
	publishedAnswer(t, "/wallet/gettransactioninfobyid", &info)

	if info.failed() || info.Fee != 5_254_500 || info.Receipt.Result != "SUCCESS" || len(info.Logs) != 1 ||
		len(info.Internal) != 1 {
		t.Errorf("%+v", info)
	}

	if a, ok := logAddress(info.Logs[0].Address); !ok ||
		nodeHex(a) != "419ff8fc48fb114ccd5bbdc24a86f0c73082f08825" {
		t.Errorf("the log's address %s", info.Logs[0].Address)
	}

	if a, ok := addressTopic(info.Logs[0].Topics[1]); !ok ||
		nodeHex(a) != "41dd791d6b49e190062d650e6a23c575510d35f2f9" {
		t.Errorf("the log's topic %s", info.Logs[0].Topics[1])
	}
	// a call without coin
	if _, _, _, moved, err := info.Internal[0].transfer(node, info.ID); moved || err != nil {
		t.Errorf("internal transaction %+v moved coin, %v", info.Internal[0], err)
	}

	var call struct {
		Transaction txJSON `json:"transaction"`
	}
	publishedAnswer(t, "/wallet/triggerconstantcontract", &call)

	tx, err := call.Transaction.parse(node)
	if err != nil || tx.tx == nil || tx.tx.kind != triggerContract ||
		nodeHex(tx.tx.to) != "41eca9bc828a3005b9a3b909f2cc5c2a54794de05f" ||
		tx.tx.expiration != 1777447218000 {
		t.Errorf("%+v, %v", tx.tx, err)
	}

	nile, err := newDriver(Config{Network: Nile, Nodes: []Node{{URL: "http://127.0.0.1:1"}}})
	if err != nil {
		t.Fatal(err)
	}

	if usdt, _ := nile.network.Asset("USDT"); string(canonical(tx.tx.to)) != string(usdt.Contract) {
		t.Errorf("Nile's USDT is %s, the documentation's TetherToken %s", usdt.Contract, canonical(tx.tx.to))
	}
}

// realBlocks reads blocks of real networks that were published; the file names its sources.
func realBlocks(t testing.TB) map[string]json.RawMessage {
	t.Helper()

	text, err := os.ReadFile("testdata/blocks.json")
	if err != nil {
		t.Fatal(err)
	}

	var blocks map[string]json.RawMessage
	if err := json.Unmarshal(text, &blocks); err != nil {
		t.Fatal(err)
	}

	return blocks
}

// The checks hold for blocks that java-tron made: a whole one, and one with transactions left out.
func TestRealBlocksAreVerified(t *testing.T) {
	d := testDriver(t)
	node := d.nodes.Nodes[0]

	for name, complete := range map[string]bool{"whole": true, "part": false} {
		var block blockJSON
		if err := json.Unmarshal(realBlocks(t)[name], &block); err != nil {
			t.Fatal(err)
		}

		if _, err := block.ref(node); err != nil {
			t.Errorf("%s: %v", name, err)
		}

		if unverified, err := block.verify(node); unverified != "" || (err == nil) != complete {
			t.Errorf("%s: %q, %v", name, unverified, err)
		}

		tx, err := block.Transactions[0].parse(node)
		if err != nil || len(tx.owners) != 1 || tx.owners[0] != tx.tx.owner || tx.failed || !tx.hasResult {
			t.Errorf("%s: %+v, %v", name, tx, err)
		}

		block.Header.Raw.Version++

		if ref, err := block.ref(node); err == nil {
			t.Errorf("%s: a changed header is taken as %+v", name, ref)
		}
	}
}

// The owner is read of contracts that are not decoded otherwise.
func TestOwnersOfOtherContracts(t *testing.T) {
	owner := address{1, 2, 3}

	for kind, number := range map[contractType]protowire.Number{
		2:  2, // TransferAssetContract: the asset's name is before it
		4:  1, // VoteWitnessContract
		30: 1, // CreateSmartContract
		99: 1, // one to come
	} {
		value := appendMessage(nil, 3-number, []byte("x"))
		value = appendMessage(value, number, prefixedBytes(owner))
		contract := appendMessage(appendInt(nil, 1, int64(kind)), 2, appendMessage(nil, 2, value))

		if got := ownersOf(appendMessage(nil, 11, contract)); !slices.Equal(got, []address{owner}) {
			t.Errorf("contract type %d: %x", kind, got)
		}
	}
}
