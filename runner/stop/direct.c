/* direct: finds a run without the history, from the folders of runs or from what runs on a node, and ends
 * what it has on its nodes, by one command of the agent each. */
#include "runner/stop/direct.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "base/child.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/names.h"
#include "base/process.h"
#include "runner/channel/protocol.h"
#include "runner/node_setup/node_setup.h"
#include "runner/supervisor/supervisor.h"
#include "runner/transport/transport.h"

/* direct_find: finds the run that a name stands for without the history, from the folders of
 * runs or from what runs on a node. */

#define PLAN_BYTES ((size_t)16 << 20)

typedef struct candidate {
    const char *id, *name;
    int64_t made_ns;
} candidate;

static const char *name_of(const char *folder, dt_arena *arena)
{
    json_t *plan = NULL;
    const char *name = "";
    dt_strbuf path;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/attempt-1/plan.json", folder);
    if (dt_json_read(&plan, path.data, PLAN_BYTES, NULL) == DT_OK) {
        const char *text =
            json_string_value(json_object_get(json_object_get(plan, "recipe"), "name"));

        name = text != NULL ? dt_arena_strdup(arena, text) : "";
    }
    json_decref(plan);
    dt_strbuf_release(&path);
    return name != NULL ? name : "";
}

/* Returns the launch time: no later attempt changes attempt-1/plan.json. */
static int64_t made_ns(const char *folder, dt_arena *arena)
{
    const char *path = dt_arena_printf(arena, "%s/attempt-1/plan.json", folder);
    struct stat info;

    if (stat(path, &info) != 0)
        return 0;
    return (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
}

static bool is_prefix(const char *ref, const char *id)
{
    return strlen(ref) >= DT_RUN_PREFIX_LEAST && strncmp(id, ref, strlen(ref)) == 0;
}

/* Returns how well the run matches: 0 not at all, 1 as a prefix, 2 by name, 3 "last", 4 exactly. */
static int fit_of(const candidate *one, const char *ref)
{
    if (strcmp(one->id, ref) == 0)
        return 4;
    if (strcmp(ref, DT_RUN_LAST) == 0)
        return 3;
    if (strcmp(one->name, ref) == 0)
        return 2;
    return is_prefix(ref, one->id) ? 1 : 0;
}

static dt_status check_named(const char *ref, dt_error *err)
{
    return ref[0] != '\0' ? DT_OK
                          : DT_FAIL(err, DT_ERR_USAGE,
                                    "the name of the run is empty: give an id, or the beginning of"
                                    " one");
}

dt_status dt_direct_find(const char **run, const char *ref, dt_arena *arena, dt_error *err)
{
    const char *state, *runs, *other = NULL;
    candidate best = {.made_ns = -1};
    struct dirent *entry;
    dt_status st = DT_OK;
    int best_fit = 0;
    DIR *dir = NULL;

    *run = NULL;
    DT_TRY(check_named(ref, err));
    DT_TRY(dt_dir_path(&state, DT_DIR_STATE, arena, err));
    runs = dt_arena_printf(arena, "%s/runs", state);
    dir = opendir(runs);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        const char *folder = dt_arena_printf(arena, "%s/%s", runs, entry->d_name);
        candidate one = {.id = dt_arena_strdup(arena, entry->d_name)};
        int fit;

        if (entry->d_name[0] == '.')
            continue;
        one.name = name_of(folder, arena);
        one.made_ns = made_ns(folder, arena);
        fit = fit_of(&one, ref);
        if (fit == 1 && best_fit == 1)
            other = one.id;
        if (fit > best_fit || (fit > 1 && fit == best_fit && one.made_ns > best.made_ns)) {
            best = one;
            best_fit = fit;
        }
    }
    if (best_fit == 0)
        DT_THROW(err, DT_ERR_NOT_FOUND, "no run '%s' in the folder '%s'", ref, runs);
    if (best_fit == 1 && other != NULL)
        DT_THROW(err, DT_ERR_USAGE, "'%s' is the beginning of several runs, among them %s and %s",
                 ref, best.id, other);
    *run = best.id;
out:
    if (dir != NULL)
        closedir(dir);
    return st;
}

/* True if no earlier entry has the same run: several attempts of a run may have processes. */
static bool is_first_of(const json_t *runs, size_t at, const char *id)
{
    for (size_t i = 0; i < at; i++) {
        const char *before = json_string_value(json_object_get(json_array_get(runs, i), "run"));

        if (before != NULL && strcmp(before, id) == 0)
            return false;
    }
    return true;
}

dt_status dt_direct_pick(const char **run, const json_t *runs, const char *ref, dt_error *err)
{
    int64_t count = 0;
    dt_status st = DT_OK;
    dt_strbuf several;
    json_t *entry;
    size_t i;

    *run = NULL;
    dt_strbuf_init(&several);
    DT_TRY(check_named(ref, err));
    json_array_foreach(runs, i, entry) {
        const char *id = json_string_value(json_object_get(entry, "run"));

        if (id == NULL || (strcmp(id, ref) != 0 && !is_prefix(ref, id)) ||
            !is_first_of(runs, i, id))
            continue;
        *run = id;
        if (strcmp(id, ref) == 0)
            goto out;
        dt_strbuf_add_fmt(&several, "%s%s", count++ > 0 ? ", " : "", id);
    }
    if (count > 1)
        DT_THROW(err, DT_ERR_USAGE,
                 "'%s' is the beginning of several runs there: %s (give more of the id)", ref,
                 several.data);
out:
    dt_strbuf_release(&several);
    return st;
}

/* direct_node: lists and ends what runs on one node, by one command of the agent each. */

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

/* Also ends the agent. */
static dt_status direct_end_agent(const char **problem, const char *agent, const char *node,
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
        return direct_end_agent(problem, agent, node, folder, all->arena, err);
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
