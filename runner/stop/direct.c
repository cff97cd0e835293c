/* direct: stops a run on the nodes that its folder names, one after the other. */
#include "runner/stop/direct.h"

#include <dirent.h>
#include <string.h>

#include "base/file.h"
#include "runner/node_setup/node_setup.h"
#include "runner/supervisor/supervisor.h"

typedef struct stopping {
    const char *run;
    dt_direct_how how;
    dt_direct_seen *seen;
    dt_strbuf *left;
    dt_arena *arena;
} stopping;

static void add_left(stopping *all, const char *node, const char *why)
{
    dt_strbuf_add_fmt(all->left, "%s%s: %s", all->left->length > 0 ? "; " : "", node, why);
}

static dt_status end_in(stopping *all, const char **problem, const char *agent, const char *node,
                        const char *folder, dt_error *err)
{
    bool stays = false;
    dt_status st;

    if (all->how == DT_DIRECT_ALL)
        return dt_direct_end_agent(problem, agent, node, folder, all->arena, err);
    st = dt_direct_end(problem, agent, node, folder, all->how == DT_DIRECT_NOW, &stays, all->arena,
                       err);
    all->seen->stays += stays ? 1 : 0;
    return st;
}

static dt_status end_place(stopping *all, const char *here, dt_error *err)
{
    dt_error unread = DT_ERROR_INIT;
    const char *problem = NULL;
    dt_node_layout place;
    dt_status st, read_st;

    read_st = dt_node_layout_read(&place, here, all->arena, &unread);
    json_decref(place.paths);
    if (read_st == DT_OK) {
        DT_TRY(end_in(all, &problem, place.agent, place.node, place.folder, err));
    } else { /* on this machine the node's folder is this folder */
        const char *agent;

        DT_TRY(dt_direct_agent(&agent, "localhost", all->arena, err));
        DT_TRY(end_in(all, &problem, agent, "localhost", here, err));
        if (read_st != DT_ERR_NOT_FOUND && problem == NULL &&
            !dt_file_exists(dt_arena_printf(all->arena, "%s/agent.lock", here)))
            problem = dt_arena_printf(all->arena, "%s (see 'dtrun stop --node HOST %s')",
                                      unread.message, all->run);
        place.node = "localhost";
    }
    all->seen->asked += read_st != DT_ERR_NOT_FOUND ? 1 : 0;
    if (problem != NULL)
        add_left(all, place.node, problem);
out:
    return st;
}

/* Calls `act` for each folder PREFIX-N in `parent`. */
static dt_status each_folder(stopping *all, const char *parent, const char *prefix,
                             dt_status (*act)(stopping *, const char *, dt_error *), dt_error *err)
{
    DIR *dir = opendir(parent);
    struct dirent *entry;
    dt_status st = DT_OK;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        const char *path;

        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
            continue;
        path = dt_arena_printf(all->arena, "%s/%s", parent, entry->d_name);
        DT_TRY(act(all, path, err));
    }
out:
    if (dir != NULL)
        closedir(dir);
    return st;
}

static dt_status end_attempt(stopping *all, const char *folder, dt_error *err)
{
    return each_folder(all, folder, "node-", end_place, err);
}

dt_status dt_direct_stop(dt_direct_seen *seen, dt_strbuf *left, const char *run, dt_direct_how how,
                         dt_arena *arena, dt_error *err)
{
    stopping all = {.run = run, .how = how, .seen = seen, .left = left, .arena = arena};
    const char *folder;
    dt_status st;

    *seen = (dt_direct_seen){0};
    DT_TRY(dt_run_path(&folder, run, NULL, arena, err));
    DT_TRY(each_folder(&all, folder, "attempt-", end_attempt, err));
out:
    return st;
}
