-- +goose Up
{PROLOGUE}

-- Why something waits or failed, for people. The indexes are those of store.AttentionReader.
ALTER TABLE {transactions} ADD COLUMN waits {TEXT} NOT NULL DEFAULT '';
ALTER TABLE {transactions} ADD COLUMN waiting_since {TIME};
ALTER TABLE {settlements} ADD COLUMN reason_message {TEXT} NOT NULL DEFAULT '';
ALTER TABLE {settlements} ADD COLUMN waiting_since {TIME};
ALTER TABLE {payouts} ADD COLUMN reason_message {TEXT} NOT NULL DEFAULT '';
ALTER TABLE {payouts} ADD COLUMN waiting_since {TIME};
CREATE INDEX payments_settlements_attention ON {settlements} (status, network) {WHERE status IN ('held', 'failed')};
CREATE INDEX payments_settlements_waiting ON {settlements} (waiting_since) {WHERE waiting_since IS NOT NULL};
CREATE INDEX payments_payouts_failed ON {payouts} (failed_at) {WHERE failed_at IS NOT NULL};
CREATE INDEX payments_payouts_waiting ON {payouts} (waiting_since) {WHERE waiting_since IS NOT NULL};
