/* watch: detects runs that make no step for longer than usual, and names the rank that blocks the others.
 *
 *   look ──hangs──► asked ──all diagnosed, or 8 s──► still hangs: ranks are killed without grace period
 *     ▲               │
 *     └── advances again
 *
 * Messages drive all of it, never a timer: time counts only as an agent measured it while its ranks could
 * run and be heard. So an unreachable node, a paused machine or a stopped supervisor prove nothing, and
 * pending messages are read first.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/metric_kinds.h"
#include "base/names.h"
#include "runner/supervisor/policy/watchdog.h"
#include "runner/supervisor/session/session_int.h"
#include "runner/times.h"

/* diagnosis: names the rank that blocks the others, from the ranks' own diagnoses. Pure functions.
 *
 * diagnoses: [by rank] the `diagnosis` event of its agent (runner/PROTOCOL.md), or null if none came.
 */

typedef struct dt_hang_diagnosis {
    const json_t *diagnoses;
    const dt_watchdog *watchdog; /* observations from before the diagnosis */
    /* Returns the host of a rank. */
    const char *(*host_of)(const void *context, int64_t rank);
    const void *context;
} dt_hang_diagnosis;

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

static const json_t *where_of(const json_t *diagnosis)
{
    return json_object_get(diagnosis, "where");
}

/* Returns how likely the rank is the cause of a hang. 0: it waits for other ranks. */
static int suspicion(const json_t *diagnosis)
{
    const char *state = text_of(diagnosis, "state");

    if (state[0] == 'T' || state[0] == 't')
        return 4;
    if (state[0] == 'D')
        return 3;
    if (!json_is_object(where_of(diagnosis)))
        return 2; /* even its event thread is silent */
    if (!json_is_string(json_object_get(where_of(diagnosis), "collective")))
        return 1;
    return 0;
}

static void describe_rank(dt_strbuf *out, const dt_hang_diagnosis *hang, int64_t rank,
                          const json_t *diagnosis)
{
    const dt_watchdog_rank *seen = &hang->watchdog->ranks[rank];
    const json_t *where = where_of(diagnosis);

    dt_strbuf_add_fmt(out, "rank %lld on %s ", (long long)rank, hang->host_of(hang->context, rank));
    if (suspicion(diagnosis) >= 3) {
        dt_strbuf_add_fmt(out, "is in state %s (%s", text_of(diagnosis, "state"),
                          text_of(diagnosis, "state_words"));
        if (text_of(diagnosis, "wchan")[0] != '\0')
            dt_strbuf_add_fmt(out, ", in the kernel's %s", text_of(diagnosis, "wchan"));
        dt_strbuf_add_char(out, ')');
    } else if (suspicion(diagnosis) == 2) {
        dt_strbuf_add_str(out, "does not answer");
    } else if (suspicion(diagnosis) == 1) {
        dt_strbuf_add_fmt(out, "is in phase '%s' of step %lld", text_of(where, "phase"),
                          (long long)json_integer_value(json_object_get(where, "step")));
    } else {
        dt_strbuf_add_fmt(out, "waits in %s", text_of(where, "collective"));
    }
    if (seen->condition == DT_WATCHDOG_RUNS)
        dt_strbuf_add_fmt(out, " and used %.0f s of processor time without advancing",
                          seen->busy_seconds);
}

/* Returns the rank whose program is most likely what the others wait for; -1 if none was described. */
static int64_t find_program(const dt_hang_diagnosis *hang, int64_t besides)
{
    int64_t found = -1, most = -1;

    for (int64_t i = 0; i < hang->watchdog->rank_count; i++) {
        const json_t *program =
            json_object_get(json_array_get(hang->diagnoses, (size_t)i), "program");
        int64_t suspicion = json_integer_value(json_object_get(program, "suspicion"));

        if (!json_is_object(program) || i == besides || suspicion <= most)
            continue;
        found = i;
        most = suspicion;
    }
    return found;
}

static void describe_program(dt_strbuf *out, const dt_hang_diagnosis *hang, int64_t rank)
{
    const json_t *program =
        json_object_get(json_array_get(hang->diagnoses, (size_t)rank), "program");
    double quiet = json_number_value(json_object_get(program, "quiet_seconds"));

    dt_strbuf_add_fmt(out, "rank %lld on %s %s", (long long)rank,
                      hang->host_of(hang->context, rank), text_of(program, "words"));
    if (text_of(program, "wchan")[0] != '\0')
        dt_strbuf_add_fmt(out, " in the kernel's %s", text_of(program, "wchan"));
    if (quiet >= 1)
        dt_strbuf_add_fmt(out, ", for %.0f s without processor time and output", quiet);
}

/* Returns false if the ranks run no programs. */
static bool describe_programs(dt_strbuf *out, const dt_hang_diagnosis *hang)
{
    int64_t worst = find_program(hang, -1), other = find_program(hang, worst);

    if (worst < 0)
        return false;
    dt_strbuf_add_str(out, ": ");
    describe_program(out, hang, worst);
    if (other >= 0) {
        dt_strbuf_add_str(out, ", while ");
        describe_program(out, hang, other);
    }
    return true;
}

/* Appends ": rank 2 on b does not answer, while rank 0 on a waits in all_reduce"; appends nothing if there
 * is no diagnosis. hung: the rank that the watchdog found hanging. Only `hung` is known to compute without
 * end; the other causes show in the diagnoses. */
static void describe_hang(dt_strbuf *out, const dt_hang_diagnosis *hang, int64_t hung)
{
    bool is_loop = hang->watchdog->ranks[hung].condition == DT_WATCHDOG_RUNS;
    const json_t *worst = NULL, *waiting = NULL;
    int64_t loops = is_loop ? hung : -1, worst_rank = -1, waiting_rank = -1, alike = 0;

    if (describe_programs(out, hang))
        return;

    for (int64_t i = 0; i < hang->watchdog->rank_count; i++) {
        const json_t *diagnosis = json_array_get(hang->diagnoses, (size_t)i);

        if (!json_is_object(diagnosis))
            continue;
        if (worst == NULL || i == loops ||
            (worst_rank != loops && suspicion(diagnosis) > suspicion(worst))) {
            worst = diagnosis;
            worst_rank = i;
            alike = 0;
        }
        alike += suspicion(diagnosis) == suspicion(worst) ? 1 : 0;
        if (suspicion(diagnosis) == 0 && waiting == NULL) {
            waiting = diagnosis;
            waiting_rank = i;
        }
    }
    if (worst == NULL)
        return;
    dt_strbuf_add_str(out, ": ");
    describe_rank(out, hang, worst_rank, worst);
    if (alike > 1)
        dt_strbuf_add_fmt(out, ", and %lld other rank%s too", (long long)alike - 1,
                          alike > 2 ? "s" : "");
    if (waiting != NULL && waiting != worst) {
        dt_strbuf_add_str(out, ", while ");
        describe_rank(out, hang, waiting_rank, waiting);
    }
}

#define DIAGNOSE_SECONDS 8.0 /* an agent needs up to 6 */

/* --- when to watch */

static bool has_ranks(const dt_session *session, int64_t node)
{
    bool any = false;

    for (int64_t i = 0; i < session->world_size && !any; i++) {
        const dt_collected_rank *rank = dt_session_rank(session, i);

        any = rank->row.node == node && !rank->exited;
    }
    return any;
}

/* A node whose ranks have all exited has nothing more to say, and its agent may have ended. */
static bool all_connected(const dt_session *session)
{
    bool all = !dt_collector_is_paused(session->collector);

    for (int64_t i = 0; i < session->node_count; i++)
        all = all && (dt_node_link_is_attached(session->nodes[i].link) || !has_ranks(session, i));
    return all;
}

static bool all_diagnosed(const dt_session *session)
{
    bool all = true;

    for (int64_t i = 0; i < session->world_size; i++)
        all = all && (dt_session_rank(session, i)->exited ||
                      json_is_object(json_array_get(session->watch.diagnoses, (size_t)i)));
    return all;
}

static const char *host_of(const void *context, int64_t rank)
{
    const dt_session *session = context;

    return session->nodes[dt_session_rank(session, rank)->row.node].name;
}

static dt_status say(dt_session *session, const char *event, const char *message, dt_error *err)
{
    dt_status st = dt_session_note(session, event, message, err);

    if (st == DT_OK)
        dt_log_warn("%s", message);
    return st;
}

static void describe_silence(dt_strbuf *out, const dt_session *session)
{
    dt_strbuf_init(out);
    if (session->settings.is_command) {
        dt_strbuf_add_fmt(out, "the program hangs (failure.hang_seconds is %g)",
                          session->settings.hang_seconds);
        return;
    }
    dt_strbuf_add_fmt(out, "no step for %.0f s while %s", session->watch.silence.seconds,
                      dt_silence_phase_name(session->watch.silence.phase));
}

/* Returns the rank that shows best that the run is slow: the one that advanced last, else one
 * that does something; -1 if there is none. */
static int64_t find_most_active(const dt_watchdog *dog)
{
    int64_t found = -1;

    for (int64_t i = 0; i < dog->rank_count; i++)
        if (dog->ranks[i].condition != DT_WATCHDOG_GONE &&
            (found < 0 || dog->ranks[i].still_seconds < dog->ranks[found].still_seconds ||
             (dog->ranks[i].still_seconds == dog->ranks[found].still_seconds &&
              dog->ranks[i].condition < dog->ranks[found].condition)))
            found = i;
    return found;
}

/* Reports slowness, once per silence. */
static dt_status report_slow(dt_session *session, dt_error *err)
{
    int64_t rank = find_most_active(&session->watch.watchdog);
    const dt_watchdog_rank *seen;
    dt_strbuf text;
    dt_status st;

    if (session->watch.slow_reported || rank < 0)
        return DT_OK;
    seen = &session->watch.watchdog.ranks[rank];
    describe_silence(&text, session);
    dt_strbuf_add_fmt(&text, ": slow, not hung: rank %lld on %s ", (long long)rank,
                      host_of(session, rank));
    if (seen->still_seconds < dt_silence_limit(&session->watch.silence))
        dt_strbuf_add_fmt(&text, "advanced %.0f s ago", seen->still_seconds);
    else
        dt_strbuf_add_str(&text, dt_watchdog_condition_text(seen->condition));
    session->watch.slow_reported = true;
    st = say(session, "slow", text.data, err);
    dt_strbuf_release(&text);
    return st;
}

static dt_status ask(dt_session *session, dt_error *err)
{
    dt_strbuf text;
    dt_status st;

    describe_silence(&text, session);
    dt_strbuf_add_str(&text, ": asking the ranks for a diagnosis");
    st = say(session, "hang", text.data, err);
    dt_strbuf_release(&text);
    json_array_clear(session->watch.diagnoses);
    for (int64_t i = 0; i < session->world_size; i++)
        json_array_append_new(session->watch.diagnoses, json_null());
    for (int64_t i = 0; i < session->node_count; i++)
        dt_node_link_send(session->nodes[i].link,
                          json_pack("{s:s, s:i}", "command", "diagnose", "rank", -1));
    session->watch.diagnosis_requested = true;
    session->watch.requested_at_seconds = session->watch.silence.seconds;
    return st;
}

static dt_status end(dt_session *session, int64_t hung, dt_error *err)
{
    double lasted = session->settings.is_command ? session->settings.hang_seconds
                                                 : session->watch.silence.seconds;
    int64_t began_ms = dt_clock_wall_ms() - (int64_t)(1000 * lasted);
    dt_hang_diagnosis diagnosis = {.diagnoses = session->watch.diagnoses,
                                   .watchdog = &session->watch.watchdog,
                                   .host_of = host_of,
                                   .context = session};
    dt_strbuf text;
    dt_status st;

    describe_silence(&text, session);
    describe_hang(&text, &diagnosis, hung);
    st = say(session, "hung", text.data, err);
    if (st == DT_OK)
        dt_verdict_hung(&session->verdict, text.data, began_ms);
    dt_strbuf_release(&text);
    if (st == DT_OK)
        dt_state_update(session);
    return st;
}

static dt_status look(dt_session *session, dt_error *err)
{
    double silent = session->watch.silence.seconds;
    dt_watchdog_verdict verdict;
    int64_t hung;

    if (session->settings.is_command && session->state != DT_RUN_RUNNING)
        return DT_OK;
    if (session->settings.hang_seconds <= 0 ||
        (session->state != DT_RUN_STARTING && session->state != DT_RUN_RUNNING))
        return DT_OK;
    verdict = session->settings.is_command
                  ? dt_watchdog_decide_program(&session->watch.watchdog, &hung)
                  : dt_watchdog_decide(&session->watch.watchdog, silent,
                                       dt_silence_limit(&session->watch.silence), &hung);
    if (verdict != DT_WATCHDOG_HANGS && session->watch.diagnosis_requested) {
        dt_log_info("the ranks advance again");
        session->watch.diagnosis_requested = false;
    }
    if (verdict == DT_WATCHDOG_FINE)
        session->watch.slow_reported = false;
    if (verdict == DT_WATCHDOG_SLOW)
        return report_slow(session, err);
    if (verdict != DT_WATCHDOG_HANGS || !all_connected(session))
        return DT_OK;
    if (!session->watch.diagnosis_requested)
        return ask(session, err);
    if (all_diagnosed(session) || silent - session->watch.requested_at_seconds > DIAGNOSE_SECONDS)
        return end(session, hung, err);
    return DT_OK;
}

/* --- messages */

static dt_watchdog_fact fact_of(const json_t *told)
{
    return (dt_watchdog_fact){
        .state = text_of(told, "state")[0],
        .cpu_seconds = json_number_value(json_object_get(told, "cpu_seconds")),
        .work = json_integer_value(json_object_get(told, "work")),
        .progress = json_integer_value(json_object_get(told, "progress")),
        .waiting = json_is_true(json_object_get(told, "waiting")),
    };
}

/* Returns the seconds since the last heartbeat on this connection, by the node's own clock. */
static double passed(dt_supervised_node *node, const dt_message *message)
{
    int64_t now_ms = dt_message_int(message, "clock_ms", 0), before_ms = node->beat_ms;
    double seconds = (double)(now_ms - before_ms) / 1e3;
    double longest = dt_times()->heartbeat_longest_seconds;

    node->beat_ms = now_ms;
    if (before_ms == 0 || now_ms <= before_ms)
        return 0;
    return seconds < longest ? seconds : longest;
}

/* Returns the node whose clock measures the silence: rank 0's, or the node of the first rank
 * that has not exited (in a task, ranks may exit at different times). -1: all have exited. */
static int64_t leader_of(const dt_session *session)
{
    for (int64_t i = 0; i < session->world_size; i++)
        if (!dt_session_rank(session, i)->exited)
            return dt_session_rank(session, i)->row.node;
    return -1;
}

/* Takes the facts of a node's ranks. A judgement is written to attempt-N/why.json, for commands and the page. */
static dt_status watch_slowness(dt_supervised_node *node, const dt_message *message, dt_error *err)
{
    dt_session *session = node->session;
    double clock_seconds = (double)dt_message_int(message, "clock_ms", 0) / 1e3;
    bool judged = false;
    dt_status st = DT_OK;
    const json_t *told;
    json_t *why;
    char *text;
    size_t i;

    json_array_foreach(json_object_get(message->json, "ranks"), i, told) {
        int64_t rank = json_integer_value(json_object_get(told, "rank"));
        dt_slow_reading reading;

        if (rank >= 0 && rank < session->world_size &&
            dt_session_rank(session, rank)->row.node == node->index &&
            dt_slow_reading_parse(&reading, told, clock_seconds) &&
            dt_slow_add(&session->watch.slow, rank, &reading))
            judged = true;
    }
    if (!judged || session->state != DT_RUN_RUNNING)
        return DT_OK;
    why = dt_slow_to_json(&session->watch.slow);
    json_object_set_new(why, "time_ms", json_integer(dt_clock_wall_ms()));
    json_object_set_new(why, "attempt", json_integer(session->attempt));
    text = json_dumps(why, JSON_COMPACT);
    DT_TRY(dt_collector_put(session->collector,
                            &(dt_row){.kind = DT_ROW_WHY, .text = text != NULL ? text : ""}, err));
    DT_TRY(dt_collector_commit(session->collector, err));
out:
    free(text);
    json_decref(why);
    return st;
}

void dt_watch_alive(dt_supervised_node *node, const dt_message *message)
{
    dt_session *session = node->session;
    double seconds = passed(node, message);
    dt_error err = DT_ERROR_INIT;
    const json_t *told;
    dt_status st;
    size_t i;

    st = watch_slowness(node, message, &err);
    if (st != DT_OK) {
        dt_session_fail(session, st, &err);
        return;
    }
    if (dt_message_int(message, "next_sequence", 0) != dt_session_row(node)->row.acknowledged)
        return; /* earlier events of its ranks are still unread */
    json_array_foreach(json_object_get(message->json, "ranks"), i, told) {
        int64_t rank = json_integer_value(json_object_get(told, "rank"));
        dt_watchdog_fact fact = fact_of(told);

        if (rank >= 0 && rank < session->world_size &&
            dt_session_rank(session, rank)->row.node == node->index)
            dt_watchdog_observe(&session->watch.watchdog, rank, &fact, seconds);
    }
    if (leader_of(session) == node->index)
        dt_silence_pass(&session->watch.silence, seconds);
    st = look(session, &err);
    if (st != DT_OK)
        dt_session_fail(session, st, &err);
}

/* Takes the facts of an engine's `ready` event. */
static void follow_ready(dt_session *session, const dt_message *message)
{
    dt_watchdog *dog = &session->watch.watchdog;
    double ideal = dt_message_number(message, "least_step_seconds");

    if (ideal > 0) /* NaN if not given */
        dog->ideal_step_seconds = session->watch.silence.ideal_step_seconds = ideal;
    dog->ranks[message->rank].threads = (double)dt_message_int(message, "threads", 1);
}

void dt_watch_event(dt_session *session, const dt_message *message)
{
    bool advanced = false;

    if (message->kind == DT_MESSAGE_READY)
        follow_ready(session, message);
    else if (message->kind == DT_MESSAGE_EXITED)
        dt_watchdog_exited(&session->watch.watchdog, message->rank);
    else if (message->kind == DT_MESSAGE_FINISHED)
        dt_silence_finished(&session->watch.silence);
    else if (message->kind == DT_MESSAGE_PHASE && message->rank == 0)
        advanced = dt_silence_enter(&session->watch.silence, dt_message_string(message, "phase"),
                                    message->time_ms);
    else if (message->kind == DT_MESSAGE_METRICS &&
             json_object_get(json_object_get(message->json, "values"),
                             dt_metric_name(DT_METRIC_LOSS)) != NULL)
        advanced = dt_silence_step(&session->watch.silence, dt_message_int(message, "step", 0),
                                   message->time_ms);
    else if (message->kind == DT_MESSAGE_PART)
        advanced = dt_silence_step(&session->watch.silence,
                                   dt_collector_lines_done(session->collector), message->time_ms);
    if (advanced)
        dt_watchdog_advanced(&session->watch.watchdog);
}

void dt_watch_open(dt_session *session)
{
    size_t count = (size_t)session->world_size;
    dt_watchdog_rank *ranks = dt_arena_alloc(&session->arena, count * sizeof(*ranks));

    dt_slow_init(&session->watch.slow,
                 dt_arena_alloc(&session->arena, count * sizeof(dt_slow_rank)), session->world_size,
                 session->settings.is_command, 0.9 * dt_times()->heartbeat_seconds, host_of,
                 session);
    dt_silence_init(&session->watch.silence, session->settings.hang_seconds);
    dt_watchdog_init(&session->watch.watchdog, ranks, session->world_size,
                     session->settings.hang_seconds);
    for (int64_t i = 0; i < session->world_size; i++)
        ranks[i].device = strcmp(dt_session_rank(session, i)->row.device, DT_DEVICE_CPU) != 0;
}
