/* direct_node: lists and ends what runs on one node, by one command of the agent each. */
#include "runner/stop/direct.h"

#include <string.h>

#include "base/child.h"
#include "base/dirs.h"
#include "base/exit.h"
#include "runner/channel/protocol.h"
#include "runner/node_setup/bootstrap.h"
#include "runner/node_setup/node_setup.h"
#include "runner/transport/transport.h"

dt_status dt_direct_agent(const char **agent, const char *node, dt_arena *arena, dt_error *err)
{
    dt_bootstrap bootstrap = {0};
    json_t *facts = NULL;
    dt_status st = DT_OK;
    int64_t skew_ms;

    if (dt_transport_local.reaches(node))
        return dt_dir_program(agent, "dtrun-agent", "DTRUN_AGENT", arena, err);
    DT_TRY(dt_bootstrap_init(&bootstrap, arena, err));
    DT_TRY(dt_bootstrap_probe(&facts, &skew_ms, &bootstrap, node, "-", NULL, err));
    DT_TRY(dt_bootstrap_agent(agent, &bootstrap, node, facts, arena, err));
out:
    json_decref(facts);
    dt_bootstrap_release(&bootstrap);
    return st;
}

static dt_status run_there(dt_strbuf *out, const char **problem, const char *node,
                           const char *const *words, dt_arena *arena, dt_error *err)
{
    char end[DT_EXIT_WORDS_BYTES];
    dt_strbuf complaint;
    dt_status st = DT_OK;
    const char **argv;
    size_t length;
    int code;

    *problem = NULL;
    dt_strbuf_init(&complaint);
    DT_TRY(dt_node_command(&argv, node, words, true, arena, err));
    DT_TRY(
        dt_child_run(&code, &(dt_child_call){.argv = argv, .out = out, .errors = &complaint}, err));
    if (code != 0) {
        length = complaint.length;
        while (length > 0 && complaint.data[length - 1] == '\n')
            length--;
        complaint.data[length] = '\0';
        /* the last line; the lines before it are log lines */
        *problem = strrchr(complaint.data, '\n');
        *problem = dt_arena_strdup(arena, *problem != NULL ? *problem + 1 : complaint.data);
        if ((*problem)[0] == '\0') {
            dt_exit_words_of_shell(end, code);
            *problem = dt_arena_printf(arena, "the command %s, without a message", end);
        }
    }
out:
    dt_strbuf_release(&complaint);
    return st;
}

dt_status dt_direct_running(json_t **runs, const char *agent, const char *node, dt_arena *arena,
                            dt_error *err)
{
    const char *const words[] = {agent, "running", NULL};
    const char *problem;
    dt_status st = DT_OK;
    dt_strbuf out;

    *runs = json_array();
    dt_strbuf_init(&out);
    DT_TRY(run_there(&out, &problem, node, words, arena, err));
    if (problem != NULL)
        DT_THROW(err, DT_ERR_PEER, "%s: %s", node, problem);
    for (const char *line = out.data, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        json_t *entry = NULL;

        DT_TRY(dt_json_parse(&entry, line, (size_t)(end - line), "running", err));
        json_array_append_new(*runs, entry);
    }
out:
    dt_strbuf_release(&out);
    return st;
}

dt_status dt_direct_end(const char **problem, const char *agent, const char *node,
                        const char *folder, bool now, bool *stays, dt_arena *arena, dt_error *err)
{
    const char *const stop[] = {agent, "stop", folder, now ? "--now" : NULL, NULL};
    const char *const end[] = {agent, "end", folder, NULL};
    dt_status st = DT_OK;
    dt_strbuf out;

    dt_strbuf_init(&out);
    DT_TRY(run_there(&out, problem, node, stop, arena, err));
    *stays = *problem == NULL && strstr(out.data, DT_PROTOCOL_AGENT_STAYS) != NULL;
    if (*problem != NULL) /* also for an agent that does not know `stop` */
        DT_TRY(run_there(&out, problem, node, end, arena, err));
    if (*problem != NULL && !dt_transport_local.reaches(node)) { /* its program may be missing */
        const char *fresh;
        dt_error unreached = DT_ERROR_INIT;

        if (dt_direct_agent(&fresh, node, arena, &unreached) == DT_OK) {
            const char *const again[] = {fresh, "end", folder, NULL};

            DT_TRY(run_there(&out, problem, node, again, arena, err));
        }
    }
out:
    dt_strbuf_release(&out);
    return st;
}

dt_status dt_direct_end_agent(const char **problem, const char *agent, const char *node,
                              const char *folder, dt_arena *arena, dt_error *err)
{
    const char *const end[] = {agent, "end", folder, NULL};
    dt_status st;
    dt_strbuf out;

    dt_strbuf_init(&out);
    st = run_there(&out, problem, node, end, arena, err);
    dt_strbuf_release(&out);
    return st;
}
