/* clocks: how far a node's clock is ahead of ours.
 *
 * An answer stamped T there, asked for at A and heard at H here (all in ms), says that T was
 * between A and H: the clock is ahead by T - (A + H)/2, at most (H - A)/2 wrong. The answer with
 * the shortest way is believed. What comes unasked was stamped before it was heard, so the clock is
 * ahead by T - H at least: that alone corrects a guess which is too low. This machine's clock is
 * ours.
 */
#define _GNU_SOURCE
#include "base/clock.h"
#include "runner/supervisor/supervisor_int.h"

#include "base/banned.h"

void dt_clocks_hear(dt_supervised_node *node, int64_t time_ms, bool answer)
{
    int64_t now_ms = dt_clock_wall_ms();
    double error_ms = (double)(now_ms - node->asked_ms) / 2;

    if (time_ms <= 0 || node->place.here)
        return;
    if (answer && error_ms >= 0 && error_ms < node->clock_error_ms) {
        node->clock_ms = time_ms - (now_ms + node->asked_ms) / 2;
        node->clock_error_ms = error_ms;
    }
    if (time_ms - now_ms > node->clock_ms)
        node->clock_ms = time_ms - now_ms;
}
