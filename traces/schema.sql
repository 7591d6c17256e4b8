-- SPDX-License-Identifier: Apache-2.0
-- The trace store: attention recorded from real models, and what was computed from it.
-- application_id 0x53485253 ("SHRS"), user_version 2, or 3 once a window is below 0. All indices are 0-based, all numbers in blobs
-- little-endian. Every blob named "zstd" is one or more zstd frames with checksums; traces/codec.h
-- describes what is inside.

CREATE TABLE model (
    id          INTEGER PRIMARY KEY,
    name        TEXT    NOT NULL,               -- the folder's name or the checkpoint's own
    family      TEXT    NOT NULL,               -- "opt"
    weights     TEXT    NOT NULL,               -- checkpoint, import, random:SEED (an untrained twin), pruned:F
    fingerprint TEXT    NOT NULL,               -- hash of configuration, tensor table and sampled weights
    n_layer     INTEGER NOT NULL,               -- layers of the whole model
    n_head      INTEGER NOT NULL,               -- query heads
    n_kv_head   INTEGER NOT NULL,               -- heads of keys and values, each for n_head / n_kv_head of them
    d_head      INTEGER NOT NULL,               -- numbers of a head's query, key or value
    d_model     INTEGER NOT NULL,               -- numbers of a token between layers
    n_vocab     INTEGER NOT NULL,
    max_pos     INTEGER NOT NULL,               -- positions that the model knows
    UNIQUE (name, weights, fingerprint)
);

CREATE TABLE run (                              -- one invocation of trace or import, with all that repeats it
    id          INTEGER PRIMARY KEY,
    model       INTEGER NOT NULL REFERENCES model,
    key         TEXT    NOT NULL UNIQUE,        -- hash of model, tokens and settings: the same command finds its run
    program     TEXT    NOT NULL,               -- version that wrote it
    backend     TEXT    NOT NULL,
    device      TEXT    NOT NULL,
    dtype       TEXT    NOT NULL,               -- f32, bf16, f16
    weight_bits INTEGER NOT NULL,               -- 16: weights as dtype; 8, 4: codes with scales
    record      TEXT    NOT NULL,               -- full, sparse, summary
    codec       TEXT    NOT NULL,               -- f32, f16, log8
    vectors     TEXT    NOT NULL,               -- any of "qkv", or empty
    statistics  TEXT    NOT NULL,               -- JSON: thresholds, recents, splits, window of head_stats
    first_layer INTEGER NOT NULL,
    last_layer  INTEGER NOT NULL,               -- inclusive
    seed        INTEGER NOT NULL,
    command     TEXT    NOT NULL,               -- as it was typed
    started     TEXT    NOT NULL,               -- UTC, ISO 8601
    seconds     REAL    NOT NULL DEFAULT 0      -- computing time of all attempts together
);

CREATE TABLE sequence (
    id          INTEGER PRIMARY KEY,            -- order of recording over the whole file
    run         INTEGER NOT NULL REFERENCES run,
    source      TEXT    NOT NULL,               -- "book.txt:3": file and part
    n_tokens    INTEGER NOT NULL,
    tokens      BLOB    NOT NULL                -- int32[n_tokens]; -1: not known (imported)
);
CREATE INDEX sequence_of_run ON sequence (run);

CREATE TABLE done (                             -- one row per transaction: a layer of a sequence is whole
    sequence    INTEGER NOT NULL REFERENCES sequence,
    layer       INTEGER NOT NULL,
    PRIMARY KEY (sequence, layer)
) WITHOUT ROWID;

CREATE TABLE scores (                           -- rows [first_row, first_row + n_rows) of one head
    id          INTEGER PRIMARY KEY,
    sequence    INTEGER NOT NULL REFERENCES sequence,
    layer       INTEGER NOT NULL,
    head        INTEGER NOT NULL,               -- query head
    first_row   INTEGER NOT NULL,
    n_rows      INTEGER NOT NULL,
    window      INTEGER NOT NULL,               -- row t starts at key max(0, t - window + 1); 0: at key 0;
                                                -- < 0: not causal, every row sees the keys 0 to -window - 1
    codec       INTEGER NOT NULL,               -- 0 f32, 1 f16, 2 log8; + 16: sparse
    blob        BLOB    NOT NULL,               -- zstd
    UNIQUE (sequence, layer, head, first_row)
);

CREATE TABLE vectors (                          -- queries, keys, values that the attention was made from
    id          INTEGER PRIMARY KEY,
    sequence    INTEGER NOT NULL REFERENCES sequence,
    layer       INTEGER NOT NULL,
    kind        TEXT    NOT NULL,               -- "q", "k", "v"; "s": what a sink takes of each row, which then sums to
                                                -- 1 less that; "n", empty: the layer does not attend, it has no rows;
                                                -- "h", empty: the layer has only `head` KV heads; "a", empty: only
                                                -- `head` query heads
    head        INTEGER NOT NULL,               -- query head for q and s, KV head for k and v
    codec       INTEGER NOT NULL,               -- 0 f32, 1 f16
    blob        BLOB    NOT NULL,               -- zstd of [n_tokens, d_head]; of s: f32 [n_tokens]
    UNIQUE (sequence, layer, kind, head)
);

CREATE TABLE head_stats (                       -- streaming statistics of one head (full runs: where thresholds were named)
    id          INTEGER PRIMARY KEY,
    sequence    INTEGER NOT NULL REFERENCES sequence,
    layer       INTEGER NOT NULL,
    head        INTEGER NOT NULL,
    blob        BLOB    NOT NULL,               -- zstd; traces/stats.h
    UNIQUE (sequence, layer, head)
);

CREATE TABLE result (                           -- figures computed from traces
    id          INTEGER PRIMARY KEY,
    run         INTEGER REFERENCES run,         -- NULL: over all sequences of the model
    command     TEXT    NOT NULL,               -- "persistence"
    settings    TEXT    NOT NULL,               -- JSON: everything needed to repeat it
    metric      TEXT    NOT NULL,               -- "ratio", "density", "lift", …
    layer       INTEGER,                        -- NULL: whole model
    head        INTEGER,                        -- NULL: whole layer
    value       REAL                            -- NULL: undefined
);
CREATE INDEX result_of_settings ON result (command, settings);

CREATE TABLE typed (                            -- how results were asked for; stores from before have no such table
    command     TEXT    NOT NULL,               -- as in result
    settings    TEXT    NOT NULL,               -- as in result
    line        TEXT    NOT NULL,               -- the command as it was typed, without the program's name
    PRIMARY KEY (command, settings)
) WITHOUT ROWID;

CREATE TABLE plan (                             -- budgets per layer and head, with the quality they were measured to cost
    id          INTEGER PRIMARY KEY,
    model       INTEGER NOT NULL REFERENCES model,
    name        TEXT    NOT NULL,               -- of the file that shears plan wrote
    json        TEXT    NOT NULL                -- that file's content
);

-- For a person at the sqlite3 shell.

CREATE VIEW trace_summary AS
SELECT run.id AS run, model.name AS model, model.weights, run.record, run.codec, run.dtype, run.backend,
       count(DISTINCT sequence.id) AS sequences,
       sum(sequence.n_tokens) AS tokens,
       (SELECT count(*) FROM done JOIN sequence AS s ON s.id = done.sequence WHERE s.run = run.id) AS layers_done,
       count(DISTINCT sequence.id) * (run.last_layer - run.first_layer + 1) AS layers_wanted
FROM run JOIN model ON model.id = run.model JOIN sequence ON sequence.run = run.id
GROUP BY run.id;

CREATE VIEW persistence_per_layer AS
SELECT result.settings, result.layer,
       max(CASE WHEN metric = 'ratio'   THEN value END) AS ratio,
       max(CASE WHEN metric = 'density' THEN value END) AS density,
       max(CASE WHEN metric = 'lift'    THEN value END) AS lift,
       max(CASE WHEN metric = 'auc'     THEN value END) AS auc
FROM result WHERE command = 'persistence' AND layer IS NOT NULL AND head IS NULL
GROUP BY result.settings, result.layer;

CREATE VIEW bytes_per_layer AS
SELECT scores.layer, count(*) AS blocks, sum(length(scores.blob)) AS bytes
FROM scores GROUP BY scores.layer;
