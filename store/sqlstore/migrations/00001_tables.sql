-- +goose Up

-- One text for all databases: a dialect gives the column types {TEXT}, {INT} …, the kinds of tables {HEAP}, {CLUSTERED} and
-- {CHURNED}, partial indexes {WHERE …}, and the full names of tables in braces. Lines that begin with {PARTIAL} are for databases
-- that have partial indexes, {WHOLE} for those that do not: there NULLs make a unique index partial; {DISTRIBUTED} for those
-- that spread tables over machines, by account: therefore each key of such a table holds the account.
--
-- {KEY} is a text in an index, {HASH} are 32 bytes in one. Amounts and decimals are digits; nested values are JSON as it was
-- written; nothing is NULL but what has no value. Columns q_... hold the lower case of a text, for searches.
--
-- Each file begins with {PROLOGUE}, a dialect's own statement.

{PROLOGUE}

-- Whatever becomes of the lock of migrations, each version is applied once.
CREATE UNIQUE INDEX payments_schema_version_once ON {schema_version} (version_id);

CREATE TABLE {accounts} (
  id         {KEY} NOT NULL,
  idx        {INT} NOT NULL,
  settings   {JSON},
  logo_type  {TEXT} NOT NULL,
  logo       {BYTES},
  created_at {TIME},
  updated_at {TIME},
  mac              {BYTES},
  version    {INT} NOT NULL,
  PRIMARY KEY (id)
) {HEAP};
CREATE UNIQUE INDEX payments_accounts_index ON {accounts} (idx);

CREATE TABLE {api_keys} (
  id           {KEY} NOT NULL,
  account_id   {KEY} NOT NULL,
  livemode     {BOOL} NOT NULL,
  publishable  {BOOL} NOT NULL,
  name         {TEXT} NOT NULL,
  hash         {HASH} NOT NULL,
  last4        {TEXT} NOT NULL,
  scopes       {JSON},
  allowed_ips  {JSON},
  destinations {JSON},
  expires_at   {TIME},
  revoked_at   {TIME},
  rolled_from  {TEXT} NOT NULL,
  created_at   {TIME},
  mac              {BYTES},
  version      {INT} NOT NULL,
  PRIMARY KEY (id)
) {HEAP};
CREATE UNIQUE INDEX payments_api_keys_hash ON {api_keys} (hash);
CREATE INDEX payments_api_keys_account ON {api_keys} (account_id, id);

CREATE TABLE {idempotency_keys} (
  account_id      {KEY} NOT NULL,
  livemode        {BOOL} NOT NULL,
  idempotency_key {KEY} NOT NULL,
  key_id          {TEXT} NOT NULL,
  scopes          {JSON},
  fingerprint     {BYTES} NOT NULL,
  status          {INT} NOT NULL,
  sealed_body     {BYTES},
  created_at      {TIME},
  PRIMARY KEY (account_id, livemode, idempotency_key)
) {HEAP};
CREATE INDEX payments_idempotency_keys_age ON {idempotency_keys} (created_at);

CREATE TABLE {counters} (
  name {KEY} NOT NULL,
  next {INT} NOT NULL,
  PRIMARY KEY (name)
) {CLUSTERED};

CREATE TABLE {leases} (
  name       {KEY} NOT NULL,
  owner      {TEXT} NOT NULL,
  fence      {INT} NOT NULL,
  updated_at {TIME},
  note       {TEXT} NOT NULL,
  PRIMARY KEY (name)
) {CLUSTERED};

CREATE TABLE {invoices} (
  id                       {KEY} NOT NULL,
  account_id               {KEY} NOT NULL,
  livemode                 {BOOL} NOT NULL,
  number                   {INT} NOT NULL,
  kind                     {TEXT} NOT NULL,
  status                   {KEY} NOT NULL,
  flags                    {JSON},
  currency                 {TEXT} NOT NULL,
  price                    {TEXT} NOT NULL,
  options                  {JSON},
  selected_option_id       {TEXT} NOT NULL,
  paid_option_id           {TEXT} NOT NULL,
  tolerance_bps            {INT} NOT NULL,
  accept_late              {BOOL} NOT NULL,
  order_id                 {TEXT} NOT NULL,
  customer_email           {TEXT} NOT NULL,
  description              {TEXT} NOT NULL,
  metadata                 {JSON},
  success_url              {TEXT} NOT NULL,
  cancel_url               {TEXT} NOT NULL,
  checkout_token           {TEXT} NOT NULL,
  expires_at               {TIME},
  pre_selection_expires_at {TIME},
  created_at               {TIME},
  paid_at                  {TIME},
  expired_at               {TIME},
  canceled_at              {TIME},
  refunded_at              {TIME},
  closed_as                {TEXT} NOT NULL,
  accepted                 {JSON},
  refunds                  {JSON},
  simulated                {BOOL} NOT NULL,
  due_at                   {TIME},
  sequence                 {INT} NOT NULL,
  q_order                  {KEY} NOT NULL,
  q_email                  {KEY} NOT NULL,
  version                  {INT} NOT NULL,
  PRIMARY KEY (id, account_id)
) {HEAP};
CREATE INDEX payments_invoices_owner ON {invoices} (account_id, livemode, id);
CREATE INDEX payments_invoices_status ON {invoices} (account_id, livemode, status, id);
CREATE INDEX payments_invoices_order ON {invoices} (account_id, livemode, q_order, id) {WHERE q_order <> ''};
CREATE INDEX payments_invoices_email ON {invoices} (account_id, livemode, q_email, id) {WHERE q_email <> ''};
CREATE INDEX payments_invoices_due ON {invoices} (due_at, id) {WHERE due_at IS NOT NULL};

CREATE TABLE {invoice_networks} (
  account_id {KEY} NOT NULL,
  livemode   {BOOL} NOT NULL,
  network    {KEY} NOT NULL,
  invoice_id {KEY} NOT NULL,
  PRIMARY KEY (account_id, livemode, network, invoice_id)
) {CLUSTERED};

CREATE TABLE {payments} (
  id                     {KEY} NOT NULL,
  account_id             {KEY} NOT NULL,
  livemode               {BOOL} NOT NULL,
  status                 {KEY} NOT NULL,
  invoice_id             {KEY} NOT NULL,
  option_id              {TEXT} NOT NULL,
  deposit_address_id     {KEY} NOT NULL,
  invoice_number         {INT} NOT NULL,
  deposit_address_name   {TEXT} NOT NULL,
  network                {KEY} NOT NULL,
  asset                  {TEXT} NOT NULL,
  asset_id               {KEY} NOT NULL,
  contract               {TEXT} NOT NULL,
  decimals               {INT} NOT NULL,
  address                {KEY} NOT NULL,
  address_key            {TEXT} NOT NULL,
  from_address           {TEXT} NOT NULL,
  tx_hash                {KEY} NOT NULL,
  tx_index               {INT} NOT NULL,
  amount                 {TEXT} NOT NULL,
  block_height           {INT} NOT NULL,
  block_hash             {TEXT} NOT NULL,
  block_time             {TIME},
  confirmations_required {INT} NOT NULL,
  rate                   {TEXT} NOT NULL,
  credit                 {TEXT} NOT NULL,
  usd_value              {TEXT},
  native_usd             {TEXT},
  late                   {BOOL} NOT NULL,
  simulated              {BOOL} NOT NULL,
  detected_by            {TEXT} NOT NULL,
  detected_at            {TIME},
  confirmed_at           {TIME},
  lost_at                {TIME},
  due_at                 {TIME},
  sequence               {INT} NOT NULL,
  q_tx_hash              {KEY} NOT NULL,
  q_address              {KEY} NOT NULL,
  version                {INT} NOT NULL,
  PRIMARY KEY (id, account_id)
) {HEAP};
CREATE INDEX payments_payments_owner ON {payments} (account_id, livemode, id);
CREATE INDEX payments_payments_status ON {payments} (account_id, livemode, status, id);
CREATE INDEX payments_payments_invoice ON {payments} (invoice_id, id) {WHERE invoice_id <> ''};
CREATE INDEX payments_payments_deposit ON {payments} (deposit_address_id, id) {WHERE deposit_address_id <> ''};
{PARTIAL} CREATE UNIQUE INDEX payments_payments_transfer ON {payments} (network, tx_hash, tx_index, address, asset_id, account_id) WHERE tx_hash <> '';
{WHOLE} ALTER TABLE {payments} ADD COLUMN tx_hash_or_null {KEY} AS (NULLIF(tx_hash, ''));
{WHOLE} CREATE UNIQUE INDEX payments_payments_transfer ON {payments} (network, tx_hash_or_null, tx_index, address, asset_id, account_id);
CREATE INDEX payments_payments_unconfirmed ON {payments} (network, block_height, id) {WHERE status = 'detected' AND block_hash <> ''};
CREATE INDEX payments_payments_unmined ON {payments} (network, id) {WHERE status IN ('detected', 'orphaned') AND block_hash = ''};
CREATE INDEX payments_payments_blocks ON {payments} (network, block_height, id) {WHERE status IN ('detected', 'confirmed') AND block_hash <> ''};
CREATE INDEX payments_payments_address ON {payments} (network, address, asset_id, id) {WHERE status <> 'dropped'};
CREATE INDEX payments_payments_due ON {payments} (due_at, id) {WHERE due_at IS NOT NULL};
CREATE INDEX payments_payments_q_tx_hash ON {payments} (account_id, livemode, q_tx_hash, id) {WHERE q_tx_hash <> ''};
CREATE INDEX payments_payments_q_address ON {payments} (account_id, livemode, q_address, id) {WHERE q_address <> ''};

CREATE TABLE {addresses} (
  space_family       {KEY} NOT NULL,
  space_livemode     {BOOL} NOT NULL,
  address            {KEY} NOT NULL,
  kind               {KEY} NOT NULL,
  account_id         {TEXT} NOT NULL,
  livemode           {BOOL} NOT NULL,
  invoice_id         {TEXT} NOT NULL,
  option_id          {TEXT} NOT NULL,
  deposit_address_id {TEXT} NOT NULL,
  network            {KEY} NOT NULL,
  address_key        {TEXT} NOT NULL,
  created_at         {TIME},
  checked_at         {TIME},
  next_check         {TIME},
  urgent             {BOOL} NOT NULL,
  mac                {BYTES},
  PRIMARY KEY (space_family, space_livemode, address)
) {CLUSTERED};
CREATE INDEX payments_addresses_due ON {addresses} (network, urgent, next_check, address) {WHERE next_check IS NOT NULL};
CREATE INDEX payments_addresses_made ON {addresses} (network, kind, created_at, address);

CREATE TABLE {dust} (
  network   {KEY} NOT NULL,
  address   {KEY} NOT NULL,
  asset_id  {KEY} NOT NULL,
  amount    {TEXT} NOT NULL,
  transfers {INT} NOT NULL,
  version   {INT} NOT NULL,
  PRIMARY KEY (network, address, asset_id)
) {CLUSTERED};

CREATE TABLE {dust_transfers} (
  network      {KEY} NOT NULL,
  tx_hash      {KEY} NOT NULL,
  tx_index     {INT} NOT NULL,
  address      {KEY} NOT NULL,
  asset_id     {KEY} NOT NULL,
  from_address {TEXT} NOT NULL,
  amount       {TEXT} NOT NULL,
  block_height {INT} NOT NULL,
  block_hash   {TEXT} NOT NULL,
  block_time   {TIME},
  PRIMARY KEY (network, tx_hash, tx_index, address, asset_id)
) {CLUSTERED};
CREATE INDEX payments_dust_transfers_address ON {dust_transfers} (network, address, asset_id, block_height, tx_hash, tx_index);
CREATE INDEX payments_dust_transfers_height ON {dust_transfers} (network, block_height, tx_hash, tx_index);

CREATE TABLE {deposit_addresses} (
  id              {KEY} NOT NULL,
  account_id      {KEY} NOT NULL,
  livemode        {BOOL} NOT NULL,
  name            {TEXT} NOT NULL,
  network         {TEXT} NOT NULL,
  address         {TEXT} NOT NULL,
  address_key     {TEXT} NOT NULL,
  status          {TEXT} NOT NULL,
  metadata        {JSON},
  last_payment_at {TIME},
  created_at      {TIME},
  sequence        {INT} NOT NULL,
  q_name          {KEY} NOT NULL,
  q_address       {KEY} NOT NULL,
  version         {INT} NOT NULL,
  PRIMARY KEY (id, account_id)
) {HEAP};
CREATE INDEX payments_deposit_addresses_owner ON {deposit_addresses} (account_id, livemode, id);
CREATE INDEX payments_deposit_addresses_q_name ON {deposit_addresses} (account_id, livemode, q_name, id) {WHERE q_name <> ''};
CREATE INDEX payments_deposit_addresses_q_address ON {deposit_addresses} (account_id, livemode, q_address, id) {WHERE q_address <> ''};

CREATE TABLE {cursors} (
  network      {KEY} NOT NULL,
  at_height    {INT} NOT NULL,
  at_hash      {TEXT} NOT NULL,
  at_time      {TIME},
  tip_height   {INT} NOT NULL,
  tip_hash     {TEXT} NOT NULL,
  tip_time     {TIME},
  final_height {INT} NOT NULL,
  final_hash   {TEXT} NOT NULL,
  final_time   {TIME},
  safe_height  {INT} NOT NULL,
  safe_hash    {TEXT} NOT NULL,
  safe_time    {TIME},
  recent       {JSON},
  stopped      {TEXT} NOT NULL,
  updated_at   {TIME},
  version      {INT} NOT NULL,
  PRIMARY KEY (network)
) {HEAP};

CREATE TABLE {ranges} (
  id          {KEY} NOT NULL,
  network     {KEY} NOT NULL,
  addresses   {JSON},
  next_height {INT} NOT NULL,
  to_height   {INT} NOT NULL,
  created_at  {TIME},
  version     {INT} NOT NULL,
  PRIMARY KEY (id)
) {HEAP};
CREATE INDEX payments_ranges_network ON {ranges} (network, id);

CREATE TABLE {retries} (
  id           {KEY} NOT NULL,
  network      {KEY} NOT NULL,
  transfer     {JSON},
  block_height {INT} NOT NULL,
  block_hash   {TEXT} NOT NULL,
  block_time   {TIME},
  error        {TEXT} NOT NULL,
  attempts     {INT} NOT NULL,
  due_at       {TIME},
  created_at   {TIME},
  version      {INT} NOT NULL,
  PRIMARY KEY (id)
) {HEAP};
CREATE INDEX payments_retries_network ON {retries} (network, id);

CREATE TABLE {transactions} (
  id           {KEY} NOT NULL,
  account_id   {KEY} NOT NULL,
  livemode     {BOOL} NOT NULL,
  network      {KEY} NOT NULL,
  kind         {TEXT} NOT NULL,
  object_id    {KEY} NOT NULL,
  instruction  {JSON},
  from_address {KEY} NOT NULL,
  state        {TEXT} NOT NULL,
  attempts     {JSON},
  batch_members {JSON},
  batched_by   {TEXT} NOT NULL,
  nonce        {INT} NOT NULL,
  tx_hash      {TEXT} NOT NULL,
  block_height {INT} NOT NULL,
  block_hash   {TEXT} NOT NULL,
  block_time   {TIME},
  fee          {TEXT} NOT NULL,
  transfers    {JSON},
  failure      {TEXT} NOT NULL,
  conflict_tx_hash {TEXT} NOT NULL,
  conflict_own {BOOL} NOT NULL,
  ready_at     {TIME},
  give_up_at   {TIME},
  due_at       {TIME},
  created_at   {TIME},
  version      {INT} NOT NULL,
  PRIMARY KEY (id, account_id)
) {HEAP};
CREATE INDEX payments_transactions_object ON {transactions} (object_id, id);
CREATE INDEX payments_transactions_network ON {transactions} (network, id);
CREATE INDEX payments_transactions_due ON {transactions} (network, id) {WHERE due_at IS NOT NULL};
CREATE INDEX payments_transactions_topups ON {transactions} (network, id) {WHERE kind = 'topup' AND state NOT IN ('confirmed', 'failed')};
CREATE INDEX payments_transactions_wallet ON {transactions} (network, from_address, id) {WHERE state NOT IN ('confirmed', 'failed')};

CREATE TABLE {attempt_hashes} (
  network        {KEY} NOT NULL,
  hash           {KEY} NOT NULL,
  transaction_id {TEXT} NOT NULL,
  kind           {TEXT} NOT NULL,
  PRIMARY KEY (network, hash)
) {CLUSTERED};

CREATE TABLE {wallets} (
  network     {KEY} NOT NULL,
  address     {KEY} NOT NULL,
  address_key {TEXT} NOT NULL,
  next_nonce  {INT} NOT NULL,
  since       {INT} NOT NULL,
  epoch       {INT} NOT NULL,
  frozen      {TEXT} NOT NULL,
  frozen_by   {TEXT} NOT NULL,
  frozen_at   {TIME},
  version     {INT} NOT NULL,
  PRIMARY KEY (network, address)
) {HEAP};
CREATE INDEX payments_wallets_frozen ON {wallets} (network, address) {WHERE frozen <> ''};

CREATE TABLE {balances} (
  network      {KEY} NOT NULL,
  address      {KEY} NOT NULL,
  asset_id     {KEY} NOT NULL,
  account_id   {KEY} NOT NULL,
  livemode     {BOOL} NOT NULL,
  on_chain     {TEXT} NOT NULL,
  at_height    {INT} NOT NULL,
  at_hash      {TEXT} NOT NULL,
  at_time      {TIME},
  reserved     {TEXT} NOT NULL,
  reservations {JSON},
  version      {INT} NOT NULL,
  PRIMARY KEY (network, address, asset_id)
) {HEAP};
CREATE INDEX payments_balances_owner ON {balances} (account_id, livemode, network, asset_id, address);

CREATE TABLE {outgoing} (
  network      {KEY} NOT NULL,
  spend_key    {KEY} NOT NULL,
  address      {KEY} NOT NULL,
  nonce        {INT} NOT NULL,
  coin_hash    {TEXT} NOT NULL,
  coin_vout    {INT} NOT NULL,
  tx_hash      {KEY} NOT NULL,
  block_height {INT} NOT NULL,
  block_hash   {TEXT} NOT NULL,
  block_time   {TIME},
  failed       {BOOL} NOT NULL,
  unrecorded   {BOOL} NOT NULL,
  transfers    {JSON},
  fee          {TEXT} NOT NULL,
  acknowledged {TEXT} NOT NULL,
  version      {INT} NOT NULL,
  PRIMARY KEY (network, spend_key)
) {HEAP};
CREATE INDEX payments_outgoing_hash ON {outgoing} (network, tx_hash);
CREATE INDEX payments_outgoing_address ON {outgoing} (network, address, block_height, spend_key);
CREATE INDEX payments_outgoing_height ON {outgoing} (network, block_height, spend_key);
CREATE INDEX payments_outgoing_unrecorded ON {outgoing} (network, block_height, spend_key) {WHERE unrecorded};

CREATE TABLE {coins} (
  network     {KEY} NOT NULL,
  tx_hash     {KEY} NOT NULL,
  vout        {INT} NOT NULL,
  address     {KEY} NOT NULL,
  address_key {TEXT} NOT NULL,
  amount      {TEXT} NOT NULL,
  height      {INT} NOT NULL,
  reserved_by {TEXT} NOT NULL,
  spent_by    {TEXT} NOT NULL,
  spent_at    {INT} NOT NULL,
  depth       {INT} NOT NULL,
  mature_at   {INT} NOT NULL,
  version     {INT} NOT NULL,
  PRIMARY KEY (network, tx_hash, vout)
) {HEAP};
CREATE INDEX payments_coins_unspent ON {coins} (network, address, tx_hash, vout) {WHERE spent_by = ''};
CREATE INDEX payments_coins_made ON {coins} (network, height, tx_hash, vout);
CREATE INDEX payments_coins_spent ON {coins} (network, spent_at, tx_hash, vout) {WHERE spent_at > 0};

CREATE TABLE {settlements} (
  id                    {KEY} NOT NULL,
  account_id            {KEY} NOT NULL,
  livemode              {BOOL} NOT NULL,
  status                {KEY} NOT NULL,
  payment_id            {KEY} NOT NULL,
  invoice_id            {KEY} NOT NULL,
  deposit_address_id    {KEY} NOT NULL,
  network               {KEY} NOT NULL,
  asset                 {TEXT} NOT NULL,
  asset_id              {KEY} NOT NULL,
  native_asset          {TEXT} NOT NULL,
  address               {KEY} NOT NULL,
  address_key           {TEXT} NOT NULL,
  gross                 {TEXT} NOT NULL,
  usd_value             {TEXT} NOT NULL,
  fee_bps               {INT} NOT NULL,
  fee_usd               {TEXT} NOT NULL,
  native_price          {TEXT} NOT NULL,
  fee_native            {TEXT} NOT NULL,
  fee_source            {TEXT} NOT NULL,
  fee_paid              {TEXT} NOT NULL,
  fee_carried           {TEXT} NOT NULL,
  carried_in            {TEXT} NOT NULL,
  carried_out           {TEXT} NOT NULL,
  required_native       {TEXT},
  master_wallet_address {TEXT} NOT NULL,
  reason                {TEXT} NOT NULL,
  failed_for            {TEXT} NOT NULL,
  fee_tx                {TEXT} NOT NULL,
  topup_tx              {TEXT} NOT NULL,
  sweep_tx              {TEXT} NOT NULL,
  network_fees          {TEXT} NOT NULL,
  residue_in            {TEXT} NOT NULL,
  residue_out           {TEXT} NOT NULL,
  net_released          {TEXT},
  simulated             {BOOL} NOT NULL,
  sweep_id            {TEXT} NOT NULL,
  confirmed_at          {TIME},
  held_since            {TIME},
  released_at           {TIME},
  failed_at             {TIME},
  created_at            {TIME},
  due_at                {TIME},
  sequence              {INT} NOT NULL,
  version               {INT} NOT NULL,
  PRIMARY KEY (id, account_id)
) {HEAP};
CREATE INDEX payments_settlements_owner ON {settlements} (account_id, livemode, id);
CREATE INDEX payments_settlements_status ON {settlements} (account_id, livemode, status, id);
CREATE INDEX payments_settlements_payment ON {settlements} (payment_id, id);
CREATE INDEX payments_settlements_invoice ON {settlements} (invoice_id, id) {WHERE invoice_id <> ''};
CREATE INDEX payments_settlements_deposit ON {settlements} (deposit_address_id, id) {WHERE deposit_address_id <> ''};
CREATE INDEX payments_settlements_due ON {settlements} (network, id) {WHERE status IN ('pending', 'held', 'failed') AND due_at IS NOT NULL};
CREATE INDEX payments_settlements_address ON {settlements} (network, address, asset_id, id) {WHERE status IN ('pending', 'held')};

CREATE TABLE {sweeps} (
  id             {KEY} NOT NULL,
  account_id     {KEY} NOT NULL,
  livemode       {BOOL} NOT NULL,
  network        {KEY} NOT NULL,
  asset_id       {TEXT} NOT NULL,
  address        {KEY} NOT NULL,
  address_key    {TEXT} NOT NULL,
  master_address {TEXT} NOT NULL,
  master_key     {TEXT} NOT NULL,
  settlement_ids {JSON},
  amount         {TEXT} NOT NULL,
  fee            {TEXT} NOT NULL,
  carry_in       {TEXT} NOT NULL,
  fee_address    {TEXT} NOT NULL,
  residue_in     {TEXT} NOT NULL,
  residue_out    {TEXT} NOT NULL,
  owed           {TEXT} NOT NULL,
  claims         {JSON},
  left_fees      {TEXT} NOT NULL,
  steps          {JSON},
  done           {BOOL} NOT NULL,
  due_at         {TIME},
  created_at     {TIME},
  version        {INT} NOT NULL,
  PRIMARY KEY (id, account_id)
) {HEAP};
CREATE INDEX payments_sweeps_due ON {sweeps} (network, done, id) {WHERE due_at IS NOT NULL};
CREATE INDEX payments_sweeps_address ON {sweeps} (network, address, done);

CREATE TABLE {carried_fees} (
  account_id {KEY} NOT NULL,
  livemode   {BOOL} NOT NULL,
  network    {KEY} NOT NULL,
  amount     {TEXT} NOT NULL,
  version    {INT} NOT NULL,
  PRIMARY KEY (account_id, livemode, network)
) {HEAP};

CREATE TABLE {residues} (
  network    {KEY} NOT NULL,
  address    {KEY} NOT NULL,
  amount     {TEXT} NOT NULL,
  owed       {TEXT} NOT NULL,
  unclaimed  {JSON},
  tokens     {JSON},
  claimed_by {JSON},
  version    {INT} NOT NULL,
  PRIMARY KEY (network, address)
) {HEAP};

CREATE TABLE {payouts} (
  id              {KEY} NOT NULL,
  account_id      {KEY} NOT NULL,
  livemode        {BOOL} NOT NULL,
  status          {KEY} NOT NULL,
  network         {TEXT} NOT NULL,
  asset           {TEXT} NOT NULL,
  asset_id        {TEXT} NOT NULL,
  contract        {TEXT} NOT NULL,
  decimals        {INT} NOT NULL,
  amount          {TEXT} NOT NULL,
  destination     {TEXT} NOT NULL,
  memo            {TEXT} NOT NULL,
  tx_hash         {TEXT} NOT NULL,
  refund_id       {TEXT} NOT NULL,
  failure_code    {TEXT} NOT NULL,
  failure_message {TEXT} NOT NULL,
  conflict_tx_hash {TEXT} NOT NULL,
  conflict_own    {BOOL} NOT NULL,
  requested_by    {JSON},
  native_asset    {TEXT} NOT NULL,
  native_decimals {INT} NOT NULL,
  max_network_fee {TEXT} NOT NULL,
  network_fee     {TEXT},
  transaction_id  {TEXT} NOT NULL,
  created_at      {TIME},
  broadcast_at    {TIME},
  confirmed_at    {TIME},
  failed_at       {TIME},
  approval        {JSON},
  signing         {JSON},
  mac             {BYTES},
  sequence        {INT} NOT NULL,
  q_tx_hash       {KEY} NOT NULL,
  q_destination   {KEY} NOT NULL,
  version         {INT} NOT NULL,
  PRIMARY KEY (id, account_id)
) {HEAP};
CREATE INDEX payments_payouts_owner ON {payouts} (account_id, livemode, id);
CREATE INDEX payments_payouts_status ON {payouts} (account_id, livemode, status, id);
CREATE INDEX payments_payouts_age ON {payouts} (account_id, livemode, created_at) {WHERE refund_id = ''};
CREATE INDEX payments_payouts_q_tx_hash ON {payouts} (account_id, livemode, q_tx_hash, id) {WHERE q_tx_hash <> ''};
CREATE INDEX payments_payouts_q_destination ON {payouts} (account_id, livemode, q_destination, id) {WHERE q_destination <> ''};

CREATE TABLE {refunds} (
  id           {KEY} NOT NULL,
  account_id   {KEY} NOT NULL,
  livemode     {BOOL} NOT NULL,
  status       {KEY} NOT NULL,
  invoice_id   {KEY} NOT NULL,
  payment_id   {KEY} NOT NULL,
  payout_id    {TEXT} NOT NULL,
  network      {TEXT} NOT NULL,
  asset        {TEXT} NOT NULL,
  asset_id     {TEXT} NOT NULL,
  contract     {TEXT} NOT NULL,
  decimals     {INT} NOT NULL,
  amount       {TEXT} NOT NULL,
  destination  {TEXT} NOT NULL,
  reason       {TEXT} NOT NULL,
  metadata     {JSON},
  requested_by {JSON},
  simulated    {BOOL} NOT NULL,
  failure_code {TEXT} NOT NULL,
  created_at   {TIME},
  succeeded_at {TIME},
  failed_at    {TIME},
  sequence     {INT} NOT NULL,
  version      {INT} NOT NULL,
  PRIMARY KEY (id, account_id)
) {HEAP};
CREATE INDEX payments_refunds_owner ON {refunds} (account_id, livemode, id);
CREATE INDEX payments_refunds_status ON {refunds} (account_id, livemode, status, id);
CREATE INDEX payments_refunds_invoice ON {refunds} (invoice_id, id) {WHERE invoice_id <> ''};
CREATE INDEX payments_refunds_payment ON {refunds} (payment_id, id) {WHERE payment_id <> ''};

CREATE TABLE {endpoints} (
  id                         {KEY} NOT NULL,
  account_id                 {KEY} NOT NULL,
  livemode                   {BOOL} NOT NULL,
  url                        {TEXT} NOT NULL,
  description                {TEXT} NOT NULL,
  events                     {JSON},
  status                     {TEXT} NOT NULL,
  sealed_secret              {BYTES},
  sealed_previous            {BYTES},
  secret_last4               {TEXT} NOT NULL,
  previous_secret_expires_at {TIME},
  failing_since              {TIME},
  last_success_at            {TIME},
  first_failure_at           {TIME},
  created_at                 {TIME},
  updated_at                 {TIME},
  sequence                   {INT} NOT NULL,
  version                    {INT} NOT NULL,
  PRIMARY KEY (id, account_id)
) {HEAP};
CREATE INDEX payments_endpoints_owner ON {endpoints} (account_id, livemode, id);

CREATE TABLE {events} (
  id                      {KEY} NOT NULL,
  account_id              {KEY} NOT NULL,
  livemode                {BOOL} NOT NULL,
  type                    {TEXT} NOT NULL,
  object_id               {KEY} NOT NULL,
  invoice_id              {TEXT} NOT NULL,
  payment_id              {TEXT} NOT NULL,
  sequence                {INT} NOT NULL,
  envelope                {BYTES},
  created_at              {TIME},
  request_id              {TEXT} NOT NULL,
  request_idempotency_key {TEXT} NOT NULL,
  PRIMARY KEY (id, account_id)
) {HEAP};
CREATE INDEX payments_events_owner ON {events} (account_id, livemode, id);
CREATE INDEX payments_events_object ON {events} (object_id, id);
CREATE INDEX payments_events_age ON {events} (created_at, id);

-- A delivery is claimed and ends soon after it was made: where half of a page stays free, its claim writes no index.
CREATE TABLE {deliveries} (
  id              {KEY} NOT NULL,
  account_id      {KEY} NOT NULL,
  livemode        {BOOL} NOT NULL,
  event_id        {KEY} NOT NULL,
  event_type      {TEXT} NOT NULL,
  invoice_id      {TEXT} NOT NULL,
  payment_id      {TEXT} NOT NULL,
  endpoint_id     {KEY} NOT NULL,
  cause           {TEXT} NOT NULL,
  status          {TEXT} NOT NULL,
  attempts        {INT} NOT NULL,
  log             {JSON},
  next_attempt_at {TIME},
  last_attempt_at {TIME},
  delivered_at    {TIME},
  claimed_by      {TEXT} NOT NULL,
  claimed_until   {TIME},
  lapsed_at       {TIME},
  fence           {INT} NOT NULL,
  created_at      {TIME},
  version         {INT} NOT NULL,
  PRIMARY KEY (id, account_id)
) {CHURNED};
CREATE INDEX payments_deliveries_owner ON {deliveries} (account_id, livemode, id);
CREATE INDEX payments_deliveries_event ON {deliveries} (event_id, id);
CREATE INDEX payments_deliveries_endpoint ON {deliveries} (endpoint_id, id);
CREATE INDEX payments_deliveries_pending ON {deliveries} (endpoint_id, next_attempt_at, id) {WHERE status = 'pending'};
CREATE INDEX payments_deliveries_ended ON {deliveries} (created_at, id) {WHERE status <> 'pending'};

-- Everything that belongs to an account lies on its shard. The other tables stay on the coordinator: docs/distributed.md
-- has the reason of each.
{DISTRIBUTED} SELECT create_distributed_table('{idempotency_keys}', 'account_id');
{DISTRIBUTED} SELECT create_distributed_table('{invoices}', 'account_id');
{DISTRIBUTED} SELECT create_distributed_table('{invoice_networks}', 'account_id');
{DISTRIBUTED} SELECT create_distributed_table('{payments}', 'account_id');
{DISTRIBUTED} SELECT create_distributed_table('{deposit_addresses}', 'account_id');
{DISTRIBUTED} SELECT create_distributed_table('{transactions}', 'account_id');
{DISTRIBUTED} SELECT create_distributed_table('{settlements}', 'account_id');
{DISTRIBUTED} SELECT create_distributed_table('{sweeps}', 'account_id');
{DISTRIBUTED} SELECT create_distributed_table('{carried_fees}', 'account_id');
{DISTRIBUTED} SELECT create_distributed_table('{payouts}', 'account_id');
{DISTRIBUTED} SELECT create_distributed_table('{refunds}', 'account_id');
{DISTRIBUTED} SELECT create_distributed_table('{endpoints}', 'account_id');
{DISTRIBUTED} SELECT create_distributed_table('{events}', 'account_id');
{DISTRIBUTED} SELECT create_distributed_table('{deliveries}', 'account_id');

-- Citus counts writes to the coordinator's tables only where it knows them. Without them it commits a transaction of
-- the coordinator and one other node in two steps instead of two phases, and a node that fails in between has half.
{DISTRIBUTED} SELECT citus_add_local_table_to_metadata('{accounts}');
{DISTRIBUTED} SELECT citus_add_local_table_to_metadata('{api_keys}');
{DISTRIBUTED} SELECT citus_add_local_table_to_metadata('{counters}');
{DISTRIBUTED} SELECT citus_add_local_table_to_metadata('{leases}');
{DISTRIBUTED} SELECT citus_add_local_table_to_metadata('{cursors}');
{DISTRIBUTED} SELECT citus_add_local_table_to_metadata('{ranges}');
{DISTRIBUTED} SELECT citus_add_local_table_to_metadata('{retries}');
{DISTRIBUTED} SELECT citus_add_local_table_to_metadata('{addresses}');
{DISTRIBUTED} SELECT citus_add_local_table_to_metadata('{dust}');
{DISTRIBUTED} SELECT citus_add_local_table_to_metadata('{dust_transfers}');
{DISTRIBUTED} SELECT citus_add_local_table_to_metadata('{attempt_hashes}');
{DISTRIBUTED} SELECT citus_add_local_table_to_metadata('{wallets}');
{DISTRIBUTED} SELECT citus_add_local_table_to_metadata('{balances}');
{DISTRIBUTED} SELECT citus_add_local_table_to_metadata('{outgoing}');
{DISTRIBUTED} SELECT citus_add_local_table_to_metadata('{coins}');
{DISTRIBUTED} SELECT citus_add_local_table_to_metadata('{residues}');
