/* node_command: commands on nodes: the argv with which the supervisor runs one, a command whose whole
 * output is read, several questions over one connection, and a call per node on several threads. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dirs.h"
#include "base/memory.h"
#include "runner/node_setup/node_setup_int.h"
#include "runner/node_setup/remote_helper/remote_helper.h"
#include "runner/transport/remote.h"
#include "runner/transport/transport.h"

bool dt_nodes_is_here(const char *node)
{
    return dt_transport_local.reaches(node);
}

/* flag: an option of dtrun-reach, or NULL. */
static dt_status reach_command(const char ***argv, const char *flag, const char *node,
                               const char *const *words, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    size_t count = 0, n = 1;

    while (words[count] != NULL)
        count++;
    *argv = dt_arena_alloc_array(arena, count + 4, sizeof((*argv)[0]));
    DT_TRY(dt_dir_program(&(*argv)[0], "dtrun-reach", "DTRUN_REACH", arena, err));
    if (flag != NULL)
        (*argv)[n++] = flag;
    (*argv)[n++] = node;
    memcpy(*argv + n, words, (count + 1) * sizeof(words[0]));
out:
    return st;
}

dt_status dt_node_command(const char ***argv, const char *node, const char *const *words,
                          bool renew, dt_arena *arena, dt_error *err)
{
    const dt_transport *transport;
    dt_status st;

    *argv = NULL;
    DT_TRY(dt_transport_find(&transport, node, err));
    if (transport->explain == NULL)
        DT_TRY(transport->command(argv, node, words, arena, err));
    else
        DT_TRY(reach_command(argv, renew ? "--renew" : NULL, node, words, arena, err));
out:
    return st;
}

dt_status dt_node_probe_command(const char ***argv, const char *node, const char *const *words,
                                dt_arena *arena, dt_error *err)
{
    return reach_command(argv, "--probe", node, words, arena, err);
}

/* --- the whole output of a command */

#define ANSWER_MAX_BYTES ((size_t)64 << 20) /* the index of a checkpoint */
#define SIZE_SECONDS     20.0
#define STALL_SECONDS    30.0
#define PIECE_BYTES      ((size_t)262144)

dt_status dt_nodes_ask_code(dt_strbuf *answer, int *code, dt_error *problem, const char *node,
                            const char *const *words, const void *input, size_t input_length,
                            double timeout_seconds, const atomic_bool *cancelled, dt_error *err)
{
    *code = 0;
    return dt_remote_ask(answer, node, words, input, input_length, ANSWER_MAX_BYTES,
                         timeout_seconds, code, problem, cancelled, err);
}

dt_status dt_nodes_ask(dt_strbuf *answer, const char *node, const char *const *words,
                       const void *input, size_t input_length, double timeout_seconds,
                       const atomic_bool *cancelled, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st;
    int code;

    st = dt_nodes_ask_code(answer, &code, &problem, node, words, input, input_length,
                           timeout_seconds, cancelled, err);
    if (st != DT_OK)
        return st;
    return code == 0 ? DT_OK : DT_FAIL(err, DT_ERR_IO, "node '%s': %s", node, problem.message);
}

dt_status dt_nodes_line(dt_strbuf *line, dt_remote *remote, double timeout_seconds, dt_error *err)
{
    dt_status st;
    size_t got;
    char c;

    dt_strbuf_reset(line);
    for (;;) {
        st = dt_remote_read(remote, &c, 1, &got, timeout_seconds, err);
        if (st != DT_OK || got == 0)
            return st;
        if (c == '\n')
            return DT_OK;
        if (line->length < 8192)
            dt_strbuf_add_char(line, c);
    }
}

/* --- one question after the other */

static dt_status talk_open(dt_talk *talk, dt_error *err)
{
    const char *const words[] = {talk->agent, "node", "talk", NULL};
    dt_status st;

    if (talk->open)
        return DT_OK;
    st = dt_remote_open(&talk->remote, talk->node, words, talk->cancelled, err);
    talk->open = st == DT_OK;
    if (st != DT_OK)
        dt_remote_close(&talk->remote);
    return st;
}

static dt_status talk_say(dt_talk *talk, const char *const *words, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf request;

    dt_strbuf_init(&request);
    for (; *words != NULL; words++)
        dt_strbuf_add(&request, *words, strlen(*words) + 1);
    dt_strbuf_add_char(&request, '\0');
    DT_TRY(talk_open(talk, err));
    DT_TRY(dt_remote_write(&talk->remote, request.data, request.length, SIZE_SECONDS, err));
out:
    dt_strbuf_release(&request);
    return st;
}

/* Reads a line of an answer. *last: it was the one that ends the answer; DT_ERR_IO if it says that the request
 * failed. */
static dt_status talk_hear(dt_talk *talk, dt_strbuf *line, bool *last, double stall_seconds,
                           dt_error *err)
{
    dt_status st = dt_nodes_line(line, &talk->remote, stall_seconds, err);

    if (st != DT_OK)
        return st;
    if (line->length == 0)
        return DT_FAIL(err, DT_ERR_PEER, "node '%s': the connection ended before the answer",
                       talk->node);
    *last = line->data[0] == DT_TALK_END[0];
    if (*last && line->data[1] != '0')
        return DT_FAIL(err, DT_ERR_IO, "node '%s': %s", talk->node,
                       line->length > 3 ? line->data + 3 : "the agent gave no reason");
    return DT_OK;
}

dt_status dt_talk_ask(dt_talk *talk, dt_strbuf *answer, const char *const *words,
                      double stall_seconds, dt_error *err)
{
    dt_status st = DT_OK;
    bool last = false;
    dt_strbuf line;

    dt_strbuf_init(&line);
    dt_strbuf_reset(answer);
    DT_TRY(talk_say(talk, words, err));
    while (!last) {
        DT_TRY(talk_hear(talk, &line, &last, stall_seconds, err));
        if (!last) {
            dt_strbuf_add(answer, line.data, line.length);
            dt_strbuf_add_char(answer, '\n');
        }
    }
out:
    dt_strbuf_release(&line);
    return st;
}

dt_status dt_talk_get(dt_talk *talk, const char *path, int64_t offset, dt_talk_take *take,
                      void *context, dt_error *err)
{
    char from[32], *piece = dt_malloc(PIECE_BYTES);
    const char *const words[] = {"get", path, from, NULL};
    dt_status st = DT_OK;
    bool last = false;
    dt_strbuf line;
    size_t got;

    dt_strbuf_init(&line);
    snprintf(from, sizeof(from), "%lld", (long long)offset);
    DT_TRY(talk_say(talk, words, err));
    DT_TRY(talk_hear(talk, &line, &last, STALL_SECONDS, err));
    for (int64_t left = strtoll(line.data, NULL, 10); left > 0; left -= (int64_t)got) {
        size_t most = left < (int64_t)PIECE_BYTES ? (size_t)left : PIECE_BYTES;

        DT_TRY(dt_remote_read(&talk->remote, piece, most, &got, STALL_SECONDS, err));
        if (got == 0)
            DT_THROW(err, DT_ERR_PEER, "node '%s': the connection ended within '%s'", talk->node,
                     path);
        DT_TRY(take(context, piece, got, err));
    }
    DT_TRY(talk_hear(talk, &line, &last, STALL_SECONDS, err));
out:
    if (st != DT_OK && !last) /* the next answer would begin within this one */
        dt_talk_end(talk);
    dt_strbuf_release(&line);
    free(piece);
    return st;
}

dt_status dt_talk_size(int64_t *bytes, dt_talk *talk, const char *path, dt_error *err)
{
    const char *const words[] = {"size", path, NULL};
    dt_strbuf answer;
    dt_status st;

    dt_strbuf_init(&answer);
    st = dt_talk_ask(talk, &answer, words, SIZE_SECONDS, err);
    *bytes = st == DT_OK ? strtoll(answer.data, NULL, 10) : -1;
    dt_strbuf_release(&answer);
    return st;
}

void dt_talk_end(dt_talk *talk)
{
    if (talk->open)
        dt_remote_close(&talk->remote);
    talk->open = false;
}

/* --- a call per node, on several threads */

enum { THREADS_MAX = 32 };

typedef struct calls {
    _Atomic int64_t next;
    int64_t count;
    void (*work)(void *context, int64_t i);
    void *context;
} calls;

static void *run_calls(void *argument)
{
    calls *shared = argument;

    for (int64_t i; (i = atomic_fetch_add(&shared->next, 1)) < shared->count;)
        shared->work(shared->context, i);
    return NULL;
}

void dt_probe_parallel(int64_t count, void (*work)(void *context, int64_t i), void *context)
{
    calls shared = {.count = count, .work = work, .context = context};
    pthread_t threads[THREADS_MAX];
    int started = 0;

    while (started < THREADS_MAX && started + 1 < count &&
           pthread_create(&threads[started], NULL, run_calls, &shared) == 0)
        started++;
    run_calls(&shared); /* also if no thread could be created */
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}
