/* ask: runs a command on a node and returns its whole output. */
#include <stdlib.h>

#include "runner/node_setup/node_setup_int.h"
#include "runner/transport/remote.h"

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
