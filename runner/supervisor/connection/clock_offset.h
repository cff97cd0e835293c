/* clock_offset: estimates how far a node's clock is ahead of this machine's clock.
 *
 * A message stamped T on the node, requested at A and received at H here (all in ms), was stamped between
 * A and H: the clock is ahead by T - (A + H)/2, with an error of at most (H - A)/2. The answer with the
 * smallest error is used. A message that was not requested was stamped before it was received, so the
 * clock is ahead by at least T - H; this only corrects an estimate that is too low.
 */
#ifndef DT_CONNECTION_CLOCK_OFFSET_H
#define DT_CONNECTION_CLOCK_OFFSET_H

#include <stdint.h>

typedef struct dt_clock_offset {
    int64_t ahead_ms;
    double error_ms; /* largest error; infinite: unknown */
} dt_clock_offset;

void dt_clock_offset_init(dt_clock_offset *offset);
void dt_clock_offset_answered(dt_clock_offset *offset, int64_t asked_ms, int64_t stamped_ms,
                              int64_t heard_ms);
void dt_clock_offset_heard(dt_clock_offset *offset, int64_t stamped_ms, int64_t heard_ms);

#endif
