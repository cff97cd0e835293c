-- Of every curve, what lies in each 64, 1024, 16384 and 262144 steps (levels 1 to 4) of an attempt, so
-- that a chart of a million points reads some thousands of rows. Level l, bucket b: the steps with
-- step >> (2 + 4 * l) = b. Times and values are those of the first and the last step.
CREATE TABLE pyramid (
    series     INTEGER NOT NULL REFERENCES series ON DELETE CASCADE,
    attempt    INTEGER NOT NULL,
    level      INTEGER NOT NULL,
    bucket     INTEGER NOT NULL,
    points     INTEGER NOT NULL,
    not_finite INTEGER NOT NULL,                         -- of them: NaN and infinities
    low        REAL,                                     -- of those that are finite; NULL: none is
    high       REAL,
    total      REAL,
    first_step INTEGER NOT NULL,
    first_ms   INTEGER NOT NULL,
    last_step  INTEGER NOT NULL,
    last_ms    INTEGER NOT NULL,
    last       REAL,
    PRIMARY KEY (series, attempt, level, bucket)
) WITHOUT ROWID;

-- 1: who added the point keeps the pyramid too. For others see store/pyramid_trigger.sql.
ALTER TABLE metrics ADD COLUMN in_pyramid INTEGER NOT NULL DEFAULT 0;
