/* conclude: ends an attempt once nothing more can come from its nodes.
 *
 * dt_action_conclude returns early while something is still running; whatever it waits for calls
 * `settled` when done, which dispatches RELEASED again.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "runner/supervisor/policy/node_loss.h"
#include "runner/supervisor/session/state.h"

#define END_PATIENCE_MS 30000

/* --- unknown ends */

/* Returns a rank that was started and whose end was never reported; -1 if there is none. */
static int64_t find_unknown(const dt_session *session)
{
    for (int64_t i = 0; i < session->world_size; i++)
        if (dt_session_rank(session, i)->row.pid != 0 && !dt_session_rank(session, i)->exited)
            return i;
    return -1;
}

/* Marks the attempt as failed if the events do not explain how the ranks ended. */
static dt_status settle(dt_session *session, dt_error *err)
{
    int64_t rank = find_unknown(session);
    dt_status st = DT_OK;
    char text[400];

    if (dt_verdict_is_explained(&session->verdict))
        return DT_OK;
    if (dt_verdict_has_lost_cause(&session->verdict))
        snprintf(text, sizeof(text),
                 "the ranks were stopped after a failure whose cause is missing from the history");
    else if (rank >= 0)
        snprintf(text, sizeof(text),
                 "cannot tell how rank %lld on %s ended: the record is missing from its journal",
                 (long long)rank, session->nodes[dt_session_rank(session, rank)->row.node].name);
    else if (!dt_collector_has_gaps(session->collector))
        return DT_OK;
    else
        snprintf(text, sizeof(text),
                 "cannot tell whether the ranks finished: journal events were lost");
    dt_verdict_system_failed(&session->verdict, text, dt_clock_wall_ms()); /* once */
    DT_TRY(dt_session_note(session, "lost", text, err));
out:
    return st;
}

/* --- nodes that cannot be asked */

static void tell_unreached(void *context, const char *text)
{
    dt_session *session = context;

    dt_verdict_unreached(&session->verdict, text);
}

/* Adds each node that this attempt lost and where ranks may still be running to the verdict. */
static void tell_lost(dt_session *session)
{
    for (int64_t i = 0; i < session->node_count; i++) {
        const dt_supervised_node *node = &session->nodes[i];
        dt_node_loss_facts facts = {.started = dt_node_may_have_started(node),
                                    .preempted = dt_node_link_is_preempted(node->link),
                                    .rebooted = node->rebooted};
        char text[320];

        if (!dt_node_is_lost(node) || !dt_node_loss_leaves_ranks(&facts))
            continue;
        snprintf(text, sizeof(text), "node %.250s cannot be asked about its ranks", node->name);
        dt_verdict_unreached(&session->verdict, text);
    }
}

/* True if the reason must name nodes where processes may still run: after a stop, and after a
 * failure that no restart follows. */
static bool must_tell(dt_session *session)
{
    return session->verdict.stop_asked ||
           (dt_verdict_has_failed(&session->verdict) && !dt_restart_is_due(session));
}

/* Processes that are left still use the run's files, so nothing is removed in that case. */
static bool is_cleaned_up(dt_session *session)
{
    return session->verdict.left.length > 0 || dt_cleanup_is_done(session->cleanup);
}

/* --- the end */

/* Brings the files of a command here, at the first call; returns whether that is done. */
static bool is_collected(dt_session *session)
{
    dt_node_layout *places = dt_calloc((size_t)session->node_count, sizeof(places[0]));
    bool done;

    for (int64_t i = 0; i < session->node_count; i++)
        if (dt_node_link_place(session->nodes[i].link) != NULL &&
            !dt_node_is_lost(&session->nodes[i]))
            places[i] = *dt_node_link_place(session->nodes[i].link);
    done = dt_collection_is_done(session->collection, places);
    free(places);
    return done;
}

/* Ends the attempt. The agents must leave before the end is stored, because no supervisor would
 * come back to check on them. */
dt_status dt_action_conclude(dt_session *session, dt_supervised_node *unused, dt_error *err)
{
    dt_run_rows_setup rows = {
        .store = session->store, .run = session->run, .attempt = session->attempt};
    bool alone = true;
    dt_status st = DT_OK;

    if (!dt_collector_is_idle(session->collector))
        return DT_OK; /* it dispatches RELEASED again */
    for (int64_t i = 0; i < session->node_count; i++)
        alone = alone && dt_node_link_is_away(session->nodes[i].link);
    for (int64_t i = 0; i < session->node_count; i++)
        if (dt_node_link_is_preparing(session->nodes[i].link))
            return DT_OK; /* the preparation must end first; it dispatches RELEASED again */
    if (dt_session_count_lost(session) > 0)
        dt_checkpoint_fetcher_cancel(session->fetcher);
    if (!dt_checkpoint_fetcher_is_idle(session->fetcher))
        return DT_OK; /* it dispatches RELEASED again */
    if (must_tell(session) && !dt_reaper_is_done(session->reaper))
        return DT_OK; /* the same */
    DT_TRY(settle(session, err));
    if (!alone && session->leave != DT_LEAVE_OVER) {
        session->leave = DT_LEAVE_WAITS;
        return DT_OK;
    }
    if (!dt_restart_is_due(session) && !(is_collected(session) && is_cleaned_up(session)))
        return DT_OK; /* the same */
    if (must_tell(session)) {
        if (!session->verdict.stop_asked) /* after a stop, each lost node was reported at once */
            tell_lost(session);
        dt_reaper_tell(session->reaper, tell_unreached, session);
    }
    if (!dt_store_is_current(session->store)) {
        DT_TRY(dt_collector_move(&rows, session->store, err));
        DT_THROW(err, DT_ERR_PEER, "the file of the run store was removed or replaced");
    }
    dt_store_set_patience(session->store, END_PATIENCE_MS); /* nobody waits for the loop any more */
    DT_TRY(dt_restart_or_end(&session->restarted, session, err));
    uv_stop(&session->loop);
out:
    return st;
}
