/* refusal: decides when an agent that answers is unusable. A pure function of the refusals so far.
 *
 * The agent refuses `attach` (another run, an unreadable journal), or keeps sending lines that cannot be
 * parsed. Because it is heard, no silence gives it up; so refusals are counted instead. Each event that
 * is accepted in between resets the count. An agent of another protocol version is left alone instead.
 *
 *   lasting refusals         5 in a row    the ranks there are ended
 *   temporary refusals      60 in a row    the same
 *   ending the ranks fails   3 times       the node is given up
 */
#ifndef DT_POLICY_REFUSAL_H
#define DT_POLICY_REFUSAL_H

#include <stdbool.h>
#include <stdint.h>

enum { DT_REFUSAL_END_TRIES = 3 };

typedef struct dt_refusals {
    int weight;         /* weight of the refusals in a row */
    int64_t next_event; /* number of the next event at the last refusal */
} dt_refusals;

/* Counts a refusal. next_event: number of the next expected event; lasting: a retry would be
 * refused too. Returns true if it was one too many. */
bool dt_refusal_is_last(dt_refusals *refusals, int64_t next_event, bool lasting);

#endif
