-- Version 3. What the folder of a run says of an attempt, a second time: the files can be damaged,
-- and ranks that nobody knows of any more cannot be ended. '' where there is no copy.

ALTER TABLE attempts ADD COLUMN plan_json TEXT NOT NULL DEFAULT '';  -- attempt-N/plan.json
ALTER TABLE nodes ADD COLUMN place_json TEXT NOT NULL DEFAULT '';    -- attempt-N/node-K/place.json
