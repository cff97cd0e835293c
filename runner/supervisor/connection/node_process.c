#include "runner/supervisor/connection/node_process.h"

#include <signal.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "runner/node_setup/node_setup.h"

struct dt_node_process {
    uv_process_t process;
    dt_node_exited_fn *exited; /* NULL: no callback */
    void *context;
};

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_process_exit(uv_process_t *handle, int64_t code, int number)
{
    dt_node_process *process = handle->data;

    if (process->exited != NULL)
        process->exited(process->context, code, number);
    uv_close((uv_handle_t *)handle, on_closed);
}

dt_node_process *dt_node_process_start(uv_loop_t *loop, const char **argv,
                                       dt_node_exited_fn *exited, void *context)
{
    uv_process_options_t options = {.exit_cb = on_process_exit,
                                    .file = argv[0],
                                    .args = (char **)argv}; /* streams: /dev/null */
    dt_node_process *process = dt_calloc(1, sizeof(*process));

    process->exited = exited;
    process->context = context;
    if (uv_spawn(loop, &process->process, &options) != 0) {
        process->process.data = process;
        uv_close((uv_handle_t *)&process->process, on_closed);
        return NULL;
    }
    process->process.data = process;
    return process;
}

void dt_node_process_kill(dt_node_process *process)
{
    if (process != NULL)
        uv_process_kill(&process->process, SIGKILL);
}

void dt_node_process_let_go(dt_node_process *process)
{
    if (process == NULL)
        return;
    process->exited = NULL;
    uv_process_kill(&process->process, SIGKILL);
}

dt_node_process *dt_node_process_end_agent(uv_loop_t *loop, const char *node, const char *agent,
                                           const char *folder, dt_node_exited_fn *exited,
                                           void *context)
{
    const char *const words[] = {agent, "end", folder, NULL};
    dt_node_process *process = NULL;
    const char **argv;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    if (dt_node_command(&argv, node, words, true, &arena, NULL) == DT_OK)
        process = dt_node_process_start(loop, argv, exited, context);
    dt_arena_release(&arena);
    return process;
}
