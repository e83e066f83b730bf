-- +goose Up

-- Amounts and decimals are digits; times are microseconds since 1970 in UTC; yes and no are 1 and 0; nested values are JSON; nothing is NULL but what has no value.
-- Columns q_... hold the lower case of a text, for searches.

CREATE TABLE payments_accounts (
  id         TEXT NOT NULL,
  idx        INTEGER NOT NULL,
  settings   TEXT,
  logo_type  TEXT NOT NULL,
  logo       BLOB,
  created_at INTEGER,
  updated_at INTEGER,
  mac              BLOB,
  version    INTEGER NOT NULL,
  PRIMARY KEY (id)
) STRICT;
CREATE UNIQUE INDEX payments_accounts_index ON payments_accounts (idx);

CREATE TABLE payments_api_keys (
  id           TEXT NOT NULL,
  account_id   TEXT NOT NULL,
  livemode     INTEGER NOT NULL,
  publishable  INTEGER NOT NULL,
  name         TEXT NOT NULL,
  hash         BLOB NOT NULL,
  last4        TEXT NOT NULL,
  scopes       TEXT,
  allowed_ips  TEXT,
  destinations TEXT,
  expires_at   INTEGER,
  revoked_at   INTEGER,
  rolled_from  TEXT NOT NULL,
  created_at   INTEGER,
  mac              BLOB,
  version      INTEGER NOT NULL,
  PRIMARY KEY (id)
) STRICT;
CREATE UNIQUE INDEX payments_api_keys_hash ON payments_api_keys (hash);
CREATE INDEX payments_api_keys_account ON payments_api_keys (account_id, id);

CREATE TABLE payments_idempotency_keys (
  account_id      TEXT NOT NULL,
  livemode        INTEGER NOT NULL,
  idempotency_key TEXT NOT NULL,
  key_id          TEXT NOT NULL,
  scopes          TEXT,
  fingerprint     BLOB NOT NULL,
  status          INTEGER NOT NULL,
  sealed_body     BLOB,
  created_at      INTEGER,
  PRIMARY KEY (account_id, livemode, idempotency_key)
) STRICT;
CREATE INDEX payments_idempotency_keys_age ON payments_idempotency_keys (created_at);

CREATE TABLE payments_counters (
  name TEXT NOT NULL,
  next INTEGER NOT NULL,
  PRIMARY KEY (name)
) STRICT, WITHOUT ROWID;

CREATE TABLE payments_leases (
  name       TEXT NOT NULL,
  owner      TEXT NOT NULL,
  fence      INTEGER NOT NULL,
  updated_at INTEGER,
  PRIMARY KEY (name)
) STRICT, WITHOUT ROWID;

CREATE TABLE payments_invoices (
  id                       TEXT NOT NULL,
  account_id               TEXT NOT NULL,
  livemode                 INTEGER NOT NULL,
  number                   INTEGER NOT NULL,
  kind                     TEXT NOT NULL,
  status                   TEXT NOT NULL,
  flags                    TEXT,
  currency                 TEXT NOT NULL,
  price                    TEXT NOT NULL,
  options                  TEXT,
  selected_option_id       TEXT NOT NULL,
  paid_option_id           TEXT NOT NULL,
  tolerance_bps            INTEGER NOT NULL,
  accept_late              INTEGER NOT NULL,
  order_id                 TEXT NOT NULL,
  customer_email           TEXT NOT NULL,
  description              TEXT NOT NULL,
  metadata                 TEXT,
  success_url              TEXT NOT NULL,
  cancel_url               TEXT NOT NULL,
  expires_at               INTEGER,
  pre_selection_expires_at INTEGER,
  created_at               INTEGER,
  paid_at                  INTEGER,
  expired_at               INTEGER,
  canceled_at              INTEGER,
  refunded_at              INTEGER,
  closed_as                TEXT NOT NULL,
  refunds                  TEXT,
  simulated                INTEGER NOT NULL,
  due_at                   INTEGER,
  sequence                 INTEGER NOT NULL,
  q_order                  TEXT NOT NULL,
  q_email                  TEXT NOT NULL,
  version                  INTEGER NOT NULL,
  PRIMARY KEY (id)
) STRICT;
CREATE INDEX payments_invoices_owner ON payments_invoices (account_id, livemode, id);
CREATE INDEX payments_invoices_status ON payments_invoices (account_id, livemode, status, id);
CREATE INDEX payments_invoices_order ON payments_invoices (account_id, livemode, q_order, id) WHERE q_order <> '';
CREATE INDEX payments_invoices_email ON payments_invoices (account_id, livemode, q_email, id) WHERE q_email <> '';
CREATE INDEX payments_invoices_due ON payments_invoices (due_at, id) WHERE due_at IS NOT NULL;

CREATE TABLE payments_invoice_networks (
  account_id TEXT NOT NULL,
  livemode   INTEGER NOT NULL,
  network    TEXT NOT NULL,
  invoice_id TEXT NOT NULL,
  PRIMARY KEY (account_id, livemode, network, invoice_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE payments_payments (
  id                     TEXT NOT NULL,
  account_id             TEXT NOT NULL,
  livemode               INTEGER NOT NULL,
  status                 TEXT NOT NULL,
  invoice_id             TEXT NOT NULL,
  option_id              TEXT NOT NULL,
  deposit_address_id     TEXT NOT NULL,
  invoice_number         INTEGER NOT NULL,
  deposit_address_name   TEXT NOT NULL,
  network                TEXT NOT NULL,
  asset                  TEXT NOT NULL,
  asset_id               TEXT NOT NULL,
  contract               TEXT NOT NULL,
  decimals               INTEGER NOT NULL,
  address                TEXT NOT NULL,
  address_key            TEXT NOT NULL,
  from_address           TEXT NOT NULL,
  tx_hash                TEXT NOT NULL,
  tx_index               INTEGER NOT NULL,
  amount                 TEXT NOT NULL,
  block_height           INTEGER NOT NULL,
  block_hash             TEXT NOT NULL,
  block_time             INTEGER,
  confirmations_required INTEGER NOT NULL,
  rate                   TEXT NOT NULL,
  credit                 TEXT NOT NULL,
  usd_value              TEXT,
  native_usd             TEXT,
  late                   INTEGER NOT NULL,
  simulated              INTEGER NOT NULL,
  detected_by            TEXT NOT NULL,
  detected_at            INTEGER,
  confirmed_at           INTEGER,
  lost_at                INTEGER,
  due_at                 INTEGER,
  sequence               INTEGER NOT NULL,
  q_tx_hash              TEXT NOT NULL,
  q_address              TEXT NOT NULL,
  version                INTEGER NOT NULL,
  PRIMARY KEY (id)
) STRICT;
CREATE INDEX payments_payments_owner ON payments_payments (account_id, livemode, id);
CREATE INDEX payments_payments_status ON payments_payments (account_id, livemode, status, id);
CREATE INDEX payments_payments_invoice ON payments_payments (invoice_id, id) WHERE invoice_id <> '';
CREATE INDEX payments_payments_deposit ON payments_payments (deposit_address_id, id) WHERE deposit_address_id <> '';
CREATE UNIQUE INDEX payments_payments_transfer ON payments_payments (network, tx_hash, tx_index, address, asset_id) WHERE tx_hash <> '';
CREATE INDEX payments_payments_unconfirmed ON payments_payments (network, block_height, id) WHERE status = 'detected' AND block_hash <> '';
CREATE INDEX payments_payments_unmined ON payments_payments (network, id) WHERE status IN ('detected', 'orphaned') AND block_hash = '';
CREATE INDEX payments_payments_blocks ON payments_payments (network, block_height, id) WHERE status IN ('detected', 'confirmed') AND block_hash <> '';
CREATE INDEX payments_payments_address ON payments_payments (network, address, asset_id, id) WHERE status <> 'dropped';
CREATE INDEX payments_payments_due ON payments_payments (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX payments_payments_q_tx_hash ON payments_payments (account_id, livemode, q_tx_hash, id) WHERE q_tx_hash <> '';
CREATE INDEX payments_payments_q_address ON payments_payments (account_id, livemode, q_address, id) WHERE q_address <> '';

CREATE TABLE payments_addresses (
  space_family       TEXT NOT NULL,
  space_livemode     INTEGER NOT NULL,
  address            TEXT NOT NULL,
  kind               TEXT NOT NULL,
  account_id         TEXT NOT NULL,
  livemode           INTEGER NOT NULL,
  invoice_id         TEXT NOT NULL,
  option_id          TEXT NOT NULL,
  deposit_address_id TEXT NOT NULL,
  network            TEXT NOT NULL,
  address_key        TEXT NOT NULL,
  created_at         INTEGER,
  checked_at         INTEGER,
  next_check         INTEGER,
  urgent             INTEGER NOT NULL,
  PRIMARY KEY (space_family, space_livemode, address)
) STRICT, WITHOUT ROWID;
CREATE INDEX payments_addresses_due ON payments_addresses (network, urgent, next_check, address) WHERE next_check IS NOT NULL;
CREATE INDEX payments_addresses_made ON payments_addresses (network, kind, created_at, address);

CREATE TABLE payments_dust (
  network   TEXT NOT NULL,
  address   TEXT NOT NULL,
  asset_id  TEXT NOT NULL,
  amount    TEXT NOT NULL,
  transfers INTEGER NOT NULL,
  version   INTEGER NOT NULL,
  PRIMARY KEY (network, address, asset_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE payments_dust_transfers (
  network      TEXT NOT NULL,
  tx_hash      TEXT NOT NULL,
  tx_index     INTEGER NOT NULL,
  address      TEXT NOT NULL,
  asset_id     TEXT NOT NULL,
  from_address TEXT NOT NULL,
  amount       TEXT NOT NULL,
  block_height INTEGER NOT NULL,
  block_hash   TEXT NOT NULL,
  block_time   INTEGER,
  PRIMARY KEY (network, tx_hash, tx_index, address, asset_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX payments_dust_transfers_address ON payments_dust_transfers (network, address, asset_id, block_height, tx_hash, tx_index);
CREATE INDEX payments_dust_transfers_height ON payments_dust_transfers (network, block_height, tx_hash, tx_index);

CREATE TABLE payments_deposit_addresses (
  id              TEXT NOT NULL,
  account_id      TEXT NOT NULL,
  livemode        INTEGER NOT NULL,
  name            TEXT NOT NULL,
  network         TEXT NOT NULL,
  address         TEXT NOT NULL,
  address_key     TEXT NOT NULL,
  token_accounts  TEXT,
  status          TEXT NOT NULL,
  metadata        TEXT,
  last_payment_at INTEGER,
  created_at      INTEGER,
  sequence        INTEGER NOT NULL,
  q_name          TEXT NOT NULL,
  q_address       TEXT NOT NULL,
  version         INTEGER NOT NULL,
  PRIMARY KEY (id)
) STRICT;
CREATE INDEX payments_deposit_addresses_owner ON payments_deposit_addresses (account_id, livemode, id);
CREATE INDEX payments_deposit_addresses_q_name ON payments_deposit_addresses (account_id, livemode, q_name, id) WHERE q_name <> '';
CREATE INDEX payments_deposit_addresses_q_address ON payments_deposit_addresses (account_id, livemode, q_address, id) WHERE q_address <> '';

CREATE TABLE payments_cursors (
  network      TEXT NOT NULL,
  at_height    INTEGER NOT NULL,
  at_hash      TEXT NOT NULL,
  at_time      INTEGER,
  tip_height   INTEGER NOT NULL,
  tip_hash     TEXT NOT NULL,
  tip_time     INTEGER,
  final_height INTEGER NOT NULL,
  final_hash   TEXT NOT NULL,
  final_time   INTEGER,
  safe_height  INTEGER NOT NULL,
  safe_hash    TEXT NOT NULL,
  safe_time    INTEGER,
  recent       TEXT,
  stopped      TEXT NOT NULL,
  updated_at   INTEGER,
  version      INTEGER NOT NULL,
  PRIMARY KEY (network)
) STRICT;

CREATE TABLE payments_ranges (
  id          TEXT NOT NULL,
  network     TEXT NOT NULL,
  addresses   TEXT,
  next_height INTEGER NOT NULL,
  to_height   INTEGER NOT NULL,
  created_at  INTEGER,
  version     INTEGER NOT NULL,
  PRIMARY KEY (id)
) STRICT;
CREATE INDEX payments_ranges_network ON payments_ranges (network, id);

CREATE TABLE payments_retries (
  id           TEXT NOT NULL,
  network      TEXT NOT NULL,
  transfer     TEXT,
  block_height INTEGER NOT NULL,
  block_hash   TEXT NOT NULL,
  block_time   INTEGER,
  error        TEXT NOT NULL,
  attempts     INTEGER NOT NULL,
  due_at       INTEGER,
  created_at   INTEGER,
  version      INTEGER NOT NULL,
  PRIMARY KEY (id)
) STRICT;
CREATE INDEX payments_retries_network ON payments_retries (network, id);

CREATE TABLE payments_transactions (
  id           TEXT NOT NULL,
  account_id   TEXT NOT NULL,
  livemode     INTEGER NOT NULL,
  network      TEXT NOT NULL,
  kind         TEXT NOT NULL,
  object_id    TEXT NOT NULL,
  instruction  TEXT,
  from_address TEXT NOT NULL,
  state        TEXT NOT NULL,
  attempts     TEXT,
  batch_members TEXT,
  batched_by   TEXT NOT NULL,
  nonce        INTEGER NOT NULL,
  tx_hash      TEXT NOT NULL,
  block_height INTEGER NOT NULL,
  block_hash   TEXT NOT NULL,
  block_time   INTEGER,
  fee          TEXT NOT NULL,
  transfers    TEXT,
  failure      TEXT NOT NULL,
  conflict_tx_hash TEXT NOT NULL,
  conflict_own INTEGER NOT NULL,
  give_up_at   INTEGER,
  due_at       INTEGER,
  created_at   INTEGER,
  version      INTEGER NOT NULL,
  PRIMARY KEY (id)
) STRICT;
CREATE INDEX payments_transactions_object ON payments_transactions (object_id, id);
CREATE INDEX payments_transactions_network ON payments_transactions (network, id);
CREATE INDEX payments_transactions_due ON payments_transactions (network, id) WHERE due_at IS NOT NULL;
CREATE INDEX payments_transactions_wallet ON payments_transactions (network, from_address, id) WHERE state NOT IN ('confirmed', 'failed');

CREATE TABLE payments_attempt_hashes (
  network        TEXT NOT NULL,
  hash           TEXT NOT NULL,
  transaction_id TEXT NOT NULL,
  kind           TEXT NOT NULL,
  PRIMARY KEY (network, hash)
) STRICT, WITHOUT ROWID;

CREATE TABLE payments_wallets (
  network     TEXT NOT NULL,
  address     TEXT NOT NULL,
  address_key TEXT NOT NULL,
  next_nonce  INTEGER NOT NULL,
  since       INTEGER NOT NULL,
  epoch       INTEGER NOT NULL,
  frozen      TEXT NOT NULL,
  frozen_by   TEXT NOT NULL,
  frozen_at   INTEGER,
  version     INTEGER NOT NULL,
  PRIMARY KEY (network, address)
) STRICT;
CREATE INDEX payments_wallets_frozen ON payments_wallets (network, address) WHERE frozen <> '';

CREATE TABLE payments_balances (
  network      TEXT NOT NULL,
  address      TEXT NOT NULL,
  asset_id     TEXT NOT NULL,
  account_id   TEXT NOT NULL,
  livemode     INTEGER NOT NULL,
  on_chain     TEXT NOT NULL,
  at_height    INTEGER NOT NULL,
  at_hash      TEXT NOT NULL,
  at_time      INTEGER,
  reserved     TEXT NOT NULL,
  reservations TEXT,
  version      INTEGER NOT NULL,
  PRIMARY KEY (network, address, asset_id)
) STRICT;
CREATE INDEX payments_balances_owner ON payments_balances (account_id, livemode, network, asset_id, address);

CREATE TABLE payments_outgoing (
  network      TEXT NOT NULL,
  spend_key    TEXT NOT NULL,
  address      TEXT NOT NULL,
  nonce        INTEGER NOT NULL,
  coin_hash    TEXT NOT NULL,
  coin_vout    INTEGER NOT NULL,
  tx_hash      TEXT NOT NULL,
  block_height INTEGER NOT NULL,
  block_hash   TEXT NOT NULL,
  block_time   INTEGER,
  failed       INTEGER NOT NULL,
  unrecorded   INTEGER NOT NULL,
  transfers    TEXT,
  fee          TEXT NOT NULL,
  acknowledged TEXT NOT NULL,
  version      INTEGER NOT NULL,
  PRIMARY KEY (network, spend_key)
) STRICT;
CREATE INDEX payments_outgoing_hash ON payments_outgoing (network, tx_hash);
CREATE INDEX payments_outgoing_address ON payments_outgoing (network, address, block_height, spend_key);
CREATE INDEX payments_outgoing_height ON payments_outgoing (network, block_height, spend_key);
CREATE INDEX payments_outgoing_unrecorded ON payments_outgoing (network, block_height, spend_key) WHERE unrecorded;

CREATE TABLE payments_coins (
  network     TEXT NOT NULL,
  tx_hash     TEXT NOT NULL,
  vout        INTEGER NOT NULL,
  address     TEXT NOT NULL,
  address_key TEXT NOT NULL,
  amount      TEXT NOT NULL,
  height      INTEGER NOT NULL,
  reserved_by TEXT NOT NULL,
  spent_by    TEXT NOT NULL,
  spent_at    INTEGER NOT NULL,
  depth       INTEGER NOT NULL,
  mature_at   INTEGER NOT NULL,
  version     INTEGER NOT NULL,
  PRIMARY KEY (network, tx_hash, vout)
) STRICT;
CREATE INDEX payments_coins_unspent ON payments_coins (network, address, tx_hash, vout) WHERE spent_by = '';
CREATE INDEX payments_coins_made ON payments_coins (network, height, tx_hash, vout);
CREATE INDEX payments_coins_spent ON payments_coins (network, spent_at, tx_hash, vout) WHERE spent_at > 0;

CREATE TABLE payments_settlements (
  id                    TEXT NOT NULL,
  account_id            TEXT NOT NULL,
  livemode              INTEGER NOT NULL,
  status                TEXT NOT NULL,
  payment_id            TEXT NOT NULL,
  invoice_id            TEXT NOT NULL,
  deposit_address_id    TEXT NOT NULL,
  network               TEXT NOT NULL,
  asset                 TEXT NOT NULL,
  asset_id              TEXT NOT NULL,
  native_asset          TEXT NOT NULL,
  address               TEXT NOT NULL,
  address_key           TEXT NOT NULL,
  gross                 TEXT NOT NULL,
  usd_value             TEXT NOT NULL,
  fee_bps               INTEGER NOT NULL,
  fee_usd               TEXT NOT NULL,
  native_price          TEXT NOT NULL,
  fee_native            TEXT NOT NULL,
  fee_source            TEXT NOT NULL,
  fee_paid              TEXT NOT NULL,
  fee_carried           TEXT NOT NULL,
  carried_in            TEXT NOT NULL,
  required_native       TEXT,
  master_wallet_address TEXT NOT NULL,
  reason                TEXT NOT NULL,
  fee_tx                TEXT NOT NULL,
  topup_tx              TEXT NOT NULL,
  sweep_tx              TEXT NOT NULL,
  network_fees          TEXT NOT NULL,
  net_released          TEXT,
  simulated             INTEGER NOT NULL,
  sweep_id            TEXT NOT NULL,
  confirmed_at          INTEGER,
  held_since            INTEGER,
  released_at           INTEGER,
  failed_at             INTEGER,
  created_at            INTEGER,
  due_at                INTEGER,
  sequence              INTEGER NOT NULL,
  version               INTEGER NOT NULL,
  PRIMARY KEY (id)
) STRICT;
CREATE INDEX payments_settlements_owner ON payments_settlements (account_id, livemode, id);
CREATE INDEX payments_settlements_status ON payments_settlements (account_id, livemode, status, id);
CREATE INDEX payments_settlements_payment ON payments_settlements (payment_id, id);
CREATE INDEX payments_settlements_invoice ON payments_settlements (invoice_id, id) WHERE invoice_id <> '';
CREATE INDEX payments_settlements_deposit ON payments_settlements (deposit_address_id, id) WHERE deposit_address_id <> '';
CREATE INDEX payments_settlements_due ON payments_settlements (network, id) WHERE status IN ('pending', 'held', 'failed') AND due_at IS NOT NULL;
CREATE INDEX payments_settlements_address ON payments_settlements (network, address, asset_id, id) WHERE status IN ('pending', 'held');

CREATE TABLE payments_sweeps (
  id             TEXT NOT NULL,
  account_id     TEXT NOT NULL,
  livemode       INTEGER NOT NULL,
  network        TEXT NOT NULL,
  asset_id       TEXT NOT NULL,
  address        TEXT NOT NULL,
  address_key    TEXT NOT NULL,
  master_address TEXT NOT NULL,
  master_key     TEXT NOT NULL,
  settlement_ids TEXT,
  amount         TEXT NOT NULL,
  fee            TEXT NOT NULL,
  carry_in       TEXT NOT NULL,
  fee_address    TEXT NOT NULL,
  residue_in     TEXT NOT NULL,
  residue_out    TEXT NOT NULL,
  steps          TEXT,
  done           INTEGER NOT NULL,
  due_at         INTEGER,
  created_at     INTEGER,
  version        INTEGER NOT NULL,
  PRIMARY KEY (id)
) STRICT;
CREATE INDEX payments_sweeps_network ON payments_sweeps (network, done, id);

CREATE TABLE payments_carried_fees (
  account_id TEXT NOT NULL,
  livemode   INTEGER NOT NULL,
  network    TEXT NOT NULL,
  amount     TEXT NOT NULL,
  version    INTEGER NOT NULL,
  PRIMARY KEY (account_id, livemode, network)
) STRICT;

CREATE TABLE payments_residues (
  network TEXT NOT NULL,
  address TEXT NOT NULL,
  amount  TEXT NOT NULL,
  owed    TEXT NOT NULL,
  version INTEGER NOT NULL,
  PRIMARY KEY (network, address)
) STRICT;

CREATE TABLE payments_payouts (
  id              TEXT NOT NULL,
  account_id      TEXT NOT NULL,
  livemode        INTEGER NOT NULL,
  status          TEXT NOT NULL,
  network         TEXT NOT NULL,
  asset           TEXT NOT NULL,
  asset_id        TEXT NOT NULL,
  contract        TEXT NOT NULL,
  decimals        INTEGER NOT NULL,
  amount          TEXT NOT NULL,
  destination     TEXT NOT NULL,
  memo            TEXT NOT NULL,
  tx_hash         TEXT NOT NULL,
  refund_id       TEXT NOT NULL,
  failure_code    TEXT NOT NULL,
  failure_message TEXT NOT NULL,
  conflict_tx_hash TEXT NOT NULL,
  conflict_own    INTEGER NOT NULL,
  requested_by    TEXT,
  native_asset    TEXT NOT NULL,
  native_decimals INTEGER NOT NULL,
  max_network_fee TEXT NOT NULL,
  network_fee     TEXT,
  transaction_id  TEXT NOT NULL,
  created_at      INTEGER,
  confirmed_at    INTEGER,
  failed_at       INTEGER,
  approval        TEXT,
  mac             BLOB,
  sequence        INTEGER NOT NULL,
  q_tx_hash       TEXT NOT NULL,
  q_destination   TEXT NOT NULL,
  version         INTEGER NOT NULL,
  PRIMARY KEY (id)
) STRICT;
CREATE INDEX payments_payouts_owner ON payments_payouts (account_id, livemode, id);
CREATE INDEX payments_payouts_status ON payments_payouts (account_id, livemode, status, id);
CREATE INDEX payments_payouts_age ON payments_payouts (account_id, livemode, created_at) WHERE refund_id = '';
CREATE INDEX payments_payouts_q_tx_hash ON payments_payouts (account_id, livemode, q_tx_hash, id) WHERE q_tx_hash <> '';
CREATE INDEX payments_payouts_q_destination ON payments_payouts (account_id, livemode, q_destination, id) WHERE q_destination <> '';

CREATE TABLE payments_refunds (
  id           TEXT NOT NULL,
  account_id   TEXT NOT NULL,
  livemode     INTEGER NOT NULL,
  status       TEXT NOT NULL,
  invoice_id   TEXT NOT NULL,
  payment_id   TEXT NOT NULL,
  payout_id    TEXT NOT NULL,
  network      TEXT NOT NULL,
  asset        TEXT NOT NULL,
  asset_id     TEXT NOT NULL,
  contract     TEXT NOT NULL,
  decimals     INTEGER NOT NULL,
  amount       TEXT NOT NULL,
  destination  TEXT NOT NULL,
  reason       TEXT NOT NULL,
  metadata     TEXT,
  requested_by TEXT,
  simulated    INTEGER NOT NULL,
  failure_code TEXT NOT NULL,
  created_at   INTEGER,
  succeeded_at INTEGER,
  failed_at    INTEGER,
  sequence     INTEGER NOT NULL,
  version      INTEGER NOT NULL,
  PRIMARY KEY (id)
) STRICT;
CREATE INDEX payments_refunds_owner ON payments_refunds (account_id, livemode, id);
CREATE INDEX payments_refunds_status ON payments_refunds (account_id, livemode, status, id);
CREATE INDEX payments_refunds_invoice ON payments_refunds (invoice_id, id) WHERE invoice_id <> '';
CREATE INDEX payments_refunds_payment ON payments_refunds (payment_id, id) WHERE payment_id <> '';

CREATE TABLE payments_endpoints (
  id                         TEXT NOT NULL,
  account_id                 TEXT NOT NULL,
  livemode                   INTEGER NOT NULL,
  url                        TEXT NOT NULL,
  description                TEXT NOT NULL,
  events                     TEXT,
  status                     TEXT NOT NULL,
  sealed_secret              BLOB,
  sealed_previous            BLOB,
  secret_last4               TEXT NOT NULL,
  previous_secret_expires_at INTEGER,
  failing_since              INTEGER,
  last_success_at            INTEGER,
  first_failure_at           INTEGER,
  created_at                 INTEGER,
  updated_at                 INTEGER,
  sequence                   INTEGER NOT NULL,
  version                    INTEGER NOT NULL,
  PRIMARY KEY (id)
) STRICT;
CREATE INDEX payments_endpoints_owner ON payments_endpoints (account_id, livemode, id);

CREATE TABLE payments_events (
  id                      TEXT NOT NULL,
  account_id              TEXT NOT NULL,
  livemode                INTEGER NOT NULL,
  type                    TEXT NOT NULL,
  object_id               TEXT NOT NULL,
  invoice_id              TEXT NOT NULL,
  payment_id              TEXT NOT NULL,
  sequence                INTEGER NOT NULL,
  envelope                BLOB,
  created_at              INTEGER,
  request_id              TEXT NOT NULL,
  request_idempotency_key TEXT NOT NULL,
  PRIMARY KEY (id)
) STRICT;
CREATE INDEX payments_events_owner ON payments_events (account_id, livemode, id);
CREATE INDEX payments_events_object ON payments_events (object_id, id);
CREATE INDEX payments_events_age ON payments_events (created_at, id);

CREATE TABLE payments_deliveries (
  id              TEXT NOT NULL,
  account_id      TEXT NOT NULL,
  livemode        INTEGER NOT NULL,
  event_id        TEXT NOT NULL,
  event_type      TEXT NOT NULL,
  invoice_id      TEXT NOT NULL,
  payment_id      TEXT NOT NULL,
  endpoint_id     TEXT NOT NULL,
  cause           TEXT NOT NULL,
  status          TEXT NOT NULL,
  attempts        INTEGER NOT NULL,
  log             TEXT,
  next_attempt_at INTEGER,
  last_attempt_at INTEGER,
  delivered_at    INTEGER,
  claimed_by      TEXT NOT NULL,
  claimed_until   INTEGER,
  lapsed_at       INTEGER,
  fence           INTEGER NOT NULL,
  created_at      INTEGER,
  version         INTEGER NOT NULL,
  PRIMARY KEY (id)
) STRICT;
CREATE INDEX payments_deliveries_owner ON payments_deliveries (account_id, livemode, id);
CREATE INDEX payments_deliveries_event ON payments_deliveries (event_id, id);
CREATE INDEX payments_deliveries_endpoint ON payments_deliveries (endpoint_id, id);
CREATE INDEX payments_deliveries_pending ON payments_deliveries (endpoint_id, next_attempt_at, id) WHERE status = 'pending';
CREATE INDEX payments_deliveries_ended ON payments_deliveries (created_at, id) WHERE status <> 'pending';
