-- What --set changed for the attempt: [{"key": "optimizer.lr", "old": 3e-4, "new": 1e-3}, ...].
ALTER TABLE attempts ADD COLUMN changes TEXT NOT NULL DEFAULT '[]';
-- How long it took by a clock that nobody sets: milliseconds of the launch machine's boot, and which
-- boot that is; elapsed_ms once it has ended. NULL where only the wall clock can tell.
ALTER TABLE attempts ADD COLUMN boot_id TEXT NOT NULL DEFAULT '';
ALTER TABLE attempts ADD COLUMN started_boot_ms INTEGER;
ALTER TABLE attempts ADD COLUMN elapsed_ms INTEGER;
