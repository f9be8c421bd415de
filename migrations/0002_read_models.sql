-- Read models. Every table begins its key with (ledger, version): a rebuild fills a new version beside the one that
-- is served, and the swap is one row of read_model_checkpoints. Money is BIGINT nano-dollars.

CREATE TABLE read_model_checkpoints (
  ledger text NOT NULL,
  model text NOT NULL,
  version integer NOT NULL,
  -- 'active' is served and fed, 'building' is filled by a rebuild, 'retired' waits for its rows to be dropped
  role text NOT NULL CHECK (role IN ('active', 'building', 'retired')),
  -- the version of the code that fills it
  shape integer NOT NULL,
  -- revision of the last event that is in the tables, and that event's hash
  position bigint NOT NULL,
  hash text NOT NULL,
  -- small facts that the model carries from one batch to the next
  memory jsonb NOT NULL DEFAULT '{}',
  PRIMARY KEY (ledger, model, version)
);
CREATE UNIQUE INDEX read_model_checkpoints_one_active ON read_model_checkpoints (ledger, model) WHERE role = 'active';

-- One row per attempt, keyed with the revision of its SpendReserved, SpendRefused or advisory SpendEstimated; a charge
-- without a reservation, and a duplicate send, has a row of its own keyed with its UsageCharged.
CREATE TABLE attempts (
  ledger text NOT NULL,
  version integer NOT NULL,
  revision bigint NOT NULL,
  state text NOT NULL,
  request_id text,
  attempt integer,
  reservation_id text,
  usage_id text,
  provider text NOT NULL,
  account text NOT NULL,
  model text NOT NULL,
  model_id text,
  workload text,
  subject text,
  conversation text,
  tags jsonb,
  job text,
  service_tier text,
  amount bigint,
  counted_at timestamptz NOT NULL,
  -- the civil day of counted_at in the ledger's timezone
  day date NOT NULL,
  expires_at timestamptz,
  code text,
  reasons jsonb,
  -- what else the check said: candidate, estimate, fallbackFrom, skipped, warnings …
  details jsonb,
  charge_id text,
  -- the revision in charge_id: charges are found by it, without an index over random ids
  charge_revision bigint,
  cost bigint,
  quality text,
  usage jsonb,
  unpriced boolean NOT NULL DEFAULT false,
  charge jsonb,
  -- the places it counts in, without their numbers (those are in the event)
  budgets jsonb,
  -- every revision that touched the row
  revisions bigint[] NOT NULL,
  PRIMARY KEY (ledger, version, revision)
);
CREATE INDEX attempts_by_request ON attempts (ledger, version, request_id) WHERE request_id IS NOT NULL;
CREATE INDEX attempts_by_subject ON attempts (ledger, version, subject, revision) WHERE subject IS NOT NULL;
CREATE INDEX attempts_by_conversation ON attempts (ledger, version, conversation, revision) WHERE conversation IS NOT NULL;
CREATE INDEX attempts_by_charge ON attempts (ledger, version, charge_revision) WHERE charge_revision IS NOT NULL;
CREATE INDEX attempts_held ON attempts (ledger, version, revision) WHERE state = 'held';
-- Rows come in the order of their days: block ranges are enough for reports by subject over a stretch of days.
CREATE INDEX attempts_by_day ON attempts USING brin (day) WITH (autosummarize = on, pages_per_range = 32);

-- The spend cube. What is held is not here: it is a query over the few rows of attempts_held.
CREATE TABLE spend_days (
  ledger text NOT NULL,
  version integer NOT NULL,
  day date NOT NULL,
  provider text NOT NULL,
  account text NOT NULL,
  model text NOT NULL,
  -- '' where the attempt named none
  workload text NOT NULL,
  reserved_count bigint NOT NULL,
  refused_count bigint NOT NULL,
  refused_amount bigint NOT NULL,
  charge_count bigint NOT NULL,
  charged bigint NOT NULL,
  unpriced_count bigint NOT NULL,
  input_tokens bigint NOT NULL,
  cache_read_tokens bigint NOT NULL,
  cache_write_5m_tokens bigint NOT NULL,
  cache_write_1h_tokens bigint NOT NULL,
  output_tokens bigint NOT NULL,
  audio_input_tokens bigint NOT NULL,
  audio_output_tokens bigint NOT NULL,
  images bigint NOT NULL,
  audio_seconds bigint NOT NULL,
  searches bigint NOT NULL,
  PRIMARY KEY (ledger, version, day, provider, account, model, workload)
);

CREATE TABLE budgets (
  ledger text NOT NULL,
  version integer NOT NULL,
  id text NOT NULL,
  generation integer NOT NULL,
  retired boolean NOT NULL,
  definition jsonb NOT NULL,
  -- spending judged before this revision does not count (countFrom "now"); else -1
  counted_from bigint NOT NULL,
  -- the event that last filled the buckets from history, and its time
  opening_revision bigint NOT NULL,
  opening_at timestamptz NOT NULL,
  revision bigint NOT NULL,
  PRIMARY KEY (ledger, version, id)
);

CREATE TABLE budget_buckets (
  ledger text NOT NULL,
  version integer NOT NULL,
  budget text NOT NULL,
  generation integer NOT NULL,
  -- ms since epoch of the window's beginning; 0 for a lifetime
  window_key bigint NOT NULL,
  bucket_key text NOT NULL,
  -- -1: the whole bucket; else the part of it that counts in the set-aside of this index
  part smallint NOT NULL,
  window_span jsonb NOT NULL,
  bucket jsonb,
  charged bigint NOT NULL,
  held bigint NOT NULL,
  PRIMARY KEY (ledger, version, budget, generation, window_key, bucket_key, part)
);

CREATE TABLE ledger_settings (
  ledger text NOT NULL,
  version integer NOT NULL,
  settings jsonb NOT NULL,
  opened_at timestamptz NOT NULL,
  revision bigint NOT NULL,
  PRIMARY KEY (ledger, version)
);

CREATE TABLE listed_prices (
  ledger text NOT NULL,
  version integer NOT NULL,
  price_id text NOT NULL,
  provider text NOT NULL,
  model text NOT NULL,
  price jsonb NOT NULL,
  listed_at timestamptz NOT NULL,
  revision bigint NOT NULL,
  PRIMARY KEY (ledger, version, price_id)
);

CREATE TABLE price_overrides (
  ledger text NOT NULL,
  version integer NOT NULL,
  provider text NOT NULL,
  model text NOT NULL,
  price jsonb NOT NULL,
  set_at timestamptz NOT NULL,
  revision bigint NOT NULL,
  PRIMARY KEY (ledger, version, provider, model)
);

-- Which types occur in each thousand revisions: a filter by type reads only segments that hold it.
CREATE TABLE event_segments (
  ledger text NOT NULL,
  version integer NOT NULL,
  -- floor(revision / 1000)
  segment bigint NOT NULL,
  types text[] NOT NULL,
  first_at timestamptz NOT NULL,
  last_at timestamptz NOT NULL,
  PRIMARY KEY (ledger, version, segment)
);
