/* node: the connection to one agent, made again until the node is given up.
 *
 * `dtrun-agent connect`, over whatever reaches the node, has one end of a socket pair as stdin and
 * stdout. When it ends, or nothing is heard, the next one is started after a back-off. An agent
 * that was lost is started anew by it, ends what it finds, and says so. One that has released its
 * node is told that all is stored, and is not started again.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "runner/channel/protocol.h"
#include "runner/supervisor/state.h"
#include "runner/transport/transport.h"

#include "base/banned.h"

#define BACKOFF_FIRST_MS   100
#define BACKOFF_MOST_MS    2000
#define PROBLEM_LINE_BYTES 400

struct dt_connection {
    uv_process_t process;
    dt_supervised_node *node; /* NULL: let go of */
    dt_stream *stream, *problems;
};

static dt_status connect_argv(const char ***argv, const dt_supervised_node *node, dt_arena *arena,
                              dt_error *err)
{
    const char *start = node->released ? NULL : "--start";
    const char *const words[] = {node->place.agent,
                                 "connect",
                                 node->place.folder,
                                 start,
                                 start != NULL && node->replace ? "--replace" : NULL,
                                 NULL};

    return dt_node_command(argv, node->row.name, words, node->renew, arena, err);
}

void dt_node_send(dt_supervised_node *node, json_t *command)
{
    dt_strbuf line;

    if (node->connection != NULL) {
        dt_strbuf_init(&line);
        dt_json_write(&line, command);
        dt_strbuf_add_char(&line, '\n');
        dt_stream_send(node->connection->stream, line.data, line.length);
        dt_strbuf_release(&line);
    }
    json_decref(command);
}

/* --- what the agent says */

void dt_node_show_state(dt_supervised_node *node, const char *state)
{
    dt_session *session = node->session;
    dt_error err = DT_ERROR_INIT;
    dt_status st;

    node->row.state = state;
    node->changed = true;
    st = dt_follow_commit(session, &err);
    if (st != DT_OK)
        dt_session_trouble(session, st, &err);
}

static void on_hello(dt_supervised_node *node, const dt_message *message)
{
    if (dt_message_int(message, "protocol", 0) != DT_PROTOCOL_VERSION) {
        dt_refusal_take(node, "it is of another version", true);
        return;
    }
    dt_clocks_hear(node, dt_message_int(message, "time_ms", 0), true);
    node->attached = true;
    node->beat_ms = 0;
    node->tries = 0;
    node->replace = node->renew = node->unreachable = false;
    node->idle = strcmp(dt_message_string(message, "state"), "idle") == 0;
    dt_log_info("%s: attached, %s", node->row.name, dt_message_string(message, "state"));
    dt_reboot_hear(node, dt_message_string(message, "boot_id"));
    if (node->released) {
        if (node->released_stored)
            dt_node_let_go(node);
        return;
    }
    dt_node_show_state(node, node->idle ? "ready" : "running");
    dt_state_take(node->session, DT_EVENT_ATTACHED, node);
}

static void on_error(dt_supervised_node *node, const dt_message *message)
{
    const char *text = dt_message_string(message, "message");

    dt_log_warn("%s: the agent says: %s", node->row.name, text);
    if (!node->attached)
        dt_refusal_take(node, text, json_is_true(json_object_get(message->json, "refused")));
    else if (json_is_true(json_object_get(message->json, "refused")))
        dt_liveness_refused(node, text);
}

static void on_message(dt_supervised_node *node, dt_message *message)
{
    dt_session *session = node->session;
    dt_error err = DT_ERROR_INIT;
    dt_status st;

    if (message->kind == DT_MESSAGE_HELLO) {
        on_hello(node, message);
    } else if (message->kind == DT_MESSAGE_ERROR) {
        on_error(node, message);
    } else if (!node->attached) {
        dt_refusal_take(node, "it spoke before it said hello", true);
    } else if (message->kind == DT_MESSAGE_ALIVE) {
        dt_clocks_hear(node, dt_message_int(message, "time_ms", 0), false);
        dt_node_send(node, json_pack("{s:s}", "command", "alive")); /* its lease hears that */
        dt_hang_hear(node, message);
    } else if (message->kind == DT_MESSAGE_RENDEZVOUS) {
        dt_rendezvous_offer(session, message);
    } else if (message->numbered) {
        st = dt_gap_follow(node, message, &err);
        if (st == DT_OK)
            st = dt_follow_event(node, message, &err);
        if (st != DT_OK)
            dt_session_trouble(session, st, &err);
    }
}

/* What was heard goes into the store. */
static void keep(dt_session *session)
{
    dt_error err = DT_ERROR_INIT;
    dt_status st;

    if (session->trouble != DT_OK)
        return;
    st = dt_follow_commit(session, &err);
    if (st != DT_OK)
        dt_session_trouble(session, st, &err);
    else
        dt_state_consider(session);
}

static void on_line(void *context, const char *text, size_t length, bool cut)
{
    dt_connection *connection = context;
    dt_supervised_node *node = connection->node;
    dt_error err = DT_ERROR_INIT;
    dt_message message;

    if (node->session->trouble != DT_OK)
        return;
    node->heard_seconds = dt_session_now(node->session);
    if (cut) {
        dt_refusal_take(node, "it sent a line longer than 1 MiB", true);
    } else if (dt_message_parse(&message, text, length, node->session->world_size, &err) != DT_OK) {
        if (!dt_gap_skip(node, text, length, err.message))
            dt_refusal_take(node, err.message, true);
    } else {
        on_message(node, &message);
        dt_message_release(&message);
    }
    if (node->connection != connection)
        keep(node->session); /* no batch ends what lines before this one began */
}

static void on_batch(void *context)
{
    keep(((dt_connection *)context)->node->session);
}

static void on_ended(void *context, const char *why)
{
    dt_connection *connection = context;
    dt_supervised_node *node = connection->node;

    if (connection->problems != NULL)
        dt_stream_drain(connection->problems, 65536);
    dt_node_reconnect(node, node->problem[0] != '\0' ? node->problem : why);
}

/* The command's stderr: why a node cannot be reached. */
static void on_problem_line(void *context, const char *text, size_t length, bool cut)
{
    size_t front = sizeof(DT_TRANSPORT_TAKEN_BACK) - 1;
    dt_supervised_node *node = ((dt_connection *)context)->node;

    node->preempted = length > front && memcmp(text, DT_TRANSPORT_TAKEN_BACK, front) == 0;
    if (node->preempted) {
        text += front;
        length -= front;
    }
    snprintf(node->problem, sizeof(node->problem), "%.*s", (int)length, text);
}

static void on_problem_end(void *context, const char *why)
{
    dt_connection *connection = context;

    dt_stream_close(connection->problems);
    connection->problems = NULL;
}

/* --- the connection's life */

static void on_process_closed(uv_handle_t *handle)
{
    free(handle->data);
}

/* The streams tell what this means; here it is only buried. */
static void on_process_exit(uv_process_t *process, int64_t code, int number)
{
    dt_connection *connection = process->data;

    if (connection->node == NULL)
        uv_close((uv_handle_t *)process, on_process_closed);
}

void dt_node_disconnect(dt_supervised_node *node)
{
    dt_connection *connection = node->connection;

    node->connection = NULL;
    node->attached = false;
    if (connection == NULL)
        return;
    dt_stream_close(connection->stream);
    dt_stream_close(connection->problems);
    connection->node = NULL;
    if (!uv_is_active((uv_handle_t *)&connection->process) ||
        uv_process_kill(&connection->process, SIGKILL) != 0)
        uv_close((uv_handle_t *)&connection->process, on_process_closed);
}

static dt_status spawn(dt_connection *connection, const char **argv, int channel, int problems,
                       dt_error *err)
{
    uv_stdio_container_t stdio[3] = {
        {.flags = UV_INHERIT_FD, .data.fd = channel},
        {.flags = UV_INHERIT_FD, .data.fd = channel},
        {.flags = UV_INHERIT_FD, .data.fd = problems},
    };
    uv_process_options_t options = {
        .exit_cb = on_process_exit,
        .file = argv[0],
        .args = (char **)argv,
        .stdio_count = 3,
        .stdio = stdio,
    };
    int problem = uv_spawn(&connection->node->session->loop, &connection->process, &options);

    connection->process.data = connection;
    return problem == 0
               ? DT_OK
               : DT_FAIL(err, DT_ERR_IO, "cannot run '%s': %s", argv[0], uv_strerror(problem));
}

static dt_status make_connection(dt_supervised_node *node, dt_error *err)
{
    static const dt_stream_calls calls = {.line = on_line, .batch = on_batch, .ended = on_ended};
    static const dt_stream_calls problem_calls = {.line = on_problem_line, .ended = on_problem_end};
    dt_session *session = node->session;
    int channel[2] = {-1, -1}, problems[2] = {-1, -1};
    dt_connection *connection;
    dt_arena arena;
    const char **argv;
    dt_status st;

    dt_arena_init(&arena, 0);
    connection = calloc(1, sizeof(*connection));
    DT_ASSERT(connection != NULL);
    connection->node = node;
    connection->process.data = connection;
    DT_TRY(connect_argv(&argv, node, &arena, err));
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) != 0 ||
        pipe2(problems, O_CLOEXEC) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot make the pipes to a node: %s", strerror(errno));
    node->connection = connection; /* from here on dt_node_disconnect cleans up */
    connection = NULL;
    st = spawn(node->connection, argv, channel[1], problems[1], err);
    if (st == DT_OK) {
        st = dt_stream_open(&node->connection->stream, &session->loop, channel[0],
                            DT_PROTOCOL_MAX_LINE_BYTES, &calls, node->connection, err);
        channel[0] = -1;
    }
    if (st == DT_OK) {
        st = dt_stream_open(&node->connection->problems, &session->loop, problems[0],
                            PROBLEM_LINE_BYTES, &problem_calls, node->connection, err);
        problems[0] = -1;
    }
out:
    for (int i = 0; i < 2; i++) {
        if (channel[i] >= 0)
            close(channel[i]);
        if (problems[i] >= 0)
            close(problems[i]);
    }
    free(connection);
    dt_arena_release(&arena);
    return st;
}

/* --- while the store is held */

void dt_node_hear(dt_supervised_node *node, bool hear)
{
    if (node->connection != NULL && node->connection->stream != NULL)
        dt_stream_pause(node->connection->stream, !hear);
    if (hear)
        node->heard_seconds = dt_session_now(node->session);
}

/* --- trying again */

static void on_retry(uv_timer_t *timer)
{
    dt_supervised_node *node = timer->data;

    if (node->session->trouble != DT_OK || node->given_up || node->gone || node->ending != NULL)
        return;
    if (node->session->deaf && node->attached) {
        node->heard_seconds = dt_session_now(node->session); /* it may speak */
        dt_node_send(node, json_pack("{s:s}", "command", "alive"));
        return;
    }
    if (!node->placed) {
        if (node->preparation == NULL)
            dt_prepare_node(node);
    } else if (node->connection == NULL) {
        dt_node_connect(node);
    } else {
        dt_liveness_look(node);
    }
}

void dt_node_retry_in(dt_supervised_node *node, uint64_t wait_ms)
{
    if (!node->retry_open) {
        uv_timer_init(&node->session->loop, &node->retry);
        node->retry.data = node;
        node->retry_open = true;
        node->heard_seconds = dt_session_now(node->session);
    }
    uv_timer_start(&node->retry, on_retry, wait_ms, DT_LIVENESS_LOOK_MS);
}

static void leave(dt_supervised_node *node)
{
    node->gone = true;
    if (node->retry_open)
        uv_timer_stop(&node->retry);
    dt_state_consider(node->session);
}

void dt_node_let_go(dt_supervised_node *node)
{
    if (node->connection == NULL)
        leave(node); /* what comes back to it later finds nothing to do */
    else
        dt_node_send(node, json_pack("{s:s}", "command", "bye"));
}

void dt_node_reconnect(dt_supervised_node *node, const char *why)
{
    uint64_t wait_ms = (uint64_t)BACKOFF_FIRST_MS << (node->tries < 8 ? node->tries : 8);

    dt_node_disconnect(node);
    if (node->released) {
        leave(node);
        return;
    }
    if (node->given_up)
        return;
    if (why != node->problem)
        snprintf(node->problem, sizeof(node->problem), "%s", why);
    dt_log_warn("%s: %s", node->row.name, node->problem);
    if (node->preempted) {
        char gone[sizeof(node->problem)];

        snprintf(gone, sizeof(gone), "node %s is gone (%.400s)", node->row.name, node->problem);
        node->unrecoverable = true;
        dt_node_give_up(node, gone);
        return;
    }
    node->tries++;
    dt_node_retry_in(node, wait_ms < BACKOFF_MOST_MS ? wait_ms : BACKOFF_MOST_MS);
    dt_liveness_look(node);
}

void dt_node_connect(dt_supervised_node *node)
{
    dt_session *session = node->session;
    dt_error err = DT_ERROR_INIT;

    dt_node_retry_in(node, DT_LIVENESS_LOOK_MS);
    node->problem[0] = '\0';
    node->connected_seconds = dt_session_now(session);
    if (make_connection(node, &err) != DT_OK) {
        dt_node_reconnect(node, err.message);
        return;
    }
    node->asked_ms = dt_clock_wall_ms();
    dt_node_send(node, json_pack("{s:s, s:i, s:s, s:I, s:I}", "command", "attach", "protocol",
                                 DT_PROTOCOL_VERSION, "run", session->run, "attempt",
                                 (json_int_t)session->attempt, "from",
                                 (json_int_t)node->row.acknowledged));
}
