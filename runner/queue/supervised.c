/* supervised: what supervisors ask the queue about their runs. */
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/names.h"
#include "runner/queue/queue.h"
#include "store/store.h"

#define IN_A_ROW_MS 120000 /* between two refusals */

static bool has(const char *run)
{
    dt_queue_file file;
    dt_arena arena;
    bool found;

    dt_arena_init(&arena, 0);
    found = dt_queue_read(&file, &arena, NULL) == DT_OK && dt_queue_entry_find(&file, run) != NULL;
    dt_arena_release(&arena);
    return found;
}

static void note_refused(const char *run, const char *why)
{
    dt_queue_file file = {.lock = -1};
    int64_t now_ms = dt_clock_wall_ms();
    dt_error problem = DT_ERROR_INIT;
    dt_queue_entry *entry;
    dt_status st;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_queue_open(&file, &arena, &problem));
    entry = dt_queue_entry_find(&file, run);
    if (entry == NULL)
        goto out;
    entry->refusals = now_ms - entry->refused_ms < IN_A_ROW_MS ? entry->refusals + 1 : 1;
    entry->refused = why;
    entry->refused_ms = now_ms;
    DT_TRY(dt_queue_write(&file, &problem));
out:
    if (st != DT_OK)
        dt_log_warn("%s", problem.message);
    dt_error_clear(&problem);
    dt_queue_close(&file);
    dt_arena_release(&arena);
}

/* Whether the place is the one of the plan: a run that grows has its devices already. */
static bool is_place(const dt_order_run *run, const dt_plan *plan)
{
    bool same = run->verdict == DT_ORDER_START && run->part_count == plan->node_count;

    for (int64_t i = 0; i < run->part_count && same; i++) {
        uint64_t gpus = 0;

        for (int64_t r = 0; r < plan->world_size; r++) {
            int first = dt_device_gpu(plan->ranks[r].device);

            for (int64_t g = 0; g < plan->ranks[r].replicas && first >= 0; g++)
                if (plan->ranks[r].node == run->parts[i].need && first + g < DT_ORDER_GPUS_MOST)
                    gpus |= UINT64_C(1) << (first + g);
        }
        same = run->parts[i].gpus == gpus;
    }
    return same;
}

static bool has_room(int *lock, const char *run, const dt_plan *more)
{
    const dt_queue_newcomer newcomer = {.plan = more, .as = run};
    dt_error problem = DT_ERROR_INIT;
    dt_store *store = NULL;
    dt_queue_facts facts;
    bool room = false;
    dt_status st;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_queue_lock_places(lock, &arena, &problem));
    DT_TRY(dt_store_open(&store, NULL, &problem));
    DT_TRY(dt_queue_look(&facts, store, NULL, &newcomer, &arena, &problem));
    room = is_place(&facts.order.runs[facts.order.run_count - 1], more);
out:
    if (st != DT_OK && st != DT_ERR_BUSY)
        dt_log_warn("%s", problem.message);
    if (!room && *lock >= 0) {
        close(*lock);
        *lock = -1;
    }
    dt_error_clear(&problem);
    dt_store_close(store);
    dt_arena_release(&arena);
    return room;
}

const dt_supervisor_queue dt_queue_of_supervisors = {
    .has = has, .refused = note_refused, .has_room = has_room};
