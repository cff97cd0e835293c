#include "runner/supervisor/collect/collection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "runner/node_setup/transfer/saved.h"
#include "runner/times.h"

#define TRIES        20
#define TRIES_ENDING 3
#define NAME_SIZE    128
#define LOOK_MS      2500 /* most between two looks of rank 0 at the program's files */

typedef struct fetch {
    struct fetch *next;
    dt_checkpoint_fetcher *fetcher;
    dt_message message; /* event `checkpoint`; owns a reference */
    int tries;

    uv_work_t work; /* fields below are used by the thread */
    char name[NAME_SIZE], digest[NAME_SIZE];
    int64_t
        quiet_ms; /* files of a command's checkpoint on other nodes must not have changed for this long */
    bool ending; /* no rank runs any more */
    char kept_as[DT_CHECKPOINT_NAME_SIZE];
    const dt_checkpoint_fetcher_setup *setup;
    dt_node_layout *places;
    atomic_bool cancelled;
    dt_status st;
    dt_error err;
} fetch;

struct dt_checkpoint_fetcher {
    dt_checkpoint_fetcher_setup setup;
    dt_checkpoint_fetcher_calls calls;
    void *context;
    fetch *first; /* checkpoints to fetch, oldest first */
    bool running; /* a thread is fetching the first */
    uv_timer_t again;
};

/* --- on the thread */

static void bring_saved(fetch *one)
{
    dt_saved_request request = {.layouts = one->places,
                                .count = one->setup->node_count,
                                .run_folder = one->setup->folder,
                                .plan = one->setup->plan,
                                .saved = {.path = dt_message_string(&one->message, "directory"),
                                          .step = dt_message_int(&one->message, "step", 0),
                                          .attempt = one->setup->attempt,
                                          .time_ms = one->message.time_ms},
                                .quiet_ms = one->quiet_ms,
                                .cancelled = &one->cancelled};

    one->st = dt_nodes_fetch_saved(&request, &one->err);
    if (one->st == DT_ERR_TIMEOUT && one->ending)
        one->st = DT_ERR_CORRUPT; /* nobody writes the rest */
}

static void bring(uv_work_t *work)
{
    fetch *one = work->data;
    dt_gather_request request = {.layouts = one->places,
                                 .count = one->setup->node_count,
                                 .name = one->name,
                                 .digest = one->digest,
                                 .checkpoints_here = one->setup->checkpoints,
                                 .plan = one->setup->plan,
                                 .cancelled = &one->cancelled};

    if (dt_message_is_program_checkpoint(&one->message))
        bring_saved(one);
    else
        one->st = dt_nodes_gather(one->kept_as, &request, &one->err);
}

/* --- on the loop */

static void free_one(fetch *one)
{
    json_decref(one->message.json);
    free(one->places);
    free(one);
}

static void drop_first(dt_checkpoint_fetcher *fetcher)
{
    fetch *one = fetcher->first;

    fetcher->first = one->next;
    free_one(one);
}

/* True if the checkpoint should be dropped: another try would fail, or is not worth it. */
static bool is_to_be_dropped(const dt_checkpoint_fetcher *fetcher, const fetch *one)
{
    bool lasting = one->st != DT_ERR_PEER && one->st != DT_ERR_TIMEOUT && one->st != DT_ERR_IO;
    int most = fetcher->calls.is_ending(fetcher->context) ? TRIES_ENDING : TRIES;

    return lasting || one->next != NULL || atomic_load(&one->cancelled) || one->tries >= most;
}

static void start_next(dt_checkpoint_fetcher *fetcher);

static void on_again(uv_timer_t *timer)
{
    start_next(timer->data);
}

static void report_fetched(dt_checkpoint_fetcher *fetcher, fetch *one)
{
    if (dt_message_is_program_checkpoint(&one->message)) {
        dt_log_info("checkpoint '%s' was brought here",
                    dt_message_string(&one->message, "directory"));
        fetcher->calls.fetched_saved(fetcher->context, &one->message);
        return;
    }
    dt_log_info("checkpoint '%s' was fetched", one->name);
    json_object_set_new(one->message.json, "directory", json_string(one->kept_as));
    fetcher->calls.fetched(fetcher->context, &one->message);
}

static void report_failed_fetch(dt_checkpoint_fetcher *fetcher, fetch *one)
{
    dt_log_error("checkpoint '%s' is not fetched: %s",
                 dt_message_string(&one->message, "directory"), one->err.message);
    fetcher->calls.dropped(fetcher->context, &one->message, one->err.message);
}

static void on_brought(uv_work_t *work, int status)
{
    fetch *one = work->data;
    dt_checkpoint_fetcher *fetcher = one->fetcher;

    fetcher->running = false;
    if (fetcher->calls.is_over(fetcher->context))
        return;
    if (status == 0 && one->st == DT_OK) {
        report_fetched(fetcher, one);
    } else if (is_to_be_dropped(fetcher, one)) {
        report_failed_fetch(fetcher, one);
    } else {
        dt_log_warn("checkpoint '%s' is not fetched yet: %s",
                    dt_message_string(&one->message, "directory"), one->err.message);
        uv_timer_start(&fetcher->again, on_again, dt_times_ms(dt_times()->fetch_again_seconds), 0);
        return;
    }
    drop_first(fetcher);
    start_next(fetcher);
    fetcher->calls.settled(fetcher->context);
}

/* Sets how long parts on other nodes must not have changed. Those that were being written when the program died are
 * not complete. */
static void set_quiet(fetch *one, bool ending)
{
    const json_t *checkpoints =
        json_object_get(json_object_get(one->setup->plan, "recipe"), "checkpoints");
    const char *marker = json_string_value(json_object_get(checkpoints, "marker"));
    double settle = json_number_value(json_object_get(checkpoints, "settle"));
    int64_t since_ms = dt_clock_wall_ms() - one->message.time_ms;

    one->ending = ending;
    one->quiet_ms = 0;
    if ((marker != NULL && marker[0] != '\0') ||
        json_is_true(json_object_get(one->message.json, "last")))
        return;
    one->quiet_ms = (int64_t)(1000 * settle);
    if (ending && since_ms > LOOK_MS) /* rank 0's part was looked at within LOOK_MS */
        one->quiet_ms += since_ms - LOOK_MS;
}

/* Drops all waiting checkpoints of a command but the newest, the only one that is brought. */
static void keep_newest(dt_checkpoint_fetcher *fetcher)
{
    int64_t newest = -1;

    if (!dt_message_is_program_checkpoint(&fetcher->first->message))
        return;
    for (const fetch *one = fetcher->first; one != NULL; one = one->next)
        if (dt_message_int(&one->message, "step", 0) > newest)
            newest = dt_message_int(&one->message, "step", 0);
    while (dt_message_int(&fetcher->first->message, "step", 0) < newest)
        drop_first(fetcher);
    for (fetch *one = fetcher->first, *next; (next = one->next) != NULL;) {
        if (dt_message_int(&next->message, "step", 0) == newest) { /* a later one of this step */
            drop_first(fetcher);
            one = next;
            continue;
        }
        one->next = next->next;
        free_one(next);
    }
}

static void start_next(dt_checkpoint_fetcher *fetcher)
{
    fetch *one;

    if (fetcher->first == NULL || fetcher->running || fetcher->calls.is_over(fetcher->context))
        return;
    keep_newest(fetcher);
    one = fetcher->first;
    set_quiet(one, fetcher->calls.is_ending(fetcher->context));
    one->tries++;
    one->err = (dt_error)DT_ERROR_INIT;
    fetcher->running = true;
    uv_queue_work(fetcher->setup.loop, &one->work, bring, on_brought);
}

void dt_checkpoint_fetcher_add(dt_checkpoint_fetcher *fetcher, const dt_message *message,
                               const dt_node_layout *places)
{
    size_t count = (size_t)fetcher->setup.node_count;
    fetch *one = dt_calloc(1, sizeof(*one)), **last = &fetcher->first;

    one->fetcher = fetcher;
    one->setup = &fetcher->setup;
    one->message = *message;
    json_incref(one->message.json);
    one->work.data = one;
    one->places = dt_calloc(count, sizeof(one->places[0]));
    memcpy(one->places, places, count * sizeof(places[0]));
    snprintf(one->name, sizeof(one->name), "%s", dt_message_string(message, "directory"));
    snprintf(one->digest, sizeof(one->digest), "%s", dt_message_string(message, "digest"));
    atomic_init(&one->cancelled, false);
    while (*last != NULL)
        last = &(*last)->next;
    *last = one;
    if (!uv_is_active((uv_handle_t *)&fetcher->again))
        start_next(fetcher);
}

bool dt_checkpoint_fetcher_is_idle(const dt_checkpoint_fetcher *fetcher)
{
    return fetcher->first == NULL;
}

void dt_checkpoint_fetcher_cancel(dt_checkpoint_fetcher *fetcher)
{
    fetch *running = fetcher->running ? fetcher->first : NULL;

    uv_timer_stop(&fetcher->again);
    if (running != NULL) {
        atomic_store(&running->cancelled, true); /* the thread uses it; dropped afterwards */
        uv_cancel((uv_req_t *)&running->work);
        fetcher->first = running->next;
    }
    while (fetcher->first != NULL)
        drop_first(fetcher);
    if (running != NULL)
        running->next = NULL;
    fetcher->first = running;
}

/* --- open and close */

dt_checkpoint_fetcher *dt_checkpoint_fetcher_open(const dt_checkpoint_fetcher_setup *setup,
                                                  const dt_checkpoint_fetcher_calls *calls,
                                                  void *context)
{
    dt_checkpoint_fetcher *fetcher = dt_calloc(1, sizeof(*fetcher));

    fetcher->setup = *setup;
    fetcher->calls = *calls;
    fetcher->context = context;
    uv_timer_init(setup->loop, &fetcher->again);
    fetcher->again.data = fetcher;
    return fetcher;
}

void dt_checkpoint_fetcher_close(dt_checkpoint_fetcher *fetcher)
{
    if (fetcher == NULL)
        return;
    dt_checkpoint_fetcher_cancel(fetcher);
    uv_close((uv_handle_t *)&fetcher->again, NULL);
}

void dt_checkpoint_fetcher_free(dt_checkpoint_fetcher *fetcher)
{
    if (fetcher == NULL)
        return;
    while (fetcher->first != NULL)
        drop_first(fetcher);
    free(fetcher);
}
