-- Up Migration

-- The log. One stream a ledger, revisions contiguous from 0. Insert-only; only (ledger, revision) is unique: an index
-- over random ids would halve the inserts of a large table.
CREATE TABLE events (
  ledger text NOT NULL,
  revision bigint NOT NULL,
  at timestamptz NOT NULL,
  id uuid NOT NULL,
  type text NOT NULL,
  -- the exact sealed bytes; not worth compressing one by one
  body bytea STORAGE EXTERNAL NOT NULL,
  PRIMARY KEY (ledger, revision)
);

-- Down Migration

DROP TABLE events;
