-- Version 5. Where each attempt comes from: {"command": [...], "dtrun": ..., "git": ..., ...}
-- (runner/launch/provenance.h); '{}' of what an older dtrun or a supervisor started.
ALTER TABLE attempts ADD COLUMN provenance TEXT NOT NULL DEFAULT '{}';
-- What people say of a run: tags in order with a blank between two, a note, a group.
ALTER TABLE runs ADD COLUMN tags TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN note TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN run_group TEXT NOT NULL DEFAULT '';
-- The run that it was forked from ('': none), by id: that one may have been removed since.
ALTER TABLE runs ADD COLUMN parent TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN parent_step INTEGER NOT NULL DEFAULT 0;
