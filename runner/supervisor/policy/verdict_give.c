/* verdict_give: derives state, exit code and reason from the events that verdict.c collected. */
#include "runner/supervisor/policy/verdict.h"

#include <stdlib.h>
#include <string.h>

bool dt_verdict_has_failed(const dt_verdict *verdict)
{
    return verdict->cause < DT_CAUSE_ENDED ||
           (verdict->cause == DT_CAUSE_ENDED && !verdict->stop_asked && !verdict->launcher_lost);
}

bool dt_verdict_has_lost_cause(const dt_verdict *verdict)
{
    return verdict->ended_by_us && !verdict->finished_steps && !verdict->time_limit &&
           !verdict->stop_asked && !verdict->launcher_lost && !dt_verdict_has_failed(verdict);
}

bool dt_verdict_is_explained(const dt_verdict *verdict)
{
    return dt_verdict_has_failed(verdict) || verdict->stop_asked || verdict->launcher_lost ||
           verdict->time_limit || (verdict->finished && !dt_verdict_has_lost_cause(verdict));
}

bool dt_verdict_may_restart(const dt_verdict *verdict, bool worked)
{
    return dt_verdict_has_failed(verdict) && !verdict->unrecoverable &&
           (worked || !verdict->untried) && !verdict->stop_asked && verdict->left.length == 0;
}

/* Puts what explains the failure of a rank that lost another one before the report of that rank. */
static void explain(dt_verdict *verdict)
{
    bool early = verdict->early.length > 0 && verdict->early_ms <= verdict->cause_time_ms;
    bool waited = strcasestr(verdict->reason.data, "timed out") != NULL ||
                  strcasestr(verdict->reason.data, "timeout") != NULL;
    int64_t second = verdict->early_ms / 1000 % (24 * 60 * 60); /* of the day, in UTC */
    char *report;

    if (verdict->cause != DT_CAUSE_PEER || (!early && !(waited && verdict->peer.length > 0)))
        return;
    report = dt_strbuf_detach(&verdict->reason);
    if (early)
        dt_strbuf_add_fmt(&verdict->reason, "%s at %02d:%02d:%02dZ, before the others; then %s",
                          verdict->early.data, (int)(second / 3600), (int)(second / 60 % 60),
                          (int)(second % 60), report);
    else
        dt_strbuf_add_fmt(&verdict->reason, "%s, while the others waited for it; then %s",
                          verdict->peer.data, report);
    free(report);
    dt_strbuf_reset(&verdict->early);
    dt_strbuf_reset(&verdict->peer);
}

void dt_verdict_give(dt_verdict *verdict, dt_run_state *state, int *exit_code, const char **reason)
{
    if (dt_verdict_has_failed(verdict)) {
        *state = DT_RUN_FAILED;
        *exit_code = verdict->exit_code;
        explain(verdict);
    } else if (verdict->finished_steps) {
        *state = DT_RUN_FINISHED;
        *exit_code = DT_EXIT_GOOD;
        dt_strbuf_reset(&verdict->reason);
        if (verdict->warning.length > 0)
            dt_strbuf_add_str(&verdict->reason, verdict->warning.data);
    } else if (verdict->stop_asked) {
        bool killed = verdict->cause == DT_CAUSE_ENDED && !verdict->stop_now;
        char *how = killed ? dt_strbuf_detach(&verdict->reason) : NULL;

        *state = DT_RUN_STOPPED;
        *exit_code = DT_EXIT_STOPPED;
        dt_strbuf_reset(&verdict->reason);
        dt_strbuf_add_fmt(&verdict->reason, "stopped by request%s",
                          verdict->stop_now ? " (--now)" : "");
        if (killed)
            dt_strbuf_add_fmt(&verdict->reason, "; it did not exit cleanly: %s", how);
        free(how);
    } else if (verdict->time_limit) {
        *state = DT_RUN_STOPPED;
        *exit_code = DT_EXIT_TIME_LIMIT;
        dt_strbuf_reset(&verdict->reason);
        dt_strbuf_add_str(&verdict->reason, "time_limit reached");
    } else if (verdict->launcher_lost) {
        *state = DT_RUN_STOPPED;
        *exit_code = DT_EXIT_STOPPED;
        dt_strbuf_reset(&verdict->reason);
        dt_strbuf_add_str(
            &verdict->reason,
            "stopped by its nodes: no contact with the launch machine (failure.launcher_lost)");
    } else if (verdict->finished) {
        *state = DT_RUN_STOPPED;
        *exit_code = DT_EXIT_STOPPED;
        dt_strbuf_add_str(&verdict->reason,
                          "the ranks received a stop signal that dtrun did not send");
    } else {
        *state = DT_RUN_FAILED;
        *exit_code = DT_EXIT_FAILED;
        dt_strbuf_add_str(&verdict->reason,
                          "every rank exited with code 0 before training was finished");
    }
    if (verdict->left.length > 0) {
        *exit_code = DT_EXIT_LEFT;
        dt_strbuf_add_fmt(&verdict->reason, "%s" DT_REASON_LEFT "%s",
                          verdict->reason.length > 0 ? "; " : "", verdict->left.data);
    }
    if (verdict->unreached.length > 0) {
        *exit_code = DT_EXIT_LEFT;
        dt_strbuf_add_fmt(&verdict->reason, "%s" DT_REASON_UNKNOWN "%s",
                          verdict->reason.length > 0 ? "; " : "", verdict->unreached.data);
    }
    *reason = verdict->reason.data;
}
