-- +goose Up

-- Amounts and decimals are digits; nested values are JSON as it was written; nothing is NULL but what has no value.
-- Columns q_... hold the lower case of a text, for searches.

-- {schema} is replaced by the schema that the store was given, or by nothing.

CREATE TABLE {schema}payments_accounts (
  id         TEXT COLLATE "C" NOT NULL,
  idx        BIGINT NOT NULL,
  settings   JSON,
  logo_type  TEXT COLLATE "C" NOT NULL,
  logo       BYTEA,
  created_at TIMESTAMPTZ,
  updated_at TIMESTAMPTZ,
  mac              BYTEA,
  version    BIGINT NOT NULL,
  PRIMARY KEY (id)
);
CREATE UNIQUE INDEX payments_accounts_index ON {schema}payments_accounts (idx);

CREATE TABLE {schema}payments_api_keys (
  id           TEXT COLLATE "C" NOT NULL,
  account_id   TEXT COLLATE "C" NOT NULL,
  livemode     BOOLEAN NOT NULL,
  publishable  BOOLEAN NOT NULL,
  name         TEXT COLLATE "C" NOT NULL,
  hash         BYTEA NOT NULL,
  last4        TEXT COLLATE "C" NOT NULL,
  scopes       JSON,
  allowed_ips  JSON,
  destinations JSON,
  expires_at   TIMESTAMPTZ,
  revoked_at   TIMESTAMPTZ,
  rolled_from  TEXT COLLATE "C" NOT NULL,
  created_at   TIMESTAMPTZ,
  mac              BYTEA,
  version      BIGINT NOT NULL,
  PRIMARY KEY (id)
);
CREATE UNIQUE INDEX payments_api_keys_hash ON {schema}payments_api_keys (hash);
CREATE INDEX payments_api_keys_account ON {schema}payments_api_keys (account_id, id);

CREATE TABLE {schema}payments_idempotency_keys (
  account_id      TEXT COLLATE "C" NOT NULL,
  livemode        BOOLEAN NOT NULL,
  idempotency_key TEXT COLLATE "C" NOT NULL,
  key_id          TEXT COLLATE "C" NOT NULL,
  scopes          JSON,
  fingerprint     BYTEA NOT NULL,
  status          BIGINT NOT NULL,
  sealed_body     BYTEA,
  created_at      TIMESTAMPTZ,
  PRIMARY KEY (account_id, livemode, idempotency_key)
);
CREATE INDEX payments_idempotency_keys_age ON {schema}payments_idempotency_keys (created_at);

CREATE TABLE {schema}payments_counters (
  name TEXT COLLATE "C" NOT NULL,
  next BIGINT NOT NULL,
  PRIMARY KEY (name)
);

CREATE TABLE {schema}payments_leases (
  name       TEXT COLLATE "C" NOT NULL,
  owner      TEXT COLLATE "C" NOT NULL,
  fence      BIGINT NOT NULL,
  updated_at TIMESTAMPTZ,
  PRIMARY KEY (name)
);

CREATE TABLE {schema}payments_invoices (
  id                       TEXT COLLATE "C" NOT NULL,
  account_id               TEXT COLLATE "C" NOT NULL,
  livemode                 BOOLEAN NOT NULL,
  number                   BIGINT NOT NULL,
  kind                     TEXT COLLATE "C" NOT NULL,
  status                   TEXT COLLATE "C" NOT NULL,
  flags                    JSON,
  currency                 TEXT COLLATE "C" NOT NULL,
  price                    TEXT COLLATE "C" NOT NULL,
  options                  JSON,
  selected_option_id       TEXT COLLATE "C" NOT NULL,
  paid_option_id           TEXT COLLATE "C" NOT NULL,
  tolerance_bps            BIGINT NOT NULL,
  accept_late              BOOLEAN NOT NULL,
  order_id                 TEXT COLLATE "C" NOT NULL,
  customer_email           TEXT COLLATE "C" NOT NULL,
  description              TEXT COLLATE "C" NOT NULL,
  metadata                 JSON,
  success_url              TEXT COLLATE "C" NOT NULL,
  cancel_url               TEXT COLLATE "C" NOT NULL,
  expires_at               TIMESTAMPTZ,
  pre_selection_expires_at TIMESTAMPTZ,
  created_at               TIMESTAMPTZ,
  paid_at                  TIMESTAMPTZ,
  expired_at               TIMESTAMPTZ,
  canceled_at              TIMESTAMPTZ,
  refunded_at              TIMESTAMPTZ,
  closed_as                TEXT COLLATE "C" NOT NULL,
  refunds                  JSON,
  simulated                BOOLEAN NOT NULL,
  due_at                   TIMESTAMPTZ,
  sequence                 BIGINT NOT NULL,
  q_order                  TEXT COLLATE "C" NOT NULL,
  q_email                  TEXT COLLATE "C" NOT NULL,
  version                  BIGINT NOT NULL,
  PRIMARY KEY (id)
);
CREATE INDEX payments_invoices_owner ON {schema}payments_invoices (account_id, livemode, id);
CREATE INDEX payments_invoices_status ON {schema}payments_invoices (account_id, livemode, status, id);
CREATE INDEX payments_invoices_order ON {schema}payments_invoices (account_id, livemode, q_order, id) WHERE q_order <> '';
CREATE INDEX payments_invoices_email ON {schema}payments_invoices (account_id, livemode, q_email, id) WHERE q_email <> '';
CREATE INDEX payments_invoices_due ON {schema}payments_invoices (due_at, id) WHERE due_at IS NOT NULL;

CREATE TABLE {schema}payments_invoice_networks (
  account_id TEXT COLLATE "C" NOT NULL,
  livemode   BOOLEAN NOT NULL,
  network    TEXT COLLATE "C" NOT NULL,
  invoice_id TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (account_id, livemode, network, invoice_id)
);

CREATE TABLE {schema}payments_payments (
  id                     TEXT COLLATE "C" NOT NULL,
  account_id             TEXT COLLATE "C" NOT NULL,
  livemode               BOOLEAN NOT NULL,
  status                 TEXT COLLATE "C" NOT NULL,
  invoice_id             TEXT COLLATE "C" NOT NULL,
  option_id              TEXT COLLATE "C" NOT NULL,
  deposit_address_id     TEXT COLLATE "C" NOT NULL,
  invoice_number         BIGINT NOT NULL,
  deposit_address_name   TEXT COLLATE "C" NOT NULL,
  network                TEXT COLLATE "C" NOT NULL,
  asset                  TEXT COLLATE "C" NOT NULL,
  asset_id               TEXT COLLATE "C" NOT NULL,
  contract               TEXT COLLATE "C" NOT NULL,
  decimals               BIGINT NOT NULL,
  address                TEXT COLLATE "C" NOT NULL,
  address_key            TEXT COLLATE "C" NOT NULL,
  from_address           TEXT COLLATE "C" NOT NULL,
  tx_hash                TEXT COLLATE "C" NOT NULL,
  tx_index               BIGINT NOT NULL,
  amount                 TEXT COLLATE "C" NOT NULL,
  block_height           BIGINT NOT NULL,
  block_hash             TEXT COLLATE "C" NOT NULL,
  block_time             TIMESTAMPTZ,
  confirmations_required BIGINT NOT NULL,
  rate                   TEXT COLLATE "C" NOT NULL,
  credit                 TEXT COLLATE "C" NOT NULL,
  usd_value              TEXT COLLATE "C",
  native_usd             TEXT COLLATE "C",
  late                   BOOLEAN NOT NULL,
  simulated              BOOLEAN NOT NULL,
  detected_by            TEXT COLLATE "C" NOT NULL,
  detected_at            TIMESTAMPTZ,
  confirmed_at           TIMESTAMPTZ,
  lost_at                TIMESTAMPTZ,
  due_at                 TIMESTAMPTZ,
  sequence               BIGINT NOT NULL,
  q_tx_hash              TEXT COLLATE "C" NOT NULL,
  q_address              TEXT COLLATE "C" NOT NULL,
  version                BIGINT NOT NULL,
  PRIMARY KEY (id)
);
CREATE INDEX payments_payments_owner ON {schema}payments_payments (account_id, livemode, id);
CREATE INDEX payments_payments_status ON {schema}payments_payments (account_id, livemode, status, id);
CREATE INDEX payments_payments_invoice ON {schema}payments_payments (invoice_id, id) WHERE invoice_id <> '';
CREATE INDEX payments_payments_deposit ON {schema}payments_payments (deposit_address_id, id) WHERE deposit_address_id <> '';
CREATE UNIQUE INDEX payments_payments_transfer ON {schema}payments_payments (network, tx_hash, tx_index, address, asset_id) WHERE tx_hash <> '';
CREATE INDEX payments_payments_unconfirmed ON {schema}payments_payments (network, block_height, id) WHERE status = 'detected' AND block_hash <> '';
CREATE INDEX payments_payments_unmined ON {schema}payments_payments (network, id) WHERE status IN ('detected', 'orphaned') AND block_hash = '';
CREATE INDEX payments_payments_blocks ON {schema}payments_payments (network, block_height, id) WHERE status IN ('detected', 'confirmed') AND block_hash <> '';
CREATE INDEX payments_payments_address ON {schema}payments_payments (network, address, asset_id, id) WHERE status <> 'dropped';
CREATE INDEX payments_payments_due ON {schema}payments_payments (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX payments_payments_q_tx_hash ON {schema}payments_payments (account_id, livemode, q_tx_hash, id) WHERE q_tx_hash <> '';
CREATE INDEX payments_payments_q_address ON {schema}payments_payments (account_id, livemode, q_address, id) WHERE q_address <> '';

CREATE TABLE {schema}payments_addresses (
  space_family       TEXT COLLATE "C" NOT NULL,
  space_livemode     BOOLEAN NOT NULL,
  address            TEXT COLLATE "C" NOT NULL,
  kind               TEXT COLLATE "C" NOT NULL,
  account_id         TEXT COLLATE "C" NOT NULL,
  livemode           BOOLEAN NOT NULL,
  invoice_id         TEXT COLLATE "C" NOT NULL,
  option_id          TEXT COLLATE "C" NOT NULL,
  deposit_address_id TEXT COLLATE "C" NOT NULL,
  network            TEXT COLLATE "C" NOT NULL,
  address_key        TEXT COLLATE "C" NOT NULL,
  created_at         TIMESTAMPTZ,
  checked_at         TIMESTAMPTZ,
  next_check         TIMESTAMPTZ,
  urgent             BOOLEAN NOT NULL,
  PRIMARY KEY (space_family, space_livemode, address)
);
CREATE INDEX payments_addresses_due ON {schema}payments_addresses (network, urgent, next_check, address) WHERE next_check IS NOT NULL;
CREATE INDEX payments_addresses_made ON {schema}payments_addresses (network, kind, created_at, address);

CREATE TABLE {schema}payments_dust (
  network   TEXT COLLATE "C" NOT NULL,
  address   TEXT COLLATE "C" NOT NULL,
  asset_id  TEXT COLLATE "C" NOT NULL,
  amount    TEXT COLLATE "C" NOT NULL,
  transfers BIGINT NOT NULL,
  version   BIGINT NOT NULL,
  PRIMARY KEY (network, address, asset_id)
);

CREATE TABLE {schema}payments_dust_transfers (
  network      TEXT COLLATE "C" NOT NULL,
  tx_hash      TEXT COLLATE "C" NOT NULL,
  tx_index     BIGINT NOT NULL,
  address      TEXT COLLATE "C" NOT NULL,
  asset_id     TEXT COLLATE "C" NOT NULL,
  from_address TEXT COLLATE "C" NOT NULL,
  amount       TEXT COLLATE "C" NOT NULL,
  block_height BIGINT NOT NULL,
  block_hash   TEXT COLLATE "C" NOT NULL,
  block_time   TIMESTAMPTZ,
  PRIMARY KEY (network, tx_hash, tx_index, address, asset_id)
);
CREATE INDEX payments_dust_transfers_address ON {schema}payments_dust_transfers (network, address, asset_id, block_height, tx_hash, tx_index);
CREATE INDEX payments_dust_transfers_height ON {schema}payments_dust_transfers (network, block_height, tx_hash, tx_index);

CREATE TABLE {schema}payments_deposit_addresses (
  id              TEXT COLLATE "C" NOT NULL,
  account_id      TEXT COLLATE "C" NOT NULL,
  livemode        BOOLEAN NOT NULL,
  name            TEXT COLLATE "C" NOT NULL,
  network         TEXT COLLATE "C" NOT NULL,
  address         TEXT COLLATE "C" NOT NULL,
  address_key     TEXT COLLATE "C" NOT NULL,
  token_accounts  JSON,
  status          TEXT COLLATE "C" NOT NULL,
  metadata        JSON,
  last_payment_at TIMESTAMPTZ,
  created_at      TIMESTAMPTZ,
  sequence        BIGINT NOT NULL,
  q_name          TEXT COLLATE "C" NOT NULL,
  q_address       TEXT COLLATE "C" NOT NULL,
  version         BIGINT NOT NULL,
  PRIMARY KEY (id)
);
CREATE INDEX payments_deposit_addresses_owner ON {schema}payments_deposit_addresses (account_id, livemode, id);
CREATE INDEX payments_deposit_addresses_q_name ON {schema}payments_deposit_addresses (account_id, livemode, q_name, id) WHERE q_name <> '';
CREATE INDEX payments_deposit_addresses_q_address ON {schema}payments_deposit_addresses (account_id, livemode, q_address, id) WHERE q_address <> '';

CREATE TABLE {schema}payments_cursors (
  network      TEXT COLLATE "C" NOT NULL,
  at_height    BIGINT NOT NULL,
  at_hash      TEXT COLLATE "C" NOT NULL,
  at_time      TIMESTAMPTZ,
  tip_height   BIGINT NOT NULL,
  tip_hash     TEXT COLLATE "C" NOT NULL,
  tip_time     TIMESTAMPTZ,
  final_height BIGINT NOT NULL,
  final_hash   TEXT COLLATE "C" NOT NULL,
  final_time   TIMESTAMPTZ,
  safe_height  BIGINT NOT NULL,
  safe_hash    TEXT COLLATE "C" NOT NULL,
  safe_time    TIMESTAMPTZ,
  recent       JSON,
  stopped      TEXT COLLATE "C" NOT NULL,
  updated_at   TIMESTAMPTZ,
  version      BIGINT NOT NULL,
  PRIMARY KEY (network)
);

CREATE TABLE {schema}payments_ranges (
  id          TEXT COLLATE "C" NOT NULL,
  network     TEXT COLLATE "C" NOT NULL,
  addresses   JSON,
  next_height BIGINT NOT NULL,
  to_height   BIGINT NOT NULL,
  created_at  TIMESTAMPTZ,
  version     BIGINT NOT NULL,
  PRIMARY KEY (id)
);
CREATE INDEX payments_ranges_network ON {schema}payments_ranges (network, id);

CREATE TABLE {schema}payments_retries (
  id           TEXT COLLATE "C" NOT NULL,
  network      TEXT COLLATE "C" NOT NULL,
  transfer     JSON,
  block_height BIGINT NOT NULL,
  block_hash   TEXT COLLATE "C" NOT NULL,
  block_time   TIMESTAMPTZ,
  error        TEXT COLLATE "C" NOT NULL,
  attempts     BIGINT NOT NULL,
  due_at       TIMESTAMPTZ,
  created_at   TIMESTAMPTZ,
  version      BIGINT NOT NULL,
  PRIMARY KEY (id)
);
CREATE INDEX payments_retries_network ON {schema}payments_retries (network, id);

CREATE TABLE {schema}payments_transactions (
  id           TEXT COLLATE "C" NOT NULL,
  account_id   TEXT COLLATE "C" NOT NULL,
  livemode     BOOLEAN NOT NULL,
  network      TEXT COLLATE "C" NOT NULL,
  kind         TEXT COLLATE "C" NOT NULL,
  object_id    TEXT COLLATE "C" NOT NULL,
  instruction  JSON,
  from_address TEXT COLLATE "C" NOT NULL,
  state        TEXT COLLATE "C" NOT NULL,
  attempts     JSON,
  batch_members JSON,
  batched_by   TEXT COLLATE "C" NOT NULL,
  nonce        BIGINT NOT NULL,
  tx_hash      TEXT COLLATE "C" NOT NULL,
  block_height BIGINT NOT NULL,
  block_hash   TEXT COLLATE "C" NOT NULL,
  block_time   TIMESTAMPTZ,
  fee          TEXT COLLATE "C" NOT NULL,
  transfers    JSON,
  failure      TEXT COLLATE "C" NOT NULL,
  conflict_tx_hash TEXT COLLATE "C" NOT NULL,
  conflict_own BOOLEAN NOT NULL,
  give_up_at   TIMESTAMPTZ,
  due_at       TIMESTAMPTZ,
  created_at   TIMESTAMPTZ,
  version      BIGINT NOT NULL,
  PRIMARY KEY (id)
);
CREATE INDEX payments_transactions_object ON {schema}payments_transactions (object_id, id);
CREATE INDEX payments_transactions_network ON {schema}payments_transactions (network, id);
CREATE INDEX payments_transactions_due ON {schema}payments_transactions (network, id) WHERE due_at IS NOT NULL;
CREATE INDEX payments_transactions_wallet ON {schema}payments_transactions (network, from_address, id) WHERE state NOT IN ('confirmed', 'failed');

CREATE TABLE {schema}payments_attempt_hashes (
  network        TEXT COLLATE "C" NOT NULL,
  hash           TEXT COLLATE "C" NOT NULL,
  transaction_id TEXT COLLATE "C" NOT NULL,
  kind           TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (network, hash)
);

CREATE TABLE {schema}payments_wallets (
  network     TEXT COLLATE "C" NOT NULL,
  address     TEXT COLLATE "C" NOT NULL,
  address_key TEXT COLLATE "C" NOT NULL,
  next_nonce  BIGINT NOT NULL,
  since       BIGINT NOT NULL,
  epoch       BIGINT NOT NULL,
  frozen      TEXT COLLATE "C" NOT NULL,
  frozen_by   TEXT COLLATE "C" NOT NULL,
  frozen_at   TIMESTAMPTZ,
  version     BIGINT NOT NULL,
  PRIMARY KEY (network, address)
);
CREATE INDEX payments_wallets_frozen ON {schema}payments_wallets (network, address) WHERE frozen <> '';

CREATE TABLE {schema}payments_balances (
  network      TEXT COLLATE "C" NOT NULL,
  address      TEXT COLLATE "C" NOT NULL,
  asset_id     TEXT COLLATE "C" NOT NULL,
  account_id   TEXT COLLATE "C" NOT NULL,
  livemode     BOOLEAN NOT NULL,
  on_chain     TEXT COLLATE "C" NOT NULL,
  at_height    BIGINT NOT NULL,
  at_hash      TEXT COLLATE "C" NOT NULL,
  at_time      TIMESTAMPTZ,
  reserved     TEXT COLLATE "C" NOT NULL,
  reservations JSON,
  version      BIGINT NOT NULL,
  PRIMARY KEY (network, address, asset_id)
);
CREATE INDEX payments_balances_owner ON {schema}payments_balances (account_id, livemode, network, asset_id, address);

CREATE TABLE {schema}payments_outgoing (
  network      TEXT COLLATE "C" NOT NULL,
  spend_key    TEXT COLLATE "C" NOT NULL,
  address      TEXT COLLATE "C" NOT NULL,
  nonce        BIGINT NOT NULL,
  coin_hash    TEXT COLLATE "C" NOT NULL,
  coin_vout    BIGINT NOT NULL,
  tx_hash      TEXT COLLATE "C" NOT NULL,
  block_height BIGINT NOT NULL,
  block_hash   TEXT COLLATE "C" NOT NULL,
  block_time   TIMESTAMPTZ,
  failed       BOOLEAN NOT NULL,
  unrecorded   BOOLEAN NOT NULL,
  transfers    JSON,
  fee          TEXT COLLATE "C" NOT NULL,
  acknowledged TEXT COLLATE "C" NOT NULL,
  version      BIGINT NOT NULL,
  PRIMARY KEY (network, spend_key)
);
CREATE INDEX payments_outgoing_hash ON {schema}payments_outgoing (network, tx_hash);
CREATE INDEX payments_outgoing_address ON {schema}payments_outgoing (network, address, block_height, spend_key);
CREATE INDEX payments_outgoing_height ON {schema}payments_outgoing (network, block_height, spend_key);
CREATE INDEX payments_outgoing_unrecorded ON {schema}payments_outgoing (network, block_height, spend_key) WHERE unrecorded;

CREATE TABLE {schema}payments_coins (
  network     TEXT COLLATE "C" NOT NULL,
  tx_hash     TEXT COLLATE "C" NOT NULL,
  vout        BIGINT NOT NULL,
  address     TEXT COLLATE "C" NOT NULL,
  address_key TEXT COLLATE "C" NOT NULL,
  amount      TEXT COLLATE "C" NOT NULL,
  height      BIGINT NOT NULL,
  reserved_by TEXT COLLATE "C" NOT NULL,
  spent_by    TEXT COLLATE "C" NOT NULL,
  spent_at    BIGINT NOT NULL,
  depth       BIGINT NOT NULL,
  mature_at   BIGINT NOT NULL,
  version     BIGINT NOT NULL,
  PRIMARY KEY (network, tx_hash, vout)
);
CREATE INDEX payments_coins_unspent ON {schema}payments_coins (network, address, tx_hash, vout) WHERE spent_by = '';
CREATE INDEX payments_coins_made ON {schema}payments_coins (network, height, tx_hash, vout);
CREATE INDEX payments_coins_spent ON {schema}payments_coins (network, spent_at, tx_hash, vout) WHERE spent_at > 0;

CREATE TABLE {schema}payments_settlements (
  id                    TEXT COLLATE "C" NOT NULL,
  account_id            TEXT COLLATE "C" NOT NULL,
  livemode              BOOLEAN NOT NULL,
  status                TEXT COLLATE "C" NOT NULL,
  payment_id            TEXT COLLATE "C" NOT NULL,
  invoice_id            TEXT COLLATE "C" NOT NULL,
  deposit_address_id    TEXT COLLATE "C" NOT NULL,
  network               TEXT COLLATE "C" NOT NULL,
  asset                 TEXT COLLATE "C" NOT NULL,
  asset_id              TEXT COLLATE "C" NOT NULL,
  native_asset          TEXT COLLATE "C" NOT NULL,
  address               TEXT COLLATE "C" NOT NULL,
  address_key           TEXT COLLATE "C" NOT NULL,
  gross                 TEXT COLLATE "C" NOT NULL,
  usd_value             TEXT COLLATE "C" NOT NULL,
  fee_bps               BIGINT NOT NULL,
  fee_usd               TEXT COLLATE "C" NOT NULL,
  native_price          TEXT COLLATE "C" NOT NULL,
  fee_native            TEXT COLLATE "C" NOT NULL,
  fee_source            TEXT COLLATE "C" NOT NULL,
  fee_paid              TEXT COLLATE "C" NOT NULL,
  fee_carried           TEXT COLLATE "C" NOT NULL,
  carried_in            TEXT COLLATE "C" NOT NULL,
  required_native       TEXT COLLATE "C",
  master_wallet_address TEXT COLLATE "C" NOT NULL,
  reason                TEXT COLLATE "C" NOT NULL,
  fee_tx                TEXT COLLATE "C" NOT NULL,
  topup_tx              TEXT COLLATE "C" NOT NULL,
  sweep_tx              TEXT COLLATE "C" NOT NULL,
  network_fees          TEXT COLLATE "C" NOT NULL,
  net_released          TEXT COLLATE "C",
  simulated             BOOLEAN NOT NULL,
  sweep_id            TEXT COLLATE "C" NOT NULL,
  confirmed_at          TIMESTAMPTZ,
  held_since            TIMESTAMPTZ,
  released_at           TIMESTAMPTZ,
  failed_at             TIMESTAMPTZ,
  created_at            TIMESTAMPTZ,
  due_at                TIMESTAMPTZ,
  sequence              BIGINT NOT NULL,
  version               BIGINT NOT NULL,
  PRIMARY KEY (id)
);
CREATE INDEX payments_settlements_owner ON {schema}payments_settlements (account_id, livemode, id);
CREATE INDEX payments_settlements_status ON {schema}payments_settlements (account_id, livemode, status, id);
CREATE INDEX payments_settlements_payment ON {schema}payments_settlements (payment_id, id);
CREATE INDEX payments_settlements_invoice ON {schema}payments_settlements (invoice_id, id) WHERE invoice_id <> '';
CREATE INDEX payments_settlements_deposit ON {schema}payments_settlements (deposit_address_id, id) WHERE deposit_address_id <> '';
CREATE INDEX payments_settlements_due ON {schema}payments_settlements (network, id) WHERE status IN ('pending', 'held', 'failed') AND due_at IS NOT NULL;
CREATE INDEX payments_settlements_address ON {schema}payments_settlements (network, address, asset_id, id) WHERE status IN ('pending', 'held');

CREATE TABLE {schema}payments_sweeps (
  id             TEXT COLLATE "C" NOT NULL,
  account_id     TEXT COLLATE "C" NOT NULL,
  livemode       BOOLEAN NOT NULL,
  network        TEXT COLLATE "C" NOT NULL,
  asset_id       TEXT COLLATE "C" NOT NULL,
  address        TEXT COLLATE "C" NOT NULL,
  address_key    TEXT COLLATE "C" NOT NULL,
  master_address TEXT COLLATE "C" NOT NULL,
  master_key     TEXT COLLATE "C" NOT NULL,
  settlement_ids JSON,
  amount         TEXT COLLATE "C" NOT NULL,
  fee            TEXT COLLATE "C" NOT NULL,
  carry_in       TEXT COLLATE "C" NOT NULL,
  fee_address    TEXT COLLATE "C" NOT NULL,
  residue_in     TEXT COLLATE "C" NOT NULL,
  residue_out    TEXT COLLATE "C" NOT NULL,
  steps          JSON,
  done           BOOLEAN NOT NULL,
  due_at         TIMESTAMPTZ,
  created_at     TIMESTAMPTZ,
  version        BIGINT NOT NULL,
  PRIMARY KEY (id)
);
CREATE INDEX payments_sweeps_network ON {schema}payments_sweeps (network, done, id);

CREATE TABLE {schema}payments_carried_fees (
  account_id TEXT COLLATE "C" NOT NULL,
  livemode   BOOLEAN NOT NULL,
  network    TEXT COLLATE "C" NOT NULL,
  amount     TEXT COLLATE "C" NOT NULL,
  version    BIGINT NOT NULL,
  PRIMARY KEY (account_id, livemode, network)
);

CREATE TABLE {schema}payments_residues (
  network TEXT COLLATE "C" NOT NULL,
  address TEXT COLLATE "C" NOT NULL,
  amount  TEXT COLLATE "C" NOT NULL,
  owed    TEXT COLLATE "C" NOT NULL,
  version BIGINT NOT NULL,
  PRIMARY KEY (network, address)
);

CREATE TABLE {schema}payments_payouts (
  id              TEXT COLLATE "C" NOT NULL,
  account_id      TEXT COLLATE "C" NOT NULL,
  livemode        BOOLEAN NOT NULL,
  status          TEXT COLLATE "C" NOT NULL,
  network         TEXT COLLATE "C" NOT NULL,
  asset           TEXT COLLATE "C" NOT NULL,
  asset_id        TEXT COLLATE "C" NOT NULL,
  contract        TEXT COLLATE "C" NOT NULL,
  decimals        BIGINT NOT NULL,
  amount          TEXT COLLATE "C" NOT NULL,
  destination     TEXT COLLATE "C" NOT NULL,
  memo            TEXT COLLATE "C" NOT NULL,
  tx_hash         TEXT COLLATE "C" NOT NULL,
  refund_id       TEXT COLLATE "C" NOT NULL,
  failure_code    TEXT COLLATE "C" NOT NULL,
  failure_message TEXT COLLATE "C" NOT NULL,
  conflict_tx_hash TEXT COLLATE "C" NOT NULL,
  conflict_own    BOOLEAN NOT NULL,
  requested_by    JSON,
  native_asset    TEXT COLLATE "C" NOT NULL,
  native_decimals BIGINT NOT NULL,
  max_network_fee TEXT COLLATE "C" NOT NULL,
  network_fee     TEXT COLLATE "C",
  transaction_id  TEXT COLLATE "C" NOT NULL,
  created_at      TIMESTAMPTZ,
  confirmed_at    TIMESTAMPTZ,
  failed_at       TIMESTAMPTZ,
  approval        JSON,
  mac             BYTEA,
  sequence        BIGINT NOT NULL,
  q_tx_hash       TEXT COLLATE "C" NOT NULL,
  q_destination   TEXT COLLATE "C" NOT NULL,
  version         BIGINT NOT NULL,
  PRIMARY KEY (id)
);
CREATE INDEX payments_payouts_owner ON {schema}payments_payouts (account_id, livemode, id);
CREATE INDEX payments_payouts_status ON {schema}payments_payouts (account_id, livemode, status, id);
CREATE INDEX payments_payouts_age ON {schema}payments_payouts (account_id, livemode, created_at) WHERE refund_id = '';
CREATE INDEX payments_payouts_q_tx_hash ON {schema}payments_payouts (account_id, livemode, q_tx_hash, id) WHERE q_tx_hash <> '';
CREATE INDEX payments_payouts_q_destination ON {schema}payments_payouts (account_id, livemode, q_destination, id) WHERE q_destination <> '';

CREATE TABLE {schema}payments_refunds (
  id           TEXT COLLATE "C" NOT NULL,
  account_id   TEXT COLLATE "C" NOT NULL,
  livemode     BOOLEAN NOT NULL,
  status       TEXT COLLATE "C" NOT NULL,
  invoice_id   TEXT COLLATE "C" NOT NULL,
  payment_id   TEXT COLLATE "C" NOT NULL,
  payout_id    TEXT COLLATE "C" NOT NULL,
  network      TEXT COLLATE "C" NOT NULL,
  asset        TEXT COLLATE "C" NOT NULL,
  asset_id     TEXT COLLATE "C" NOT NULL,
  contract     TEXT COLLATE "C" NOT NULL,
  decimals     BIGINT NOT NULL,
  amount       TEXT COLLATE "C" NOT NULL,
  destination  TEXT COLLATE "C" NOT NULL,
  reason       TEXT COLLATE "C" NOT NULL,
  metadata     JSON,
  requested_by JSON,
  simulated    BOOLEAN NOT NULL,
  failure_code TEXT COLLATE "C" NOT NULL,
  created_at   TIMESTAMPTZ,
  succeeded_at TIMESTAMPTZ,
  failed_at    TIMESTAMPTZ,
  sequence     BIGINT NOT NULL,
  version      BIGINT NOT NULL,
  PRIMARY KEY (id)
);
CREATE INDEX payments_refunds_owner ON {schema}payments_refunds (account_id, livemode, id);
CREATE INDEX payments_refunds_status ON {schema}payments_refunds (account_id, livemode, status, id);
CREATE INDEX payments_refunds_invoice ON {schema}payments_refunds (invoice_id, id) WHERE invoice_id <> '';
CREATE INDEX payments_refunds_payment ON {schema}payments_refunds (payment_id, id) WHERE payment_id <> '';

CREATE TABLE {schema}payments_endpoints (
  id                         TEXT COLLATE "C" NOT NULL,
  account_id                 TEXT COLLATE "C" NOT NULL,
  livemode                   BOOLEAN NOT NULL,
  url                        TEXT COLLATE "C" NOT NULL,
  description                TEXT COLLATE "C" NOT NULL,
  events                     JSON,
  status                     TEXT COLLATE "C" NOT NULL,
  sealed_secret              BYTEA,
  sealed_previous            BYTEA,
  secret_last4               TEXT COLLATE "C" NOT NULL,
  previous_secret_expires_at TIMESTAMPTZ,
  failing_since              TIMESTAMPTZ,
  last_success_at            TIMESTAMPTZ,
  first_failure_at           TIMESTAMPTZ,
  created_at                 TIMESTAMPTZ,
  updated_at                 TIMESTAMPTZ,
  sequence                   BIGINT NOT NULL,
  version                    BIGINT NOT NULL,
  PRIMARY KEY (id)
);
CREATE INDEX payments_endpoints_owner ON {schema}payments_endpoints (account_id, livemode, id);

CREATE TABLE {schema}payments_events (
  id                      TEXT COLLATE "C" NOT NULL,
  account_id              TEXT COLLATE "C" NOT NULL,
  livemode                BOOLEAN NOT NULL,
  type                    TEXT COLLATE "C" NOT NULL,
  object_id               TEXT COLLATE "C" NOT NULL,
  invoice_id              TEXT COLLATE "C" NOT NULL,
  payment_id              TEXT COLLATE "C" NOT NULL,
  sequence                BIGINT NOT NULL,
  envelope                BYTEA,
  created_at              TIMESTAMPTZ,
  request_id              TEXT COLLATE "C" NOT NULL,
  request_idempotency_key TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (id)
);
CREATE INDEX payments_events_owner ON {schema}payments_events (account_id, livemode, id);
CREATE INDEX payments_events_object ON {schema}payments_events (object_id, id);
CREATE INDEX payments_events_age ON {schema}payments_events (created_at, id);

-- A delivery is claimed and ends soon after it was made: with half of a page free, its claim writes no index.
CREATE TABLE {schema}payments_deliveries (
  id              TEXT COLLATE "C" NOT NULL,
  account_id      TEXT COLLATE "C" NOT NULL,
  livemode        BOOLEAN NOT NULL,
  event_id        TEXT COLLATE "C" NOT NULL,
  event_type      TEXT COLLATE "C" NOT NULL,
  invoice_id      TEXT COLLATE "C" NOT NULL,
  payment_id      TEXT COLLATE "C" NOT NULL,
  endpoint_id     TEXT COLLATE "C" NOT NULL,
  cause           TEXT COLLATE "C" NOT NULL,
  status          TEXT COLLATE "C" NOT NULL,
  attempts        BIGINT NOT NULL,
  log             JSON,
  next_attempt_at TIMESTAMPTZ,
  last_attempt_at TIMESTAMPTZ,
  delivered_at    TIMESTAMPTZ,
  claimed_by      TEXT COLLATE "C" NOT NULL,
  claimed_until   TIMESTAMPTZ,
  lapsed_at       TIMESTAMPTZ,
  fence           BIGINT NOT NULL,
  created_at      TIMESTAMPTZ,
  version         BIGINT NOT NULL,
  PRIMARY KEY (id)
) WITH (fillfactor = 50);
CREATE INDEX payments_deliveries_owner ON {schema}payments_deliveries (account_id, livemode, id);
CREATE INDEX payments_deliveries_event ON {schema}payments_deliveries (event_id, id);
CREATE INDEX payments_deliveries_endpoint ON {schema}payments_deliveries (endpoint_id, id);
CREATE INDEX payments_deliveries_pending ON {schema}payments_deliveries (endpoint_id, next_attempt_at, id) WHERE status = 'pending';
CREATE INDEX payments_deliveries_ended ON {schema}payments_deliveries (created_at, id) WHERE status <> 'pending';
