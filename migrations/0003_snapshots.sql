-- Which ledgers there are: registered before their first event, so that none is overlooked.
CREATE TABLE ledgers (
  id text PRIMARY KEY,
  registered_at timestamptz NOT NULL DEFAULT now()
);

-- A ledger's state at a revision. Only a shortcut: any row may be lost or dropped, the log has everything.
CREATE TABLE snapshots (
  ledger text NOT NULL,
  -- of the last event in it, with that event's hash and time
  revision bigint NOT NULL,
  hash text NOT NULL,
  at timestamptz NOT NULL,
  -- shape of the state
  schema_version integer NOT NULL,
  -- gzip: PostgreSQL need not try to compress it again
  body bytea STORAGE EXTERNAL NOT NULL,
  PRIMARY KEY (ledger, revision)
);
