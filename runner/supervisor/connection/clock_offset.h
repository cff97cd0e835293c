/* clock_offset: how far a node's clock is ahead of ours.
 *
 * An answer stamped T there, asked for at A and heard at H here (all in ms), says that T was
 * between A and H: the clock is ahead by T - (A + H)/2, at most (H - A)/2 wrong. The answer with
 * the shortest way is believed. What comes unasked was stamped before it was heard, so the clock is
 * ahead by T - H at least: that alone corrects a guess which is too low.
 */
#ifndef DT_CONNECTION_CLOCK_OFFSET_H
#define DT_CONNECTION_CLOCK_OFFSET_H

#include <stdint.h>

typedef struct dt_clock_offset {
    int64_t ahead_ms;
    double error_ms; /* at most so wrong; infinite: not known */
} dt_clock_offset;

void dt_clock_offset_init(dt_clock_offset *offset);
void dt_clock_offset_answered(dt_clock_offset *offset, int64_t asked_ms, int64_t stamped_ms,
                              int64_t heard_ms);
void dt_clock_offset_heard(dt_clock_offset *offset, int64_t stamped_ms, int64_t heard_ms);

#endif
