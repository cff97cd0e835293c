-- The run history, version 1. Times are milliseconds since 1970; NULL where not yet known.
-- SQLite stores a NaN as NULL.

CREATE TABLE runs (
    run               INTEGER PRIMARY KEY AUTOINCREMENT, -- in order of creation, never reused
    id                TEXT    NOT NULL UNIQUE CHECK (id <> ''), -- the id that people see
    name              TEXT    NOT NULL,
    created_ms        INTEGER NOT NULL,
    attempt           INTEGER NOT NULL,                  -- the newest
    step              INTEGER NOT NULL DEFAULT 0,        -- the last step done, as lists show it
    loss              REAL,
    valid_loss        REAL,
    tokens_per_second REAL,
    recipe_path       TEXT    NOT NULL,
    recipe_text       TEXT    NOT NULL,                  -- as written
    tags              TEXT    NOT NULL DEFAULT '',       -- sorted, separated by one space
    note              TEXT    NOT NULL DEFAULT '',
    run_group         TEXT    NOT NULL DEFAULT '',
    parent            TEXT    NOT NULL DEFAULT '',       -- id of the run it was forked from, which may be removed by now; '': not a fork
    parent_step       INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX runs_by_name ON runs (name, run);

CREATE TABLE attempts (
    run             INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    attempt         INTEGER NOT NULL CHECK (attempt >= 1),
    state           TEXT    NOT NULL CHECK (state IN ('queued', 'preparing', 'starting', 'running',
                                                      'stopping', 'finished', 'failed', 'stopped')),
    start_step      INTEGER NOT NULL,
    steps_total     INTEGER NOT NULL,
    created_ms      INTEGER NOT NULL,
    started_ms      INTEGER,
    first_step_ms   INTEGER,
    ended_ms        INTEGER,
    boot_id         TEXT    NOT NULL DEFAULT '',         -- boot of the launch machine that the next two columns count in
    started_boot_ms INTEGER,                             -- milliseconds since that boot; NULL: only the wall clock is known
    elapsed_ms      INTEGER,                             -- once the attempt has ended
    exit_code       INTEGER,
    reason          TEXT    NOT NULL DEFAULT '',
    recipe_json     TEXT    NOT NULL,                    -- resolved
    recipe_hash     TEXT    NOT NULL,
    changes         TEXT    NOT NULL DEFAULT '[]',       -- by --set: [{"key": "optimizer.lr", "old": 3e-4, "new": 1e-3}, ...]
    provenance      TEXT    NOT NULL DEFAULT '{}',       -- runner/launch/provenance.h; '{}': a supervisor started the attempt
    plan_json       TEXT    NOT NULL DEFAULT '',         -- copy of attempt-N/plan.json; '': none
    PRIMARY KEY (run, attempt),
    CHECK ((state IN ('finished', 'failed', 'stopped')) = (ended_ms IS NOT NULL))
) WITHOUT ROWID;

CREATE TABLE nodes (
    run          INTEGER NOT NULL,
    attempt      INTEGER NOT NULL,
    node         INTEGER NOT NULL CHECK (node >= 0),
    name         TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    acknowledged INTEGER NOT NULL,                       -- next sequence number wanted from the node's journal
    boot_id      TEXT    NOT NULL DEFAULT '',            -- boot of the node that started the ranks; after a reboot none is left
    place_json   TEXT    NOT NULL DEFAULT '',            -- copy of attempt-N/node-K/place.json; '': none
    PRIMARY KEY (run, attempt, node),
    FOREIGN KEY (run, attempt) REFERENCES attempts ON DELETE CASCADE
) WITHOUT ROWID;

CREATE TABLE ranks (
    run         INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    rank        INTEGER NOT NULL CHECK (rank >= 0),
    node        INTEGER NOT NULL,
    local_rank  INTEGER NOT NULL,
    pid         INTEGER NOT NULL,
    device      TEXT    NOT NULL,
    state       TEXT    NOT NULL,
    exit_code   INTEGER NOT NULL,
    exit_signal INTEGER NOT NULL,
    log_bytes   INTEGER NOT NULL,
    PRIMARY KEY (run, attempt, rank),
    FOREIGN KEY (run, attempt) REFERENCES attempts ON DELETE CASCADE
) WITHOUT ROWID;

-- A metric of a run. Its points carry this number instead of two texts.
CREATE TABLE series (
    series INTEGER PRIMARY KEY,
    run    INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    name   TEXT    NOT NULL CHECK (name <> ''),
    UNIQUE (run, name)
);

-- Points, in the order in which a chart reads them.
CREATE TABLE metrics (
    series  INTEGER NOT NULL REFERENCES series ON DELETE CASCADE,
    step    INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    value   REAL,
    time_ms INTEGER NOT NULL,
    PRIMARY KEY (series, step, attempt)
) WITHOUT ROWID;

-- Summaries of each curve by buckets of 64, 1024, 16384 and 262144 steps (levels 1 to 4), per attempt, so
-- that a chart of a million points reads a few thousand rows. Bucket b of level l holds the steps with
-- step >> (2 + 4 * l) = b. Whoever adds a point updates its buckets in the same transaction (store/curve_pyramid.c).
CREATE TABLE pyramid (
    series     INTEGER NOT NULL REFERENCES series ON DELETE CASCADE,
    attempt    INTEGER NOT NULL,
    level      INTEGER NOT NULL,
    bucket     INTEGER NOT NULL,
    points     INTEGER NOT NULL,
    not_finite INTEGER NOT NULL,                         -- points that are NaN or infinite
    low        REAL,                                     -- of the finite points; NULL: there are none
    high       REAL,
    total      REAL,
    first_step INTEGER NOT NULL,
    first_ms   INTEGER NOT NULL,
    last_step  INTEGER NOT NULL,
    last_ms    INTEGER NOT NULL,
    last       REAL,
    PRIMARY KEY (series, attempt, level, bucket)
) WITHOUT ROWID;

CREATE TABLE events (
    event    INTEGER PRIMARY KEY AUTOINCREMENT,
    run      INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    attempt  INTEGER NOT NULL,
    node     INTEGER NOT NULL,                           -- -1: the supervisor
    sequence INTEGER NOT NULL,                           -- in the node's journal
    rank     INTEGER NOT NULL,                           -- -1: none
    time_ms  INTEGER NOT NULL,
    kind     TEXT    NOT NULL,
    json     TEXT    NOT NULL
);
CREATE INDEX events_by_run ON events (run, event);
CREATE UNIQUE INDEX events_once ON events (run, attempt, node, sequence) WHERE node >= 0;

CREATE TABLE checkpoints (
    run        INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    path       TEXT    NOT NULL CHECK (path <> ''),
    attempt    INTEGER NOT NULL,
    step       INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    time_ms    INTEGER NOT NULL,
    digest     TEXT    NOT NULL,
    valid_loss REAL,
    score      REAL,                                     -- compares the checkpoints of a run, lower is better; NULL: valid_loss does
    seconds    REAL    NOT NULL,
    PRIMARY KEY (run, path)
) WITHOUT ROWID;
