/* control: one JSON line in, one out, on runs/ID/control.sock. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "runner/supervisor/state.h"

#include "base/banned.h"

#define REQUEST_MAX_BYTES 4096

struct dt_control {
    dt_control *next;
    dt_session *session;
    dt_stream *stream;
};

static void drop(dt_control *control)
{
    dt_control **at = &control->session->controls;

    while (*at != control)
        at = &(*at)->next;
    *at = control->next;
    dt_stream_close(control->stream);
    free(control);
}

static dt_status obey(dt_session *session, const char *text, size_t length, dt_error *err)
{
    json_t *request = NULL;
    const char *command;
    dt_status st;

    DT_TRY(dt_json_parse(&request, text, length, "request", err));
    DT_TRY(dt_json_get_string(&command, request, "command", "request", err));
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
    json_t *answer;
    dt_strbuf line;

    if (control->session->restarted)
        return; /* this attempt is over: who asks hears no answer, and asks that of the next */
    if (cut)
        DT_FAIL(&err, DT_ERR_USAGE, "the request is longer than %d bytes", REQUEST_MAX_BYTES);
    else
        obey(control->session, text, length, &err);
    answer =
        err.code == DT_OK
            ? json_pack("{s:b, s:s}", "ok", 1, "state", dt_run_state_name(control->session->state))
            : json_pack("{s:b, s:o}", "ok", 0, "message", dt_json_text(err.message));
    dt_strbuf_init(&line);
    dt_json_write(&line, answer);
    dt_strbuf_add_char(&line, '\n');
    dt_stream_send(control->stream, line.data, line.length);
    dt_strbuf_release(&line);
    json_decref(answer);
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
    dt_control *control = calloc(1, sizeof(*control));

    if (control == NULL) {
        close(connection);
        return;
    }
    control->session = session;
    if (dt_stream_open(&control->stream, &session->loop, connection, REQUEST_MAX_BYTES, &calls,
                       control, &err) != DT_OK) {
        dt_log_error("%s", err.message);
        free(control);
        return;
    }
    control->next = session->controls;
    session->controls = control;
}

void dt_control_close_all(dt_session *session)
{
    while (session->controls != NULL)
        drop(session->controls);
}
