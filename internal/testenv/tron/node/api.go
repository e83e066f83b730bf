package main

// The HTTP interface. Source of paths, parameters and answers: TRON documentation
// (tronprotocol/documentation-en, docs/api/http), held to its printed answers by published_test.go.
// Fields of value 0 are left out, as protobuf's JSON does.

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

func hexBytes(b []byte) string { return hex.EncodeToString(b) }

func addressHex(s string) (address, bool) {
	b, err := hex.DecodeString(s)
	if err != nil {
		return address{}, false
	}

	return prefixed(b)
}

// strictJSON decodes one JSON value without unknown fields and nothing after it.
func strictJSON(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()

	if err := d.Decode(v); err != nil {
		return err
	}

	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("data after the JSON value")
	}

	return nil
}

// object is a JSON object; put leaves out what protobuf's JSON leaves out.
type object map[string]any

func (o object) put(key string, v any) object {
	switch x := v.(type) {
	case int64:
		if x == 0 {
			return o
		}
	case string:
		if x == "" {
			return o
		}
	case []any:
		if len(x) == 0 {
			return o
		}
	case []string:
		if len(x) == 0 {
			return o
		}
	case bool:
		if !x {
			return o
		}
	}

	o[key] = v

	return o
}

func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4<<20))
	if err != nil {
		http.Error(w, "Payload Too Large", http.StatusRequestEntityTooLarge)
		return
	}

	n.mu.Lock()
	defer n.mu.Unlock()

	if name, ok := strings.CutPrefix(r.URL.Path, "/control/"); ok {
		n.serveControl(w, name, body)
		return
	}

	n.seen++

	if r.Method != http.MethodPost {
		http.Error(w, "this node takes POST only", http.StatusMethodNotAllowed)
		return
	}

	serve, solid := fullAPI[r.URL.Path], false
	if name, ok := strings.CutPrefix(r.URL.Path, "/walletsolidity/"); ok && solidNames[name] {
		serve, solid = fullAPI["/wallet/"+name], true
	}

	if serve == nil {
		http.NotFound(w, r)
		return
	}

	if len(body) == 0 {
		body = []byte("{}")
	}

	answer, err := serve(n, view{n: n, solid: solid}, body)
	if err != nil {
		answer = object{"Error": "class " + err.Error()}
	}

	w.Header().Set("Content-Type", "application/json")

	if err := json.NewEncoder(w).Encode(answer); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// view is one side of the node: what is solidified, or everything with the pool.
type view struct {
	n     *node
	solid bool
}

func (v view) newest() *block {
	if v.solid {
		return v.n.solid()
	}

	return v.n.head()
}

func (v view) workspace() (*workspace, error) {
	if !v.solid {
		return v.n.pending, nil
	}

	return v.n.store.open(v.n.solid().state)
}

func (v view) at(height int64) *block {
	if b := v.n.at(height); b != nil && b.height <= v.newest().height {
		return b
	}

	return nil
}

type handler func(n *node, v view, body []byte) (any, error)

// solidNames are the paths that exist under /walletsolidity too.
var solidNames = map[string]bool{
	"getnowblock":                  true,
	"getblockbynum":                true,
	"getblockbylimitnext":          true,
	"gettransactionbyid":           true,
	"gettransactioninfobyid":       true,
	"gettransactioninfobyblocknum": true,
	"getaccount":                   true,
	"triggerconstantcontract":      true,
	"estimateenergy":               true,
	"getnodeinfo":                  true,
}

var fullAPI = map[string]handler{
	"/wallet/getnowblock": func(_ *node, v view, body []byte) (any, error) {
		return v.newest().json(), strictJSON(body, &struct{}{})
	},
	"/wallet/getblockbynum": func(_ *node, v view, body []byte) (any, error) {
		var in struct{ Num int64 }
		if err := strictJSON(body, &in); err != nil {
			return nil, err
		}

		if b := v.at(in.Num); b != nil {
			return b.json(), nil
		}

		return object{}, nil
	},
	"/wallet/getblockbylimitnext": func(_ *node, v view, body []byte) (any, error) {
		var in struct{ StartNum, EndNum int64 }
		if err := strictJSON(body, &in); err != nil {
			return nil, err
		}

		blocks := []any{}

		if in.EndNum > in.StartNum && in.EndNum-in.StartNum <= 100 {
			for h := in.StartNum; h < in.EndNum; h++ {
				if b := v.at(h); b != nil {
					blocks = append(blocks, b.json())
				}
			}
		}

		return object{}.put("block", blocks), nil
	},
	"/wallet/gettransactionbyid":        transactionByID(true),
	"/wallet/gettransactionfrompending": transactionByID(false),
	"/wallet/gettransactioninfobyid": func(n *node, v view, body []byte) (any, error) {
		id, err := readID(body)
		if err != nil {
			return nil, err
		}

		if b, k := n.included(id); b != nil && b.height <= v.newest().height {
			return n.infoJSON(b, k), nil
		}

		return object{}, nil
	},
	"/wallet/gettransactioninfobyblocknum": func(n *node, v view, body []byte) (any, error) {
		var in struct{ Num int64 }
		if err := strictJSON(body, &in); err != nil {
			return nil, err
		}

		if in.Num <= 0 {
			return object{}, nil
		}

		infos := []any{}
		if b := v.at(in.Num); b != nil {
			for k := range b.infos {
				infos = append(infos, n.infoJSON(b, k))
			}
		}

		return infos, nil
	},
	"/wallet/getaccount":              getAccount,
	"/wallet/getaccountresource":      getAccountResource,
	"/wallet/getchainparameters":      getChainParameters,
	"/wallet/triggerconstantcontract": triggerConstantContract,
	"/wallet/broadcasthex":            broadcastHex,
	"/wallet/getnodeinfo": func(n *node, _ view, body []byte) (any, error) {
		name := func(b *block) string { return fmt.Sprintf("Num:%d,ID:%s", b.height, hexBytes(b.id[:])) }

		return object{
				"block":          name(n.head()),
				"solidityBlock":  name(n.solid()),
				"beginSyncNum":   int64(n.oldest),
				"configNodeInfo": object{"codeVersion": "4.8.1"},
			},
			strictJSON(
				body, &struct{}{},
			)
	},
}

func (b *block) json() object {
	raw := object{}.put("number", int64(b.height)).
		put("timestamp", b.timestamp).
		put("version", int64(blockVersion))
	raw["txTrieRoot"], raw["parentHash"], raw["witness_address"] = hexBytes(
		b.root[:],
	), hexBytes(
		b.parent[:],
	), hexBytes(
		prefixedBytes(b.witness),
	)
	signature := sha256.Sum256(b.id[:])

	txs := []any{}
	for k, t := range b.txs {
		txs = append(txs, t.json(b.infos[k]))
	}

	return object{
		"blockID": hexBytes(b.id[:]),
		"block_header": object{
			"raw_data":          raw,
			"witness_signature": hexBytes(append(append(signature[:], signature[:]...), 0)),
		},
	}.put("transactions", txs)
}

// json prints a transaction; done is nil while it waits.
func (t *transaction) json(done *info) object {
	value := object{"owner_address": hexBytes(prefixedBytes(t.owner))}
	if t.kind == typeTransfer {
		value["to_address"] = hexBytes(prefixedBytes(t.to))
		value.put("amount", t.amount)
	} else {
		value["contract_address"] = hexBytes(prefixedBytes(t.to))
		value.put("call_value", t.amount).put("data", hexBytes(t.data))
	}

	name := typeNames[t.kind]
	raw := object{
		"contract": []any{
			object{
				"parameter": object{"value": value, "type_url": "type.googleapis.com/protocol." + name},
				"type":      name,
			},
		},
		"ref_block_bytes": hexBytes(t.refBytes),
		"ref_block_hash":  hexBytes(t.refHash),
	}.put("expiration", t.expiration).
		put("timestamp", t.timestamp).
		put("fee_limit", t.feeLimit).
		put("data", hexBytes(t.memo))

	out := object{
		"txID":         hexBytes(t.id[:]),
		"raw_data":     raw,
		"raw_data_hex": hexBytes(t.raw),
		"signature":    []string{hexBytes(t.signature)},
	}
	if done != nil {
		out["ret"] = []any{object{"contractRet": done.resultName()}}
	}

	return out
}

func (i *info) resultName() string {
	if i.outcome == nil {
		return "SUCCESS"
	}

	return i.outcome.resultName()
}

func (n *node) infoJSON(b *block, k int) object {
	t, i := b.txs[k], b.infos[k]
	receipt := object{}.put("net_usage", i.netUsage).
		put("net_fee", i.netFee).
		put("energy_usage", i.energy).
		put("energy_fee", i.energyFee).
		put("energy_usage_total", i.total)
	out := object{"id": hexBytes(t.id[:]), "receipt": receipt, "contractResult": []string{""}}.
		put("fee", i.fee).put("blockNumber", int64(b.height)).put("blockTimeStamp", b.timestamp)

	o := i.outcome
	if o == nil {
		return out
	}

	out["contractResult"] = []string{hexBytes(o.result)}
	out["contract_address"] = hexBytes(prefixedBytes(t.to))

	receipt["result"] = o.resultName()
	if o.err != nil {
		out["result"], out["resMessage"] = "FAILED", hexBytes([]byte(o.resultText()))
	}

	logs := []any{}
	for _, l := range o.logs {
		topics := []string{}
		for _, topic := range l.Topics {
			topics = append(topics, hexBytes(topic[:]))
		}

		logs = append(
			logs,
			object{"address": hexBytes(l.Address[:])}.put("topics", topics).put("data", hexBytes(l.Data)),
		)
	}

	out.put("log", logs)

	if !n.config.HideInternal {
		internal := []any{}
		for j, c := range o.internal {
			hash := sha256.Sum256(append(t.id[:], byte(j>>8), byte(j)))
			internal = append(internal, object{
				"hash":               hexBytes(hash[:]),
				"caller_address":     hexBytes(prefixedBytes(c.from)),
				"transferTo_address": hexBytes(prefixedBytes(c.to)),
				"callValueInfo":      []any{object{}.put("callValue", c.value)},
				"note":               hexBytes([]byte(c.note)),
			}.put("rejected", c.rejected))
		}

		out.put("internal_transactions", internal)
	}

	return out
}

func readID(body []byte) (id [32]byte, err error) {
	var in struct{ Value string }
	if err := strictJSON(body, &in); err != nil {
		return id, err
	}

	b, err := hex.DecodeString(in.Value)
	if err != nil {
		return id, fmt.Errorf("org.tron.core.services.http.JsonFormat$ParseException : %w", err)
	}

	copy(id[:], b)

	return id, nil
}

// transactionByID also shows transactions that wait: java-tron's transaction store holds them while they do.
func transactionByID(included bool) handler {
	return func(n *node, v view, body []byte) (any, error) {
		id, err := readID(body)
		if err != nil {
			return nil, err
		}

		if b, k := n.included(id); included && b != nil && b.height <= v.newest().height {
			return b.txs[k].json(b.infos[k]), nil
		}

		if t := n.waiting(id); t != nil && !v.solid {
			return t.json(nil), nil
		}

		return object{}, nil
	}
}

func getAccount(n *node, v view, body []byte) (any, error) {
	a, ws, known, err := readAccount(v, body)
	if err != nil || !known {
		return object{}, err
	}

	acc := ws.accounts[a]

	out := object{
		"address": hexBytes(prefixedBytes(a)),
		"owner_permission": object{
			"permission_name": "owner",
			"threshold":       1,
			"keys":            []any{object{"address": hexBytes(prefixedBytes(a)), "weight": 1}},
		},
	}.put("balance", ws.balance(a)).
		put("create_time", acc.created).
		put("free_net_usage", acc.freeUsed).
		put("net_usage", acc.netUsed)
	if acc.contract {
		out["type"] = "Contract"
		delete(out, "owner_permission")
	}

	return out, nil
}

func readAccount(v view, body []byte) (a address, ws *workspace, known bool, err error) {
	var in struct{ Address string }
	if err := strictJSON(body, &in); err != nil {
		return a, nil, false, err
	}

	a, ok := addressHex(in.Address)
	if !ok {
		return a, nil, false, errors.New("java.lang.IllegalArgumentException : address is not valid")
	}

	ws, err = v.workspace()

	return a, ws, err == nil && ws.exists(a), err
}

func getAccountResource(n *node, v view, body []byte) (any, error) {
	a, ws, known, err := readAccount(v, body)
	if err != nil || !known {
		return object{}, err
	}

	acc := ws.accounts[a]

	return object{"TotalNetLimit": 43_200_000_000, "TotalEnergyLimit": 180_000_000_000}.
		put(
			"freeNetUsed", acc.freeUsed,
		).put("freeNetLimit", n.params["getFreeNetLimit"]).put("NetUsed", acc.netUsed).put("NetLimit", acc.netLimit).
		put("EnergyUsed", acc.energyUsed).put("EnergyLimit", acc.energyLimit), nil
}

func getChainParameters(n *node, _ view, body []byte) (any, error) {
	list := []any{}
	for key, value := range n.params {
		list = append(list, object{"key": key}.put("value", value))
	}

	return object{"chainParameter": list}, strictJSON(body, &struct{}{})
}

func triggerConstantContract(n *node, v view, body []byte) (any, error) {
	var in struct {
		OwnerAddress    string `json:"owner_address"`
		ContractAddress string `json:"contract_address"`
		Data            string `json:"data"`
		CallValue       int64  `json:"call_value"`
	}
	if err := strictJSON(body, &in); err != nil {
		return object{"result": object{"code": "OTHER_ERROR", "message": hexBytes([]byte(err.Error()))}}, nil
	}

	owner, ok1 := addressHex(in.OwnerAddress)
	contract, ok2 := addressHex(in.ContractAddress)

	data, err := hex.DecodeString(in.Data)
	if !ok1 || !ok2 || err != nil {
		return object{
			"result": object{
				"code":    "OTHER_ERROR",
				"message": hexBytes([]byte("class java.lang.IllegalArgumentException : bad hex")),
			},
		}, nil
	}

	ws, err := v.workspace()
	if err != nil {
		return nil, err
	}

	if !ws.accounts[contract].contract {
		return object{
			"result": object{
				"code":    "CONTRACT_VALIDATE_ERROR",
				"message": hexBytes([]byte("Contract validate error : Smart contract is not exist.")),
			},
		}, nil
	}

	o := n.simulate(ws, v.newest(), owner, contract, in.CallValue, data)

	result, ret := object{"result": true}, object{}
	if o.err != nil {
		result["message"], ret["ret"] = hexBytes([]byte(o.resultText())), "FAILED"
	}

	now := time.Now().UnixMilli()
	id := v.newest().id
	t := &transaction{
		kind:       typeTrigger,
		owner:      owner,
		to:         contract,
		amount:     in.CallValue,
		data:       data,
		refBytes:   id[6:8],
		refHash:    id[8:16],
		expiration: now + 60_000,
		timestamp:  now,
	}
	shown := t.json(nil)
	shown["ret"], shown["visible"] = []any{ret}, false
	delete(shown, "signature")

	return object{
		"result":          result,
		"constant_result": []string{hexBytes(o.result)},
		"transaction":     shown,
	}.put(
		"energy_used", o.used,
	), nil
}

func broadcastHex(n *node, _ view, body []byte) (any, error) {
	var in struct{ Transaction string }
	if err := strictJSON(body, &in); err != nil {
		return nil, err
	}

	b, err := hex.DecodeString(in.Transaction)
	if err != nil {
		return nil, fmt.Errorf("org.bouncycastle.util.encoders.DecoderException : %w", err)
	}

	t, err := parseTransaction(b)
	if err != nil {
		return nil, fmt.Errorf("com.google.protobuf.InvalidProtocolBufferException : %w", err)
	}

	shown, err := json.Marshal(t.json(nil))
	if err != nil {
		return nil, err
	}

	answer := object{
		"result":      true,
		"code":        "SUCCESS",
		"message":     "",
		"transaction": string(shown),
		"txid":        hexBytes(t.id[:]),
	}
	if refused := n.broadcast(t); refused != nil {
		answer["result"], answer["code"], answer["message"] = false, refused.code, refused.message
	}

	return answer, nil
}
