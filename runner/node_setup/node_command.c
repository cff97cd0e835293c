/* node_command: commands on nodes: the argv with which the supervisor runs one, a command whose whole
 * output is read, and a call per node on several threads. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/dirs.h"
#include "runner/node_setup/node_setup_int.h"
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

dt_status dt_nodes_size(int64_t *bytes, const char *node, const char *agent, const char *path,
                        const atomic_bool *cancelled, dt_error *err)
{
    const char *const words[] = {agent, "node", "size", path, NULL};
    dt_strbuf answer;
    dt_status st;

    dt_strbuf_init(&answer);
    st = dt_nodes_ask(&answer, node, words, NULL, 0, SIZE_SECONDS, cancelled, err);
    *bytes = st == DT_OK ? strtoll(answer.data, NULL, 10) : -1;
    dt_strbuf_release(&answer);
    return st;
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
