/* grow: brings a run that continues with fewer nodes back to all of them, once they answer again.
 *
 * At a periodic save `dtrun-agent end` is tried on the missing nodes, which proves that they can be reached and that
 * nothing of the run is left there. If all of them answer, and the queue has given their slots to nobody, the attempt is
 * stopped as by `dtrun stop`: it saves at its next step, and the next attempt starts from there on all nodes. A mark in the
 * run's folder says so (run_folder.h), so that a supervisor that dies meanwhile changes nothing.
 *
 * A node that comes and goes: the attempt must have lasted for a pause that doubles each time the run has grown. An attempt
 * that grew and finds a node gone, or a GPU in use, goes on with fewer as before.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/names.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/supervisor/policy/restart.h"
#include "runner/supervisor/session/session_int.h"
#include "runner/times.h"

struct dt_missing_node {
    dt_session *session;
    const char *name;
    dt_node_layout place;
    dt_node_process *process;
};

/* --- which nodes are missing */

/* The first event of an attempt that dtrun added itself says so; any other begins with the nodes of its recipe. */
static bool is_own(const char *kind)
{
    static const char *const own[] = {"restart", DT_EVENT_KIND_GROWN, "preempted", "refused"};
    bool is = false;

    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        is = is || strcmp(kind, own[i]) == 0;
    return is;
}

void dt_grow_remember(dt_session *session, const dt_store_event *event)
{
    dt_session_grow *grow = &session->grow;
    bool grown = strcmp(event->kind, DT_EVENT_KIND_GROWN) == 0;
    json_t *json = NULL;
    int64_t lost = 0;

    if (grown || (event->attempt > grow->seen_attempt && !is_own(event->kind)))
        grow->whole = 0;
    if (event->attempt > grow->seen_attempt)
        grow->seen_attempt = event->attempt;
    grow->count += grown;
    if (grown && event->attempt == session->attempt)
        grow->grown = true;
    if (strcmp(event->kind, "restart") == 0 &&
        dt_json_parse(&json, event->json, strlen(event->json), "event", NULL) == DT_OK)
        (void)dt_json_get_int_or(&lost, json, "nodes_lost", 0, "event", NULL);
    if (lost > 0 && grow->whole == 0)
        grow->whole = event->attempt - 1;
    json_decref(json);
}

static int64_t find_node(const dt_plan *plan, const char *name)
{
    int64_t found = -1;

    for (int64_t i = 0; i < plan->node_count; i++)
        found = strcmp(plan->node_names[i], name) == 0 ? i : found;
    return found;
}

/* Returns whether the ranks of node `a` of one plan have the devices of node `b` of another. */
static bool same_ranks(const dt_plan *plan, int64_t a, const dt_plan *other, int64_t b)
{
    int64_t r = 0, s = 0;

    for (;; r++, s++) {
        while (r < plan->world_size && plan->ranks[r].node != a)
            r++;
        while (s < other->world_size && other->ranks[s].node != b)
            s++;
        if (r >= plan->world_size || s >= other->world_size)
            return r >= plan->world_size && s >= other->world_size;
        if (strcmp(plan->ranks[r].device, other->ranks[s].device) != 0)
            return false;
    }
}

static dt_status read_whole(dt_plan *out, dt_session *session, dt_error *err)
{
    return dt_plan_read(out,
                        dt_arena_printf(&session->arena, "%s/attempt-%lld/plan.json",
                                        session->folder, (long long)session->grow.whole),
                        &session->arena, err);
}

/* Keeps the nodes of the plan that `has` lacks, and their ranks. */
static void keep_missing(dt_plan *plan, const dt_plan *has)
{
    int64_t nodes = 0, ranks = 0;

    for (int64_t i = 0; i < plan->node_count; i++) {
        if (find_node(has, plan->node_names[i]) >= 0)
            continue;
        for (int64_t r = 0; r < plan->world_size; r++)
            if (plan->ranks[r].node == i && r >= ranks) {
                plan->ranks[ranks] = plan->ranks[r];
                plan->ranks[ranks++].node = nodes;
            }
        if (i < plan->recipe.nodes.count)
            plan->recipe.nodes.items[nodes] = plan->recipe.nodes.items[i];
        plan->node_names[nodes++] = plan->node_names[i];
    }
    plan->node_count = nodes;
    if (plan->recipe.nodes.count > nodes)
        plan->recipe.nodes.count = nodes;
    plan->world_size = ranks;
}

/* Finds where the run was on the node; false: nothing says so. */
static bool find_place(dt_missing_node *node, int64_t index)
{
    dt_session *session = node->session;
    const char *here =
        dt_arena_printf(&session->arena, "%s/attempt-%lld/node-%lld", session->folder,
                        (long long)session->grow.whole, (long long)index);
    bool restored;

    return dt_copies_place(&node->place, &restored, session->store, session->run,
                           session->grow.whole, index, here, &session->arena, NULL) == DT_OK;
}

static bool is_kept(const dt_plan *has, const dt_plan *whole)
{
    for (int64_t i = 0; i < has->node_count; i++) {
        int64_t at = find_node(whole, has->node_names[i]);

        if (at < 0 || !same_ranks(has, i, whole, at))
            return false; /* it was moved since */
    }
    return true;
}

void dt_grow_load(dt_session *session)
{
    dt_session_grow *grow = &session->grow;
    dt_plan has, whole;

    grow->places_lock = -1;
    if (session->settings.nodes_min == 0 || session->settings.is_command ||
        session->task_plan != NULL || session->plan_problem != NULL || grow->whole == 0 ||
        dt_plan_from_json(&has, session->plan, &session->arena, NULL) != DT_OK ||
        read_whole(&whole, session, NULL) != DT_OK || !is_kept(&has, &whole))
        return;
    grow->nodes =
        dt_arena_alloc_array(&session->arena, (size_t)whole.node_count, sizeof(grow->nodes[0]));
    for (int64_t i = 0; i < whole.node_count; i++) {
        dt_missing_node *node = &grow->nodes[grow->node_count];

        if (find_node(&has, whole.node_names[i]) >= 0)
            continue;
        *node = (dt_missing_node){.session = session, .name = whole.node_names[i]};
        if (!find_place(node, i)) {
            grow->node_count = 0;
            return;
        }
        grow->node_count++;
    }
}

/* --- at a save */

static bool may_grow(const dt_session *session)
{
    return session->state == DT_RUN_RUNNING && !session->verdict.stop_asked &&
           !dt_verdict_has_failed(&session->verdict) && session->failure == DT_OK;
}

static const char *names_of(dt_session *session)
{
    const char *names = "";

    for (int64_t i = 0; i < session->grow.node_count; i++)
        names = dt_arena_printf(&session->arena, "%s%s%s", names, i > 0 ? ", " : "",
                                session->grow.nodes[i].name);
    return names;
}

/* Whether the queue leaves the slots of the missing nodes to the run; then nobody else gets them until the lock is closed. */
static bool has_room(dt_session *session)
{
    dt_plan has, missing;

    if (session->queue == NULL)
        return true;
    if (dt_plan_from_json(&has, session->plan, &session->arena, NULL) != DT_OK ||
        read_whole(&missing, session, NULL) != DT_OK)
        return false;
    keep_missing(&missing, &has);
    return session->queue->has_room(&session->grow.places_lock, session->run, &missing);
}

static void grow_now(dt_session *session)
{
    const char *reason = dt_arena_printf(&session->arena, "grows to %s again", names_of(session));
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;

    if (!may_grow(session) || !has_room(session))
        return;
    DT_TRY(dt_grows_ask(session->folder, session->attempt, reason, &problem));
    dt_log_info("%s", reason);
    DT_TRY(dt_state_ask_stop(session, false, &problem));
out:
    if (st != DT_OK)
        dt_log_error("%s", problem.message); /* the next save tries again */
    dt_error_clear(&problem);
}

static void on_ended(void *context, int64_t code, int number)
{
    dt_missing_node *node = context;
    dt_session_grow *grow = &node->session->grow;

    node->process = NULL;
    grow->refused = grow->refused || code != 0 || number != 0;
    if (--grow->asked == 0 && !grow->refused)
        grow_now(node->session);
}

void dt_grow_at_save(dt_session *session)
{
    dt_session_grow *grow = &session->grow;
    double pause =
        dt_grow_pause(grow->count, dt_times()->grow_first_seconds, dt_times()->grow_most_seconds);

    if (grow->node_count == 0 || grow->asked > 0 || !may_grow(session) ||
        dt_session_now(session) - session->begun_seconds < pause)
        return;
    grow->refused = false;
    grow->asked = grow->node_count;
    for (int64_t i = 0; i < grow->node_count; i++)
        grow->nodes[i].process = dt_node_process_end_agent(
            &session->loop, grow->nodes[i].name, grow->nodes[i].place.agent,
            grow->nodes[i].place.folder, on_ended, &grow->nodes[i]);
}

void dt_grow_close(dt_session *session)
{
    dt_session_grow *grow = &session->grow;

    for (int64_t i = 0; i < grow->node_count; i++) {
        dt_node_process_abandon(grow->nodes[i].process);
        grow->nodes[i].process = NULL;
        json_decref(grow->nodes[i].place.paths);
        grow->nodes[i].place.paths = NULL;
    }
    if (grow->places_lock >= 0)
        close(grow->places_lock);
    grow->places_lock = -1;
}
