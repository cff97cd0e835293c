/* drive: runs a sweep through its points in a detached process, launches and resumes points, and stops a
 * sweep. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/metric_kinds.h"
#include "base/process.h"
#include "runner/channel/detach.h"
#include "runner/cli/report.h"
#include "runner/stop/stop.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/supervisor/supervisor.h"
#include "runner/sweep/sweep.h"
#include "runner/sweep/sweep_int.h"
#include "runner/times.h"
#include "store/curve.h"
#include "store/run.h"
#include "store/store.h"

enum { TAGS_MAX = 64, AFTER_MOST = 64 };
#define LAUNCH_SECONDS 600.0 /* the launch may have to fetch data */

/* Adds: --queue --priority N --after RUN ... */
static void add_queue(const char **argv, int *count, const dt_sweep_group *group, dt_arena *arena)
{
    char *rest = dt_arena_strdup(arena, group->after_runs);

    argv[(*count)++] = "--queue";
    argv[(*count)++] = dt_arena_printf(arena, "--priority=%lld", (long long)group->priority);
    for (char *run; (run = strsep(&rest, " ")) != NULL && *count < 12 + 2 * TAGS_MAX + AFTER_MOST;)
        if (run[0] != '\0')
            argv[(*count)++] = dt_arena_printf(arena, "--after=%s", run);
}

/* Builds: launch POINT --detach --json --group G --set nodes=[...] --tag a --tag b */
static dt_status words_of(const char **argv, const dt_sweep_group *group, int64_t index,
                          const char *nodes, dt_arena *arena, dt_error *err)
{
    char *tags = dt_arena_strdup(arena, group->tags), *rest = tags;
    int count = 0;
    dt_status st = DT_OK;

    DT_TRY(dt_dir_program(&argv[count++], "dtrun", NULL, arena, err));
    argv[count++] = "launch";
    argv[count++] =
        dt_arena_printf(arena, "%s/point-%lld.yaml", group->folder, (long long)index + 1);
    argv[count++] = "--detach";
    argv[count++] = "--json";
    argv[count++] = "--group";
    argv[count++] = group->name;
    if (nodes != NULL) {
        argv[count++] = "--set";
        argv[count++] = nodes;
    }
    for (char *tag; (tag = strsep(&rest, " ")) != NULL && count < 9 + 2 * TAGS_MAX;) {
        if (tag[0] == '\0')
            continue;
        argv[count++] = "--tag";
        argv[count++] = tag;
    }
    if (group->queues)
        add_queue(argv, &count, group, arena);
    argv[count] = NULL;
out:
    return st;
}

/* Takes the run id or the problem from the launch's output. A problem of one point does not stop
 * the others. */
static dt_status take_answer(dt_sweep_point *point, bool *missing, const dt_strbuf *said,
                             const dt_strbuf *errors, int exit_code, dt_arena *arena, dt_error *err)
{
    char end[DT_EXIT_WORDS_BYTES];
    const char *run, *message, *status;
    json_t *answer = NULL, *error;

    if (said->length > 0)
        (void)dt_json_parse(&answer, said->data, said->length, "dtrun launch", NULL);
    run = json_string_value(json_object_get(answer, "run"));
    error = json_object_get(answer, "error");
    message = json_string_value(json_object_get(error, "message"));
    status = json_string_value(json_object_get(error, "status"));
    *missing = status != NULL && strcmp(status, dt_status_name(DT_ERR_NOT_FOUND)) == 0;
    if (run != NULL)
        point->run = dt_arena_strdup(arena, run);
    else if (message != NULL)
        point->problem = dt_arena_strdup(arena, message);
    else
        point->problem =
            dt_arena_printf(arena, "dtrun %s%s%.500s", dt_exit_words_of_shell(end, exit_code),
                            errors->length > 0 ? ": " : ", without a message", errors->data);
    json_decref(answer);
    return DT_OK;
}

/* Runs dtrun. *missing: the run or checkpoint does not exist. */
static dt_status call(dt_sweep_point *point, bool *missing, const char *const *argv,
                      dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf said, errors;
    int exit_code = 0;

    dt_strbuf_init(&said);
    dt_strbuf_init(&errors);
    DT_TRY(dt_child_run(
        &exit_code,
        &(dt_child_call){.argv = argv, .out = &said, .errors = &errors, .seconds = LAUNCH_SECONDS},
        err));
    DT_TRY(take_answer(point, missing, &said, &errors, exit_code, arena, err));
out:
    dt_strbuf_release(&said);
    dt_strbuf_release(&errors);
    return st;
}

/* Runs `dtrun launch --detach` on the point's recipe, with nodes as dt_point_place returns them.
 * Fills in point->run, or point->problem if the launch was refused. */
static dt_status point_begin(dt_sweep_point *point, const dt_sweep_group *group, int64_t index,
                             const char *nodes, dt_arena *arena, dt_error *err)
{
    const char *argv[14 + 2 * TAGS_MAX + AFTER_MOST];
    bool missing;
    dt_status st;

    DT_TRY(words_of(argv, group, index, nodes, arena, err));
    DT_TRY(call(point, &missing, argv, arena, err));
out:
    return st;
}

/* Runs `dtrun resume --detach` on its run, or another launch if the run has no checkpoint.
 * Clears point->again; sets point->problem if it was refused. */
static dt_status point_resume(dt_sweep_point *point, const dt_sweep_group *group, int64_t index,
                              const char *nodes, dt_arena *arena, dt_error *err)
{
    const char *argv[] = {NULL, "resume", point->run, "--detach", "--json", "--set", nodes, NULL};
    bool missing;
    dt_status st;

    if (nodes == NULL)
        argv[5] = NULL;
    DT_TRY(dt_dir_program(&argv[0], "dtrun", NULL, arena, err));
    DT_TRY(call(point, &missing, argv, arena, err));
    if (missing) {
        point->problem = "";
        DT_TRY(point_begin(point, group, index, nodes, arena, err));
    }
    point->again = false;
out:
    return st;
}

/* Finds runs of points that were launched by a driver that died before it could record them. */
static dt_status points_find(dt_sweep_group *group, dt_store *store, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t count;
    dt_run *runs;

    DT_TRY(dt_store_run_list(store, &runs, &count, -1, 0, arena, err));
    for (int64_t i = 0; i < group->count; i++) {
        dt_sweep_point *point = &group->points[i];

        if ((point->run[0] != '\0' && !point->again) || point->problem[0] != '\0')
            continue;
        for (int64_t j = 0; j < count; j++) {
            if (strcmp(runs[j].group, group->name) != 0 || strcmp(runs[j].name, point->name) != 0)
                continue;
            point->again = point->again && strcmp(point->run, runs[j].id) == 0;
            point->run = runs[j].id;
            break; /* the newest, because a point to be resumed may have been launched again */
        }
    }
out:
    return st;
}

#define LOOK_SECONDS 0.5

/* State of a driven group. */
typedef struct drive {
    dt_sweep_group group;
    dt_store *store;
    dt_run_state *states; /* state of each point's run; meaningless without a run */
    int64_t *steps;
    double begun_seconds;
    bool settled;   /* the driver has run for a while */
    bool waits;     /* waiting for GPUs or nodes was reported */
    dt_arena arena; /* lives as long as the driver */
} drive;

static bool has_ended(const drive *of, int64_t i)
{
    const dt_sweep_point *point = &of->group.points[i];

    return point->problem[0] != '\0' ||
           (point->run[0] != '\0' && !point->again && dt_run_state_is_terminal(of->states[i]));
}

static bool is_running(const drive *of, int64_t i)
{
    return of->group.points[i].run[0] != '\0' && !dt_run_state_is_terminal(of->states[i]);
}

/* Updates the states of the runs. A removed run counts as ended; a run without a supervisor gets
 * one. */
static dt_status look(drive *of, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;
    dt_arena arena;
    dt_run run;

    dt_arena_init(&arena, 0);
    for (int64_t i = 0; i < of->group.count; i++) {
        dt_sweep_point *point = &of->group.points[i];

        if (point->run[0] == '\0' || has_ended(of, i))
            continue;
        st = dt_store_run_find(of->store, &run, point->run, &arena, &problem);
        of->states[i] = st == DT_OK ? run.state : DT_RUN_STOPPED;
        if (st != DT_OK || !dt_run_state_is_terminal(run.state) || run.state == DT_RUN_FINISHED)
            point->again = false; /* already resumed, by a previous driver or another command */
        if (st == DT_OK) {
            of->steps[i] = run.step;
            (void)dt_supervisor_ensure(&run, NULL);
        } else if (st != DT_ERR_NOT_FOUND) {
            DT_THROW(err, st, "%s", problem.message);
        }
        st = DT_OK;
        dt_error_clear(&problem);
    }
out:
    dt_arena_release(&arena);
    return st;
}

/* --- early stops */

/* Finds the run's last value up to the rung, if the run has reached it. */
static dt_status value_at(double *out, bool *there, drive *of, int64_t i, int64_t rung,
                          dt_arena *arena, dt_error *err)
{
    const dt_sweep_point *point = &of->group.points[i];
    dt_metric *points;
    int64_t count = 0;
    dt_status st = DT_OK;

    *out = NAN;
    *there = point->run[0] != '\0' && of->steps[i] >= rung;
    if (!*there)
        return DT_OK;
    DT_TRY(dt_store_metric_list(of->store, &points, &count, point->run, of->group.metric, -1, false,
                                arena, err));
    for (int64_t j = 0; j < count && points[j].step <= rung; j++)
        *out = points[j].value;
out:
    return st;
}

static dt_status cut_at(drive *of, int64_t rung, dt_error *err)
{
    bool more_is_better = dt_metric_more_is_better(of->group.metric);
    int64_t count = of->group.count;
    dt_status st = DT_OK;
    dt_arena arena;
    dt_halving_run *runs;

    dt_arena_init(&arena, 0);
    runs = dt_arena_alloc_array(&arena, (size_t)count, sizeof(*runs));
    for (int64_t i = 0; i < count; i++) {
        DT_TRY(value_at(&runs[i].value, &runs[i].there, of, i, rung, &arena, err));
        runs[i].value = more_is_better ? -runs[i].value : runs[i].value;
        runs[i].cut = of->group.points[i].cut;
    }
    for (int64_t i = 0; i < count; i++) {
        dt_sweep_point *point = &of->group.points[i];

        if (!is_running(of, i) || point->cut > 0 ||
            !dt_halving_cuts(runs, count, i, rung, of->group.keep))
            continue;
        point->cut = runs[i].cut = rung;
        dt_log_info("%s is stopped: %s is %g at step %lld", point->name, of->group.metric,
                    more_is_better ? -runs[i].value : runs[i].value, (long long)rung);
        DT_TRY(dt_group_write_progress(&of->group, err));
        (void)dt_supervisor_stop(point->run, false, NULL);
    }
out:
    dt_arena_release(&arena);
    return st;
}

static dt_status cut(drive *of, dt_error *err)
{
    int64_t most = 0;
    dt_status st = DT_OK;

    if (of->group.metric[0] == '\0' || of->group.after == 0)
        return DT_OK;
    for (int64_t i = 0; i < of->group.count; i++)
        most = is_running(of, i) && of->steps[i] > most ? of->steps[i] : most;
    for (int64_t rung = of->group.after; rung <= most; rung *= 2)
        DT_TRY(cut_at(of, rung, err));
out:
    return st;
}

/* --- points */

static dt_status stop_all(drive *of, bool now)
{
    for (int64_t i = 0; i < of->group.count; i++)
        if (is_running(of, i))
            (void)dt_supervisor_stop(of->group.points[i].run, now,
                                     NULL); /* repeated until it works */
    return DT_OK;
}

/* Launches or resumes a point. *begun: it was tried; false if other runs use what it needs. */
static dt_status begin(bool *begun, drive *of, int64_t i, dt_error *err)
{
    dt_sweep_point *point = &of->group.points[i];
    dt_status st = DT_OK;
    const char *nodes = NULL;
    dt_queue_place place = {.there = true, .lock = -1};

    if (point->again || !of->group.queues) /* else it waits in the queue */
        DT_TRY(dt_point_place(&place, &nodes, &of->group, i, of->store, &of->arena, err));
    *begun = place.there;
    if (!place.there) {
        if (!of->waits)
            dt_log_info("%s waits for nodes or GPUs that other runs use, or come before it for",
                        point->name);
        of->waits = true;
        goto out;
    }
    of->waits = false;
    if (point->again)
        DT_TRY(point_resume(point, &of->group, i, nodes, &of->arena, err));
    else
        DT_TRY(point_begin(point, &of->group, i, nodes, &of->arena, err));
    of->states[i] = DT_RUN_QUEUED;
    DT_TRY(dt_group_write_progress(&of->group, err));
out:
    dt_queue_place_release(&place);
    return st;
}

/* Starts points in order: a large one is not overtaken by smaller ones. */
static dt_status begin_next(drive *of, dt_error *err)
{
    int64_t running = 0;
    bool begun = true;
    dt_status st = DT_OK;

    for (int64_t i = 0; i < of->group.count; i++)
        running += is_running(of, i);
    for (int64_t i = 0; begun && i < of->group.count && running < of->group.at_once; i++) {
        dt_sweep_point *point = &of->group.points[i];

        if (point->problem[0] != '\0' || (point->run[0] != '\0' && !point->again))
            continue;
        DT_TRY(begin(&begun, of, i, err));
        running += begun && point->run[0] != '\0' && point->problem[0] == '\0';
    }
out:
    return st;
}

/* True if every started point has ended and no other will start. */
static bool is_over(const drive *of, bool stopping)
{
    bool over = true;

    for (int64_t i = 0; i < of->group.count; i++)
        over = over && (has_ended(of, i) || (stopping && !is_running(of, i)));
    return over;
}

static dt_status open_drive(drive *out, const char *name, dt_error *err)
{
    size_t count;
    dt_status st;

    DT_TRY(dt_group_read(&out->group, name, &out->arena, err));
    count = (size_t)out->group.count;
    out->states = dt_arena_alloc_array(&out->arena, count, sizeof(out->states[0]));
    out->steps = dt_arena_alloc_array(&out->arena, count, sizeof(out->steps[0]));
    memset(out->states, 0, count * sizeof(out->states[0])); /* queued until the first look */
    memset(out->steps, 0, count * sizeof(out->steps[0]));
    DT_TRY(dt_store_open(&out->store, NULL, err));
    DT_TRY(points_find(&out->group, out->store, &out->arena, err));
out:
    return st;
}

/* Clears the count of failed starts once this driver has run for starts_settled_seconds. */
static void note_progress(drive *of)
{
    const char *path;

    if (of->settled ||
        dt_clock_monotonic_seconds() < of->begun_seconds + dt_times()->starts_settled_seconds)
        return;
    of->settled = true;
    path = dt_arena_printf(&of->arena, "%s/" DT_DRIVE_STARTS, of->group.folder);
    dt_starts_clear(path);
}

static dt_status run(drive *of, dt_error *err)
{
    bool now = false, stopping = false;
    dt_status st = DT_OK;

    for (;;) {
        note_progress(of);
        DT_TRY(look(of, err));
        stopping = dt_group_stop_asked(&of->group, &now);
        if (is_over(of, stopping))
            break;
        DT_TRY(stopping ? stop_all(of, now) : cut(of, err));
        if (!stopping)
            DT_TRY(begin_next(of, err));
        dt_clock_sleep_seconds(LOOK_SECONDS);
    }
    of->group.ended = true;
    DT_TRY(dt_group_write_progress(&of->group, err));
out:
    return st;
}

dt_status dt_drive_main(const char *name, dt_error *err)
{
    int ready = dt_detach_claim(), lock = -1;
    const char *folder, *path;
    static char who[128];
    drive of = {0};
    dt_status st;

    dt_arena_init(&of.arena, 0);
    of.begun_seconds = dt_clock_monotonic_seconds();
    snprintf(who, sizeof(who), "the driver of sweep '%.64s'", name);
    dt_crash_report(who);
    DT_TRY(dt_group_folder(&folder, name, &of.arena, err));
    path = dt_arena_printf(&of.arena, "%s/driver.lock", folder);
    DT_TRY(dt_file_lock(&lock, path, err));
    DT_TRY(open_drive(&of, name, err));
    dt_detach_ready(&ready, DT_OK, NULL);
    DT_TRY(run(&of, err));
out:
    dt_detach_ready(&ready, st, err);
    dt_store_close(of.store);
    if (lock >= 0)
        close(lock);
    dt_arena_release(&of.arena);
    return st;
}

/* stop: stops a sweep, through its driver, or if nothing can be written, each of its runs
 * directly. */

/* Stops the runs that have not ended, without the history, which cannot be written. */
static dt_status stop_points(const char *name, bool now, const dt_error *why, dt_call *call,
                             dt_error *err)
{
    dt_store *store = NULL;
    const char **runs;
    dt_status st = DT_OK;
    dt_sweep_group group;
    int64_t count = 0;
    dt_run run;

    DT_TRY(dt_group_read(&group, name, call->arena, err));
    if (dt_store_open(&store, NULL, NULL) == DT_OK) /* for points whose run is not recorded yet */
        (void)points_find(&group, store, call->arena, NULL);
    runs = dt_arena_alloc_array(call->arena, (size_t)group.count, sizeof(*runs));
    for (int64_t i = 0; i < group.count; i++) {
        const char *id = group.points[i].run;
        bool known = store != NULL && id[0] != '\0' &&
                     dt_store_run_find(store, &run, id, call->arena, NULL) == DT_OK;

        if (id[0] != '\0' && !(known && dt_run_state_is_terminal(run.state)))
            runs[count++] = id;
    }
    DT_TRY(dt_stop_all_without_history(runs, count, now, why, call, err));
    dt_report_note(
        call, "the sweep ends once there is disk space to record its end: see 'dtrun status %s'",
        name);
out:
    dt_store_close(store);
    return st;
}

dt_status dt_group_stop(const dt_sweep_group *group, bool now, dt_call *call, dt_error *err)
{
    dt_error full = DT_ERROR_INIT, unasked = DT_ERROR_INIT;
    dt_status st = DT_OK, asked = DT_OK;

    if (!group->ended) {
        asked = dt_group_ask_stop(group, now, &unasked);
        if (asked != DT_OK || dt_run_check_room(call->arena, &full) != DT_OK) {
            DT_TRY(stop_points(group->name, now, asked != DT_OK ? &unasked : &full, call, err));
            if (asked != DT_OK) /* otherwise more points start once there is disk space */
                DT_THROW(err, asked, "%s", unasked.message);
            goto out;
        }
    }
    DT_TRY(dt_group_follow(group->name, call, err));
    if (call->exit_code == DT_EXIT_STOPPED)
        call->exit_code = DT_EXIT_GOOD; /* as requested */
out:
    return st;
}
