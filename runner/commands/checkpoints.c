/* dtrun checkpoints: lists the checkpoints of a run that are still on disk. */
#include <unistd.h>

#include "base/clock.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/supervisor/folder/resume_point.h"
#include "runner/term/term.h"
#include "runner/view/runs/runs.h"

static json_t *to_json(const dt_store_checkpoint *checkpoint)
{
    char time[DT_CLOCK_ISO_SIZE];
    json_t *object = json_object();

    json_object_set_new(object, "step", json_integer(checkpoint->step));
    json_object_set_new(object, "attempt", json_integer(checkpoint->attempt));
    json_object_set_new(object, "bytes", json_integer(checkpoint->bytes));
    json_object_set_new(object, "valid_loss", dt_json_number(checkpoint->valid_loss));
    json_object_set_new(object, "score", dt_json_number(checkpoint->score));
    json_object_set_new(object, "seconds", dt_json_number(checkpoint->seconds));
    json_object_set_new(object, "time", json_string(dt_clock_iso(time, checkpoint->time_ms)));
    json_object_set_new(object, "digest", json_string(checkpoint->digest));
    json_object_set_new(object, "path", json_string(checkpoint->path));
    return object;
}

static void add_row(dt_table *table, const dt_store_checkpoint *checkpoint, const char *path,
                    int64_t now_ms)
{
    char text[DT_FORMAT_SIZE];

    dt_table_add(table, DT_STYLE_BOLD, "%s", dt_format_whole(text, sizeof(text), checkpoint->step));
    dt_table_add(table, DT_STYLE_PLAIN, "%s",
                 dt_format_bytes(text, sizeof(text), (double)checkpoint->bytes));
    dt_table_add(table, DT_STYLE_PLAIN, "%s",
                 dt_format_loss(text, sizeof(text), checkpoint->valid_loss));
    dt_table_add(table, DT_STYLE_DIM, "%s",
                 dt_format_ago(text, sizeof(text), checkpoint->time_ms, now_ms));
    dt_table_add(table, DT_STYLE_PLAIN, "%s", path);
}

static dt_status checkpoints(dt_call *call, dt_error *err)
{
    static const dt_table_column columns[] = {{"step", true},
                                              {"size", true},
                                              {"validation loss", true},
                                              {"saved", true},
                                              {"path", false}};
    json_t *object, *array = json_array();
    dt_store_checkpoint *all;
    const char *path;
    dt_store *store = NULL;
    dt_status st = DT_OK;
    int64_t count, shown = 0;
    dt_table table;
    dt_strbuf text;
    dt_term term;
    dt_run run;

    dt_term_init(&term, STDOUT_FILENO);
    dt_strbuf_init(&text);
    dt_table_init(&table, columns, sizeof(columns) / sizeof(columns[0]), call->arena);
    DT_TRY(dt_runs_open(&store, &run, call->args->operands[0], call, err));
    DT_TRY(dt_store_checkpoint_list(store, &all, &count, run.id, call->arena, err));
    for (int64_t i = 0; i < count; i++) {
        if (!dt_store_checkpoint_exists(&all[i]))
            continue; /* removed by the recipe's checkpoint.keep */
        shown++;
        path = dt_run_checkpoint_here(run.id, &all[i], call->arena);
        object = to_json(&all[i]);
        if (path != all[i].path)
            json_object_set_new(object, "copy", json_string(path));
        json_array_append_new(array, object);
        add_row(&table, &all[i], path, dt_clock_wall_ms());
    }
    if (call->json) {
        object = dt_report_object();
        json_object_set_new(object, "run", json_string(run.id));
        json_object_set(object, "checkpoints", array);
        DT_TRY(dt_report_json(object, err));
    } else if (shown > 0) {
        dt_table_write(&text, &table, &term, 0);
        DT_TRY(dt_report_styled(&text, err));
    } else {
        dt_report_note(call, "run %s has no checkpoints", run.id);
    }
out:
    json_decref(array);
    dt_strbuf_release(&text);
    dt_store_close(store);
    return st;
}

const dt_command dt_command_checkpoints = {
    .name = "checkpoints",
    .summary = "list the checkpoints of a run that are on disk",
    .operands = "RUN",
    .takes = DT_OPERAND_RUN,
    .runs = DT_RUNS_REMOTE,
    .operands_min = 1,
    .operands_max = 1,
    .run = checkpoints,
};
