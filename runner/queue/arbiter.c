/* arbiter: the process that starts and preempts the runs of the queue. It decides when the history or queue.json has
 * changed, and at the times that a decision names; between two decisions it keeps nothing. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/log.h"
#include "base/process.h"
#include "runner/channel/detach.h"
#include "runner/queue/queue.h"
#include "runner/supervisor/rebuild/rebuild.h"
#include "runner/supervisor/supervisor.h"
#include "store/store.h"

#define ARBITER_STARTS  "arbiter.starts"
#define READY_SECONDS   30.0
#define PAUSE_SECONDS   0.2   /* most that a look waits after the one before */
#define AGAIN_SECONDS   1.0   /* after an act that failed */
#define HISTORY_SECONDS 60.0  /* more than supervisors take to notice a lost history */
#define LONGEST_SECONDS 600.0 /* a clock that was set, and file systems that report no changes */

/* --- acts */

/* Returns whether the act failed and is tried again. */
static bool report(dt_status st, const char *what, const char *run, const dt_error *problem)
{
    if (st == DT_ERR_BUSY)
        return false; /* somebody else has changed the run: the next look shows how */
    if (st != DT_OK)
        dt_log_error("run %s cannot be %s: %s", run, what, problem->message);
    else
        dt_log_info("run %s is %s", run, what);
    return st != DT_OK;
}

static void act_on(bool *again, bool *changed, dt_store *store, dt_queue_watches *watches,
                   const dt_queue_facts *facts, int64_t index, dt_arena *arena)
{
    const dt_order_run *run = &facts->order.runs[index];
    dt_error problem = DT_ERROR_INIT;
    bool failed = false;

    switch (run->verdict) {
    case DT_ORDER_START:
        if (!dt_queue_watches_know(watches, &facts->order, run))
            break; /* what they answer leads to the next decision */
        failed =
            report(dt_queue_start(store, facts, index, &problem), "started", run->id, &problem);
        *changed = *changed || !failed;
        break;
    case DT_ORDER_PREEMPT:
        failed = report(dt_queue_preempt(facts, index, &problem), "preempted", run->id, &problem);
        *again = true; /* its supervisor may die before it has recorded the stop */
        break;
    case DT_ORDER_DROPPED:
        failed = report(dt_queue_drop(store, run->id,
                                      dt_arena_printf(arena, "not started: %s",
                                                      dt_queue_reason(facts, index, arena)),
                                      &problem),
                        "dropped", run->id, &problem);
        *changed = *changed || !failed;
        break;
    default:
        break;
    }
    *again = *again || failed;
    dt_error_clear(&problem);
}

/* A started run whose supervisor is missing gets one, as from any command. */
static void ensure_supervisors(const dt_queue_facts *facts)
{
    for (int64_t i = 0; i < facts->order.run_count; i++)
        if (dt_queue_entry_find(&facts->file, facts->runs[i].id) != NULL)
            (void)dt_supervisor_ensure(&facts->runs[i], NULL);
}

/* A history that was lost does not know the run until it is restored from its folder. */
static bool has_folder(const char *run, dt_arena *arena)
{
    const char *folder;

    return dt_run_path(&folder, run, NULL, arena, NULL) == DT_OK && dt_file_exists(folder);
}

/* Forgets runs that have ended: they are not in the facts. */
static dt_status forget_ended(const dt_queue_facts *facts, dt_store *store, dt_arena *arena,
                              dt_error *err)
{
    dt_queue_file file = {.lock = -1};
    int64_t kept = 0, here = 0;
    dt_status st = DT_OK;
    dt_run run;

    for (int64_t i = 0; i < facts->order.run_count; i++)
        here += dt_queue_entry_find(&facts->file, facts->runs[i].id) != NULL;
    if (here == facts->file.entry_count)
        return DT_OK;
    DT_TRY(dt_queue_open(&file, arena, err));
    for (int64_t i = 0; i < file.entry_count; i++) {
        dt_status found = dt_store_run_find(store, &run, file.entries[i].run, arena, NULL);

        if (found == DT_OK ? !dt_run_state_is_terminal(run.state)
                           : found != DT_ERR_NOT_FOUND || has_folder(file.entries[i].run, arena))
            file.entries[kept++] = file.entries[i];
    }
    if (kept < file.entry_count) {
        file.entry_count = kept;
        DT_TRY(dt_queue_write(&file, err));
    }
out:
    dt_queue_close(&file);
    return st;
}

/* --- the loop */

static bool waits_or_stops(const dt_queue_facts *facts)
{
    bool any = false;

    for (int64_t i = 0; i < facts->order.run_count; i++) {
        const char *id = facts->runs[i].id;

        any = any || facts->order.runs[i].waits ||
              (facts->runs[i].state == DT_RUN_STOPPING &&
               dt_queue_entry_find(&facts->file, id) != NULL);
    }
    return any;
}

static dt_status decide_locked(bool *over, double *seconds, dt_store *store, dt_queue_plans *plans,
                               dt_queue_watches *watches, dt_arena *arena, dt_error *err)
{
    bool again = false, changed = false;
    dt_queue_facts facts;
    dt_status st = DT_OK;

    DT_TRY(dt_queue_look(&facts, store, plans, NULL, arena, err));
    *over = !waits_or_stops(&facts);
    dt_queue_watches_follow(watches, &facts.order);
    for (int64_t i = 0; i < facts.order.run_count; i++)
        act_on(&again, &changed, store, watches, &facts, i, arena);
    ensure_supervisors(&facts);
    DT_TRY(forget_ended(&facts, store, arena, err));
    *seconds = facts.order.wake_ms > 0
                   ? (double)(facts.order.wake_ms - facts.order.now_ms) / 1000 + 0.001
                   : LONGEST_SECONDS;
    if (again && *seconds > AGAIN_SECONDS)
        *seconds = AGAIN_SECONDS;
    if (*seconds > LONGEST_SECONDS)
        *seconds = LONGEST_SECONDS;
    if (changed)
        *seconds = 0;
out:
    return st;
}

/* One decision. *over: nothing waits. *seconds: until the next one if nothing happens before. */
static dt_status decide(bool *over, double *seconds, dt_store *store, dt_queue_plans *plans,
                        dt_queue_watches *watches, dt_arena *arena, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    int lock = -1;
    dt_status st = dt_queue_lock_places(&lock, arena, &problem);

    *over = false;
    *seconds = PAUSE_SECONDS; /* a point of a sweep is being launched */
    if (st == DT_OK)
        st = decide_locked(over, seconds, store, plans, watches, arena, err);
    else if (st != DT_ERR_BUSY)
        DT_FAIL(err, st, "%s", problem.message);
    if (lock >= 0)
        close(lock);
    dt_error_clear(&problem);
    return st == DT_ERR_BUSY ? DT_OK : st;
}

/* What a decision depends on besides the time: states of runs, queue.json, and the GPUs that others use. */
static dt_status see(const char **out, dt_store *store, const char *queue, dt_arena *arena,
                     dt_error *err)
{
    const char *files[] = {queue, NULL};
    dt_status st;

    DT_TRY(dt_queue_path(&files[1], "queue.gpus.json", arena, err));
    DT_TRY(dt_store_run_states(store, out, arena, err));
    for (size_t i = 0; i < 2; i++) {
        struct stat info = {0};

        (void)stat(files[i], &info);
        *out = dt_arena_printf(arena, "%lld %lld %lld.%09ld %s", (long long)info.st_ino,
                               (long long)info.st_size, (long long)info.st_mtim.tv_sec,
                               info.st_mtim.tv_nsec, *out); /* inodes are used again */
    }
out:
    return st;
}

/* Waits until what was seen has changed, or the time is over. Each step of each run writes to the history: the pauses
 * between two looks bound what they cost. */
static void wait_for_change(const char *seen, double seconds, dt_store *store, const char *queue)
{
    double end = dt_clock_monotonic_seconds() + seconds, begun, took;
    bool same = true;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    while (same && (begun = dt_clock_monotonic_seconds()) < end) {
        const char *now;

        (void)dt_store_wait(store, end - begun);
        begun = dt_clock_monotonic_seconds();
        dt_arena_reset(&arena);
        same = dt_store_is_current(store) && see(&now, store, queue, &arena, NULL) == DT_OK &&
               strcmp(now, seen) == 0;
        took = dt_clock_monotonic_seconds() - begun;
        if (same)
            dt_clock_sleep_seconds(took < PAUSE_SECONDS / 9 ? 9 * took : PAUSE_SECONDS);
    }
    dt_arena_release(&arena);
}

static dt_status run_arbiter(dt_store *store, const char *queue, const char *starts)
{
    const char *seen = "";
    double begun = dt_clock_monotonic_seconds(), seconds = 0;
    bool over = false, settled = false;
    dt_queue_plans *plans = dt_queue_plans_open();
    dt_queue_watches *watches = dt_queue_watches_open();
    dt_status st = DT_OK;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    while (!over) {
        dt_error problem = DT_ERROR_INIT;

        if (!dt_store_is_current(store))
            break; /* the history was removed or replaced */
        st = see(&seen, store, queue, &arena,
                 &problem); /* before the decision: changes meanwhile count */
        if (st == DT_OK)
            st = decide(&over, &seconds, store, plans, watches, &arena, &problem);
        if (st != DT_OK) {
            dt_log_error("%s", problem.message);
            over = false;
            seconds = AGAIN_SECONDS;
        }
        dt_error_clear(&problem);
        if (!settled && dt_clock_monotonic_seconds() - begun > 5) {
            dt_starts_clear(starts);
            settled = true;
        }
        if (!over && seconds > 0)
            wait_for_change(seen, seconds, store, queue);
        dt_arena_reset(&arena);
    }
    dt_starts_clear(starts);
    dt_queue_plans_close(plans);
    dt_queue_watches_close(watches);
    dt_arena_release(&arena);
    return DT_OK;
}

/* Whether a supervisor follows a run that the history does not have. */
static bool lacks_a_run(dt_store *store)
{
    const char *folder;
    struct dirent *entry;
    bool lacks = false;
    DIR *dir = NULL;
    dt_arena arena;
    dt_run run;

    dt_arena_init(&arena, 0);
    if (dt_queue_path(&folder, "runs", &arena, NULL) == DT_OK)
        dir = opendir(folder);
    while (dir != NULL && !lacks && (entry = readdir(dir)) != NULL)
        lacks = entry->d_name[0] != '.' && dt_supervisor_is_running(entry->d_name) &&
                dt_store_run_find(store, &run, entry->d_name, &arena, NULL) == DT_ERR_NOT_FOUND;
    if (dir != NULL)
        closedir(dir);
    dt_arena_release(&arena);
    return lacks;
}

/* After the history was lost, runs that are followed come back when their supervisors notice it. Until then what they
 * use would look free. */
static void await_history(dt_store *store)
{
    double end = dt_clock_monotonic_seconds() + HISTORY_SECONDS;

    dt_restore_runs(store);
    while (lacks_a_run(store) && dt_clock_monotonic_seconds() < end)
        dt_clock_sleep_seconds(PAUSE_SECONDS);
}

dt_status dt_arbiter_main(dt_error *err)
{
    int ready = dt_detach_claim(), lock = -1;
    dt_store *store = NULL;
    const char *path, *starts, *queue;
    dt_status st;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    dt_log_init("arbiter");
    dt_crash_report("the arbiter of the queue");
    DT_TRY(dt_queue_path(&path, "queue.lock", &arena, err));
    DT_TRY(dt_queue_path(&starts, ARBITER_STARTS, &arena, err));
    DT_TRY(dt_queue_path(&queue, "queue.json", &arena, err));
    DT_TRY(dt_file_lock(&lock, path, err));
    DT_TRY(dt_store_open(&store, NULL, err));
    dt_detach_ready(&ready, DT_OK, NULL);
    await_history(store);
    for (bool more = true; more;) {
        DT_TRY(run_arbiter(store, queue, starts));
        /* A run that was added after the last look saw the lock held, and relies on this process. */
        close(lock);
        lock = -1;
        if (!dt_store_is_current(store)) {
            dt_store_close(store);
            store = NULL;
            DT_TRY(dt_store_open(&store, NULL, err));
            await_history(store);
        }
        DT_TRY(dt_arbiter_is_needed(&more, store, err));
        more = more && dt_file_lock(&lock, path, NULL) == DT_OK;
    }
out:
    dt_detach_ready(&ready, st, err);
    dt_store_close(store);
    if (lock >= 0)
        close(lock);
    dt_arena_release(&arena);
    return st;
}

/* --- its start */

dt_status dt_arbiter_is_needed(bool *needed, dt_store *store, dt_error *err)
{
    const dt_run_search search = {.state = DT_RUN_WAITING, .limit = 1};
    int64_t count, total = 0;
    const char **ids;
    dt_status st;
    dt_arena arena;

    *needed = false;
    dt_arena_init(&arena, 0);
    DT_TRY(dt_store_run_search(store, &ids, &count, &total, &search, &arena, err));
    *needed = total > 0;
out:
    dt_arena_release(&arena);
    return st;
}

/* The environment is saved at its first start, for the next ones; runs have environments of their own. */
static dt_status start(const char *state, dt_arena *arena, dt_error *err)
{
    static const char *const argv[] = {"dtrun", "arbiter", NULL};
    const char *log = dt_arena_printf(arena, "%s/arbiter.log", state);
    const char *starts = dt_arena_printf(arena, "%s/" ARBITER_STARTS, state);
    dt_error problem = DT_ERROR_INIT;
    bool crashed;
    dt_status st;

    DT_TRY(dt_starts_check(starts, DT_STARTS_MOST, "the arbiter of the queue", log, err));
    crashed = dt_starts_follow_crash(log);
    st = dt_detach_start(argv, log, NULL, READY_SECONDS, &problem);
    if (st == DT_ERR_BUSY) {
        st = DT_OK; /* another process was faster */
        goto out;
    }
    dt_starts_add(starts, st != DT_OK || crashed);
    if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
out:
    dt_error_clear(&problem);
    return st;
}

dt_status dt_arbiter_ensure(dt_error *err)
{
    const char *state, *path;
    dt_store *store = NULL;
    dt_status st = DT_OK;
    bool needed = false;
    dt_arena arena;
    int lock = -1;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_dir_path(&state, DT_DIR_STATE, &arena, err));
    path = dt_arena_printf(&arena, "%s/queue.json", state);
    if (!dt_file_exists(path)) /* nothing was ever queued */
        goto out;
    if (dt_file_lock(&lock, dt_arena_printf(&arena, "%s/queue.lock", state), NULL) != DT_OK)
        goto out; /* there is one */
    close(lock);
    if (dt_store_open(&store, NULL, NULL) != DT_OK)
        goto out; /* commands that need the history report it */
    DT_TRY(dt_arbiter_is_needed(&needed, store, err));
    if (needed)
        DT_TRY(start(state, &arena, err));
out:
    dt_store_close(store);
    dt_arena_release(&arena);
    return st;
}
