/* missing_plan: ends a run whose plan can be read neither from its folder nor from the store. (A plan
 * of another dtrun version is not damaged: load.c leaves such a run alone.)
 *
 * The run cannot continue, but its ranks may still be running. So it is ended like any other run: the
 * nodes come from the attempt's rows, or from its node folders, and are asked to stop. The run fails
 * only once they have released their ranks or were given up, with the plan's problem as the reason.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/names.h"
#include "recipes/fields/fields.h"
#include "runner/channel/protocol.h"
#include "runner/supervisor/folder/attempt_record.h"
#include "runner/supervisor/session/session_int.h"

#define NODES_MAX 4096

/* Reads the recipe from the store, or uses the defaults: it sets the grace period and what to
 * keep. */
static void read_recipe(dt_recipe *recipe, dt_session *session)
{
    json_t *json = NULL;
    dt_run row;

    if (dt_store_run_find(session->store, &row, session->run, &session->arena, NULL) != DT_OK ||
        dt_json_parse(&json, row.recipe_json, strlen(row.recipe_json), "recipe", NULL) != DT_OK ||
        dt_recipe_from_json(recipe, json, &session->arena, NULL) != DT_OK)
        dt_recipe_init(recipe);
    json_decref(json);
}

/* Returns one more than the highest K of the folders attempt-N/node-K. */
static int64_t count_folders(const dt_session *session)
{
    struct dirent *entry;
    int64_t count = 0;
    dt_strbuf path;
    int number;
    DIR *dir;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/attempt-%lld", session->folder, (long long)session->attempt);
    dir = opendir(path.data);
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (sscanf(entry->d_name, "node-%d", &number) == 1 && number >= 0 && number < NODES_MAX &&
            number >= count)
            count = number + 1;
    if (dir != NULL)
        closedir(dir);
    dt_strbuf_release(&path);
    return count;
}

/* Returns the node's name from its place.json; used if the store has no row. */
static const char *name_of(dt_session *session, int64_t node)
{
    const char *here =
        dt_arena_printf(&session->arena, "%s/attempt-%lld/node-%lld", session->folder,
                        (long long)session->attempt, (long long)node);
    const char *name = "localhost";
    dt_node_layout place = {0};
    bool restored;

    if (dt_copies_place(&place, &restored, NULL, session->run, session->attempt, node, here,
                        &session->arena, NULL) == DT_OK)
        name = place.node;
    json_decref(place.paths);
    return name;
}

static dt_status name_nodes(dt_plan *plan, dt_session *session, dt_error *err)
{
    dt_status st = DT_OK;
    dt_node *rows;
    int64_t count;

    DT_TRY(dt_store_node_list(session->store, &rows, &count, session->run, session->attempt,
                              &session->arena, err));
    plan->node_count = count_folders(session);
    for (int64_t i = 0; i < count; i++)
        if (rows[i].node >= plan->node_count && rows[i].node < NODES_MAX)
            plan->node_count = rows[i].node + 1;
    if (plan->node_count == 0)
        plan->node_count = 1; /* a node without a place: nothing was started */
    plan->node_names =
        dt_arena_alloc_array(&session->arena, (size_t)plan->node_count, sizeof(char *));
    for (int64_t i = 0; i < plan->node_count; i++)
        plan->node_names[i] = NULL;
    for (int64_t i = 0; i < count; i++)
        if (rows[i].node < plan->node_count)
            plan->node_names[rows[i].node] = rows[i].name;
    for (int64_t i = 0; i < plan->node_count; i++)
        if (plan->node_names[i] == NULL)
            plan->node_names[i] = name_of(session, i);
out:
    return st;
}

/* Lists the ranks of the rows, and at least one per node, because journal events refer to ranks. */
static dt_status list_ranks(dt_plan *plan, dt_session *session, dt_error *err)
{
    dt_status st = DT_OK;
    dt_rank *rows;
    int64_t count;

    DT_TRY(dt_store_rank_list(session->store, &rows, &count, session->run, session->attempt,
                              &session->arena, err));
    plan->world_size = plan->node_count;
    for (int64_t i = 0; i < count; i++)
        if (rows[i].rank >= plan->world_size && rows[i].rank < DT_PROTOCOL_MAX_RANKS)
            plan->world_size = rows[i].rank + 1;
    plan->ranks =
        dt_arena_alloc_array(&session->arena, (size_t)plan->world_size, sizeof(plan->ranks[0]));
    for (int64_t i = 0; i < plan->world_size; i++)
        plan->ranks[i] = (dt_plan_rank){.node = i < plan->node_count ? i : 0,
                                        .device = DT_DEVICE_CPU,
                                        .replicas = 1,
                                        .threads = 1};
    for (int64_t i = 0; i < count; i++)
        if (rows[i].node < plan->node_count && rows[i].rank < plan->world_size) {
            plan->ranks[rows[i].rank].node = rows[i].node;
            plan->ranks[rows[i].rank].local_rank = rows[i].local_rank;
            plan->ranks[rows[i].rank].device = rows[i].device;
        }
out:
    return st;
}

dt_status dt_missing_plan_substitute(dt_plan *plan, dt_session *session, const char *why,
                                     dt_error *err)
{
    dt_status st = DT_OK;

    dt_log_error("%s: stopping the run on its nodes", why);
    *plan = (dt_plan){.run = session->run, .attempt = session->attempt, .resume_from = ""};
    read_recipe(&plan->recipe, session);
    session->plan_problem = dt_arena_printf(&session->arena, "%s", why);
    plan->directory = dt_arena_printf(&session->arena, "%s/checkpoints", session->folder);
    DT_TRY(name_nodes(plan, session, err));
    DT_TRY(list_ranks(plan, session, err));
    session->plan = dt_plan_to_json(plan);
out:
    return st;
}

dt_status dt_missing_plan_stop(dt_session *session, dt_error *err)
{
    dt_status st = DT_OK;

    if (session->state == DT_RUN_STOPPING)
        return DT_OK; /* started by the previous supervisor or by a stop */
    DT_TRY(dt_collector_note(
        session->collector,
        json_pack("{s:s, s:o}", "event", "lost", "message", dt_json_text(session->plan_problem)),
        err));
    DT_TRY(dt_store_run_set_state(session->store, session->run, DT_RUN_STOPPING, -1, "",
                                  dt_clock_wall_ms(), err));
    session->state = DT_RUN_STOPPING;
out:
    return st;
}
