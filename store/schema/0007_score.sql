-- What checkpoints of a run are compared by: the lower, the better. NULL: it is the validation loss, as
-- before there were scores.
ALTER TABLE checkpoints ADD COLUMN score REAL;
