#include "runner/supervisor/cleanup/cleanup.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "runner/supervisor/connection/node_link.h"
#include "runner/supervisor/folder/attempt_record.h"
#include "runner/times.h"

typedef struct lost_node {
    dt_reaper *reaper;
    int64_t attempt;
    dt_node row;
    dt_node_layout place;
    dt_node_process *process; /* process that ends the ranks; NULL: not running */
    double begun_seconds;     /* start of the process */
    bool done;
} lost_node;

struct dt_reaper {
    dt_reaper_setup setup;
    dt_reaper_calls calls;
    void *context;
    dt_arena arena;
    lost_node *nodes;
    int64_t count, capacity;
    enum { ON, LAST, OVER } stage; /* LAST: the end of the run waits for these tries */
    uv_timer_t timer;
};

static bool is_all_done(const dt_reaper *reaper)
{
    bool done = true;

    for (int64_t i = 0; i < reaper->count; i++)
        done = done && reaper->nodes[i].done;
    return done;
}

/* --- one try */

static void on_ended(void *context, int64_t code, int number)
{
    lost_node *node = context;
    dt_reaper *reaper = node->reaper;

    node->process = NULL;
    if (code == 0 && number == 0) {
        node->done = true;
        node->row.state = "released";
        dt_log_info("%s: nothing of attempt %lld is left there", node->row.name,
                    (long long)node->attempt);
        reaper->calls.reaped(reaper->context, node->attempt, &node->row);
    }
    if (reaper->stage == LAST && !reaper->calls.is_over(reaper->context))
        reaper->calls.settled(reaper->context);
}

static void try_one(lost_node *node)
{
    if (node->process != NULL || node->done)
        return;
    node->begun_seconds = dt_clock_monotonic_seconds();
    node->process =
        dt_node_process_end_agent(node->reaper->setup.loop, node->row.name, node->place.agent,
                                  node->place.folder, on_ended, node);
}

static bool had_its_time(const lost_node *node)
{
    return node->reaper->stage == LAST ||
           dt_clock_monotonic_seconds() - node->begun_seconds > dt_times()->end_most_seconds;
}

static void on_time(uv_timer_t *timer)
{
    dt_reaper *reaper = timer->data;

    for (int64_t i = 0; i < reaper->count; i++)
        if (had_its_time(&reaper->nodes[i]))
            dt_node_process_kill(reaper->nodes[i].process);
    for (int64_t i = 0; i < reaper->count && reaper->stage == ON; i++)
        try_one(&reaper->nodes[i]);
    if (reaper->stage == LAST) {
        reaper->stage = OVER;
        reaper->calls.settled(reaper->context);
    }
}

/* --- the lost nodes */

static dt_status add(dt_reaper *reaper, int64_t attempt, const dt_node *row, dt_error *err)
{
    const dt_reaper_setup *setup = &reaper->setup;
    lost_node *node = &reaper->nodes[reaper->count];
    const char *here = dt_arena_printf(&reaper->arena, "%s/attempt-%lld/node-%lld", setup->folder,
                                       (long long)attempt, (long long)row->node);
    dt_error problem = DT_ERROR_INIT;
    bool restored;
    dt_status st;

    *node = (lost_node){.reaper = reaper, .attempt = attempt, .row = *row};
    st = dt_copies_place(&node->place, &restored, setup->store, setup->run, attempt, row->node,
                         here, &reaper->arena, &problem);
    if (st == DT_OK)
        reaper->count++;
    else if (st != DT_ERR_NOT_FOUND) /* without a place nothing was started */
        dt_log_warn("%s", problem.message);
    return DT_OK;
}

static dt_status add_attempt(dt_reaper *reaper, int64_t attempt, dt_error *err)
{
    int64_t count;
    dt_node *rows;
    dt_status st;

    DT_TRY(dt_store_node_list(reaper->setup.store, &rows, &count, reaper->setup.run, attempt,
                              &reaper->arena, err));
    reaper->nodes = dt_array_room(reaper->nodes, reaper->count + count, &reaper->capacity,
                                  sizeof(*reaper->nodes));
    for (int64_t i = 0; i < count; i++)
        if (strcmp(rows[i].state, "lost") == 0)
            DT_TRY(add(reaper, attempt, &rows[i], err));
out:
    return st;
}

dt_status dt_reaper_open(dt_reaper **out, const dt_reaper_setup *setup,
                         const dt_reaper_calls *calls, void *context, dt_error *err)
{
    dt_reaper *reaper = dt_calloc(1, sizeof(*reaper));
    dt_status st = DT_OK;

    *out = reaper;
    reaper->setup = *setup;
    reaper->calls = *calls;
    reaper->context = context;
    dt_arena_init(&reaper->arena, 0);
    uv_timer_init(setup->loop, &reaper->timer);
    reaper->timer.data = reaper;
    for (int64_t attempt = 1; attempt < setup->attempt && st == DT_OK; attempt++)
        st = add_attempt(reaper, attempt, err);
    return st;
}

void dt_reaper_begin(dt_reaper *reaper)
{
    if (reaper->count > 0)
        uv_timer_start(&reaper->timer, on_time, dt_times_ms(dt_times()->reap_first_seconds),
                       dt_times_ms(dt_times()->reap_again_seconds));
}

/* --- the end */

bool dt_reaper_is_done(dt_reaper *reaper)
{
    if (reaper->stage == OVER || is_all_done(reaper))
        return true;
    if (reaper->stage == ON) {
        reaper->stage = LAST;
        for (int64_t i = 0; i < reaper->count; i++)
            try_one(&reaper->nodes[i]);
        uv_timer_start(&reaper->timer, on_time, dt_times_ms(dt_times()->reap_last_seconds), 0);
    }
    for (int64_t i = 0; i < reaper->count; i++)
        if (reaper->nodes[i].process != NULL)
            return false;
    return true; /* every node was tried */
}

void dt_reaper_list_unreached(const dt_reaper *reaper, void (*report)(void *context, const char *text),
                              void *context)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    for (int64_t i = 0; i < reaper->count; i++) {
        if (reaper->nodes[i].done)
            continue;
        dt_strbuf_reset(&text);
        dt_strbuf_add_fmt(&text, "node %s, lost in attempt %lld, cannot be asked about its ranks",
                          reaper->nodes[i].row.name, (long long)reaper->nodes[i].attempt);
        report(context, text.data);
    }
    dt_strbuf_release(&text);
}

void dt_reaper_close(dt_reaper *reaper)
{
    if (reaper == NULL)
        return;
    for (int64_t i = 0; i < reaper->count; i++) {
        dt_node_process_abandon(reaper->nodes[i].process);
        reaper->nodes[i].process = NULL;
    }
    uv_close((uv_handle_t *)&reaper->timer, NULL);
}

void dt_reaper_free(dt_reaper *reaper)
{
    if (reaper == NULL)
        return;
    for (int64_t i = 0; i < reaper->count; i++)
        json_decref(reaper->nodes[i].place.paths);
    free(reaper->nodes);
    dt_arena_release(&reaper->arena);
    free(reaper);
}
