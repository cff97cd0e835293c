/* pace: which rank holds up the others.
 *
 * Ranks of one step wait for each other in collectives, so that each takes as long as the slowest;
 * but the slowest itself waits least. Every rank tells now and then how long it waits in a step.
 * Once all have told, two points of the history are made: "slowest_rank", and "slowest_seconds",
 * how much longer than it the others (their median) wait in a step.
 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "runner/supervisor/changes.h"
#include "runner/supervisor/state.h"

#include "base/banned.h"

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median_waited(const dt_session *session, double *scratch)
{
    for (int64_t i = 0; i < session->world_size; i++)
        scratch[i] = session->ranks[i].waited_seconds;
    qsort(scratch, (size_t)session->world_size, sizeof(scratch[0]), compare);
    return scratch[session->world_size / 2];
}

static dt_status tell(dt_session *session, int64_t step, int64_t time_ms, dt_error *err)
{
    double *scratch = calloc((size_t)session->world_size, sizeof(scratch[0]));
    int64_t slowest = 0;
    dt_status st = DT_OK;

    if (scratch == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    for (int64_t i = 0; i < session->world_size; i++) {
        session->ranks[i].paced = false;
        if (session->ranks[i].waited_seconds < session->ranks[slowest].waited_seconds)
            slowest = i;
    }
    DT_TRY(dt_change_metric(session, step, DT_METRIC_SLOWEST_RANK, (double)slowest, time_ms, err));
    DT_TRY(dt_change_metric(
        session, step, DT_METRIC_SLOWEST_SECONDS,
        median_waited(session, scratch) - session->ranks[slowest].waited_seconds, time_ms, err));
out:
    free(scratch);
    return st;
}

dt_status dt_pace_hear(dt_session *session, const dt_message *message, dt_error *err)
{
    session->ranks[message->rank].waited_seconds = dt_message_number(message, "waited_seconds");
    session->ranks[message->rank].paced = true;
    for (int64_t i = 0; i < session->world_size; i++)
        if (!session->ranks[i].paced)
            return DT_OK;
    return tell(session, dt_message_int(message, "step", 0), message->time_ms, err);
}
