-- +goose Up

{PROLOGUE}

ALTER TABLE {payouts} ADD COLUMN amount_delivered {TEXT};
