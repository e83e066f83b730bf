package evm_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// refusals are what a kind of node answers to what others know, by call: a method, with a tag or "hash" after a space.
type refusals map[string]any

var (
	noMethod  = rpcError{-32601, "the method does not exist/is not available"}
	badParams = rpcError{
		-32602,
		"invalid argument 1: json: cannot unmarshal object into Go value of type string",
	}
	badRequest = rpcError{-32600, "method is not whitelisted"}
	serverSays = rpcError{-32000, "method not supported"}
)

// kinds are how nodes answer that are normal elsewhere, as their sources and documentation have it.
var kinds = map[string]refusals{
	"go-ethereum": {},
	"Bor": {
		"eth_getBlockByNumber safe": rpcError{-32000, "'safe' tag not supported on this chain"},
	},
	"Erigon": {
		"eth_getBlockByNumber safe":      rpcError{-32000, "unknown block"},
		"eth_getBlockByNumber finalized": rpcError{-32000, "unknown block"},
		"eth_getBlockByNumber pending":   nil,
	},
	"CDK-Erigon": {
		"eth_getBlockByNumber safe":    rpcError{-39001, "Unknown block"},
		"eth_getBlockReceipts":         noMethod,
		"eth_getBlockByNumber pending": rpcError{-32000, "pending block is not available"},
	},
	"Nethermind": {
		"eth_getBlockByNumber finalized": nil,
		"eth_getBlockByNumber safe":      nil,
		"eth_getBlockReceipts":           rpcError{-32601, "Method eth_getBlockReceipts is not supported"},
	},
	"Reth": {
		"eth_getBlockByNumber finalized": rpcError{-39001, "unknown block"},
		"eth_getBlockByNumber safe":      rpcError{-39001, "unknown block"},
		"eth_getBlockByNumber pending":   nil,
	},
	"Alchemy-like": {
		"eth_getBlockReceipts": rpcError{
			-32600,
			"Unsupported method: eth_getBlockReceipts on this network",
		},
		"eth_maxPriorityFeePerGas":     rpcError{-32600, "Unsupported method: eth_maxPriorityFeePerGas"},
		"eth_getBlockByNumber pending": badRequest,
	},
	"QuickNode-like": {
		"eth_getBlockReceipts":     rpcError{-32602, "eth_getBlockReceipts needs a plan of another kind"},
		"eth_maxPriorityFeePerGas": rpcError{-32612, "custom error: not on this plan"},
		"eth_getBalance hash":      badParams,
		"eth_call hash":            badParams,
	},
	"public endpoint": {
		"eth_getBlockByNumber safe":    badRequest,
		"eth_getBlockByNumber pending": rpcError{-32601, "the tag pending is not available"},
		"eth_getBlockReceipts":         serverSays,
		"eth_maxPriorityFeePerGas":     serverSays,
		"eth_getBalance hash":          rpcError{-32000, "block hash is not supported"},
		"eth_call hash":                rpcError{-32000, "block hash is not supported"},
	},
	"answers null":      all(nil),
	"outside of a plan": all(badRequest),
}

// all returns the refusals of a node that answers every optional call with the same.
func all(answer any) refusals {
	r := refusals{}
	for _, key := range []string{
		"eth_getBlockByNumber safe", "eth_getBlockByNumber finalized", "eth_getBlockByNumber pending",
		"eth_getBlockReceipts", "eth_maxPriorityFeePerGas", "eth_getBalance hash", "eth_call hash",
		"eth_getBlockTransactionCountByHash", "eth_getLogs", "eth_getRawTransactionByHash", "eth_simulateV1",
		"eth_estimateGas fresh",
	} {
		r[key] = answer
	}

	return r
}

// answer answers as the kind of node does.
func (r refusals) answer(c rpcCall) (any, bool) {
	key := c.Method

	switch {
	case c.Method == "eth_getBlockByNumber":
		key += " " + c.param(0)
	case slices.Contains([]string{"eth_getBalance", "eth_call"}, c.Method) && c.param(1) == "":
		key += " hash"
	case c.Method == "eth_estimateGas" && !bytes.Contains(c.Params[0], []byte(lower(payee))):
		key += " fresh"
	}

	if refusal, refused := r[key]; refused {
		return refusal, true
	}

	switch c.Method {
	case "eth_getBalance":
		return "0x2a", true
	case "eth_call":
		return hexutil.Bytes(append(make([]byte, 31), 42)), true
	case "eth_maxPriorityFeePerGas":
		return "0x1", true
	case "eth_gasPrice":
		return "0x3b9aca01", true
	case "eth_estimateGas":
		return "0x5208", true
	}

	return nil, false
}

// What every kind of node refuses is read another way: blocks of any age, their payments, balances, the pool, prices
// and finality.
func TestEveryKindOfNodeIsRead(t *testing.T) {
	blocks := newFakeNode(200).blocks

	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			readsAll(t, &fakeNode{chainID: fakeChainID, blocks: blocks, answer: kind.answer}, kind)
		})
	}
}

// An error that is null is none: the results beside it are read, and what is refused is refused.
func TestNullErrorsAreNoRefusals(t *testing.T) {
	blocks := newFakeNode(200).blocks

	for _, name := range []string{"answers null", "outside of a plan"} {
		t.Run(name, func(t *testing.T) {
			kind := kinds[name]
			readsAll(t, &fakeNode{
				chainID:    fakeChainID,
				blocks:     blocks,
				answer:     kind.answer,
				nullErrors: true,
			}, kind)
		})
	}
}

// A refusal counts with whatever HTTP status it comes, for its call alone or for all calls of a request.
func TestRefusalsCountWithTheirHTTPStatus(t *testing.T) {
	blocks, kind := newFakeNode(200).blocks, kinds["outside of a plan"]

	for _, status := range []int{200, 400, 403, 404, 405, 500, 501} {
		for _, whole := range []bool{false, true} {
			t.Run(fmt.Sprintf("status %d, for all calls: %t", status, whole), func(t *testing.T) {
				readsAll(t, &fakeNode{
					chainID:      fakeChainID,
					blocks:       blocks,
					answer:       kind.answer,
					refusesWith:  status,
					refusesWhole: whole,
				}, kind)
			})
		}
	}
}

// A status that is of the key, the plan, the rate or a gateway is no answer, whatever the body says.
func TestOtherHTTPStatusesAreNoAnswers(t *testing.T) {
	for status, what := range map[int]string{
		401: "HTTP status 401 (unreachable)",
		402: "HTTP status 402 (unreachable)",
		429: "HTTP status 429 (throttled)",
		502: "HTTP status 502 (unreachable)",
		503: "HTTP status 503 (unreachable)",
		504: "HTTP status 504 (unreachable)",
	} {
		synctest.Test(t, func(t *testing.T) {
			n := newFakeNode(6)
			n.refusesWith, n.answer = status, func(c rpcCall) (any, bool) {
				return badRequest, c.Method == "eth_getBlockReceipts"
			}

			_, err := driverOf(t, n).Blocks(t.Context(), 3, 3)
			wantFault(t, err, fault.Unavailable, "node_unavailable")

			failure, _ := errors.AsType[*failover.Failure](err)
			if got := fmt.Sprint(failure); !strings.Contains(got, what) {
				t.Errorf("status %d: %s", status, got)
			}
		})
	}
}

// readsAll reads all that a driver reads of a kind of node with blocks up to 200.
func readsAll(t *testing.T, n *fakeNode, kind refusals) {
	t.Helper()

	synctest.Test(t, func(t *testing.T) {
		d := driverOf(t, n)

		for range 3 { // what was refused is remembered, and what was named is not forgotten
			readsHead(t, d, kind)
			readsBlocks(t, d)

			if _, err := d.Pool(t.Context()); err != nil {
				t.Errorf("Pool: %v", err)
			}

			for _, order := range []chain.Order{paysNative(d), sendsAll(d), paysToken(d)} {
				if _, err := d.EstimateFee(t.Context(), order); err != nil {
					t.Errorf("EstimateFee: %v", err)
				}
			}
		}
	})
}

func readsHead(t *testing.T, d *evm.Driver, kind refusals) {
	t.Helper()

	head, err := d.Head(t.Context())
	if err != nil || head.Tip.Height != 200 {
		t.Fatalf("Head: %+v, %v", head, err)
	}

	_, noSafe := kind["eth_getBlockByNumber safe"]
	_, noFinal := kind["eth_getBlockByNumber finalized"]

	wantFinal, wantSafe := uint64(196), uint64(198)
	if noFinal {
		wantFinal = 0
	}

	if noSafe {
		wantSafe = wantFinal
	}

	if head.Safe.Height != wantSafe || head.Final.Height != wantFinal {
		t.Errorf(
			"safe is %d, final %d, want %d and %d",
			head.Safe.Height,
			head.Final.Height,
			wantSafe,
			wantFinal,
		)
	}
}

// readsBlocks reads blocks below, and within, what a node may still be importing.
func readsBlocks(t *testing.T, d *evm.Driver) {
	t.Helper()

	for _, from := range []uint64{3, 198} {
		blocks, err := d.Blocks(t.Context(), from, from+1)
		if err != nil || len(blocks) == 0 || len(blocks[0].Transfers) != 2 || blocks[0].Unverified != "" {
			t.Fatalf("Blocks: %+v, %v", blocks, err)
		}

		agreed, err := d.AgreedBlock(t.Context(), blocks[0].Ref, []string{blocks[0].Transfers[0].TxHash})
		if err != nil || len(agreed.Transfers) != 2 {
			t.Errorf("AgreedBlock: %+v, %v", agreed, err)
		}

		var holdings []chain.Holding
		for _, asset := range d.Network().Assets {
			holdings = append(holdings, chain.Holding{Address: chain.Address(payee.Hex()), AssetID: asset.ID})
		}

		held, err := d.Balances(t.Context(), blocks[0].Ref, holdings)
		if err != nil || len(held) != len(holdings) || held[0] != chain.Units(42) {
			t.Errorf("Balances: %v, %v", held, err)
		}
	}
}

// sendsAll returns an order that leaves nothing of native coin, whose gas is simulated.
func sendsAll(d *evm.Driver) chain.Order {
	order := paysNative(d)
	order.SubtractFee = true

	return order
}

// paysToken returns an order of a master wallet that pays a token, whose gas is also that of a new receiver.
func paysToken(d *evm.Driver) chain.Order {
	order := paysNative(d)
	order.From.Key.Role = chain.RoleMaster
	order.Outputs[0].AssetID = d.Network().Assets[1].ID

	return order
}

// lower returns an address as it is part of a call's data.
func lower(address common.Address) string { return hex.EncodeToString(address[:]) }

// paysNative returns an order of a payment in native coin.
func paysNative(d *evm.Driver) chain.Order {
	native, _ := d.Network().Native()

	return chain.Order{
		From:    sender(),
		Outputs: []chain.Output{{To: chain.Address(payee.Hex()), AssetID: native.ID, Amount: chain.Units(1)}},
	}
}

// A shortcut is given up for good where the code says that the node does not have it, and tried again otherwise.
func TestRefusedShortcutIsTriedAgain(t *testing.T) {
	for code, again := range map[int]bool{-32601: false, -32004: false, -32600: true, -32000: true, -32602: true} {
		synctest.Test(t, func(t *testing.T) {
			n := newFakeNode(6)
			n.answer = func(c rpcCall) (any, bool) {
				return rpcError{code, "no"}, c.Method == "eth_getBlockReceipts"
			}
			d := driverOf(t, n)

			read := func() {
				t.Helper()

				if blocks, err := d.Blocks(t.Context(), 3, 3); err != nil || len(blocks[0].Transfers) != 2 {
					t.Errorf("code %d: %+v, %v", code, blocks, err)
				}
			}

			read()
			read()

			if asked := n.count("eth_getBlockReceipts"); asked != 1 {
				t.Errorf("code %d: asked %d times at once", code, asked)
			}

			time.Sleep(2 * time.Minute)
			read()

			if asked := n.count("eth_getBlockReceipts"); (asked == 2) != again {
				t.Errorf("code %d: asked %d times in the end", code, asked)
			}
		})
	}
}

// Balances that are read by height are of the block that was asked for: it is compared before and after.
func TestStateByHeightIsOfItsBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNode(6)
		kind := kinds["public endpoint"]
		moved := false
		n.answer = func(c rpcCall) (any, bool) {
			if c.Method == "eth_getBalance" && c.param(1) != "" && moved {
				n.blocks = n.blocks[:3] // a fork while balances are read
				for range 4 {
					n.extend("other")
				}
			}

			return kind.answer(c)
		}
		d := driverOf(t, n)
		native, _ := d.Network().Native()
		held := []chain.Holding{{Address: chain.Address(payee.Hex()), AssetID: native.ID}}
		at := chain.Ref{Height: 4, Hash: n.blocks[4].hash()}

		if got, err := d.Balances(t.Context(), at, held); err != nil || got[0] != chain.Units(42) {
			t.Errorf("%v, %v", got, err)
		}

		moved = true

		if got, err := d.Balances(t.Context(), at, held); err == nil {
			t.Errorf("%v of a block that left the chain", got)
		}

		if got, err := d.Balances(t.Context(), at, held); err == nil {
			t.Errorf("%v of a block that is not the node's", got)
		}
	})
}

// A tag that a node named does not vanish at that node; another node, or another tag, may lack it.
func TestTagsAreRememberedByNodeAndTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		named, nameless := newFakeNode(10), newFakeNode(10)
		nameless.answer = kinds["Erigon"].answer
		hidden := ""
		named.answer = func(c rpcCall) (any, bool) {
			return rpcError{-32000, "no"}, hidden != "" && c.param(0) == hidden
		}

		d := fakeDriver(t, fakeTransport{"a": named, "b": nameless}, []string{"a", "b"})

		if head, err := d.Head(t.Context()); err != nil || head.Final.Height != 6 {
			t.Fatalf("%+v, %v", head, err)
		}

		// The depth stands in at the node that names none: the lower of both counts.
		head, err := d.AgreedHead(t.Context())
		if err != nil || head.Tip.Height != 10 || head.Final.Height > 6 || head.Final.IsZero() {
			t.Errorf("%+v, %v", head, err)
		}

		hidden = "finalized"

		if head, err := d.Head(t.Context()); err != nil || !head.Final.IsZero() {
			t.Errorf("the other node answers %+v, %v", head, err)
		}

		if state := d.Nodes()[0]; state.Trouble != chain.NodeSilent {
			t.Errorf("the node whose tag vanished is %+v", state)
		}
	})
}

// A node whose final block is its newest one for a day is named.
func TestTagThatIsTheTipIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNode(10)
		n.answer = func(c rpcCall) (any, bool) {
			if c.Method == "eth_getBlockByNumber" &&
				slices.Contains([]string{"safe", "finalized"}, c.param(0)) {
				return n.blocks[len(n.blocks)-1].json(false), true
			}

			return nil, false
		}
		d := driverOf(t, n)

		for _, want := range []chain.NodeTrouble{"", chain.NodeUncertain} {
			if _, err := d.Head(t.Context()); err != nil {
				t.Fatal(err)
			}

			if got := d.Nodes()[0].Trouble; got != want {
				t.Errorf("it is %q, want %q", got, want)
			}

			time.Sleep(25 * time.Hour)
		}

		n.update(func(n *fakeNode) { n.answer = nil })

		if _, err := d.Head(t.Context()); err != nil || d.Nodes()[0].Trouble != "" {
			t.Errorf("%v, %+v", err, d.Nodes())
		}
	})
}

// A network without a base fee is refused before anything is sent on it.
func TestNetworkWithoutABaseFeeIsRefused(t *testing.T) {
	n := newFakeNode(3)
	for i := range n.blocks {
		delete(n.blocks[i].header, "baseFeePerGas")
	}

	wantFault(t, driverOf(t, n).Check(t.Context()), fault.Stopped, "base_fee_missing")
}

// What goes on and what waits while one of two nodes is gone, and what is said of it; with Alone and without.
func TestOneOfTwoNodesIsGone(t *testing.T) {
	dead := func(*fakeNode) http.Handler {
		return http.HandlerFunc(
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		)
	}
	slow := func(n *fakeNode) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(8 * time.Second)
			n.ServeHTTP(w, r)
		})
	}
	changed := func(change func(n *fakeNode)) func(*fakeNode) http.Handler {
		return func(n *fakeNode) http.Handler {
			change(n)
			return n
		}
	}

	for name, c := range map[string]struct {
		second func(n *fakeNode) http.Handler
		agreed string // code of what is agreed on of a block far below the tip; "" for the block
		tip    string // code of the same of the newest block
		alone  bool   // it goes on alone after a time, where that is configured
		named  chain.NodeTrouble
	}{
		"well": {second: changed(func(*fakeNode) {})},
		"dead": {second: dead, agreed: "nodes_missing", tip: "nodes_missing", alone: true, named: chain.NodeSilent},
		"slow": {second: slow},
		"of another network": {
			second: changed(func(n *fakeNode) { n.chainID = 1 }),
			agreed: "nodes_missing", tip: "nodes_missing", alone: true, named: chain.NodeForeign,
		},
		"two blocks behind": {
			second: changed(func(n *fakeNode) { n.blocks = n.blocks[:len(n.blocks)-2] }),
			tip:    "nodes_missing", named: chain.NodeBehind,
		},
		"on another fork": {
			second: changed(func(n *fakeNode) {
				n.blocks = n.blocks[:2]
				for range 19 {
					n.extend("other")
				}
			}),
			agreed: "nodes_disagree", tip: "nodes_disagree", named: chain.NodeDisagrees,
		},
	} {
		for _, alone := range []time.Duration{0, time.Hour} {
			t.Run(fmt.Sprintf("%s, Alone %s", name, alone), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					first := newFakeNode(20)
					d := fakeDriver(
						t, fakeTransport{"a": first, "b": c.second(newFakeNode(20))}, []string{"a", "b"},
						func(config *evm.Config) { config.Alone, config.Attempts = alone, 1 },
					)

					at := func(height int) chain.Ref {
						return chain.Ref{Height: uint64(height), Hash: first.blocks[height].hash()}
					}
					expect := func(goesOn bool) {
						t.Helper()

						_, headErr := d.AgreedHead(t.Context())

						for height, code := range map[int]string{10: c.agreed, 20: c.tip} {
							if goesOn {
								code = ""
							}

							hashes := []string{first.blocks[height].txs[0]["hash"].(string)}
							if _, err := d.AgreedBlock(
								t.Context(),
								at(height),
								hashes,
							); fault.Code(
								err,
							) != code {
								t.Errorf("block %d: %v, want %q", height, err, code)
							}
						}

						if want := c.agreed == "" || goesOn; (headErr == nil) != want {
							t.Errorf("AgreedHead: %v", headErr)
						}

						// What no block proves needs two, in any case.
						_, err := d.AgreedNonce(t.Context(), sender().Address, at(10))
						if want := c.named != chain.NodeSilent &&
							c.named != chain.NodeForeign; (err == nil) != want {
							t.Errorf("AgreedNonce: %v", err)
						}

						nodes := d.Nodes()
						if nodes[1].Trouble != c.named || nodes[0].Alone != goesOn {
							t.Errorf("the nodes are %+v", nodes)
						}
					}

					expect(false)

					// Reading goes on.
					if head, err := d.Head(t.Context()); err != nil || head.Tip.Height != 20 {
						t.Errorf("Head: %+v, %v", head, err)
					}

					if blocks, err := d.Blocks(t.Context(), 19, 20); err != nil || len(blocks) != 2 {
						t.Errorf("Blocks: %+v, %v", blocks, err)
					}

					time.Sleep(2 * time.Hour)

					expect(c.alone && alone > 0)
				})
			})
		}
	}
}
