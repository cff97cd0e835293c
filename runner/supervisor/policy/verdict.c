/* verdict: collects the events that say how an attempt ended, and derives state, exit code and reason from
 * them. */
#include "runner/supervisor/policy/verdict.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* --- events */

/* GPU memory that a driver may keep without any process of the run */
#define MEMORY_SLACK_BYTES ((int64_t)512 << 20)
#define DT_FATAL_PLACE     " at " /* before the place in a program, runner/agent/program/last_error.c */
#define DT_EXITED_CLAIMED  "claimed"
#define CLOCKS_MS          1000 /* how far the times of two nodes may differ after correction */

void dt_verdict_init(dt_verdict *verdict, int64_t world_size)
{
    memset(verdict, 0, sizeof(*verdict));
    dt_strbuf_init(&verdict->reason);
    dt_strbuf_init(&verdict->warning);
    dt_strbuf_init(&verdict->left);
    dt_strbuf_init(&verdict->signalled);
    dt_strbuf_init(&verdict->early);
    dt_strbuf_init(&verdict->peer);
    dt_strbuf_init(&verdict->unreached);
    verdict->cause = DT_CAUSE_NONE;
    verdict->world_size = world_size;
    verdict->rank_failed = dt_calloc((size_t)world_size, sizeof(verdict->rank_failed[0]));
}

void dt_verdict_release(dt_verdict *verdict)
{
    for (int64_t i = 0; verdict->rank_failed != NULL && i < verdict->world_size; i++)
        free(verdict->rank_failed[i]);
    free(verdict->rank_failed);
    if (verdict->reason.data != NULL)
        dt_strbuf_release(&verdict->reason);
    if (verdict->warning.data != NULL)
        dt_strbuf_release(&verdict->warning);
    if (verdict->early.data != NULL)
        dt_strbuf_release(&verdict->early);
    if (verdict->signalled.data != NULL)
        dt_strbuf_release(&verdict->signalled);
    if (verdict->peer.data != NULL)
        dt_strbuf_release(&verdict->peer);
    if (verdict->left.data != NULL)
        dt_strbuf_release(&verdict->left);
    if (verdict->unreached.data != NULL)
        dt_strbuf_release(&verdict->unreached);
    memset(verdict, 0, sizeof(*verdict));
}

/* Returns true if this cause comes before the one known so far; the caller then writes the
 * reason. */
static bool take_cause(dt_verdict *verdict, dt_cause cause, int64_t time_ms, int exit_code)
{
    if (cause > verdict->cause || (cause == verdict->cause && time_ms >= verdict->cause_time_ms))
        return false;
    verdict->cause = cause;
    verdict->cause_time_ms = time_ms;
    verdict->exit_code = exit_code;
    verdict->unrecoverable = verdict->untried = verdict->claimed = false;
    dt_strbuf_reset(&verdict->reason);
    return true;
}

void dt_verdict_system_failed(dt_verdict *verdict, const char *reason, int64_t time_ms)
{
    if (take_cause(verdict, DT_CAUSE_OWN, time_ms, DT_EXIT_SYSTEM))
        dt_strbuf_add_str(&verdict->reason, reason);
}

void dt_verdict_hung(dt_verdict *verdict, const char *reason, int64_t time_ms)
{
    verdict->hung = true;
    if (take_cause(verdict, DT_CAUSE_OWN, time_ms, DT_EXIT_FAILED))
        dt_strbuf_add_str(&verdict->reason, reason);
}

void dt_verdict_unreached(dt_verdict *verdict, const char *what)
{
    dt_strbuf_add_fmt(&verdict->unreached, "%s%s", verdict->unreached.length > 0 ? ", " : "", what);
}

/* --- what each kind of event says --- */

static void see_failed(dt_verdict *verdict, const dt_message *message)
{
    const char *status = dt_message_string(message, "status");
    const char *text = dt_message_string(message, "message");
    dt_strbuf both;

    dt_strbuf_init(&both);
    dt_strbuf_add(&both, status, strlen(status) + 1);
    dt_strbuf_add_str(&both, text);
    free(verdict->rank_failed[message->rank]);
    verdict->rank_failed[message->rank] = dt_strbuf_detach(&both);
}

static dt_cause cause_of(const char *reason, const char *failed_status)
{
    static const char *const ended[] = {"peer_failed", "stopped", "agent_stopped", "launcher_lost"};

    for (size_t i = 0; i < sizeof(ended) / sizeof(ended[0]); i++)
        if (strcmp(reason, ended[i]) == 0)
            return DT_CAUSE_ENDED;
    if (strcmp(failed_status, "peer") == 0 || strcmp(failed_status, "comm") == 0)
        return DT_CAUSE_PEER;
    return DT_CAUSE_OWN;
}

/* Returns the cause of a death while a stop is in progress. Nodes are stopped one after the
 * other, so a rank may end because its peer is gone, and an agent that was stopped directly may
 * be killed. */
static dt_cause cause_in(const dt_verdict *verdict, const char *reason, const char *failed_status)
{
    dt_cause cause = cause_of(reason, failed_status);
    bool by_stop = (verdict->stop_asked && cause == DT_CAUSE_PEER) ||
                   (verdict->asked_there && strcmp(reason, "agent_lost") == 0);

    return by_stop ? DT_CAUSE_ENDED : cause;
}

static void describe_death(dt_strbuf *out, const dt_message *message, const char *node,
                           const char *failed_message)
{
    const char *reason = dt_message_string(message, "reason");
    int64_t number = dt_message_int(message, "signal", 0);
    const char *meaning = strstr(dt_message_string(message, "words"), ": ");
    const json_t *lines;

    if (strcmp(reason, "rebooted") == 0) {
        dt_strbuf_add_fmt(out, "node %s was rebooted", node);
        return;
    }
    if (strcmp(reason, DT_EXITED_CLAIMED) == 0) {
        dt_strbuf_add_fmt(out, "GPU %lld of %s is used by %s",
                          (long long)dt_message_int(message, "gpu", -1), node,
                          dt_message_string(message, "message"));
        return;
    }
    dt_strbuf_add_fmt(out, "rank %lld on %s ", (long long)message->rank, node);
    if (strcmp(reason, "not_started") == 0)
        dt_strbuf_add_fmt(out, "could not be started: %s", dt_message_string(message, "message"));
    else if (strcmp(reason, "agent_lost") == 0)
        dt_strbuf_add_fmt(out, "was stopped because the dtrun agent on %s died", node);
    else if (number != 0)
        dt_strbuf_add_fmt(out, "was killed by signal %lld (%s)", (long long)number,
                          dt_message_string(message, "signal_name"));
    else
        dt_strbuf_add_fmt(out, "exited with code %lld",
                          (long long)dt_message_int(message, "code", -1));
    if (failed_message[0] != '\0')
        dt_strbuf_add_fmt(out, ": %s", failed_message);
    else if (meaning != NULL)
        dt_strbuf_add_str(out, meaning); /* ": the node is out of memory" */
    lines = json_object_get(message->json, "kernel_lines");
    if (json_array_size(lines) > 0 && json_is_string(json_array_get(lines, 0)))
        dt_strbuf_add_fmt(out, "; kernel log: %s", json_string_value(json_array_get(lines, 0)));
}

static bool has_status(const char *failed_status, dt_status status)
{
    return failed_status != NULL && strcmp(failed_status, dt_status_name(status)) == 0;
}

/* True for a failure that would happen again. (A divergence has the status "recipe".) */
static bool is_lasting(const char *failed_status)
{
    return has_status(failed_status, DT_ERR_RECIPE) || has_status(failed_status, DT_ERR_USAGE);
}

/* A rank that ends well although others go on can be what they fail of. */
static void see_early(dt_verdict *verdict, const dt_message *message, const char *node)
{
    if (dt_message_string(message, "reason")[0] != '\0' ||
        (verdict->early.length > 0 && verdict->early_ms <= message->time_ms))
        return;
    verdict->early_ms = message->time_ms;
    dt_strbuf_reset(&verdict->early);
    dt_strbuf_add_fmt(&verdict->early, "rank %lld on %s ended with code 0",
                      (long long)message->rank, node);
}

/* Keeps what the program did that was ended because others failed: of several the one that is most likely what the
 * others waited for. */
static void see_ended(dt_verdict *verdict, const dt_message *message, const char *node)
{
    const json_t *before = json_object_get(message->json, "before");
    const char *failed = verdict->rank_failed[message->rank], *at;
    int suspicion = (int)json_integer_value(json_object_get(before, "suspicion"));
    double quiet = json_number_value(json_object_get(before, "quiet_seconds"));
    const char *program_state = json_string_value(json_object_get(before, "words"));
    const char *wchan = json_string_value(json_object_get(before, "wchan"));

    if (suspicion <= 0 || program_state == NULL ||
        (verdict->peer.length > 0 &&
         (suspicion < verdict->peer_suspicion ||
          (suspicion == verdict->peer_suspicion && quiet <= verdict->peer_quiet_seconds))))
        return;
    verdict->peer_suspicion = suspicion;
    verdict->peer_quiet_seconds = quiet;
    dt_strbuf_reset(&verdict->peer);
    dt_strbuf_add_fmt(&verdict->peer, "rank %lld on %s %s", (long long)message->rank, node,
                      program_state);
    at = failed != NULL ? strstr(failed + strlen(failed) + 1, DT_FATAL_PLACE) : NULL;
    if (at != NULL)
        dt_strbuf_add_str(&verdict->peer, at);
    else if (wchan != NULL && wchan[0] != '\0')
        dt_strbuf_add_fmt(&verdict->peer, " in the kernel's %s", wchan);
    if (quiet >= 1)
        dt_strbuf_add_fmt(&verdict->peer, ", for %.0f s without processor time and output", quiet);
}

static void add_exited(dt_verdict *verdict, const dt_message *message, const char *node)
{
    const char *reason = dt_message_string(message, "reason");
    const char *status = verdict->rank_failed[message->rank], *text = "";
    bool claimed = strcmp(reason, DT_EXITED_CLAIMED) == 0;
    bool system = claimed || strcmp(reason, "not_started") == 0 ||
                  strcmp(reason, "agent_lost") == 0 || strcmp(reason, "rebooted") == 0;

    if (cause_of(reason, "") == DT_CAUSE_ENDED)
        see_ended(verdict, message, node);
    if (dt_message_int(message, "code", -1) == 0) {
        see_early(verdict, message, node);
        return;
    }
    if (status != NULL)
        text = status + strlen(status) + 1;
    if (take_cause(verdict, cause_in(verdict, reason, status != NULL ? status : ""),
                   message->time_ms, system ? DT_EXIT_SYSTEM : DT_EXIT_FAILED)) {
        describe_death(&verdict->reason, message, node, text);
        verdict->unrecoverable = is_lasting(status);
        verdict->claimed = claimed;
        verdict->untried =
            claimed || strcmp(reason, "not_started") == 0 || has_status(status, DT_ERR_UNSUPPORTED);
    }
}

static void see_finished(dt_verdict *verdict, const dt_message *message, const char *node)
{
    if (json_is_true(json_object_get(message->json, "signalled")) &&
        verdict->signalled_count++ == 0)
        dt_strbuf_add_fmt(&verdict->signalled, "rank %lld on %s", (long long)message->rank, node);
    if (message->rank != 0)
        return;
    verdict->finished = true;
    verdict->finished_steps = strcmp(dt_message_string(message, "reason"), "steps") == 0;
    verdict->time_limit = strcmp(dt_message_string(message, "reason"), "time_limit") == 0;
    dt_strbuf_reset(&verdict->warning);
    dt_strbuf_add_str(&verdict->warning, dt_message_string(message, "warning"));
}

/* Handles an agent's report of a stop that this supervisor may not know, for example from a
 * previous supervisor. A lost peer on another node may have been read first although the same
 * stop caused it. A second stop may have been requested since; then the times tell whether the
 * stop came before the loss. */
static void learn_of_stop(dt_verdict *verdict, const dt_message *message)
{
    bool came_before = message->time_ms <= verdict->cause_time_ms + CLOCKS_MS;

    if (verdict->cause == DT_CAUSE_PEER && (!verdict->stop_asked || came_before))
        verdict->cause = DT_CAUSE_ENDED;
    verdict->stop_asked = true;
}

static void see_stopping(dt_verdict *verdict, const dt_message *message)
{
    /* requested on the node, not through the supervisor */
    if (json_is_true(json_object_get(message->json, "asked"))) {
        learn_of_stop(verdict, message);
        verdict->asked_there = true;
    }
    if (json_is_true(json_object_get(message->json, "person")))
        learn_of_stop(verdict, message);
    else if (json_is_false(json_object_get(message->json, "person")) &&
             strcmp(dt_message_string(message, "reason"), "stopped") == 0)
        verdict->ended_by_us = true;
    if (strcmp(dt_message_string(message, "reason"), "launcher_lost") == 0)
        verdict->launcher_lost = true;
}

static void add_left(dt_verdict *verdict)
{
    if (verdict->left.length > 0)
        dt_strbuf_add_str(&verdict->left, ", ");
}

static int64_t whole(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* Returns a size in bytes; negative numbers from the outside count as 0. */
static int64_t size(const json_t *object, const char *key)
{
    int64_t bytes = whole(object, key);

    return bytes > 0 ? bytes : 0;
}

static void see_released(dt_verdict *verdict, const dt_message *message, const char *node)
{
    json_t *process, *device;
    size_t i;

    json_array_foreach(json_object_get(message->json, "left"), i, process) {
        const char *command = json_string_value(json_object_get(process, "command"));

        add_left(verdict);
        dt_strbuf_add_fmt(&verdict->left, "%s on %s (pid %lld)", command != NULL ? command : "?",
                          node, (long long)whole(process, "pid"));
    }
    json_array_foreach(json_object_get(message->json, "devices"), i, device) {
        int64_t more = size(device, "used_bytes") - size(device, "baseline_bytes");

        if (more <= MEMORY_SLACK_BYTES)
            continue;
        add_left(verdict);
        dt_strbuf_add_fmt(&verdict->left, "%lld MiB of GPU %lld on %s", (long long)(more >> 20),
                          (long long)whole(device, "index"), node);
    }
}

void dt_verdict_see(dt_verdict *verdict, const dt_message *message, const char *node)
{
    switch (message->kind) {
    case DT_MESSAGE_FAILED:
        see_failed(verdict, message);
        break;
    case DT_MESSAGE_EXITED:
        add_exited(verdict, message, node);
        break;
    case DT_MESSAGE_FINISHED:
        see_finished(verdict, message, node);
        break;
    case DT_MESSAGE_STOPPING:
        see_stopping(verdict, message);
        break;
    case DT_MESSAGE_RELEASED:
        see_released(verdict, message, node);
        break;
    default:
        break;
    }
}

/* --- state, exit code and reason */

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

/* Puts what explains the failure of a rank that lost another one, or a hang, before the report of it. */
static void explain(dt_verdict *verdict)
{
    bool early = verdict->early.length > 0 && verdict->early_ms <= verdict->cause_time_ms;
    bool waited = strcasestr(verdict->reason.data, "timed out") != NULL ||
                  strcasestr(verdict->reason.data, "timeout") != NULL;
    int64_t second = verdict->early_ms / 1000 % (24 * 60 * 60); /* within the day, in UTC */
    char *report;

    if ((verdict->cause != DT_CAUSE_PEER && !(verdict->hung && early)) ||
        (!early && !(waited && verdict->peer.length > 0)))
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

/* Somebody else ended the ranks, or one of them. */
static void say_signalled(dt_verdict *verdict)
{
    int64_t others = verdict->signalled_count - 1;

    if (others < 0 || verdict->signalled_count == verdict->world_size)
        dt_strbuf_add_str(&verdict->reason, "the ranks");
    else if (others == 0)
        dt_strbuf_add_str(&verdict->reason, verdict->signalled.data);
    else
        dt_strbuf_add_fmt(&verdict->reason, "%s and %lld other%s", verdict->signalled.data,
                          (long long)others, others == 1 ? "" : "s");
    dt_strbuf_add_str(&verdict->reason, " received a stop signal that dtrun did not send");
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
        say_signalled(verdict);
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
