-- Up Migration

-- API keys by the SHA-256 of their text; the text itself is stored nowhere.
CREATE TABLE api_keys (
  id text PRIMARY KEY,
  key_hash bytea NOT NULL UNIQUE,
  role text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- Down Migration

DROP TABLE api_keys;
