package main

// The node's answers, field by field against answers that were published; see ../published.json for
// their source.

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
)

type published struct {
	Source     string                       `json:"source"`
	Answers    map[string]any               `json:"answers"`
	Documented map[string]map[string]string `json:"documented"`
}

func readPublished(t *testing.T) published {
	t.Helper()

	text, err := os.ReadFile("../published.json")
	if err != nil {
		t.Fatal(err)
	}

	var p published
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}

	if len(p.Answers) < 13 || p.Source == "" {
		t.Fatalf("%d answers of %q", len(p.Answers), p.Source)
	}

	return p
}

// shape writes down every field of an answer with its kind: "log[].topics[]" is "hex64".
func shape(into map[string]string, at string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			name := k
			if at != "" {
				name = at + "." + k
			}

			shape(into, name, x)
		}
	case []any:
		for _, x := range v {
			shape(into, at+"[]", x)
		}
	case string:
		into[at] = stringKind(v)
	case float64:
		into[at] = "number"
	case bool:
		into[at] = "bool"
	default:
		into[at] = fmt.Sprintf("%T", v)
	}
}

// stringKind distinguishes hex from words; ids, addresses and words of contracts have fixed lengths.
func stringKind(s string) string {
	digits := strings.TrimSuffix(s, "...")
	if _, err := hex.DecodeString(digits); err != nil || s == "" {
		return "string"
	}

	if len(s) == len(digits) && slices.Contains([]int{4, 16, 40, 42, 64, 130}, len(s)) {
		return fmt.Sprintf("hex%d", len(s))
	}

	return "hex"
}

// fits says whether a field's kind is one that was published. Hex of no fixed length may have any;
// an empty one is a word.
func fits(got, want string) bool {
	variable := func(k string) bool { return k == "hex" || k == "string" }

	return got == want || (variable(want) && strings.HasPrefix(got, "hex")) ||
		(variable(got) && variable(want)) ||
		(got == "string" && want == "hex64")
}

// a chain on which something of every kind has happened.
func eventful(t *testing.T) (*node, *transaction, *transaction, *transaction) {
	t.Helper()

	const key = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
	// Logs 32 bytes of nothing with two topics, and calls its caller with 1 sun: PUSH1 7 PUSH1 7
	// PUSH1 32 PUSH1 0 LOG2, then CALL; returned by a constructor that copies what comes after it.
	const code = "6007600760206000a2" + "60006000600060006001335af1" + "60206000f3"

	initCode := fmt.Sprintf("60%02x600c60003960%02x6000f3", len(code)/2, len(code)/2) + code

	n, err := newNode(
		Config{
			Balances:  map[string]int64{"41f39fd6e51aad88f6f4ce6ab8827279cfffb92266": 1_000_000_000},
			Contracts: []Deployment{{Bytecode: initCode}},
			SolidLag:  1,
		},
	)
	if err != nil {
		t.Fatal(err)
	}

	send := func(p payment) *transaction {
		t.Helper()

		p.PrivateKey = key

		x, err := n.makePayment(&p)
		if err != nil {
			t.Fatal(err)
		}

		if refused := n.broadcast(x); refused != nil {
			t.Fatal(refused)
		}

		return x
	}

	const sender = "41f39fd6e51aad88f6f4ce6ab8827279cfffb92266"
	if err := n.change(sender, func(a *account) { a.staked = 500_000_000_000 }); err != nil {
		t.Fatal(err)
	}

	transfer := send(payment{To: "41a614f803b6fd780986a42c78ec9c7f77e6ded13c", Amount: 5, Memo: "memo"})
	send(payment{To: hexBytes(prefixedBytes(transfer.to)), Amount: 2_000_000, Stake: typeDelegate})
	call := send(payment{To: n.deployed[0], Amount: 3, Data: "01", FeeLimit: 100_000_000})

	failing := send(payment{To: n.deployed[0], Amount: 3, Data: "01", FeeLimit: 10_000})
	if err := n.mineBlocks(3); err != nil {
		t.Fatal(err)
	}

	return n, transfer, call, failing
}

func TestAnswersHaveThePublishedShape(t *testing.T) {
	p := readPublished(t)
	n, transfer, call, failing := eventful(t)

	server := httptest.NewServer(n)
	defer server.Close()

	ask := func(path, body string) any {
		t.Helper()

		resp, err := http.Post(server.URL+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()

		var v any
		if err := json.NewDecoder(resp.Body).Decode(&v); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v", path, resp.StatusCode, err)
		}

		return v
	}
	id := func(x *transaction) string { return `{"value":"` + hexBytes(x.id[:]) + `"}` }

	waiting, err := n.makePayment(
		&payment{
			PrivateKey: "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
			To:         n.deployed[0],
			Data:       "02",
			FeeLimit:   100_000_000,
		},
	)
	if err != nil {
		t.Fatal(err)
	}

	owner, contract := "41f39fd6e51aad88f6f4ce6ab8827279cfffb92266", n.deployed[0]
	receiver := hexBytes(prefixedBytes(transfer.to))
	asked := map[string]bool{}

	for _, q := range []struct{ path, body string }{
		{"/wallet/getnowblock", `{}`},
		{"/walletsolidity/getnowblock", `{}`},
		{"/wallet/getblockbynum", `{"num":1}`},
		{"/wallet/getblockbylimitnext", `{"startNum":1,"endNum":3}`},
		{"/wallet/gettransactionbyid", id(transfer)},
		{"/wallet/gettransactionbyid", id(call)},
		{"/wallet/broadcasthex", `{"transaction":"` + hexBytes(waiting.bytes) + `"}`},
		{"/wallet/broadcasthex", `{"transaction":"` + hexBytes(waiting.bytes) + `"}`}, // a duplicate now
		{"/wallet/gettransactionfrompending", id(waiting)},
		{"/wallet/gettransactioninfobyid", id(transfer)},
		{"/wallet/gettransactioninfobyid", id(call)},
		{"/wallet/gettransactioninfobyid", id(failing)},
		{"/wallet/gettransactioninfobyblocknum", `{"num":1}`},
		{"/wallet/getaccount", `{"address":"` + owner + `"}`},
		{"/wallet/getaccount", `{"address":"` + contract + `"}`},
		{"/wallet/getaccountresource", `{"address":"` + owner + `"}`},
		{
			"/wallet/triggerconstantcontract",
			`{"owner_address":"` + owner + `","contract_address":"` + contract + `","data":"01"}`,
		},
		{
			"/wallet/triggerconstantcontract",
			`{"owner_address":"` + owner + `","contract_address":"` + contract + `","data":"01","call_value":5}`,
		},
		{
			"/wallet/triggerconstantcontract",
			`{"owner_address":"` + owner + `","contract_address":"` + owner + `","data":"01"}`,
		},
		{"/wallet/getcandelegatedmaxsize", `{"owner_address":"` + owner + `","type":1}`},
		{"/wallet/getdelegatedresourcev2", `{"fromAddress":"` + owner + `","toAddress":"` + receiver + `"}`},
		{"/wallet/getchainparameters", `{}`},
		{"/wallet/getnodeinfo", `{}`},
	} {
		as := strings.Replace(q.path, "/walletsolidity/", "/wallet/", 1)
		asked[as] = true
		want := map[string]string{}
		allowed(p, as, want)

		got := map[string]string{}
		shape(got, "", ask(q.path, q.body))

		if len(got) == 0 {
			t.Errorf("%s %s answers nothing", q.path, q.body)
		}

		for field, kind := range got {
			if known, ok := want[field]; !ok {
				t.Errorf("%s answers a field %q that no published answer has", q.path, field)
			} else if !fits(kind, known) {
				t.Errorf("%s: %s is %s, in what was published it is %s", q.path, field, kind, known)
			}
		}
	}

	for path := range p.Answers {
		if !asked[path] {
			t.Errorf("%s was published and is not compared", path)
		}
	}
}

// allowed are the fields of a published answer, with those of the transactions and receipts that
// lists of them hold.
func allowed(p published, path string, into map[string]string) {
	shape(into, "", p.Answers[path])

	for field, kind := range p.Documented[path] {
		into[field] = kind
	}

	embed := func(prefix, other string) {
		inner := map[string]string{}
		allowed(p, other, inner)

		for field, kind := range inner {
			into[prefix+field] = kind
		}
	}

	switch path {
	case "/wallet/getnowblock", "/wallet/getblockbynum":
		embed("transactions[].", "/wallet/gettransactionbyid")
	case "/wallet/getblockbylimitnext":
		embed("block[].", "/wallet/getnowblock")
	case "/wallet/gettransactioninfobyblocknum":
		embed("[].", "/wallet/gettransactioninfobyid")
	case "/wallet/gettransactionfrompending":
		embed("", "/wallet/gettransactionbyid")
	}
}

// The ids of published blocks are what this node computes of their headers.
func TestPublishedBlockIDs(t *testing.T) {
	p := readPublished(t)
	checked := 0

	for _, path := range []string{"/wallet/getnowblock", "/wallet/getblockbynum"} {
		text, err := json.Marshal(p.Answers[path])
		if err != nil {
			t.Fatal(err)
		}

		var b struct {
			BlockID string `json:"blockID"`
			Header  struct {
				Raw struct {
					Number    int64  `json:"number"`
					Root      string `json:"txTrieRoot"`
					Witness   string `json:"witness_address"`
					Parent    string `json:"parentHash"`
					Version   int64  `json:"version"`
					Timestamp int64  `json:"timestamp"`
				} `json:"raw_data"`
			} `json:"block_header"`
		}
		if err := json.Unmarshal(text, &b); err != nil {
			t.Fatal(err)
		}

		unhex := func(s string) []byte {
			raw, err := hex.DecodeString(s)
			if err != nil {
				t.Fatal(err)
			}

			return raw
		}
		h := b.Header.Raw

		id := header{
			timestamp: h.Timestamp,
			number:    h.Number,
			root:      unhex(h.Root),
			parent:    unhex(h.Parent),
			witness:   unhex(h.Witness),
			version:   h.Version,
		}.id()
		if got := hexBytes(id[:]); got != b.BlockID {
			t.Errorf("block %d: id %s, published is %s", h.Number, got, b.BlockID)
		}

		checked++
	}

	if checked != 2 {
		t.Errorf("%d blocks were checked", checked)
	}
}

// A published transaction is parsed, and written, to the byte.
func TestPublishedTransaction(t *testing.T) {
	p := readPublished(t)

	text, err := json.Marshal(p.Answers["/wallet/triggerconstantcontract"])
	if err != nil {
		t.Fatal(err)
	}

	var a struct {
		Transaction struct {
			TxID string `json:"txID"`
			Raw  string `json:"raw_data_hex"`
		} `json:"transaction"`
	}
	if err := json.Unmarshal(text, &a); err != nil {
		t.Fatal(err)
	}

	raw, err := hex.DecodeString(a.Transaction.Raw)
	if err != nil {
		t.Fatal(err)
	}

	if id := sha256.Sum256(raw); hexBytes(id[:]) != a.Transaction.TxID {
		t.Errorf("the id is %x, published is %s", id, a.Transaction.TxID)
	}

	m := newMessage("Transaction", nil)

	inner, err := parse("raw", raw)
	if err != nil {
		t.Fatal(err)
	}

	m.set("raw_data", inner)

	x, err := parseTransaction(m.encode())
	if err != nil {
		t.Fatal(err)
	}

	if hexBytes(x.id[:]) != a.Transaction.TxID || x.kind != typeTrigger ||
		hexBytes(prefixedBytes(x.owner)) != "41dd791d6b49e190062d650e6a23c575510d35f2f9" ||
		hexBytes(x.data) != "70a08231000000000000000000000000dd791d6b49e190062d650e6a23c575510d35f2f9" ||
		hexBytes(x.raw) != a.Transaction.Raw {
		t.Errorf("%+v", x)
	}
}
