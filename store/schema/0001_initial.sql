-- The run history, version 1. Times are milliseconds since 1970; NULL where not yet known.
-- A NaN is stored as NULL, as SQLite does by itself.

CREATE TABLE runs (
    run               INTEGER PRIMARY KEY AUTOINCREMENT, -- in order of creation, never used again
    id                TEXT    NOT NULL UNIQUE CHECK (id <> ''), -- what people see
    name              TEXT    NOT NULL,
    created_ms        INTEGER NOT NULL,
    attempt           INTEGER NOT NULL,                  -- the newest
    step              INTEGER NOT NULL DEFAULT 0,        -- done, as lists show it
    loss              REAL,
    valid_loss        REAL,
    tokens_per_second REAL,
    recipe_path       TEXT    NOT NULL,
    recipe_text       TEXT    NOT NULL                   -- as written
);
CREATE INDEX runs_by_name ON runs (name, run);

CREATE TABLE attempts (
    run           INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    attempt       INTEGER NOT NULL CHECK (attempt >= 1),
    state         TEXT    NOT NULL CHECK (state IN ('queued', 'preparing', 'starting', 'running',
                                                    'stopping', 'finished', 'failed', 'stopped')),
    start_step    INTEGER NOT NULL,
    steps_total   INTEGER NOT NULL,
    created_ms    INTEGER NOT NULL,
    started_ms    INTEGER,
    first_step_ms INTEGER,
    ended_ms      INTEGER,
    exit_code     INTEGER,
    reason        TEXT    NOT NULL DEFAULT '',
    recipe_json   TEXT    NOT NULL,                      -- resolved
    recipe_hash   TEXT    NOT NULL,
    PRIMARY KEY (run, attempt),
    CHECK ((state IN ('finished', 'failed', 'stopped')) = (ended_ms IS NOT NULL))
) WITHOUT ROWID;

CREATE TABLE nodes (
    run          INTEGER NOT NULL,
    attempt      INTEGER NOT NULL,
    node         INTEGER NOT NULL CHECK (node >= 0),
    name         TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    acknowledged INTEGER NOT NULL,                       -- next number wanted of its journal
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

-- A metric of a run; its points carry this number instead of two texts.
CREATE TABLE series (
    series INTEGER PRIMARY KEY,
    run    INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    name   TEXT    NOT NULL CHECK (name <> ''),
    UNIQUE (run, name)
);

-- In the order in which a chart reads them.
CREATE TABLE metrics (
    series  INTEGER NOT NULL REFERENCES series ON DELETE CASCADE,
    step    INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    value   REAL,
    time_ms INTEGER NOT NULL,
    PRIMARY KEY (series, step, attempt)
) WITHOUT ROWID;

CREATE TABLE events (
    event    INTEGER PRIMARY KEY AUTOINCREMENT,
    run      INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    attempt  INTEGER NOT NULL,
    node     INTEGER NOT NULL,                           -- -1: the supervisor's own
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
    seconds    REAL    NOT NULL,
    PRIMARY KEY (run, path)
) WITHOUT ROWID;
