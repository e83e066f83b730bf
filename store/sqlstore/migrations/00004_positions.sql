-- +goose Up

{PROLOGUE}

-- How far the history of each address was read, on networks that are read by address.
CREATE TABLE {positions} (
  network    {KEY} NOT NULL,
  address    {KEY} NOT NULL,
  read_to    {TEXT} NOT NULL,
  updated_at {TIME},
  version    {INT} NOT NULL,
  PRIMARY KEY (network, address)
) {HEAP};
{DISTRIBUTED} SELECT citus_add_local_table_to_metadata('{positions}');
