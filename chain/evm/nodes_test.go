package evm_test

// Nodes that are wrong, down, slow, lagging or inconsistent.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/fault"
)

func wantFault(t *testing.T, err, word error, code string) {
	t.Helper()

	if !errors.Is(err, word) || (code != "" && fault.Code(err) != code) {
		t.Fatalf("%v (code %q), want %v (%s)", err, fault.Code(err), word, code)
	}

	for _, other := range []error{fault.Invalid, fault.NotFound, fault.State, fault.Stopped, fault.Unavailable} {
		if !errors.Is(other, word) && errors.Is(err, other) {
			t.Fatalf("%v is %v and %v", err, word, other)
		}
	}
}

func TestNodeOfAnotherNetworkIsNeverAsked(t *testing.T) {
	n := newFakeNode(5)
	n.chainID = 1
	driver := driverOf(t, n)

	calls := map[string]func() error{
		"Check":  func() error { return driver.Check(t.Context()) },
		"Head":   func() error { _, err := driver.Head(t.Context()); return err },
		"Blocks": func() error { _, err := driver.Blocks(t.Context(), 1, 2); return err },
		"Nonce":  func() error { _, err := driver.Nonce(t.Context(), chain.Address(payer.Hex())); return err },
	}
	for name, call := range calls {
		err := call()
		wantFault(t, err, fault.Stopped, "chain_id_mismatch")

		if !strings.Contains(err.Error(), "chain id 1,") || !strings.Contains(err.Error(), "4242") {
			t.Errorf("%s: %v does not name both chain ids", name, err)
		}
	}

	for _, methods := range n.requests {
		for _, method := range methods {
			if method != "eth_chainId" {
				t.Errorf("a node of another network was asked for %s", method)
			}
		}
	}
}

func TestOneNodeOfAnotherNetworkIsPassedOver(t *testing.T) {
	foreign, good := newFakeNode(5), newFakeNode(5)
	foreign.chainID = 1
	driver := fakeDriver(t, fakeTransport{"a": foreign, "b": good}, []string{"a", "b"})

	head, err := driver.Head(t.Context())
	if err != nil || head.Tip.Height != 5 {
		t.Fatalf("%+v, %v", head, err)
	}

	wantFault(t, driver.Check(t.Context()), fault.Stopped, "chain_id_mismatch")
}

func TestChainIDIsAskedOnce(t *testing.T) {
	n := newFakeNode(5)

	driver := driverOf(t, n)
	for range 3 {
		if _, err := driver.Head(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	if got := n.count("eth_chainId"); got != 1 {
		t.Errorf("eth_chainId was asked %d times", got)
	}
}

// API keys are in user info, path and query: none may reach an error or a log.
func TestErrorsNameTheHostAlone(t *testing.T) {
	const url = "https://alice:hunter2hunter2@rpc.example.test:8545/v2/pathkey123456?apikey=querykey123456"

	secrets := []string{"hunter2", "pathkey", "querykey", "alice", "/v2", "?"}
	// a provider that quotes the key in its refusal
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write(
			[]byte(
				`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"key pathkey123456 of ` +
					`querykey123456 is exhausted"}}`,
			),
		)
	})
	for name, w := range map[string]fakeTransport{"dead": {}, "quoting": {"rpc.example.test": echo}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer

				driver, err := evm.NewDriver(evm.Config{
					Network:    fakeNetwork(),
					RPC:        url,
					HTTPClient: &http.Client{Transport: w},
					Logger:     slog.New(slog.NewTextHandler(&log, nil)),
				})
				if err != nil {
					t.Fatal(err)
				}

				_, err = driver.Head(t.Context())
				wantFault(t, err, fault.Unavailable, "node_unavailable")

				if !strings.Contains(err.Error(), "rpc.example.test:8545") {
					t.Errorf("%v does not name the host", err)
				}

				for _, secret := range secrets {
					if strings.Contains(err.Error(), secret) || strings.Contains(log.String(), secret) {
						t.Errorf("error %q or log %q shows %q of the URL", err, log.String(), secret)
					}
				}
			})
		})
	}

	for _, bad := range []string{"ftp://host/secretsecret", "secretsecret", "http://", "https://%zz/secretsecret"} {
		_, err := evm.NewDriver(evm.Config{Network: fakeNetwork(), RPC: bad})
		wantFault(t, err, fault.Invalid, "config_invalid")

		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%v repeats the URL", err)
		}
	}
}

func TestSilentNodeRunsIntoTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		driver := fakeDriver(
			t, fakeTransport{"a": nil}, []string{"a"},
			func(c *evm.Config) { c.Timeout, c.Attempts = 5*time.Second, 2 },
		)
		start := time.Now()
		_, err := driver.Head(t.Context())
		wantFault(t, err, fault.Unavailable, "node_unavailable")

		if took := time.Since(start); took < 10*time.Second || took > 12*time.Second {
			t.Errorf("two attempts of 5 s took %v", took)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()

		_, err = driver.Head(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, fault.Unavailable) {
			t.Errorf("the caller's own deadline: %v", err)
		}
	})
}

func TestThrottlingNodeIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNode(5)
		busy := true
		n.http = func(w http.ResponseWriter, _ []rpcCall) bool {
			if busy {
				w.Header().Set("Retry-After", "30")
				w.WriteHeader(http.StatusTooManyRequests)
			}

			return busy
		}
		driver := driverOf(t, n)
		_, err := driver.Head(t.Context())
		wantFault(t, err, fault.Unavailable, "node_unavailable")

		if got := fault.RetryAfter(err); got <= 0 || got > 30*time.Second {
			t.Errorf("RetryAfter = %v, want what is left of 30 s", got)
		}

		asked := len(n.requests)
		if _, err = driver.Head(t.Context()); !errors.Is(err, fault.Unavailable) || len(n.requests) != asked {
			t.Errorf("the node was asked %d times more within the 30 s: %v", len(n.requests)-asked, err)
		}

		n.update(func(*fakeNode) { busy = false })
		time.Sleep(31 * time.Second)

		if _, err := driver.Head(t.Context()); err != nil {
			t.Errorf("after the 30 s: %v", err)
		}
	})
}

func TestShortThrottlingIsWaitedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNode(5)
		left := 2
		n.http = func(w http.ResponseWriter, _ []rpcCall) bool {
			if left--; left >= 0 {
				w.WriteHeader(http.StatusTooManyRequests)
				return true
			}

			return false
		}
		start := time.Now()

		if _, err := driverOf(t, n).Head(t.Context()); err != nil {
			t.Fatal(err)
		}

		if time.Since(start) < 250*time.Millisecond {
			t.Error("the node was asked again without a pause")
		}
	})
}

func TestFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := newFakeNode(5), newFakeNode(5)
		down := true
		first.http = func(w http.ResponseWriter, _ []rpcCall) bool {
			if down {
				w.WriteHeader(http.StatusBadGateway)
			}

			return down
		}

		driver := fakeDriver(t, fakeTransport{"a": first, "b": second}, []string{"a", "b"})
		for range 4 {
			if _, err := driver.Head(t.Context()); err != nil {
				t.Fatal(err)
			}
		}

		if got := len(first.requests); got != 1 {
			t.Errorf("the failed node was asked %d times in a row, while another answers", got)
		}

		first.update(func(*fakeNode) { down = false })
		time.Sleep(time.Minute)
		second.resetRequests()

		if _, err := driver.Head(t.Context()); err != nil || len(second.requests) != 0 {
			t.Errorf(
				"after its rest the first node is not preferred again: %v, the second was asked %v",
				err, second.requests,
			)
		}
	})
}

func TestLaggingNodeIsNotAskedForNewerBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fast, slow := newFakeNode(20), newFakeNode(15)
		down := false
		fast.http = func(w http.ResponseWriter, _ []rpcCall) bool {
			if down {
				w.WriteHeader(http.StatusBadGateway)
			}

			return down
		}
		driver := fakeDriver(t, fakeTransport{"a": slow, "b": fast}, []string{"a", "b"})
		// The slow node is preferred and, the first time, believed.
		if head, err := driver.Head(t.Context()); err != nil || head.Tip.Height != 15 {
			t.Fatalf("%+v, %v", head, err)
		}

		blocks, err := driver.Blocks(t.Context(), 18, 20) // above the slow one's tip
		if err != nil {
			t.Fatal(err)
		}

		wantHeights(t, blocks, 18, 20)

		if slow.count("eth_getBlockByNumber") != 3 { // the head's
			t.Errorf("the slow node was asked for blocks: %v", slow.requests)
		}

		slow.update(func(n *fakeNode) {
			for range 3 {
				n.extend("main")
			}
		})
		fast.update(func(n *fakeNode) { n.extend("main") })
		// 18 is behind the 20 that the fast one showed, but it never showed it as a head.
		for range 2 {
			if head, err := driver.Head(t.Context()); err != nil || head.Tip.Height < 18 {
				t.Fatalf("%+v, %v", head, err)
			}
		}

		fast.update(func(*fakeNode) { down = true })

		_, err = driver.Blocks(t.Context(), 19, 20)
		wantFault(t, err, fault.Unavailable, "") // the fast node might have it: nothing is decided
		_, err = driver.Balances(
			t.Context(),
			chain.Ref{Height: 19, Hash: fast.blocks[19].hash()},
			[]chain.Holding{
				{Address: chain.Address(payee.Hex()), AssetID: driver.Network().Assets[0].ID},
			},
		)
		wantFault(t, err, fault.Unavailable, "")
	})
}

func TestHeadNeverFallsBackToALaggingNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fast, slow := newFakeNode(20), newFakeNode(15)
		down := false
		fast.http = func(w http.ResponseWriter, _ []rpcCall) bool {
			if down {
				w.WriteHeader(http.StatusBadGateway)
			}

			return down
		}

		driver := fakeDriver(t, fakeTransport{"a": fast, "b": slow}, []string{"a", "b"})
		if head, err := driver.Head(t.Context()); err != nil || head.Tip.Height != 20 {
			t.Fatalf("%+v, %v", head, err)
		}

		fast.update(func(*fakeNode) { down = true })

		_, err := driver.Head(t.Context())
		wantFault(t, err, fault.Unavailable, "")
		// When all nodes agree that the chain is shorter, it is.
		fast.update(func(n *fakeNode) { down, n.blocks = false, n.blocks[:13] })
		time.Sleep(time.Minute)

		if head, err := driver.Head(t.Context()); err != nil || head.Tip.Height != 15 {
			t.Fatalf("%+v, %v", head, err)
		}
	})
}

func TestFinalityThatVanishesIsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNode(10)
		mute := true
		n.answer = func(c rpcCall) (any, bool) {
			if tag := c.param(0); mute && (tag == "safe" || tag == "finalized") {
				return rpcError{-32000, "finalized block not found"}, true
			}

			return nil, false
		}
		driver := driverOf(t, n)

		head, err := driver.Head(t.Context())
		if err != nil || !head.Safe.IsZero() || !head.Final.IsZero() {
			t.Fatalf("a node without finality: %+v, %v", head, err)
		}

		n.update(func(*fakeNode) { mute = false })

		head, err = driver.Head(t.Context())
		if err != nil || head.Final.Height != 6 || head.Safe.Height != 8 {
			t.Fatalf("%+v, %v", head, err)
		}

		n.update(func(*fakeNode) { mute = true })

		_, err = driver.Head(t.Context())
		wantFault(t, err, fault.Unavailable, "")
	})
}

func TestPrunedHeightStops(t *testing.T) {
	pruned := func(result any) *fakeNode {
		n := newFakeNode(300)
		n.answer = func(c rpcCall) (any, bool) {
			if c.Method == "eth_getBlockByNumber" && c.param(0) == "0x5" {
				return result, true
			}

			return nil, false
		}

		return n
	}
	for name, result := range map[string]any{
		"by its code": rpcError{4444, "pruned history unavailable"},
		"by null":     nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				driver := driverOf(t, pruned(result))
				_, err := driver.RefAt(t.Context(), 5)
				wantFault(t, err, fault.Stopped, "node_pruned")
				_, err = driver.Blocks(t.Context(), 5, 9)
				wantFault(t, err, fault.Stopped, "node_pruned")
				archive := fakeDriver(
					t, fakeTransport{"a": pruned(result), "b": newFakeNode(300)},
					[]string{"a", "b"},
				)

				blocks, err := archive.Blocks(t.Context(), 5, 9)
				if err != nil {
					t.Fatalf("another node has the height: %v", err)
				}

				wantHeights(t, blocks, 5, 9)
				half := fakeDriver(t, fakeTransport{"a": pruned(result)}, []string{"a", "b"})
				_, err = half.RefAt(t.Context(), 5)
				wantFault(t, err, fault.Unavailable, "") // the node that is down may have it
			})
		})
	}

	for name, c := range map[string]struct {
		tip  int
		pace time.Duration // of blocks
		code string
	}{
		"a block of 128 below the tip":      {133, 12 * time.Second, "node_pruned"},
		"of 127":                            {132, 12 * time.Second, "node_unavailable"},
		"of three minutes":                  {20, 12 * time.Second, "node_unavailable"},
		"of a minute, where blocks are 295": {300, 200 * time.Millisecond, "node_unavailable"},
		"of 11 minutes, of short blocks":    {3305, 200 * time.Millisecond, "node_pruned"},
		"of nine minutes, of short blocks":  {2705, 200 * time.Millisecond, "node_unavailable"},
	} {
		t.Run("missing is "+name, func(t *testing.T) {
			n := pruned(nil)
			for len(n.blocks) <= c.tip {
				n.extend("main")
			}

			n.blocks = n.blocks[:c.tip+1]

			for height := range n.blocks {
				at := time.Unix(1_700_000_000, 0).Add(time.Duration(height) * c.pace)
				n.blocks[height].header["timestamp"] = hexutil.Uint64(at.Unix())
			}

			synctest.Test(t, func(t *testing.T) {
				_, err := driverOf(t, n).RefAt(t.Context(), 5)
				if fault.Code(err) != c.code {
					t.Errorf("%v, want %s", err, c.code)
				}
			})
		})
	}
}

func TestUselessAnswersAreUnavailable(t *testing.T) {
	garbage := map[string]func(w http.ResponseWriter, calls []rpcCall){
		"empty": func(w http.ResponseWriter, _ []rpcCall) {},
		"truncated": func(w http.ResponseWriter, _ []rpcCall) {
			_, _ = w.Write([]byte(`[{"jsonrpc":"2.0","id":1,"result":{"nu`))
		},
		"HTML": func(w http.ResponseWriter, _ []rpcCall) {
			_, _ = w.Write([]byte("<html>maintenance</html>"))
		},
		"another form":  func(w http.ResponseWriter, _ []rpcCall) { _, _ = w.Write([]byte(`{"a":1}`)) },
		"a number":      func(w http.ResponseWriter, _ []rpcCall) { _, _ = w.Write([]byte(`7`)) },
		"an empty list": func(w http.ResponseWriter, _ []rpcCall) { _, _ = w.Write([]byte(`[]`)) },
		"another id": func(w http.ResponseWriter, _ []rpcCall) {
			_, _ = w.Write([]byte(`[{"jsonrpc":"2.0","id":99999,"result":"0x1"}]`))
		},
		"a redirect": func(w http.ResponseWriter, _ []rpcCall) {
			w.Header().Set("Location", "http://b")
			w.WriteHeader(302)
		},
		"unauthorised": func(w http.ResponseWriter, _ []rpcCall) { w.WriteHeader(401) },
		"too long": func(w http.ResponseWriter, _ []rpcCall) {
			_, _ = w.Write(bytes.Repeat([]byte(" "), 1<<20))
		},
		"null for all":     answerAllWith(`null`),
		"text for all":     answerAllWith(`"x"`),
		"a list for all":   answerAllWith(`[]`),
		"an object":        answerAllWith(`{}`),
		"a huge number":    answerAllWith(`"0x` + strings.Repeat("f", 100) + `"`),
		"a leading zero":   answerAllWith(`"0x01"`),
		"a negative one":   answerAllWith(`"-0x1"`),
		"a decimal number": answerAllWith(`1`),
		"half a block":     answerAllWith(`{"number":"0x1","hash":"0x12"}`),
		"block without hash": answerAllWith(
			`{"number":"0x1","timestamp":"0x1","parentHash":null,"hash":null,"transactions":[]}`,
		),
	}
	for name, handler := range garbage {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newFakeNode(10)

				driver := driverOf(t, n, func(c *evm.Config) { c.MaxResponse = 1 << 16; c.Attempts = 2 })
				if _, err := driver.Head(t.Context()); err != nil { // its chain id is known to be right
					t.Fatal(err)
				}

				n.update(func(n *fakeNode) {
					n.http = func(w http.ResponseWriter, calls []rpcCall) bool { handler(w, calls); return true }
				})

				holding := []chain.Holding{
					{Address: chain.Address(payee.Hex()), AssetID: driver.Network().Assets[0].ID},
				}
				order := nativeOrder(driver)

				for what, call := range map[string]func() error{
					"Head":   func() error { _, err := driver.Head(t.Context()); return err },
					"RefAt":  func() error { _, err := driver.RefAt(t.Context(), 3); return err },
					"Blocks": func() error { _, err := driver.Blocks(t.Context(), 3, 6); return err },
					"Balances": func() error {
						_, err := driver.Balances(t.Context(), chain.Ref{Height: 3, Hash: n.blocks[3].hash()}, holding)
						return err
					},
					"Build":    func() error { _, err := driver.Build(t.Context(), order); return err },
					"Estimate": func() error { _, err := driver.EstimateFee(t.Context(), order); return err },
				} {
					err := call()
					if err == nil {
						t.Errorf("%s made something of it", what)
					} else if !errors.Is(err, fault.Unavailable) {
						t.Errorf("%s: %v, want fault.Unavailable", what, err)
					}
				}
			})
		})
	}
}

// answerAll gives every call the same result.
func answerAllWith(result string) func(w http.ResponseWriter, calls []rpcCall) {
	return func(w http.ResponseWriter, calls []rpcCall) {
		var answers []jsonObject
		for _, c := range calls {
			answers = append(
				answers,
				jsonObject{"jsonrpc": "2.0", "id": c.ID, "result": json.RawMessage(result)},
			)
		}

		if len(answers) == 1 {
			_ = json.NewEncoder(w).Encode(answers[0])
			return
		}

		_ = json.NewEncoder(w).Encode(answers)
	}
}

// A redirect could send the request, with its API key, to another host.
func TestRedirectsAreNotFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elsewhere := newFakeNode(5)
		moved := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://b/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		})
		_, err := fakeDriver(t, fakeTransport{"a": moved, "b": elsewhere}, []string{"a"}).Head(t.Context())
		wantFault(t, err, fault.Unavailable, "node_unavailable")

		if len(elsewhere.requests) != 0 {
			t.Errorf("the redirect was followed: %v", elsewhere.requests)
		}
	})
}

func TestCheckReadsTheTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNode(5)

		var answer any = "0x" + strings.Repeat("0", 63) + "6"

		n.answer = func(c rpcCall) (any, bool) { return answer, c.Method == "eth_call" }

		driver := driverOf(t, n)
		if err := driver.Check(t.Context()); err != nil {
			t.Fatal(err)
		}

		for _, wrong := range []any{"0x" + strings.Repeat("0", 62) + "12", "0x", rpcError{3, "execution reverted"}} {
			n.update(func(*fakeNode) { answer = wrong })
			wantFault(t, driver.Check(t.Context()), fault.Stopped, "token_mismatch")
		}

		n.update(func(*fakeNode) { answer = rpcError{-32000, "header not found"} })
		wantFault(t, driver.Check(t.Context()), fault.Unavailable, "")
	})
}
