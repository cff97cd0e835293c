/* gpus: watches the GPUs of machines on which runs wait, over one connection each, and keeps who uses them in
 * queue.gpus.json. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "runner/queue/queue.h"

#define GPUS_FILE      "queue.gpus.json"
#define AGAIN_SECONDS  30 /* after a connection that failed */
#define FILE_MAX_BYTES ((size_t)16 << 20)

typedef struct watch {
    struct watch *next;
    dt_queue_watches *all;
    char *machine;
    pthread_t thread;
    atomic_bool cancelled;
    bool settled; /* the machine has answered, or cannot be asked */
    bool wanted;
    json_t *uses; /* NULL: unknown */
} watch;

struct dt_queue_watches {
    pthread_mutex_t lock; /* of everything but the threads' own */
    pthread_cond_t ended;
    watch *first;
};

/* --- the file */

static void write_file(const dt_queue_watches *watches)
{
    json_t *gpus = json_array(), *json, *use;
    dt_error problem = DT_ERROR_INIT;
    const char *path;
    dt_strbuf text;
    dt_arena arena;
    size_t i;

    dt_arena_init(&arena, 0);
    dt_strbuf_init(&text);
    for (const watch *one = watches->first; one != NULL; one = one->next)
        json_array_foreach(one->uses, i, use) {
            json_t *copy = json_deep_copy(use);

            json_object_set_new(copy, "machine", dt_json_text(one->machine));
            json_array_append_new(gpus, copy);
        }
    json = json_pack("{s:o}", "gpus", gpus);
    dt_json_write_pretty(&text, json);
    if (dt_queue_path(&path, GPUS_FILE, &arena, &problem) != DT_OK ||
        dt_file_write_atomic(path, text.data, text.length, 0600, &problem) != DT_OK)
        dt_log_error("%s", problem.message); /* starts are refused by the claims all the same */
    dt_error_clear(&problem);
    json_decref(json);
    dt_strbuf_release(&text);
    dt_arena_release(&arena);
}

static void remove_file(void)
{
    const char *path;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    if (dt_queue_path(&path, GPUS_FILE, &arena, NULL) == DT_OK)
        unlink(path);
    dt_arena_release(&arena);
}

void dt_queue_gpus_read(dt_queue_gpu **out, int64_t *count, dt_arena *arena)
{
    json_t *json = NULL, *gpus, *use;
    const char *path;
    size_t i;

    *out = NULL;
    *count = 0;
    if (dt_queue_path(&path, GPUS_FILE, arena, NULL) != DT_OK || !dt_file_exists(path) ||
        dt_json_read(&json, path, FILE_MAX_BYTES, NULL) != DT_OK)
        return;
    gpus = json_object_get(json, "gpus");
    *out = dt_arena_alloc_array(arena, json_array_size(gpus) + 1, sizeof(**out));
    json_array_foreach(gpus, i, use) {
        dt_queue_gpu *gpu = &(*out)[*count];
        const char *texts[4] = {"machine", "who", "run", "owner"};

        gpu->gpu = json_integer_value(json_object_get(use, "gpu"));
        for (size_t t = 0; t < 4; t++) {
            texts[t] = json_string_value(json_object_get(use, texts[t]));
            texts[t] = dt_arena_strdup(arena, texts[t] != NULL ? texts[t] : "");
        }
        gpu->machine = texts[0];
        gpu->who = texts[1];
        gpu->run = texts[2];
        gpu->owner = texts[3];
        *count += gpu->gpu >= 0 && gpu->gpu < DT_ORDER_GPUS_MOST;
    }
    json_decref(json);
}

/* --- the threads */

static bool take(void *context, const json_t *uses)
{
    watch *one = context;

    pthread_mutex_lock(&one->all->lock);
    if (!one->settled || one->uses == NULL || !json_equal(one->uses, uses)) {
        json_decref(one->uses);
        one->uses = json_deep_copy(uses);
        one->settled = true;
        write_file(one->all);
    }
    pthread_mutex_unlock(&one->all->lock);
    return !atomic_load(&one->cancelled);
}

/* Forgets what the machine said, which is not true any more, and waits. */
static void pause_after(watch *one, const dt_error *problem)
{
    struct timespec until;

    pthread_mutex_lock(&one->all->lock);
    if (!atomic_load(&one->cancelled)) {
        dt_log_warn("the GPUs of %s cannot be watched: %s", one->machine, problem->message);
        if (!one->settled || one->uses != NULL) {
            json_decref(one->uses);
            one->uses = NULL;
            one->settled = true;
            write_file(one->all);
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += AGAIN_SECONDS;
    while (!atomic_load(&one->cancelled) &&
           pthread_cond_timedwait(&one->all->ended, &one->all->lock, &until) == 0)
        ;
    pthread_mutex_unlock(&one->all->lock);
}

static void *run_watch(void *context)
{
    watch *one = context;

    while (!atomic_load(&one->cancelled)) {
        dt_error problem = DT_ERROR_INIT;

        (void)dt_node_gpus_watch(one->machine, take, one, &one->cancelled, &problem);
        pause_after(one, &problem);
        dt_error_clear(&problem);
    }
    return NULL;
}

/* --- which machines */

static watch *find(const dt_queue_watches *watches, const char *machine)
{
    watch *one = watches->first;

    while (one != NULL && strcmp(one->machine, machine) != 0)
        one = one->next;
    return one;
}

static void want(dt_queue_watches *watches, const char *machine)
{
    watch *one = find(watches, machine);

    if (one != NULL) {
        one->wanted = true;
        return;
    }
    one = dt_calloc(1, sizeof(*one));
    one->all = watches;
    one->machine = dt_strdup(machine);
    one->wanted = true;
    pthread_mutex_lock(&watches->lock);
    one->next = watches->first;
    watches->first = one;
    pthread_mutex_unlock(&watches->lock);
    if (pthread_create(&one->thread, NULL, run_watch, one) == 0)
        return;
    pthread_mutex_lock(&watches->lock);
    watches->first = one->next; /* the next decision tries again */
    pthread_mutex_unlock(&watches->lock);
    free(one->machine);
    free(one);
}

/* Ends the watches that are not wanted. */
static void end_others(dt_queue_watches *watches)
{
    for (watch **link = &watches->first; *link != NULL;) {
        watch *one = *link;

        if (one->wanted) {
            link = &one->next;
            continue;
        }
        pthread_mutex_lock(&watches->lock);
        atomic_store(&one->cancelled, true);
        pthread_cond_broadcast(&watches->ended);
        pthread_mutex_unlock(&watches->lock);
        pthread_join(one->thread, NULL);
        pthread_mutex_lock(&watches->lock);
        *link = one->next;
        pthread_mutex_unlock(&watches->lock);
        json_decref(one->uses);
        free(one->machine);
        free(one);
    }
}

void dt_queue_watches_follow(dt_queue_watches *watches, const dt_order *order)
{
    for (watch *one = watches->first; one != NULL; one = one->next)
        one->wanted = false;
    for (int64_t i = 0; i < order->run_count; i++) {
        const dt_order_run *run = &order->runs[i];

        for (int64_t n = 0; run->waits && n < run->need_count; n++)
            if (run->needs[n].gpus > 0)
                want(watches, order->machines[run->needs[n].machine].name);
        for (int64_t m = 0; run->waits && run->unit_gpus > 0 && m < order->machine_count; m++)
            if (order->machines[m].shared && order->machines[m].gpus > 0)
                want(watches, order->machines[m].name);
    }
    end_others(watches);
}

bool dt_queue_watches_know(dt_queue_watches *watches, const dt_order *order,
                           const dt_order_run *run)
{
    bool known = true;

    pthread_mutex_lock(&watches->lock);
    for (int64_t i = 0; i < run->part_count; i++) {
        const watch *one = run->parts[i].gpus != 0
                               ? find(watches, order->machines[run->parts[i].machine].name)
                               : NULL;

        known = known && (one == NULL || one->settled);
    }
    pthread_mutex_unlock(&watches->lock);
    return known;
}

dt_queue_watches *dt_queue_watches_open(void)
{
    dt_queue_watches *watches = dt_calloc(1, sizeof(*watches));
    pthread_condattr_t monotonic;

    pthread_mutex_init(&watches->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&watches->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    remove_file();
    return watches;
}

void dt_queue_watches_close(dt_queue_watches *watches)
{
    if (watches == NULL)
        return;
    for (watch *one = watches->first; one != NULL; one = one->next)
        one->wanted = false;
    end_others(watches);
    remove_file();
    pthread_cond_destroy(&watches->ended);
    pthread_mutex_destroy(&watches->lock);
    free(watches);
}
