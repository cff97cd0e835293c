#include "runner/sweep/sweep.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/term/term.h"
#include "runner/view/runs/runs.h"

#define LOOK_SECONDS 0.3

/* --- a point */

typedef struct seen {
    const char *state, *activity; /* for JSON; for people */
    dt_style style;
    dt_run run; /* id NULL: no run */
} seen;

static dt_status see(seen *out, const dt_sweep_point *point, dt_store *store, dt_arena *arena,
                     dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_activity activity = {0};
    dt_status st;

    *out = (seen){.state = "waiting", .activity = "waiting", .style = DT_STYLE_DIM};
    out->run.loss = out->run.valid_loss = NAN;
    if (point->problem[0] != '\0')
        *out = (seen){
            .state = "refused", .activity = "refused", .style = DT_STYLE_BAD, .run = out->run};
    if (point->run[0] == '\0')
        return DT_OK;
    st = dt_store_run_find(store, &out->run, point->run, arena, &problem);
    if (st == DT_ERR_NOT_FOUND) {
        *out = (seen){.state = "removed",
                      .activity = "removed",
                      .style = DT_STYLE_DIM,
                      .run = {.loss = NAN, .valid_loss = NAN}};
        return DT_OK;
    }
    if (st != DT_OK)
        return DT_FAIL(err, st, "%s", problem.message);
    st = dt_activity_read(&activity, store, &out->run, dt_clock_wall_ms(), arena, err);
    out->state = dt_run_state_name(out->run.state);
    out->activity = activity.words;
    out->style = dt_runs_activity_style(&out->run, &activity);
    if (point->cut > 0 && out->run.state == DT_RUN_STOPPED)
        out->state = out->activity = "cut";
    return st;
}

/* *out: new reference. */
static dt_status group_to_json(json_t **out, const dt_sweep_group *group, dt_store *store,
                               dt_arena *arena, dt_error *err)
{
    json_t *object = dt_report_object(), *points = json_array();
    dt_status st = DT_OK;

    *out = NULL;
    for (int64_t i = 0; i < group->count; i++) {
        const dt_sweep_point *point = &group->points[i];
        seen now;

        DT_TRY(see(&now, point, store, arena, err));
        json_array_append_new(
            points,
            json_pack("{s:o, s:o, s:s, s:o, s:o, s:I, s:o, s:o, s:I, s:o}", "name",
                      dt_json_text(point->name), "values", dt_json_text(point->values), "state",
                      now.state, "activity", dt_json_text(now.activity), "run",
                      point->run[0] != '\0' ? dt_json_text(point->run) : json_null(), "step",
                      (json_int_t)now.run.step, "loss", dt_json_number(now.run.loss), "valid_loss",
                      dt_json_number(now.run.valid_loss), "cut", (json_int_t)point->cut, "problem",
                      dt_json_text(point->problem)));
    }
    json_object_set_new(object, "group", dt_json_text(group->name));
    json_object_set_new(object, "ended", json_boolean(group->ended));
    json_object_set(object, "points", points);
    *out = json_incref(object);
out:
    json_decref(points);
    json_decref(object);
    return st;
}

static void add_row(dt_table *table, const dt_sweep_point *point, const seen *now)
{
    char step[DT_FORMAT_SIZE], loss[DT_FORMAT_SIZE], valid[DT_FORMAT_SIZE];

    dt_table_add(table, DT_STYLE_BOLD, "%s", point->name);
    dt_table_add(table, DT_STYLE_ACCENT, "%s", point->run[0] != '\0' ? point->run : "-");
    dt_table_add(table, now->style, "%s", now->activity);
    dt_table_add(table, DT_STYLE_PLAIN, "%s",
                 now->run.id != NULL ? dt_format_whole(step, sizeof(step), now->run.step) : "-");
    dt_table_add(table, DT_STYLE_PLAIN, "%s", dt_format_loss(loss, sizeof(loss), now->run.loss));
    dt_table_add(table, DT_STYLE_PLAIN, "%s",
                 dt_format_loss(valid, sizeof(valid), now->run.valid_loss));
    dt_table_add(table, DT_STYLE_PLAIN, "%s",
                 point->problem[0] != '\0' ? point->problem : point->values);
}

static dt_status group_table(dt_strbuf *out, const dt_term *term, const dt_sweep_group *group,
                             dt_store *store, dt_arena *arena, dt_error *err)
{
    static const dt_table_column columns[] = {{"point", false}, {"run", false},
                                              {"state", false}, {"step", true},
                                              {"loss", true},   {"validation loss", true},
                                              {"values", false}};
    dt_status st = DT_OK;
    dt_table table;
    seen now;

    dt_table_init(&table, columns, sizeof(columns) / sizeof(columns[0]), arena);
    for (int64_t i = 0; i < group->count; i++) {
        DT_TRY(see(&now, &group->points[i], store, arena, err));
        add_row(&table, &group->points[i], &now);
    }
    dt_table_write(out, &table, term, 0);
out:
    return st;
}

/* --- all of them */

static dt_status exit_code_of(int *out, const dt_sweep_group *group, dt_store *store,
                              dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    bool failed = false, stopped = false;
    seen now;

    for (int64_t i = 0; i < group->count; i++) {
        DT_TRY(see(&now, &group->points[i], store, arena, err));
        failed = failed || strcmp(now.state, "failed") == 0 || strcmp(now.state, "refused") == 0;
        stopped = stopped || strcmp(now.state, "stopped") == 0 || strcmp(now.state, "waiting") == 0;
    }
    *out = failed ? DT_EXIT_FAILED : stopped ? DT_EXIT_STOPPED : DT_EXIT_GOOD;
out:
    return st;
}

dt_status dt_group_print(const dt_sweep_group *group, dt_store *store, dt_call *call, dt_error *err)
{
    json_t *object = NULL;
    dt_status st = DT_OK;
    dt_strbuf text;
    dt_term term;

    dt_strbuf_init(&text);
    if (group->ended)
        DT_TRY(exit_code_of(&call->exit_code, group, store, call->arena, err));
    if (call->json) {
        DT_TRY(group_to_json(&object, group, store, call->arena, err));
        DT_TRY(dt_report_json(object, err));
        goto out;
    }
    dt_term_init(&term, STDOUT_FILENO);
    DT_TRY(group_table(&text, &term, group, store, call->arena, err));
    DT_TRY(dt_report_styled(&text, err));
out:
    dt_strbuf_release(&text);
    return st;
}

static dt_status tell_changes(const char **states, const dt_sweep_group *group, dt_store *store,
                              dt_call *call, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    seen now;

    for (int64_t i = 0; i < group->count; i++) {
        const dt_sweep_point *point = &group->points[i];
        char loss[DT_FORMAT_SIZE];

        DT_TRY(see(&now, point, store, arena, err));
        if (states[i] != NULL && strcmp(states[i], now.state) == 0)
            continue;
        if (states[i] != NULL || strcmp(now.state, "waiting") != 0)
            dt_report_note(call, "%s %s: %s%s%s", point->name, point->values, now.state,
                           isnan(now.run.loss) ? "" : ", loss ",
                           isnan(now.run.loss) ? ""
                                               : dt_format_loss(loss, sizeof(loss), now.run.loss));
        states[i] = dt_arena_strdup(call->arena, now.state);
    }
out:
    return st;
}

bool dt_group_is_meant(dt_sweep_group *out, const char *ref, dt_call *call)
{
    dt_store *store = NULL;
    bool meant, unreadable;
    dt_status found;
    dt_run run;

    if (dt_group_read(out, ref, call->arena, NULL) != DT_OK)
        return false;
    unreadable = dt_store_open(&store, NULL, NULL) != DT_OK;
    found = unreadable ? DT_ERR_IO : dt_store_run_find(store, &run, ref, call->arena, NULL);
    meant = !out->ended || unreadable || found == DT_ERR_NOT_FOUND;
    if (found == DT_OK && meant)
        dt_report_note(
            call, "'%s' is a sweep that has not ended; to use the run of that name, give its id %s",
            ref, run.id);
    else if (found == DT_OK)
        dt_report_note(call, "'%s' is run %s, and a sweep that has ended ('dtrun list --group %s')",
                       ref, run.id, ref);
    dt_store_close(store);
    return meant;
}

dt_status dt_group_follow(const char *name, dt_call *call, dt_error *err)
{
    dt_store *store = NULL;
    const char **states;
    dt_status st = DT_OK;
    dt_sweep_group group;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_store_open(&store, NULL, err));
    DT_TRY(dt_group_read(&group, name, call->arena, err));
    states = dt_arena_alloc_array(call->arena, (size_t)group.count, sizeof(*states));
    memset(states, 0, (size_t)group.count * sizeof(*states));
    dt_interrupt_catch();
    for (;;) {
        dt_arena_reset(&arena);
        DT_TRY(dt_group_read(&group, name, &arena, err));
        DT_TRY(tell_changes(states, &group, store, call, &arena, err));
        if (group.ended)
            break;
        if (dt_interrupt_seen()) {
            dt_report_note(call, "the sweep continues: 'dtrun status %s', 'dtrun stop %s'", name,
                           name);
            call->exit_code = DT_EXIT_INTERRUPTED;
            goto out;
        }
        DT_TRY(dt_drive_ensure(name, err));
        dt_clock_sleep_seconds(LOOK_SECONDS);
    }
    DT_TRY(dt_group_print(&group, store, call, err));
out:
    dt_store_close(store);
    dt_arena_release(&arena);
    return st;
}
