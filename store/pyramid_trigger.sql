-- Keeps the pyramid for an older dtrun that leads a run while a newer one brings the store up to date. It
-- costs about a microsecond a point, so that only stores in which a run was active then have it.
CREATE TRIGGER metrics_pyramid AFTER INSERT ON metrics WHEN NEW.in_pyramid = 0
BEGIN
    INSERT INTO pyramid
    SELECT NEW.series, NEW.attempt, l.column1, NEW.step >> (2 + 4 * l.column1), 1, 1 - f.finite,
           CASE WHEN f.finite THEN NEW.value END, CASE WHEN f.finite THEN NEW.value END,
           CASE WHEN f.finite THEN NEW.value ELSE 0.0 END,
           NEW.step, NEW.time_ms, NEW.step, NEW.time_ms, NEW.value
    FROM (VALUES (1), (2), (3), (4)) l,
         (SELECT coalesce(abs(NEW.value) <= 1.7976931348623157e308, 0) AS finite) f
    WHERE true
    ON CONFLICT (series, attempt, level, bucket) DO UPDATE SET
        points     = points + 1,
        not_finite = not_finite + excluded.not_finite,
        low        = min(coalesce(low, excluded.low), coalesce(excluded.low, low)),
        high       = max(coalesce(high, excluded.high), coalesce(excluded.high, high)),
        total      = total + excluded.total,
        first_ms   = CASE WHEN excluded.first_step < first_step THEN excluded.first_ms ELSE first_ms END,
        first_step = min(first_step, excluded.first_step),
        last_ms    = CASE WHEN excluded.last_step > last_step THEN excluded.last_ms ELSE last_ms END,
        last       = CASE WHEN excluded.last_step > last_step THEN excluded.last ELSE last END,
        last_step  = max(last_step, excluded.last_step);
END;
