#include "runner/supervisor/connection/clock_offset.h"

#include <math.h>

void dt_clock_offset_init(dt_clock_offset *offset)
{
    *offset = (dt_clock_offset){.error_ms = INFINITY};
}

void dt_clock_offset_heard(dt_clock_offset *offset, int64_t stamped_ms, int64_t heard_ms)
{
    if (stamped_ms > 0 && stamped_ms - heard_ms > offset->ahead_ms)
        offset->ahead_ms = stamped_ms - heard_ms;
}

void dt_clock_offset_answered(dt_clock_offset *offset, int64_t asked_ms, int64_t stamped_ms,
                              int64_t heard_ms)
{
    double error_ms = (double)(heard_ms - asked_ms) / 2;

    if (stamped_ms > 0 && error_ms >= 0 && error_ms < offset->error_ms) {
        offset->ahead_ms = stamped_ms - (heard_ms + asked_ms) / 2;
        offset->error_ms = error_ms;
    }
    dt_clock_offset_heard(offset, stamped_ms, heard_ms);
}
