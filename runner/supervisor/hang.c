/* hang: no step for too long (watch.h): ask what every rank does, tell which one holds up the
 * others, and end them. What comes after is a restart like any other.
 *
 *   look ──silent──► asked ──all diagnosed, or 8 s──► hung: ranks are killed, without grace
 *     ▲                │
 *     └──── a step ────┘
 *
 * While a node is not connected, silence says nothing: the time begins anew when it is back.
 */
#define _GNU_SOURCE
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "runner/supervisor/state.h"

#include "base/banned.h"

#define LOOK_MS          1000
#define DIAGNOSE_SECONDS 8.0 /* an agent takes 6 */
#define HEARD_SECONDS    5.0 /* longer than that, and the connection is in doubt */

/* --- who */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

static const json_t *where_of(const json_t *diagnosis)
{
    return json_object_get(diagnosis, "where");
}

/* 0: as one that waits for others. The larger, the more likely it is what they wait for. */
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

static void say_rank(dt_strbuf *out, const dt_session *session, int64_t rank,
                     const json_t *diagnosis)
{
    const json_t *where = where_of(diagnosis);

    dt_strbuf_add_fmt(out, "rank %lld on %s ", (long long)rank,
                      session->nodes[session->ranks[rank].row.node].row.name);
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
}

static void say_who(dt_strbuf *out, const dt_session *session)
{
    const json_t *worst = NULL, *waiting = NULL;
    int64_t worst_rank = -1, waiting_rank = -1, alike = 0;

    for (int64_t i = 0; i < session->world_size; i++) {
        const json_t *diagnosis = json_array_get(session->diagnoses, (size_t)i);

        if (!json_is_object(diagnosis))
            continue;
        if (worst == NULL || suspicion(diagnosis) > suspicion(worst)) {
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
    say_rank(out, session, worst_rank, worst);
    if (alike > 1)
        dt_strbuf_add_fmt(out, ", and %lld other%s alike", (long long)alike - 1,
                          alike > 2 ? "s" : "");
    if (waiting != NULL && waiting != worst) {
        dt_strbuf_add_str(out, ", while ");
        say_rank(out, session, waiting_rank, waiting);
    }
}

/* --- when */

static bool all_connected(const dt_session *session, double now)
{
    bool all = !session->deaf;

    for (int64_t i = 0; i < session->node_count; i++)
        all = all && session->nodes[i].attached &&
              now - session->nodes[i].heard_seconds < HEARD_SECONDS;
    return all;
}

static bool all_diagnosed(const dt_session *session)
{
    bool all = true;

    for (int64_t i = 0; i < session->world_size; i++)
        all = all && (session->ranks[i].exited ||
                      json_is_object(json_array_get(session->diagnoses, (size_t)i)));
    return all;
}

static dt_status say(dt_session *session, const char *event, const char *message, dt_error *err)
{
    dt_status st;

    DT_TRY(dt_follow_own_event(
        session, json_pack("{s:s, s:o}", "event", event, "message", dt_json_text(message)), err));
    DT_TRY(dt_follow_commit(session, err));
    dt_log_warn("%s", message);
out:
    return st;
}

static dt_status ask(dt_session *session, double now, dt_error *err)
{
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&text, "no step for %.0f s while %s: asking the ranks what they do",
                      dt_watch_silent(&session->watch, now),
                      dt_watch_phase_name(session->watch.phase));
    st = say(session, "hang", text.data, err);
    dt_strbuf_release(&text);
    json_array_clear(session->diagnoses);
    for (int64_t i = 0; i < session->world_size; i++)
        json_array_append_new(session->diagnoses, json_null());
    for (int64_t i = 0; i < session->node_count; i++)
        dt_node_send(&session->nodes[i],
                     json_pack("{s:s, s:i}", "command", "diagnose", "rank", -1));
    session->asked_seconds = now;
    return st;
}

static dt_status end(dt_session *session, double now, dt_error *err)
{
    int64_t began_ms = dt_clock_wall_ms() - (int64_t)(1000 * dt_watch_silent(&session->watch, now));
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&text, "no step for %.0f s while %s", dt_watch_silent(&session->watch, now),
                      dt_watch_phase_name(session->watch.phase));
    say_who(&text, session);
    st = say(session, "hung", text.data, err);
    if (st == DT_OK)
        dt_verdict_hung(&session->verdict, text.data, began_ms);
    dt_strbuf_release(&text);
    if (st == DT_OK)
        dt_state_consider(session);
    return st;
}

static dt_status look(dt_session *session, dt_error *err)
{
    double now = dt_session_now(session);

    if (session->state != DT_RUN_STARTING && session->state != DT_RUN_RUNNING) {
        session->asked_seconds = 0;
        return DT_OK;
    }
    if (!all_connected(session, now)) {
        dt_watch_excuse(&session->watch, now);
    } else if (dt_watch_silent(&session->watch, now) <= dt_watch_limit(&session->watch)) {
        if (session->asked_seconds > 0)
            dt_log_info("it goes on");
        session->asked_seconds = 0;
    } else if (session->asked_seconds == 0) {
        return ask(session, now, err);
    } else if (all_diagnosed(session) || now - session->asked_seconds > DIAGNOSE_SECONDS) {
        return end(session, now, err);
    }
    return DT_OK;
}

static void on_look(uv_timer_t *timer)
{
    dt_session *session = timer->data;
    dt_error err = DT_ERROR_INIT;
    dt_status st;

    if (session->trouble != DT_OK)
        return;
    st = look(session, &err);
    if (st != DT_OK)
        dt_session_trouble(session, st, &err);
}

void dt_hang_watch(dt_session *session)
{
    session->look.data = session;
    uv_timer_start(&session->look, on_look, LOOK_MS, LOOK_MS);
}
