/* keepalive: starts an agent that outlives the connection to its node. Slurm ends the processes
 * that a step leaves running, so the agent gets a step of its own, whose srun is detached from the
 * supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/exit.h"
#include "base/file.h"
#include "runner/node_setup/node_setup_int.h"
#include "runner/transport/transport.h"

#define START_SECONDS 10.0 /* for setsid to start the step */
#define READY_SECONDS 30.0
#define LOG_BYTES     ((size_t)65536)

/* Waits up to 15 s for the agent's socket in its folder $1. */
static const char await_script[] = "i=0\n"
                                   "until [ -S \"$1/agent.sock\" ]; do\n"
                                   "    [ $((i += 1)) -le 150 ] || exit 1\n"
                                   "    sleep 0.1\n"
                                   "done";

/* Starts the step detached: setsid --fork exits at once, so that srun has no parent that could end
 * it. */
static dt_status start_apart(const char *const *argv, const char *log, dt_error *err)
{
    char end[DT_EXIT_WORDS_BYTES];
    dt_child child = {0};
    dt_status st = DT_OK;
    int code = 0, fd;

    fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot open '%s': %s", log, strerror(errno));
    DT_TRY(dt_child_start(&child, &(dt_child_spec){.argv = argv, .out = fd, .errors = fd}, err));
    if (!dt_child_wait(&child, &code, START_SECONDS))
        DT_THROW(err, DT_ERR_TIMEOUT, "'%s' did not end within %.0f s", argv[0], START_SECONDS);
    if (code != 0)
        DT_THROW(err, DT_ERR_IO, "'%s' %s", argv[0], dt_exit_words(end, code));
out:
    dt_child_end(&child);
    close(fd);
    return st;
}

static dt_status hold_argv(const char ***argv, const dt_transport *transport,
                           const dt_node_layout *layout, dt_arena *arena, dt_error *err)
{
    const char *const words[] = {layout->agent, "serve", layout->folder, NULL};
    dt_status st = DT_OK;
    const char **inner;
    size_t count = 0;

    DT_TRY(transport->command(&inner, layout->node, words, arena, err));
    while (inner[count] != NULL)
        count++;
    *argv = dt_arena_alloc_array(arena, count + 3, sizeof((*argv)[0]));
    (*argv)[0] = "setsid";
    (*argv)[1] = "--fork";
    memcpy(*argv + 2, inner, (count + 1) * sizeof(inner[0]));
out:
    return st;
}

/* Appends what a step that failed to start has written to its log, as one line. */
static void add_log(dt_strbuf *out, const char *log)
{
    if (dt_file_read(out, log, LOG_BYTES, NULL) != DT_OK)
        return;
    while (out->length > 0 && (unsigned char)out->data[out->length - 1] <= ' ')
        out->data[--out->length] = '\0';
    for (size_t i = 0; i < out->length; i++)
        if ((unsigned char)out->data[i] < ' ')
            out->data[i] = ' ';
}

dt_status dt_nodes_keepalive_agent(const dt_node_layout *layout, const dt_prepare_request *request,
                                   dt_arena *arena, dt_error *err)
{
    const char *const await[] = {"/bin/sh", "-c", await_script, "sh", layout->folder, NULL};
    const char *log = dt_arena_printf(arena, "%s/step.log", request->here), **argv;
    dt_error problem = DT_ERROR_INIT;
    const dt_transport *transport;
    dt_strbuf answer;
    dt_status st;

    dt_strbuf_init(&answer);
    DT_TRY(dt_transport_find(&transport, layout->node, err));
    if (!transport->ends_children)
        return DT_OK;
    DT_TRY(dt_file_make_dirs(request->here, 0700, err));
    DT_TRY(hold_argv(&argv, transport, layout, arena, err));
    DT_TRY(start_apart(argv, log, err));
    st = dt_nodes_ask(&answer, layout->node, await, NULL, 0, READY_SECONDS, request->cancelled,
                      &problem);
    if (st == DT_ERR_IO) {
        dt_strbuf_reset(&answer);
        add_log(&answer, log);
        DT_THROW(err, DT_ERR_PEER, "node '%s': cannot start its agent: %.600s", layout->node,
                 answer.length > 0 ? answer.data : problem.message);
    }
    if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
out:
    dt_strbuf_release(&answer);
    return st;
}
