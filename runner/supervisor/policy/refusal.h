/* refusal: when an agent that answers is of no use. A pure function of what was refused.
 *
 * It refuses to be attached to (another protocol, another run, a journal that cannot be read), or
 * says what is not understood, again and again. It is heard, so that no silence ever gives it up:
 * refusals are counted instead, and each event that is taken in between begins a new count.
 *
 *   refused for good   5 in a row     what runs there is ended
 *   for the moment    60 in a row     the same
 *   ending it fails    3 times        the node is given up
 */
#ifndef DT_POLICY_REFUSAL_H
#define DT_POLICY_REFUSAL_H

#include <stdbool.h>
#include <stdint.h>

enum { DT_REFUSAL_END_TRIES = 3 };

typedef struct dt_refusals {
    int weight;         /* of those in a row */
    int64_t next_event; /* that was wanted at the last one */
} dt_refusals;

/* One more. next_event: the number that is wanted now; lasting: it would be refused again. True: it
 * was one too many. */
bool dt_refusal_is_last(dt_refusals *refusals, int64_t next_event, bool lasting);

#endif
