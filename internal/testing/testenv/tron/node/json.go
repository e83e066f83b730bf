package main

// Blocks, transactions and their results as JSON, as java-tron prints them.

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
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

func (b *block) json() object {
	raw := object{}.put("number", int64(b.height)).
		put("timestamp", b.timestamp).
		put("version", int64(blockVersion))
	raw["txTrieRoot"] = hexBytes(b.root[:])
	raw["parentHash"] = hexBytes(b.parent[:])
	raw["witness_address"] = hexBytes(prefixedBytes(b.witness))
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
	switch t.kind {
	case typeTransfer:
		value["to_address"] = hexBytes(prefixedBytes(t.to))
		value.put("amount", t.amount)
	case typeDelegate, typeUndelegate:
		value["receiver_address"] = hexBytes(prefixedBytes(t.to))
		value.put("balance", t.amount)

		if t.resource == energyResource {
			value["resource"] = "ENERGY"
		}
	default:
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

		entry := object{"address": hexBytes(l.Address[:])}
		logs = append(logs, entry.put("topics", topics).put("data", hexBytes(l.Data)))
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

// callJSON prints the outcome of the unsigned transaction t, as triggerconstantcontract does.
func (o outcome) callJSON(t *transaction) object {
	result, ret := object{"result": true}, object{}
	if o.err != nil {
		result["message"], ret["ret"] = hexBytes([]byte(o.resultText())), "FAILED"
	}

	shown := t.json(nil)
	shown["ret"], shown["visible"] = []any{ret}, false
	delete(shown, "signature")

	return object{
		"result":          result,
		"constant_result": []string{hexBytes(o.result)},
		"transaction":     shown,
	}.put("energy_used", o.used)
}
