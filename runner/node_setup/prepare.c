/* prepare: runs the steps that prepare a node before its agent is started. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/names.h"
#include "base/process.h"
#include "runner/node_setup/node_setup.h"
#include "runner/node_setup/node_setup_int.h"
#include "runner/node_setup/workdir/workdir.h"

#define ASK_SECONDS 20.0

static const char *interface_of(const json_t *plan)
{
    const json_t *network = json_object_get(json_object_get(plan, "recipe"), "network");
    const char *name = json_string_value(json_object_get(network, "interface"));

    return name != NULL ? name : "";
}

/* Returns whether the ranks are engines. A command is started by the agent itself. */
static bool needs_engine(const json_t *plan)
{
    const char *task = json_string_value(json_object_get(json_object_get(plan, "recipe"), "task"));

    return task == NULL || strcmp(task, "command") != 0;
}

/* Returns the first node of the plan that is another machine, or NULL. */
static const char *elsewhere(const json_t *plan)
{
    const json_t *item;
    size_t i;

    json_array_foreach(json_object_get(plan, "nodes"), i, item) {
        const char *name = json_string_value(json_object_get(item, "name"));

        if (name != NULL && !dt_nodes_is_here(name))
            return name;
    }
    return NULL;
}

static dt_status take_addresses(dt_node_layout *out, const dt_prepare_request *request,
                                const json_t *facts, const json_t *seen_from, dt_arena *arena,
                                dt_error *err)
{
    dt_node_addresses found;
    dt_status st = dt_node_addresses_find(&found, request->node, facts, seen_from,
                                          interface_of(request->plan), arena, err);

    out->address = found.preferred;
    out->other_address = found.other;
    return st;
}

/* --- this machine: the installed programs, the run's own folders */

/* Chooses this machine's address. If the run has other nodes they must reach this machine, so one
 * of them is probed for the address that it sees. */
static dt_status address_here(dt_node_layout *out, const dt_prepare_request *request,
                              dt_arena *arena, dt_error *err)
{
    const char *other = elsewhere(request->plan);
    json_t *facts = NULL, *others = NULL;
    dt_bootstrap bootstrap = {0};
    dt_status st = DT_OK;
    int64_t skew_ms;

    out->address = "127.0.0.1";
    if (other == NULL)
        return DT_OK;
    DT_TRY(dt_bootstrap_init(&bootstrap, arena, err));
    DT_TRY(dt_bootstrap_probe(&facts, &skew_ms, &bootstrap, request->node, "-", request->cancelled,
                              err));
    DT_TRY(dt_bootstrap_probe(&others, &skew_ms, &bootstrap, other, "-", request->cancelled, err));
    DT_TRY(take_addresses(out, request, facts, others, arena, err));
out:
    json_decref(facts);
    json_decref(others);
    dt_bootstrap_release(&bootstrap);
    return st;
}

static dt_status prepare_here(dt_node_layout *out, const dt_prepare_request *request,
                              dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_dir_program(&out->agent, "dtrun-agent", "DTRUN_AGENT", arena, err));
    out->engine = "";
    if (needs_engine(request->plan))
        DT_TRY(dt_dir_program(&out->engine, "dtrun-engine", "DTRUN_ENGINE", arena, err));
    out->here = out->checkpoints_shared = true;
    out->node = dt_arena_strdup(arena, request->node);
    out->folder = dt_arena_strdup(arena, request->here);
    out->checkpoints = dt_arena_strdup(arena, request->checkpoints_here);
    DT_TRY(address_here(out, request, arena, err));
    DT_TRY(dt_file_make_dirs(request->here, 0700, err));
    DT_TRY(dt_stage_saved(out, request, arena, err));
    DT_TRY(dt_stage_setup(out, NULL, request, arena, err));
out:
    return st;
}

/* --- another machine */

dt_status dt_nodes_check_glibc(const char *node, const json_t *facts, const char *needed,
                               dt_error *err)
{
    const char *has = json_string_value(json_object_get(facts, "glibc"));

    if (has == NULL)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                       "node '%s' has no glibc (musl?): a distribution with glibc %s or later is "
                       "needed",
                       node, needed);
    if (dt_glibc_compare(has, needed) < 0)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                       "node '%s' has glibc %s but this dtrun needs %s: build dtrun on a machine "
                       "as old as that node, or upgrade the node",
                       node, has, needed);
    return DT_OK;
}

/* Tests whether the engine starts on the node: only the loader knows which libraries are missing. */
static dt_status try_engine(const char *node, const char *engine, const atomic_bool *cancelled,
                            dt_error *err)
{
    const char *const words[] = {engine, "--version", NULL};
    dt_error problem = DT_ERROR_INIT;
    dt_strbuf answer;
    dt_status st;
    int code;

    dt_strbuf_init(&answer);
    st = dt_nodes_ask_code(&answer, &code, &problem, node, words, NULL, 0, ASK_SECONDS, cancelled,
                           err);
    dt_strbuf_release(&answer);
    if (st == DT_OK && (code == DT_EXIT_CANNOT_RUN || code == DT_EXIT_NO_PROGRAM))
        st = DT_FAIL(err, DT_ERR_UNSUPPORTED, "node '%s': cannot run the engine: %s", node,
                     problem.message);
    return st;
}

/* Creates a file in the local folder: a node that sees it shares the folder. */
static dt_status probe_shared(bool *shared, const dt_prepare_request *request, dt_talk *talk,
                              dt_arena *arena, dt_error *err)
{
    char token[64];
    const char *path = dt_arena_printf(arena, "%s/.probe-%lld-%d", request->checkpoints_here,
                                       (long long)request->node_index, (int)getpid());
    const char *const words[] = {"same", path, token, NULL};
    dt_status st = DT_OK;
    dt_strbuf answer;

    *shared = false;
    dt_strbuf_init(&answer);
    snprintf(token, sizeof(token), "%lld %d", (long long)dt_clock_wall_ms(), (int)getpid());
    DT_TRY(dt_file_make_dirs(request->checkpoints_here, 0700, err));
    DT_TRY(dt_file_write_atomic(path, token, strlen(token), 0600, err));
    DT_TRY(dt_talk_ask(talk, &answer, words, ASK_SECONDS, err));
    *shared = strcmp(answer.data, "yes\n") == 0;
out:
    unlink(path);
    dt_strbuf_release(&answer);
    return st;
}

static dt_status make_folder(const char *path, dt_talk *talk, dt_error *err)
{
    const char *const words[] = {"folder", path, NULL};
    dt_strbuf answer;
    dt_status st;

    dt_strbuf_init(&answer);
    st = dt_talk_ask(talk, &answer, words, ASK_SECONDS, err);
    dt_strbuf_release(&answer);
    return st;
}

static dt_status choose_folders(dt_node_layout *out, dt_talk *talk,
                                const dt_prepare_request *request, const json_t *facts,
                                dt_arena *arena, dt_error *err)
{
    const char *state = json_string_value(json_object_get(facts, "state"));
    dt_status st = DT_OK;

    if (state == NULL)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "node '%s': the account has no home directory",
                 request->node);
    out->folder = dt_arena_printf(arena, "%s/nodes/%s/attempt-%lld/node-%lld", state, request->run,
                                  (long long)request->attempt, (long long)request->node_index);
    DT_TRY(make_folder(out->folder, talk, err));
    DT_TRY(probe_shared(&out->checkpoints_shared, request, talk, arena, err));
    if (out->checkpoints_shared) {
        out->checkpoints = dt_arena_strdup(arena, request->checkpoints_here);
        return DT_OK;
    }
    out->checkpoints = dt_arena_printf(arena, "%s/nodes/%s/checkpoints-%lld", state, request->run,
                                       (long long)request->node_index);
    DT_TRY(make_folder(out->checkpoints, talk, err));
out:
    return st;
}

static dt_status put_bundle(dt_node_layout *out, const dt_prepare_request *request,
                            const dt_bundle *bundle, const json_t *facts, dt_arena *arena,
                            dt_error *err)
{
    const char *cache;
    dt_status st = DT_OK;

    out->engine = "";
    if (!needs_engine(request->plan))
        return DT_OK;
    DT_TRY(dt_nodes_check_glibc(request->node, facts, bundle->glibc, err));
    DT_TRY(dt_json_get_string(&cache, facts, "cache", request->node, err));
    out->engine = dt_arena_printf(arena, "%s/bundles/%s/bin/dtrun-engine", cache, bundle->hash);
    if (json_is_true(json_object_get(facts, "bundle")))
        return DT_OK;
    DT_TRY(dt_upload_bundle(bundle, request->node, out->agent, request->progress, request->context,
                            request->cancelled, err));
    DT_TRY(try_engine(request->node, out->engine, request->cancelled, err));
out:
    return st;
}

static bool uses_gpus(const json_t *plan, int64_t node)
{
    const json_t *ranks = json_object_get(plan, "ranks"), *rank;
    size_t i;

    json_array_foreach((json_t *)ranks, i, rank) {
        const char *device = json_string_value(json_object_get(rank, "device"));

        if (json_integer_value(json_object_get(rank, "node")) == node && dt_device_gpu(device) >= 0)
            return true;
    }
    return false;
}

static dt_status prepare_there(dt_node_layout *out, const dt_prepare_request *request,
                               dt_arena *arena, dt_error *err)
{
    const char *workdir = dt_stage_workdir_folder(request->plan), *cache;
    dt_bootstrap bootstrap = {0};
    dt_status st = DT_OK;
    json_t *facts = NULL;
    char *mark = NULL;
    dt_bundle bundle = {.hash = "-"};
    dt_talk talk = {.node = request->node, .cancelled = request->cancelled};
    int64_t skew_ms;

    DT_TRY(dt_bootstrap_init(&bootstrap, arena, err));
    if (needs_engine(request->plan))
        DT_TRY(dt_bundle_make(&bundle, uses_gpus(request->plan, request->node_index), arena, err));
    if (request->progress != NULL)
        request->progress(request->context, "connecting");
    if (workdir != NULL)
        dt_workdir_mark(&mark, workdir);
    bootstrap.seen = mark;
    DT_TRY(dt_bootstrap_probe(&facts, &skew_ms, &bootstrap, request->node, bundle.hash,
                              request->cancelled, err));
    out->node = dt_arena_strdup(arena, request->node);
    DT_TRY(dt_bootstrap_agent(&out->agent, &bootstrap, request->node, facts, arena, err));
    DT_TRY(put_bundle(out, request, &bundle, facts, arena, err));
    talk.agent = out->agent;
    DT_TRY(choose_folders(out, &talk, request, facts, arena, err));
    if (request->node_count == 1)
        out->address = dt_arena_strdup(arena, "127.0.0.1");
    else
        DT_TRY(take_addresses(out, request, facts, NULL, arena, err));
    out->paths = json_object();
    DT_TRY(dt_stage_data(out->paths, out->folder, &talk, request, arena, err));
    DT_TRY(dt_stage_checkpoint(out, &talk, request, arena, err));
    DT_TRY(dt_stage_workdir(out, facts, request, arena, err));
    DT_TRY(dt_stage_saved(out, request, arena, err));
    DT_TRY(dt_json_get_string(&cache, facts, "cache", request->node, err));
    DT_TRY(dt_stage_setup(out, cache, request, arena, err));
    DT_TRY(dt_nodes_start_agent(out, request, arena, err));
out:
    if (st != DT_OK) {
        json_decref(out->paths);
        out->paths = NULL;
    }
    dt_talk_end(&talk);
    dt_workdir_unmark(mark);
    json_decref(facts);
    dt_bootstrap_release(&bootstrap);
    return st;
}

dt_status dt_node_prepare(dt_node_layout *out, const dt_prepare_request *request, dt_arena *arena,
                          dt_error *err)
{
    dt_prepare_request named = *request;
    dt_status st = dt_nodes_place(&named.node, request, arena, err);

    *out = (dt_node_layout){0};
    if (st != DT_OK)
        return st;
    return dt_nodes_is_here(named.node) ? prepare_here(out, &named, arena, err)
                                        : prepare_there(out, &named, arena, err);
}
