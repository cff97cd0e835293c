#include "runner/sweep/sweep_int.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/names.h"
#include "recipes/fields/nodes.h"
#include "recipes/plan/plan.h"
#include "recipes/read/reader.h"
#include "runner/cli/read_recipe.h"
#include "runner/launch/nodes.h"

/* State of the search for one point's place. */
typedef struct search {
    dt_places *places;
    const dt_sweep_group *group;
    dt_store *store;
    dt_arena arena;
    dt_preflight flight;
    dt_room_machine *machines; /* [node_count], by the index of the first node on each machine */
    dt_room_node *nodes;       /* [node_count] */
    int64_t wanted;
} search;

/* True if both names are the same machine: all names of this machine are. */
static bool is_same_machine(const char *a, const char *b)
{
    return strcmp(a, b) == 0 || (dt_node_is_here(a) && dt_node_is_here(b));
}

/* --- what nodes have */

static int64_t *find_known(const dt_places *places, const char *name)
{
    for (int64_t i = 0; i < places->count; i++)
        if (strcmp(places->known[i].name, name) == 0)
            return &places->known[i].gpus;
    return NULL;
}

static void note(dt_places *io, const char *name, int64_t gpus)
{
    io->known =
        dt_arena_array_room(io->arena, io->known, io->count + 1, &io->room, sizeof(io->known[0]));
    io->known[io->count++] = (dt_known_place){dt_arena_strdup(io->arena, name), gpus};
}

/* Asks the nodes for their GPUs. A node that cannot be asked has none; the launch then reports
 * its problem. */
static void ask_nodes(search *of)
{
    const dt_plan *plan = &of->flight.plan;
    dt_probe_report report = {0};
    bool known = true;

    for (int64_t i = 0; i < plan->node_count; i++)
        known = known && (dt_node_is_here(plan->node_names[i]) ||
                          find_known(of->places, plan->node_names[i]) != NULL);
    if (known)
        return;
    (void)dt_nodes_probe(&report, &of->flight, false, &of->arena, NULL);
    for (int64_t i = 0; i < plan->node_count && i < report.count; i++) {
        const json_t *facts = report.probes[i].facts;

        if (facts != NULL && !dt_node_is_here(plan->node_names[i]) &&
            find_known(of->places, plan->node_names[i]) == NULL)
            note(of->places, plan->node_names[i],
                 (int64_t)json_array_size(json_object_get(facts, "devices")));
    }
    dt_probe_release(&report);
}

static int64_t gpus_of(const dt_places *places, const char *name)
{
    const int64_t *known = find_known(places, name);

    return dt_node_is_here(name) ? dt_placement_gpus_here() : known != NULL ? *known : -1;
}

/* --- what the point needs */

static void need(dt_room_node *node, const dt_plan_rank *rank)
{
    int64_t gpu = dt_device_gpu(rank->device);

    if (gpu >= node->from && gpu + rank->replicas - node->from > node->needs)
        node->needs = gpu + rank->replicas - node->from;
}

static dt_status lay_out(search *of, dt_error *err)
{
    dt_plan *plan = &of->flight.plan;
    size_t count = (size_t)plan->node_count;
    int64_t *found = dt_arena_alloc_array(&of->arena, count, sizeof(*found));
    dt_status st = DT_OK;

    of->machines = dt_arena_alloc_array(&of->arena, count, sizeof(of->machines[0]));
    of->nodes = dt_arena_alloc_array(&of->arena, count, sizeof(of->nodes[0]));
    for (int64_t i = 0; i < plan->node_count; i++) {
        int64_t first = 0;
        dt_node_spec spec;

        found[i] = gpus_of(of->places, plan->node_names[i]);
        while (!is_same_machine(plan->node_names[first], plan->node_names[i]))
            first++;
        DT_TRY(dt_node_spec_parse(&spec, plan->recipe.nodes.items[i], &of->arena, err));
        of->machines[i] = (dt_room_machine){.gpus = found[i]};
        of->nodes[i] = (dt_room_node){.machine = &of->machines[first], .from = spec.first_gpu};
    }
    DT_TRY(dt_plan_use_devices(plan, found, &of->arena, err));
    for (int64_t i = 0; i < plan->world_size; i++)
        need(&of->nodes[plan->ranks[i].node], &plan->ranks[i]);
out:
    return st;
}

/* *shared: it shares only processors with other runs, or its nodes are not known here. */
static dt_status read_needs(bool *shared, search *of, int64_t index, dt_error *err)
{
    const char *path =
        dt_arena_printf(&of->arena, "%s/point-%lld.yaml", of->group->folder, (long long)index + 1);
    dt_recipe_source source = {0};
    dt_recipe recipe;
    dt_status st = DT_OK;

    *shared = true;
    DT_TRY(dt_recipe_source_read(&source, path, &of->arena, err));
    source.find_run = dt_find_weights;
    DT_TRY(dt_recipe_read(&recipe, &source, &of->arena, err));
    if (dt_node_is_slurm(recipe.nodes.items[0]))
        goto out;
    DT_TRY(dt_preflight_without_data(&of->flight, &recipe, &of->arena, err));
    ask_nodes(of);
    DT_TRY(lay_out(of, err));
    of->wanted = of->group->nodes > 0 && of->group->nodes < recipe.nodes.count ? of->group->nodes
                                                                               : recipe.nodes.count;
    *shared = of->wanted == recipe.nodes.count;
    for (int64_t i = 0; i < recipe.nodes.count; i++)
        *shared = *shared && of->nodes[i].needs == 0;
out:
    return st;
}

/* --- what other runs use */

static void use(search *of, const dt_plan *plan, bool ours)
{
    for (int64_t r = 0; r < plan->world_size; r++) {
        const dt_plan_rank *rank = &plan->ranks[r];
        int64_t gpu = dt_device_gpu(rank->device);

        for (int64_t i = 0; i < of->flight.plan.node_count; i++) {
            dt_room_machine *machine = of->nodes[i].machine;

            if (!is_same_machine(of->flight.plan.node_names[i], plan->node_names[rank->node]))
                continue;
            machine->busy = machine->busy || ours;
            for (int64_t j = 0; gpu >= 0 && j < rank->replicas && gpu + j < DT_ROOM_GPUS_MOST; j++)
                machine->used[gpu + j] = true;
        }
    }
}

static dt_status look_at_others(search *of, dt_error *err)
{
    const char *state, *path;
    dt_status st = DT_OK;
    int64_t count;
    dt_run *runs;
    dt_plan plan;

    DT_TRY(dt_dir_path(&state, DT_DIR_STATE, &of->arena, err));
    DT_TRY(dt_store_run_list_since(of->store, &runs, &count, INT64_MAX, &of->arena, err));
    for (int64_t i = 0; i < count; i++) {
        path = dt_arena_printf(&of->arena, "%s/runs/%s/attempt-%lld/plan.json", state, runs[i].id,
                               (long long)runs[i].attempt);
        if (dt_plan_read(&plan, path, &of->arena, NULL) == DT_OK)
            use(of, &plan, strcmp(runs[i].group, of->group->name) == 0);
    }
out:
    return st;
}

static bool has_room_alone(const search *of)
{
    int64_t count = of->flight.plan.node_count;

    for (int64_t i = 0; i < count; i++)
        of->machines[i] = (dt_room_machine){.gpus = of->machines[i].gpus};
    return dt_room_find(of->nodes, count, of->wanted);
}

/* --- the answer */

/* Writes the nodes of the place; NULL if they are as in the recipe, except for a resumed run,
 * which may have been elsewhere. */
static void write_nodes(dt_place *out, const search *of, bool again)
{
    const dt_string_list *items = &of->flight.plan.recipe.nodes;
    bool same = !again;
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_strbuf_add_str(&text, "nodes=[");
    for (int64_t i = 0; i < items->count; i++) {
        const dt_room_node *node = &of->nodes[i];

        same = same && node->chosen && (node->needs == 0 || node->first == node->from);
        if (!node->chosen)
            continue;
        if (text.data[text.length - 1] == '"')
            dt_strbuf_add_str(&text, ", ");
        dt_strbuf_add_fmt(&text, "\"%s\"",
                          dt_node_item_from(items->items[i], node->needs > 0 ? node->first : 0,
                                            of->places->arena));
    }
    dt_strbuf_add_str(&text, "]");
    if (!same)
        out->nodes = dt_arena_strdup(of->places->arena, text.data);
    dt_strbuf_release(&text);
}

static dt_status find(dt_place *out, search *of, bool again, dt_error *err)
{
    int64_t count = of->flight.plan.node_count;
    dt_status st = DT_OK;
    const char *state, *path;

    DT_TRY(dt_dir_path(&state, DT_DIR_STATE, &of->arena, err));
    path = dt_arena_printf(&of->arena, "%s/sweeps.lock", state);
    out->there = dt_file_lock(&out->lock, path, NULL) == DT_OK;
    if (!out->there)
        goto out;
    DT_TRY(look_at_others(of, err));
    if (dt_room_find(of->nodes, count, of->wanted))
        write_nodes(out, of, again);
    else
        out->there = !has_room_alone(of);
out:
    return st;
}

dt_status dt_place_take(dt_place *out, dt_places *places, const dt_sweep_group *group,
                        int64_t index, dt_store *store, dt_error *err)
{
    search of = {.places = places, .group = group, .store = store};
    dt_status st = DT_OK;
    bool shared;

    *out = (dt_place){.there = true, .lock = -1};
    dt_arena_init(&of.arena, 0);
    if (read_needs(&shared, &of, index, NULL) == DT_OK && !shared)
        DT_TRY(find(out, &of, group->points[index].again, err));
out:
    if (!out->there || st != DT_OK)
        dt_place_let_go(out);
    dt_arena_release(&of.arena);
    return st;
}

void dt_place_let_go(dt_place *place)
{
    if (place->lock >= 0)
        close(place->lock);
    place->lock = -1;
}
