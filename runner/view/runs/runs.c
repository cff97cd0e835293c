#include "runner/view/runs/runs.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "recipes/architecture/architecture.h"
#include "runner/cli/report.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/supervisor/folder/task_folder.h"
#include "runner/supervisor/rebuild/rebuild.h"
#include "runner/supervisor/supervisor.h"
#include "runner/term/term.h"
#include "runner/view/runs/why.h"
#include "store/activity.h"

/* Whether the run was stopped while its end could not be written to the history. */
static bool was_stopped(const dt_run *run, dt_arena *arena)
{
    const char *folder;

    return dt_run_path(&folder, run->id, NULL, arena, NULL) == DT_OK &&
           dt_stop_mark_covers(folder, run->attempt);
}

dt_status dt_runs_ensure(const dt_run *run, const dt_call *call)
{
    dt_error incident = DT_ERROR_INIT;
    dt_status st = DT_OK;

    if (!dt_run_state_is_terminal(run->state))
        st = dt_supervisor_ensure(run, &incident);
    if (st != DT_OK && was_stopped(run, call->arena))
        dt_report_say("dtrun: run '%s' was stopped; the history will show it "
                      "once it can be written: %s",
                      run->id, incident.message);
    else if (st != DT_OK && dt_supervisor_is_broken(run->id)) /* the message names the run */
        dt_report_say("dtrun: %s; end the run with 'dtrun stop %s'", incident.message, run->id);
    else if (st != DT_OK)
        dt_report_say("dtrun: run '%s' has no supervisor right now: %s", run->id, incident.message);
    return st;
}

const char *dt_runs_shown_state(const dt_run *run, const dt_activity *activity)
{
    if (dt_run_state_is_terminal(run->state))
        return activity->words;
    return dt_supervisor_is_broken(run->id)     ? "broken"
           : dt_supervisor_paused(run->id) != 0 ? "paused"
                                                : activity->words;
}

/* Why the supervisor cannot work, or null if no problem is known. */
static json_t *trouble_json(const dt_run *run)
{
    dt_error problem = DT_ERROR_INIT;
    json_t *out = NULL;
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (!dt_run_state_is_terminal(run->state)) {
        if (dt_supervisor_ensure(run, &problem) != DT_OK)
            out = dt_json_text(problem.message);
        else if (dt_supervisor_trouble(&text, run->id))
            out = dt_json_text(text.data);
    }
    dt_strbuf_release(&text);
    return out != NULL ? out : json_null();
}

/* Finds the run that `ref` names. A run that the store had lost is restored first. */
static dt_status find(dt_store *store, dt_run *run, const char *ref, dt_arena *arena, dt_error *err)
{
    dt_error unknown = DT_ERROR_INIT;
    dt_status st = dt_store_run_find(store, run, ref, arena, &unknown);

    if (st == DT_OK && strcmp(run->id, ref) == 0) {
        if (!dt_restore_run(store, ref))
            return DT_OK;
    } else if (st == DT_OK || st == DT_ERR_NOT_FOUND) { /* a lost newer run may have this name */
        dt_restore_runs(store);
    } else {
        return DT_FAIL(err, st, "%s", unknown.message);
    }
    return dt_store_run_find(store, run, ref, arena, err);
}

dt_status dt_runs_find(dt_store *store, dt_run *run, const char *ref, const dt_call *call,
                       dt_error *err)
{
    dt_status st = find(store, run, ref, call->arena, err);

    if (st == DT_OK)
        (void)dt_runs_ensure(run, call);
    return st;
}

dt_status dt_runs_open(dt_store **store, dt_run *run, const char *ref, const dt_call *call,
                       dt_error *err)
{
    dt_status st = DT_OK;

    *store = NULL;
    DT_TRY(dt_store_open_to_read(store, NULL, err));
    DT_TRY(dt_runs_find(*store, run, ref, call, err));
out:
    if (st != DT_OK) {
        dt_store_close(*store);
        *store = NULL;
    }
    return st;
}

static json_t *time_or_null(int64_t wall_ms)
{
    char text[DT_CLOCK_ISO_SIZE];
    return wall_ms > 0 ? json_string(dt_clock_iso(text, wall_ms)) : json_null();
}

static json_t *tags_to_json(const char *tags)
{
    json_t *array = json_array();

    for (size_t length; *tags != '\0'; tags += length + strspn(tags + length, " ")) {
        length = strcspn(tags, " ");
        json_array_append_new(array, json_stringn(tags, length));
    }
    return array;
}

json_t *dt_runs_to_json(const dt_run *run)
{
    json_t *object = dt_report_object();

    json_object_set_new(object, "run", json_string(run->id));
    json_object_set_new(object, "name", json_string(run->name));
    json_object_set_new(object, "task",
                        json_string(dt_task_of(run) != NULL ? dt_task_of(run) : "train"));
    json_object_set_new(object, "state", json_string(dt_run_state_name(run->state)));
    json_object_set_new(object, "attempt", json_integer(run->attempt));
    json_object_set_new(object, "step", json_integer(run->step));
    json_object_set_new(object, "steps_total",
                        run->steps_total > 0 ? json_integer(run->steps_total) : json_null());
    json_object_set_new(object, "loss", dt_json_number(run->loss));
    json_object_set_new(object, "valid_loss", dt_json_number(run->valid_loss));
    json_object_set_new(object, "diverged", json_boolean(dt_run_has_diverged(run)));
    json_object_set_new(object, "tokens_per_second", dt_json_number(run->tokens_per_second));
    json_object_set_new(object, "created", time_or_null(run->created_ms));
    json_object_set_new(object, "started", time_or_null(run->started_ms));
    json_object_set_new(object, "ended", time_or_null(run->ended_ms));
    json_object_set_new(object, "exit_code",
                        run->exit_code >= 0 ? json_integer(run->exit_code) : json_null());
    json_object_set_new(object, "reason", dt_json_text(run->reason));
    json_object_set_new(object, "tags", tags_to_json(run->tags));
    json_object_set_new(object, "note", dt_json_text(run->note));
    json_object_set_new(object, "group",
                        run->group[0] != '\0' ? dt_json_text(run->group) : json_null());
    json_object_set_new(object, "parent",
                        run->parent[0] != '\0'
                            ? json_pack("{s:o, s:I}", "run", dt_json_text(run->parent), "step",
                                        (json_int_t)run->parent_step)
                            : json_null());
    return object;
}

static json_t *rank_to_json(const dt_rank *rank, const char *activity)
{
    json_t *object = json_object();

    json_object_set_new(object, "rank", json_integer(rank->rank));
    json_object_set_new(object, "pid", rank->pid > 0 ? json_integer(rank->pid) : json_null());
    json_object_set_new(object, "state", json_string(rank->state));
    json_object_set_new(object, "activity", json_string(activity));
    json_object_set_new(object, "device", json_string(rank->device));
    json_object_set_new(object, "exit_code",
                        rank->exit_code >= 0 ? json_integer(rank->exit_code) : json_null());
    json_object_set_new(object, "exit_signal",
                        rank->exit_signal > 0 ? json_integer(rank->exit_signal) : json_null());
    return object;
}

static json_t *nodes_to_json(const dt_node_lines *lines)
{
    json_t *all = json_array();

    for (int64_t n = 0; n < lines->nodes_count; n++) {
        json_t *node = json_object(), *of_node = json_array();
        json_object_set_new(node, "host", json_string(lines->nodes[n].name));
        json_object_set_new(node, "state", dt_json_text(lines->nodes[n].state));
        for (int64_t r = 0; r < lines->ranks_count; r++)
            if (lines->ranks[r].node == lines->nodes[n].node)
                json_array_append_new(
                    of_node,
                    rank_to_json(&lines->ranks[r], dt_node_lines_rank(lines, &lines->ranks[r])));
        json_object_set_new(node, "ranks", of_node);
        json_array_append_new(all, node);
    }
    return all;
}

void dt_runs_add_activity(json_t *object, const dt_run *run, const dt_activity *activity)
{
    json_object_set_new(object, "activity", dt_json_text(activity->words));
    if (!activity->steps && !dt_run_state_is_terminal(run->state))
        json_object_set_new(object, "tokens_per_second", json_null());
}

const char *dt_runs_attempt_sentence(const dt_attempt *attempts, int64_t at, dt_arena *arena)
{
    const dt_attempt *before = &attempts[at - 1];

    return dt_arena_printf(
        arena, "attempt %lld continues from step %lld; attempt %lld %s%s%s%s",
        (long long)attempts[at].attempt, (long long)attempts[at].start_step,
        (long long)before->attempt, before->state == DT_RUN_STOPPED ? "was " : "",
        dt_run_state_name(before->state), before->reason[0] != '\0' ? ": " : "", before->reason);
}

json_t *dt_runs_attempts_json(const dt_attempt *attempts, int64_t count)
{
    json_t *array = json_array();

    for (int64_t i = 0; i < count; i++) {
        const dt_attempt *attempt = &attempts[i];
        json_t *object = json_object();
        json_object_set_new(object, "attempt", json_integer(attempt->attempt));
        json_object_set_new(object, "state", json_string(dt_run_state_name(attempt->state)));
        json_object_set_new(object, "start_step", json_integer(attempt->start_step));
        json_object_set_new(object, "elapsed_seconds",
                            attempt->elapsed_ms >= 0
                                ? dt_json_number((double)attempt->elapsed_ms / 1000)
                                : json_null());
        json_object_set_new(object, "reason", dt_json_text(attempt->reason));
        json_array_append_new(array, object);
    }
    return array;
}

dt_status dt_runs_status_json(json_t **out, dt_store *store, const dt_run *run, dt_arena *arena,
                              dt_error *err)
{
    dt_status st = DT_OK;
    dt_node_lines lines;
    dt_attempt *attempts;
    json_t *why = NULL;
    dt_unsaved unsaved;
    dt_timing timing;
    int64_t count;

    *out = NULL;
    DT_TRY(dt_store_attempt_list(store, &attempts, &count, run->id, arena, err));
    DT_TRY(dt_timing_read(&timing, store, run, dt_clock_wall_ms(), arena, err));
    DT_TRY(dt_node_lines_read(&lines, store, run, &timing.activity, arena, err));
    DT_TRY(dt_why_now(&why, run, dt_clock_wall_ms(), arena, err));
    *out = dt_runs_to_json(run);
    dt_runs_add_activity(*out, run, &timing.activity);
    json_object_set_new(*out, "slow",
                        why != NULL ? json_incref(json_object_get(why, "findings")) : json_array());
    json_decref(why);
    json_object_set_new(*out, "elapsed_seconds", dt_json_number(timing.elapsed_seconds));
    json_object_set_new(*out, "eta_seconds", dt_json_number(timing.eta_seconds));
    json_object_set_new(*out, "attempts", dt_runs_attempts_json(attempts, count));
    json_object_set_new(*out, "nodes", nodes_to_json(&lines));
    json_object_set_new(*out, "trouble", trouble_json(run));
    json_object_set_new(*out, "slowest",
                        lines.slowest_rank < 0
                            ? json_null()
                            : json_pack("{s:I, s:f}", "rank", (json_int_t)lines.slowest_rank,
                                        "seconds", lines.slowest_seconds));
    DT_TRY(dt_unsaved_find(&unsaved, store, run, &lines, arena, err));
    json_object_set_new(*out, "unsaved",
                        unsaved.step < 0
                            ? json_null()
                            : json_pack("{s:I, s:I, s:s, s:o}", "step", (json_int_t)unsaved.step,
                                        "rank", (json_int_t)unsaved.rank, "node", unsaved.node,
                                        "message", dt_json_text(unsaved.message)));
out:
    return st;
}

const char *dt_runs_total(char *buf, size_t size, const dt_run *run)
{
    char whole[DT_FORMAT_SIZE];
    json_t *recipe = NULL;
    int64_t epochs = 0;

    if (run->steps_total == 0 && dt_json_parse(&recipe, run->recipe_json, strlen(run->recipe_json),
                                               "stored recipe", NULL) == DT_OK)
        epochs = json_integer_value(json_object_get(json_object_get(recipe, "schedule"), "epochs"));
    if (epochs > 0)
        snprintf(buf, size, "%s epoch%s", dt_format_whole(whole, sizeof(whole), epochs),
                 epochs == 1 ? "" : "s");
    else if (run->steps_total > 0)
        dt_format_whole(buf, size, run->steps_total);
    else
        snprintf(buf, size, "?"); /* only the program of a command knows */
    json_decref(recipe);
    return buf;
}

bool dt_runs_is_command(const dt_run *run)
{
    const char *task = dt_task_of(run);

    return task != NULL && strcmp(task, "command") == 0;
}

const char *dt_runs_progress(char *buf, size_t size, const char *between, const dt_run *run)
{
    char step[DT_FORMAT_SIZE], total[DT_FORMAT_SIZE];

    dt_format_whole(step, sizeof(step), run->step);
    if (run->steps_total > 0 || !dt_runs_is_command(run))
        snprintf(buf, size, "%s%s%s", step, between, dt_runs_total(total, sizeof(total), run));
    else
        snprintf(buf, size, "%s", run->step > 0 ? step : "-");
    return buf;
}

const dt_architecture *dt_runs_architecture(const dt_run *run)
{
    const dt_architecture *found;
    const char *kind = NULL;
    json_t *recipe = NULL;

    if (dt_json_parse(&recipe, run->recipe_json, strlen(run->recipe_json), "stored recipe", NULL) ==
        DT_OK)
        kind = json_string_value(json_object_get(json_object_get(recipe, "model"), "kind"));
    found = kind != NULL ? dt_architecture_named(kind) : NULL;
    json_decref(recipe);
    return found;
}

const char *dt_runs_speed(const dt_run *run)
{
    const dt_architecture *kind = dt_runs_architecture(run);

    return kind != NULL && kind->reads_rows ? "rows/s" : "tokens/s";
}

const char *dt_runs_timed_speed(const dt_run *run)
{
    bool rows = strcmp(dt_runs_speed(run), "rows/s") == 0;

    if (dt_run_state_is_terminal(run->state))
        return rows ? "rows/s (mean)" : "tokens/s (mean)";
    return rows ? "rows/s (last)" : "tokens/s (last)";
}

dt_style dt_runs_run_style(const dt_run *run)
{
    bool good = run->state == DT_RUN_FINISHED || run->state == DT_RUN_RUNNING;

    return good && dt_run_has_diverged(run) ? DT_STYLE_BAD : dt_runs_style(run->state);
}

dt_style dt_runs_style(dt_run_state state)
{
    switch (state) {
    case DT_RUN_RUNNING:
        return DT_STYLE_ACCENT;
    case DT_RUN_FINISHED:
        return DT_STYLE_GOOD;
    case DT_RUN_FAILED:
        return DT_STYLE_BAD;
    case DT_RUN_STOPPING:
    case DT_RUN_STOPPED:
        return DT_STYLE_WARN;
    default:
        return DT_STYLE_PLAIN;
    }
}

dt_style dt_runs_activity_style(const dt_run *run, const dt_activity *activity)
{
    bool usual = strcmp(activity->words, dt_run_state_word(run)) == 0;

    return usual ? dt_runs_run_style(run) : DT_STYLE_WARN;
}
