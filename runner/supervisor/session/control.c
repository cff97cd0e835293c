/* control: answers requests on runs/ID/control.sock, one JSON line in and one out.
 *
 * A stop is executed at once. It is answered once it is durable in the store, so that it cannot be
 * lost, or after some seconds if the store is locked.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "runner/channel/stream.h"
#include "runner/supervisor/folder/launch_env.h"
#include "runner/supervisor/session/session_int.h"
#include "runner/times.h"

#define REQUEST_MAX_BYTES 4096

struct dt_control {
    dt_control *next;
    dt_session *session;
    dt_stream *stream;
    dt_strbuf answer; /* pending answer, "" if none */
    int64_t batch;    /* store batch that the answer waits for */
};

static void drop(dt_control *control)
{
    dt_control **link = &control->session->control.clients;

    while (*link != control)
        link = &(*link)->next;
    *link = control->next;
    dt_stream_close(control->stream);
    dt_strbuf_release(&control->answer);
    free(control);
}

static void send_answer(dt_control *control)
{
    dt_stream_send(control->stream, control->answer.data, control->answer.length);
    dt_strbuf_reset(&control->answer);
}

void dt_control_stored(dt_session *session)
{
    for (dt_control *control = session->control.clients; control != NULL; control = control->next)
        if (control->answer.length > 0 &&
            dt_collector_is_durable(session->collector, control->batch))
            send_answer(control);
}

static void on_answer_time(uv_timer_t *timer)
{
    dt_session *session = timer->data;

    for (dt_control *control = session->control.clients; control != NULL; control = control->next)
        if (control->answer.length > 0)
            send_answer(control);
}

/* Uses the caller's ssh-agent if the one of the launch no longer exists. */
static void take_agent(dt_session *session, const char *agent)
{
    if (agent == NULL || dt_launch_env_is_alive(getenv("SSH_AUTH_SOCK")) ||
        !dt_launch_env_is_alive(agent))
        return;
    setenv("SSH_AUTH_SOCK", agent, 1);
    dt_log_info("the ssh-agent of the launch is gone: using the ssh-agent of the new login");
}

/* *changes: the request changed the run, so the answer must wait for the store. */
static dt_status handle_request(bool *changes, dt_session *session, const char *text, size_t length,
                                dt_error *err)
{
    json_t *request = NULL;
    const char *command;
    dt_status st;

    *changes = false;
    DT_TRY(dt_json_parse(&request, text, length, "request", err));
    DT_TRY(dt_json_get_string(&command, request, "command", "request", err));
    *changes = strcmp(command, "stop") == 0;
    if (strcmp(command, "stop") == 0)
        take_agent(session, json_string_value(json_object_get(request, "ssh_auth_sock")));
    if (strcmp(command, "stop") == 0)
        DT_TRY(dt_state_ask_stop(session, json_is_true(json_object_get(request, "now")), err));
    else if (strcmp(command, "ping") != 0)
        DT_THROW(err, DT_ERR_USAGE, "unknown request '%.64s'", command);
out:
    json_decref(request);
    return st;
}

static void on_line(void *context, const char *text, size_t length, bool cut)
{
    dt_control *control = context;
    dt_error err = DT_ERROR_INIT;
    dt_session *session = control->session;
    bool changes = false;
    dt_strbuf waits;
    json_t *answer;

    if (control->session->restart.follows)
        return; /* this attempt is over: the client gets no answer and asks the next attempt's supervisor */
    if (cut)
        DT_FAIL(&err, DT_ERR_USAGE, "the request is longer than %d bytes", REQUEST_MAX_BYTES);
    else
        handle_request(&changes, control->session, text, length, &err);
    answer =
        err.code == DT_OK
            ? json_pack("{s:b, s:s}", "ok", 1, "state", dt_run_state_name(control->session->state))
            : json_pack("{s:b, s:o}", "ok", 0, "message", dt_json_text(err.message));
    dt_strbuf_init(&waits);
    if (dt_collector_is_stalled(session->collector, &waits))
        json_object_set_new(answer, "history_waits", dt_json_text(waits.data));
    dt_strbuf_release(&waits);
    dt_json_write(&control->answer, answer);
    dt_strbuf_add_char(&control->answer, '\n');
    json_decref(answer);
    if (!changes) {
        send_answer(control);
        return;
    }
    control->batch = dt_collector_submit(session->collector);
    dt_collector_request_sync(session->collector);
    dt_control_stored(session);
    session->control.answer_timer.data = session;
    if (control->answer.length > 0)
        uv_timer_start(&session->control.answer_timer, on_answer_time,
                       dt_times_ms(dt_times()->stop_stored_seconds), 0);
}

static void on_ended(void *context, const char *why)
{
    drop(context);
}

void dt_control_take(void *context, int connection)
{
    static const dt_stream_calls calls = {.line = on_line, .ended = on_ended};
    dt_session *session = context;
    dt_error err = DT_ERROR_INIT;
    dt_control *control = dt_calloc(1, sizeof(*control));

    control->session = session;
    dt_strbuf_init(&control->answer);
    if (dt_stream_open(&control->stream, &session->loop, connection, REQUEST_MAX_BYTES, &calls,
                       control, &err) != DT_OK) {
        dt_log_error("%s", err.message);
        free(control);
        return;
    }
    control->next = session->control.clients;
    session->control.clients = control;
}

void dt_control_close_all(dt_session *session)
{
    while (session->control.clients != NULL)
        drop(session->control.clients);
}
