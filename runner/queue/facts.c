/* facts: reads what the queue decides about: machines, what runs need and use, and what they wait for. */
#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/names.h"
#include "recipes/fields/nodes.h"
#include "runner/queue/queue.h"
#include "store/store.h"

enum { PLAN_MAX_BYTES = 256 << 20, ENTER_MS = 60000, REFUSED_MS = 500 };

typedef struct reading {
    dt_queue_facts *out;
    dt_order_machine *machines;
    int64_t machine_count, machine_room;
    const char *state; /* folder */
    dt_queue_plans *plans;
    dt_store *store;
    dt_arena *arena;
} reading;

/* --- machines */

static int64_t machine_of(reading *r, const char *node)
{
    const char *name = dt_node_is_here(node) ? "localhost" : node;
    dt_order_machine *added;

    for (int64_t i = 0; i < r->machine_count; i++)
        if (strcmp(r->machines[i].name, name) == 0)
            return i;
    r->machines = dt_arena_array_room(r->arena, r->machines, r->machine_count + 1, &r->machine_room,
                                      sizeof(r->machines[0]));
    added = &r->machines[r->machine_count];
    *added = (dt_order_machine){.name = dt_arena_strdup(r->arena, name)};
    return r->machine_count++;
}

static void take_machines(reading *r)
{
    for (int64_t i = 0; i < r->out->file.machine_count; i++) {
        const dt_queue_machine *machine = &r->out->file.machines[i];
        int64_t at = machine_of(r, machine->name);

        r->machines[at].gpus = machine->gpus;
        r->machines[at].cores = machine->cores;
        r->machines[at].shared = machine->shared;
        r->machines[at].closed = machine->drained;
    }
}

/* A machine that the file does not know has at least what a plan uses there. */
static void has_at_least(reading *r, int64_t machine, int64_t gpus, int64_t cores)
{
    dt_order_machine *of = &r->machines[machine];

    if (dt_queue_machine_find(&r->out->file, of->name) != NULL)
        return;
    of->gpus = gpus > of->gpus ? gpus : of->gpus;
    of->cores = cores > of->cores ? cores : of->cores;
}

/* --- plans */

/* The parts of a plan that placing needs: parsing all of it takes most of the time of a decision. */
typedef struct outline {
    int64_t node_count;
    const char **names;           /* by node, as the next ones */
    int64_t *machine, *first_gpu; /* machine: in this look; first_gpu: of the recipe */
    uint64_t *gpus;               /* by node: mask */
    int64_t *cores;
    bool preemptible;
} outline;

static void outline_node(outline *out, int64_t node, const char *name, const char *item,
                         dt_arena *arena)
{
    dt_node_spec spec;

    out->names[node] = dt_arena_strdup(arena, name);
    out->first_gpu[node] =
        item != NULL && dt_node_spec_parse(&spec, item, arena, NULL) == DT_OK ? spec.first_gpu : 0;
    out->gpus[node] = 0;
    out->cores[node] = 0;
}

static void outline_rank(outline *out, const json_t *rank)
{
    int64_t node = json_integer_value(json_object_get(rank, "node"));
    int64_t replicas = json_integer_value(json_object_get(rank, "replicas"));
    int64_t threads = json_integer_value(json_object_get(rank, "threads"));
    const char *device = json_string_value(json_object_get(rank, "device"));
    int64_t gpu = device != NULL ? dt_device_gpu(device) : -1;

    if (node < 0 || node >= out->node_count)
        return;
    if (gpu < 0)
        out->cores[node] += replicas * threads;
    for (int64_t i = 0; gpu >= 0 && i < replicas && gpu + i < DT_ORDER_GPUS_MOST; i++)
        out->gpus[node] |= UINT64_C(1) << (gpu + i);
}

/* Programs without checkpoints would start again from the beginning. */
static bool may_be_preempted(const json_t *recipe)
{
    const char *task = json_string_value(json_object_get(recipe, "task"));
    const json_t *preempt = json_object_get(recipe, "preempt");
    const json_t *checkpoints = json_object_get(recipe, "checkpoints");

    if (json_is_false(preempt))
        return false;
    return task == NULL || strcmp(task, "command") != 0 ||
           json_string_length(json_object_get(checkpoints, "path")) > 0;
}

static dt_status outline_plan(outline *out, const json_t *plan, const char *path, dt_arena *arena,
                              dt_error *err)
{
    json_t *nodes, *ranks, *rank, *node;
    const json_t *items;
    dt_status st = DT_OK;
    size_t i, count;

    *out = (outline){0};
    DT_TRY(dt_json_get_array(&nodes, plan, "nodes", path, err));
    DT_TRY(dt_json_get_array(&ranks, plan, "ranks", path, err));
    items = json_object_get(json_object_get(plan, "recipe"), "nodes");
    count = json_array_size(nodes);
    out->node_count = (int64_t)count;
    out->names = dt_arena_alloc_array(arena, count + 1, sizeof(out->names[0]));
    out->first_gpu = dt_arena_alloc_array(arena, count + 1, sizeof(out->first_gpu[0]));
    out->gpus = dt_arena_alloc_array(arena, count + 1, sizeof(out->gpus[0]));
    out->cores = dt_arena_alloc_array(arena, count + 1, sizeof(out->cores[0]));
    json_array_foreach(nodes, i, node) {
        const char *name;

        DT_TRY(dt_json_get_string(&name, node, "name", path, err));
        outline_node(out, (int64_t)i, name, json_string_value(json_array_get(items, i)), arena);
    }
    json_array_foreach(ranks, i, rank) {
        outline_rank(out, rank);
    }
    out->preemptible = may_be_preempted(json_object_get(plan, "recipe"));
out:
    return st;
}

/* --- plans that were read before */

typedef struct known {
    const char *key; /* run, attempt, and whether it waits */
    outline plan;
} known;

struct dt_queue_plans {
    void *root; /* of tsearch */
    int64_t count;
    dt_arena arena;
};

enum { PLANS_MOST = 20000 }; /* then all are forgotten, and those that are needed are read again */

static int by_key(const void *a, const void *b)
{
    return strcmp(((const known *)a)->key, ((const known *)b)->key);
}

static void leave(void *node)
{
    (void)node; /* in the arena */
}

static void forget_plans(dt_queue_plans *plans)
{
    tdestroy(plans->root, leave);
    plans->root = NULL;
    plans->count = 0;
    dt_arena_reset(&plans->arena);
}

dt_queue_plans *dt_queue_plans_open(void)
{
    dt_queue_plans *plans = dt_calloc(1, sizeof(*plans));

    dt_arena_init(&plans->arena, 0);
    return plans;
}

void dt_queue_plans_close(dt_queue_plans *plans)
{
    if (plans == NULL)
        return;
    forget_plans(plans);
    dt_arena_release(&plans->arena);
    free(plans);
}

static dt_status know_plan(const outline **out, const dt_run *run, reading *r, dt_error *err)
{
    dt_arena *arena = r->plans != NULL ? &r->plans->arena : r->arena;
    known wanted = {.key = dt_arena_printf(r->arena, "%s %lld %d", run->id, (long long)run->attempt,
                                           run->state == DT_RUN_WAITING)};
    const char *path = dt_arena_printf(r->arena, "%s/runs/%s/attempt-%lld/plan.json", r->state,
                                       run->id, (long long)run->attempt);
    known *const *found = r->plans != NULL ? tfind(&wanted, &r->plans->root, by_key) : NULL, *added;
    json_t *plan = NULL;
    dt_status st = DT_OK;

    if (found != NULL) {
        *out = &(*found)->plan;
        return DT_OK;
    }
    DT_TRY(dt_json_read(&plan, path, PLAN_MAX_BYTES, err));
    added = dt_arena_alloc(arena, sizeof(*added));
    DT_TRY(outline_plan(&added->plan, plan, path, arena, err));
    *out = &added->plan;
    if (r->plans == NULL)
        goto out;
    added->key = dt_arena_strdup(arena, wanted.key);
    (void)tsearch(added, &r->plans->root, by_key); /* without memory it is read again */
    r->plans->count++;
out:
    json_decref(plan);
    return st;
}

static void find_machines(outline *io, reading *r)
{
    io->machine =
        dt_arena_alloc_array(r->arena, (size_t)io->node_count + 1, sizeof(io->machine[0]));
    for (int64_t i = 0; i < io->node_count; i++)
        io->machine[i] = machine_of(r, io->names[i]);
}

/* The outline of the run's plan, with the machines of this look. */
static dt_status read_outline(outline *out, const dt_run *run, reading *r, dt_error *err)
{
    const outline *plan;
    dt_status st;

    DT_TRY(know_plan(&plan, run, r, err));
    *out = *plan;
    find_machines(out, r);
out:
    return st;
}

/* --- one run */

/* A run whose place was not free after all is not tried again at once: its machine may be one that cannot be watched. Each
 * refusal in a row doubles the pause. */
static int64_t refused_until(const dt_queue_entry *entry, int64_t now_ms)
{
    int64_t pause_ms = REFUSED_MS << (entry->refusals < 6 ? entry->refusals : 6);
    bool recent = entry->refused_ms > now_ms - pause_ms && entry->refused_ms <= now_ms;

    return recent ? entry->refused_ms + pause_ms : 0; /* a clock that was set back does not count */
}

static int64_t highest(uint64_t mask)
{
    return mask == 0 ? 0 : 64 - __builtin_clzll(mask);
}

static void take_parts(dt_order_run *run, const outline *plan, reading *r)
{
    run->parts =
        dt_arena_alloc_array(r->arena, (size_t)plan->node_count + 1, sizeof(run->parts[0]));
    run->part_count = plan->node_count;
    for (int64_t i = 0; i < plan->node_count; i++) {
        run->parts[i] = (dt_order_part){
            .machine = plan->machine[i], .gpus = plan->gpus[i], .cores = plan->cores[i]};
        has_at_least(r, plan->machine[i], highest(plan->gpus[i]), plan->cores[i]);
    }
}

/* A run that wants more processors of a machine than it has gets all of them, as it does alone. */
static void limit_cores(dt_order_need *needs, int64_t at, const reading *r)
{
    int64_t left = r->machines[needs[at].machine].cores;

    for (int64_t i = 0; i < at; i++)
        left -= needs[i].machine == needs[at].machine ? needs[i].cores : 0;
    left = left > 0 ? left : 0;
    needs[at].cores = needs[at].cores < left ? needs[at].cores : left;
}

static int64_t first_gpu_of(const dt_queue_entry *entry, const outline *plan, int64_t node,
                            reading *r)
{
    const char *item = dt_queue_item_of(entry, plan->names[node], NULL, r->arena);
    dt_node_spec spec;

    return item != NULL && dt_node_spec_parse(&spec, item, r->arena, NULL) == DT_OK
               ? spec.first_gpu
               : plan->first_gpu[node];
}

static void take_needs(dt_order_run *run, const dt_queue_entry *entry, const outline *plan,
                       reading *r)
{
    dt_order_need *needs =
        dt_arena_alloc_array(r->arena, (size_t)plan->node_count + 1, sizeof(needs[0]));

    run->needs = needs;
    run->need_count = plan->node_count;
    for (int64_t i = 0; i < plan->node_count; i++) {
        int64_t last = highest(plan->gpus[i]);
        int64_t first = last > 0 ? __builtin_ctzll(plan->gpus[i]) : 0;

        needs[i] = (dt_order_need){.machine = plan->machine[i],
                                   .gpus = last - first,
                                   .from_gpu = last > 0 ? first_gpu_of(entry, plan, i, r) : 0,
                                   .cores = plan->cores[i]};
        has_at_least(r, plan->machine[i], last, plan->cores[i]);
        limit_cores(needs, i, r);
    }
}

static dt_status after_of(dt_order_after *out, const char *ids, reading *r, dt_error *err)
{
    char *words = dt_arena_strdup(r->arena, ids), *rest = words;
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;
    dt_run run;

    *out = DT_AFTER_GOOD;
    for (char *id; (id = strsep(&rest, " ")) != NULL && *out != DT_AFTER_FAILED;) {
        if (id[0] == '\0')
            continue;
        st = dt_store_run_find(r->store, &run, id, r->arena, &problem);
        if (st != DT_OK && st != DT_ERR_NOT_FOUND)
            DT_THROW(err, st, "%s", problem.message);
        if (st != DT_OK || strcmp(run.id, id) != 0 ||
            (dt_run_state_is_terminal(run.state) && run.state != DT_RUN_FINISHED))
            *out = DT_AFTER_FAILED;
        else if (run.state != DT_RUN_FINISHED)
            *out = DT_AFTER_OPEN;
        st = DT_OK;
        dt_error_clear(&problem);
    }
out:
    dt_error_clear(&problem);
    return st;
}

/* Expected milliseconds until a run is done, by its mean speed so far, or by what its launch expected; 0: unknown. */
static int64_t left_of(const dt_run *run, const dt_queue_entry *entry, int64_t now_ms)
{
    int64_t done = run->step - run->parent_step, left = run->steps_total - run->step;
    double elapsed_ms = dt_run_elapsed_seconds(run, now_ms) * 1000; /* NaN: never started */

    if (run->steps_total > 0 && done > 0 && elapsed_ms > 0)
        return (int64_t)(elapsed_ms * (double)left / (double)done) + 1;
    if (entry == NULL || entry->lasts_ms <= 0)
        return 0;
    return elapsed_ms < (double)entry->lasts_ms ? entry->lasts_ms - (int64_t)elapsed_ms
           : isnan(elapsed_ms)                  ? entry->lasts_ms
                                                : 1;
}

static dt_status take_run(dt_order_run *out, const dt_run *run, reading *r, dt_error *err)
{
    const dt_queue_entry *entry = dt_queue_entry_find(&r->out->file, run->id);
    int64_t now_ms = dt_clock_wall_ms();
    dt_status st = DT_OK;
    outline plan;

    *out = (dt_order_run){.id = run->id,
                          .waits = run->state == DT_RUN_WAITING,
                          .stopping = run->state == DT_RUN_STOPPING,
                          .place = run->created_ms,
                          .started_ms = run->started_ms,
                          .group = -1};
    if (entry != NULL) {
        out->priority = entry->priority;
        out->place = entry->place;
        out->held = entry->held;
        out->not_before_ms = entry->not_before_ms;
        if (out->waits && refused_until(entry, now_ms) > out->not_before_ms)
            out->not_before_ms = refused_until(entry, now_ms);
        out->guaranteed_until_ms =
            run->started_ms +
            (r->out->file.guarantee_ms << (entry->preemptions < 20 ? entry->preemptions : 20));
        DT_TRY(after_of(&out->after, entry->after, r, err));
    }
    if (entry == NULL && out->waits) /* its launch is about to add it, or died */
        out->not_before_ms = run->created_ms + ENTER_MS;
    if (read_outline(&plan, run, r, NULL) != DT_OK)
        goto out; /* of a run of another version, or without a plan: it uses nothing that is known */
    out->preemptible = entry != NULL && plan.preemptible && run->state == DT_RUN_RUNNING;
    if (!out->waits) {
        take_parts(out, &plan, r);
        out->end_ms = now_ms + left_of(run, entry, now_ms);
        out->end_ms = out->end_ms > now_ms ? out->end_ms : 0;
        goto out;
    }
    if (entry != NULL && entry->units > 0) {
        out->units = entry->units;
        out->unit_gpus = entry->unit_gpus;
        out->unit_cores = entry->unit_cores;
    } else {
        take_needs(out, entry, &plan, r);
    }
    out->lasts_ms = left_of(run, entry, now_ms);
out:
    return st;
}

/* What the run of a plan needs that is in no entry: a newcomer. */
static dt_status take_newcomer(dt_order_run *io, const dt_plan *plan, reading *r, dt_error *err)
{
    json_t *json = dt_plan_to_json(plan);
    dt_status st = DT_OK;
    outline of;

    DT_TRY(outline_plan(&of, json, "the plan", r->arena, err));
    find_machines(&of, r);
    take_needs(io, NULL, &of, r);
out:
    json_decref(json);
    return st;
}

/* --- GPUs that others use */

/* Whether the queue may not give out the GPU: an active run of ours uses it as its plan says. */
static bool is_foreign(const dt_queue_gpu *gpu, const reading *r)
{
    dt_run run;

    if (strcmp(gpu->owner, dt_run_claim_owner(r->arena)) != 0)
        return true;
    if (dt_store_run_find(r->store, &run, gpu->run, r->arena, NULL) != DT_OK)
        return true;
    return dt_run_state_is_terminal(run.state) && run.exit_code == DT_EXIT_LEFT;
}

static void take_gpus(reading *r)
{
    dt_queue_facts *out = r->out;
    int64_t count, kept = 0;

    dt_queue_gpus_read(&out->gpus, &count, r->arena);
    for (int64_t i = 0; i < count; i++) {
        const dt_queue_gpu gpu = out->gpus[i];

        if (!is_foreign(&gpu, r))
            continue;
        r->machines[machine_of(r, gpu.machine)].foreign |= UINT64_C(1) << gpu.gpu;
        out->gpus[kept++] = gpu;
    }
    out->gpu_count = kept;
}

dt_status dt_queue_would_fit(bool *fits, const char **needs, const dt_queue_file *file,
                             const dt_queue_wish *wish, const dt_plan *plan, dt_arena *arena,
                             dt_error *err)
{
    dt_queue_facts facts = {.file = *file};
    dt_order_run run = {.id = "", .waits = true};
    reading r = {.out = &facts, .arena = arena};
    dt_status st = DT_OK;

    take_machines(&r);
    run.units = wish->units;
    run.unit_gpus = wish->unit_gpus;
    run.unit_cores = wish->unit_cores;
    if (wish->units == 0)
        DT_TRY(take_newcomer(&run, plan, &r, err));
    facts.order = (dt_order){.machines = r.machines, .machine_count = r.machine_count};
    *fits = dt_order_fits_alone(&facts.order, &run, true, arena);
    *needs = dt_queue_needs(&facts.order, &run, arena);
out:
    return st;
}

dt_status dt_queue_look(dt_queue_facts *out, dt_store *store, dt_queue_plans *plans,
                        const dt_queue_newcomer *newcomer, dt_arena *arena, dt_error *err)
{
    reading r = {.out = out, .store = store, .plans = plans, .arena = arena};
    dt_status st = DT_OK;
    int64_t count;

    *out = (dt_queue_facts){0};
    if (plans != NULL && plans->count > PLANS_MOST)
        forget_plans(plans);
    DT_TRY(dt_dir_path(&r.state, DT_DIR_STATE, arena, err));
    DT_TRY(dt_queue_read(&out->file, arena, err));
    DT_TRY(dt_store_run_list_since(store, &out->runs, &count, INT64_MAX, arena, err));
    take_machines(&r);
    out->order = (dt_order){
        .run_count = count,
        .strict = out->file.strict,
        .now_ms = dt_clock_wall_ms(),
        .runs = dt_arena_alloc_array(arena, (size_t)count + 1, sizeof(out->order.runs[0]))};
    for (int64_t i = 0; i < count; i++)
        DT_TRY(take_run(&out->order.runs[i], &out->runs[i], &r, err));
    if (newcomer != NULL) {
        dt_order_run *last = &out->order.runs[out->order.run_count++];

        *last = (dt_order_run){
            .id = "", .waits = true, .place = INT64_MAX, .group = -1, .wanted = newcomer->wanted};
        if (newcomer->as != NULL && dt_queue_entry_find(&out->file, newcomer->as) != NULL) {
            last->priority = dt_queue_entry_find(&out->file, newcomer->as)->priority;
            last->place = dt_queue_entry_find(&out->file, newcomer->as)->place;
        }
        DT_TRY(take_newcomer(last, newcomer->plan, &r, err));
    }
    take_gpus(&r);
    out->order.machines = r.machines;
    out->order.machine_count = r.machine_count;
    dt_order_decide(&out->order, arena);
out:
    return st;
}
