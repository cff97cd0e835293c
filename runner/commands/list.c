/* dtrun list: lists runs, newest first. */
#include <unistd.h>

#include "base/clock.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/supervisor/rebuild/rebuild.h"
#include "runner/view/runs/runs.h"

static const char *const states[] = {"waiting",  "queued",   "preparing", "starting", "running",
                                     "stopping", "finished", "failed",    "stopped",  NULL};

static dt_status read_selection(dt_run_selection *out, const dt_call *call, dt_error *err)
{
    const dt_arguments *args = call->args;
    const dt_value *state = dt_arguments_get(args, "state"), *tags = dt_arguments_get(args, "tag");
    const char *since = dt_arguments_get(args, "since")->text;
    const char *sort = dt_arguments_get(args, "sort")->text;
    size_t filters = (size_t)args->operands_count;
    dt_run_state wanted;
    dt_status st = DT_OK;

    *out = (dt_run_selection){.state = -1,
                              .tags = tags->items,
                              .tags_count = tags->items_count,
                              .group = dt_arguments_get(args, "group")->text,
                              .name = dt_arguments_get(args, "name")->text,
                              .archived = dt_arguments_flag(args, "archived"),
                              .limit = dt_arguments_get(args, "limit")->integer,
                              .sort = sort};
    if (state->given && dt_run_state_parse(&wanted, state->text))
        out->state = (int)wanted;
    if (since != NULL)
        DT_TRY(dt_since_parse(&out->since_ms, since, dt_clock_wall_ms(), err));
    if (sort != NULL && sort[0] == '-') {
        out->sort = sort + 1;
        out->descending = true;
    }
    out->filters = dt_arena_alloc_array(call->arena, filters + 1, sizeof(out->filters[0]));
    for (; out->filters_count < filters; out->filters_count++)
        DT_TRY(dt_run_filter_parse(&out->filters[out->filters_count],
                                   args->operands[out->filters_count], call->arena, err));
out:
    return st;
}

static json_t *value_to_json(const dt_run_value *value)
{
    if (!value->there)
        return json_null();
    return value->is_number ? dt_json_number(value->number) : dt_json_text(value->text);
}

/* Makes the row of one run: the keys of --json, and "columns" with those of --columns. */
static dt_status make_row(json_t **out, dt_store *store, dt_run_entry *entry,
                          const dt_run_columns *columns, dt_arena *arena, dt_error *err)
{
    json_t *run = dt_runs_to_json(entry->run), *values;
    dt_activity activity;
    dt_status st = DT_OK;
    dt_run_value value;

    json_object_del(run, "version"); /* is once at the top */
    DT_TRY(dt_activity_read(&activity, store, entry->run, dt_clock_wall_ms(), arena, err));
    dt_runs_add_activity(run, entry->run, &activity);
    if (columns->count > 0) {
        values = json_object();
        json_object_set_new(run, "columns", values);
        for (size_t c = 0; c < columns->count; c++) {
            DT_TRY(dt_run_value_get(&value, store, entry, columns->keys[c], arena, err));
            json_object_set_new(values, columns->keys[c], value_to_json(&value));
        }
    }
    *out = run;
    run = NULL;
out:
    json_decref(run);
    return st;
}

/* Makes an array of the rows of all runs. */
static dt_status make_rows(json_t **out, dt_store *store, dt_run_entries *entries,
                           const dt_run_columns *columns, dt_arena *arena, dt_error *err)
{
    json_t *array = json_array(), *row;
    dt_status st = DT_OK;

    for (size_t i = 0; i < entries->count; i++) {
        DT_TRY(make_row(&row, store, &entries->items[i], columns, arena, err));
        json_array_append_new(array, row);
    }
    *out = array;
    array = NULL;
out:
    json_decref(array);
    return st;
}

static dt_status print_json(json_t *rows, dt_error *err)
{
    json_t *object = dt_report_object();

    json_object_set(object, "runs", rows);
    return dt_report_json(object, err);
}

/* Makes every value of a row a cell: of "parent" the run and its step, of "columns" each key. */
static void flatten(json_t *row)
{
    json_t *parent = json_incref(json_object_get(row, "parent"));

    json_object_set_new(row, "parent_step", json_null());
    if (json_is_object(parent)) {
        json_object_set(row, "parent", json_object_get(parent, "run"));
        json_object_set(row, "parent_step", json_object_get(parent, "step"));
    }
    json_decref(parent);
    json_object_update_missing(row, json_object_get(row, "columns"));
    json_object_del(row, "columns");
}

/* Prints the rows as CSV. The first line is the same for any runs, also without one. */
static dt_status print_csv(json_t *rows, dt_store *store, const dt_run_columns *columns,
                           dt_arena *arena, dt_error *err)
{
    dt_run_entry none = {.run = &dt_run_nothing};
    json_t *head = NULL, *row;
    dt_status st = DT_OK;
    size_t i;

    DT_TRY(make_row(&head, store, &none, columns, arena, err));
    flatten(head);
    json_array_foreach(rows, i, row)
        flatten(row);
    DT_TRY(dt_report_csv(head, rows, err));
out:
    dt_run_entry_release(&none);
    json_decref(head);
    return st;
}

static dt_status print_text(dt_store *store, dt_run_entries *entries, const dt_run_columns *columns,
                            bool selected, const dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf text;
    dt_term term;

    dt_term_init(&term, STDOUT_FILENO);
    dt_strbuf_init(&text);
    if (entries->count == 0) {
        dt_report_note(call, "no runs%s",
                       dt_arguments_get(call->args, "state")->given ? " in this state"
                       : selected                                   ? " like that"
                                                                    : " yet");
        goto out;
    }
    DT_TRY(dt_run_table_write(&text, &term, store, entries, columns, call->arena, err));
    DT_TRY(dt_report_styled(&text, err));
out:
    dt_strbuf_release(&text);
    return st;
}

static dt_status list(dt_call *call, dt_error *err)
{
    const char *asked = dt_arguments_get(call->args, "columns")->text;
    bool csv = dt_arguments_flag(call->args, "csv");
    dt_run_columns columns = {0};
    dt_run_entries entries = {0};
    dt_run_selection selection;
    dt_store *store = NULL;
    dt_status st = DT_OK;
    json_t *rows = NULL;

    if (csv && call->json)
        DT_THROW(err, DT_ERR_USAGE, "--csv and --json cannot be combined");
    DT_TRY(read_selection(&selection, call, err));
    DT_TRY(dt_store_open_to_read(&store, NULL, err));
    dt_restore_runs(store);
    if (asked != NULL)
        DT_TRY(dt_run_columns_parse(&columns, store, asked, call->arena, err));
    DT_TRY(dt_run_select(&entries, store, &selection, call->arena, err));
    for (size_t i = 0; i < entries.count; i++)
        (void)dt_runs_ensure(entries.items[i].run, call);
    if (call->json || csv) {
        DT_TRY(make_rows(&rows, store, &entries, &columns, call->arena, err));
        DT_TRY(call->json ? print_json(rows, err)
                          : print_csv(rows, store, &columns, call->arena, err));
    } else {
        if (asked == NULL)
            dt_run_columns_differing(&columns, &entries, call->arena);
        DT_TRY(print_text(store, &entries, &columns, !dt_run_selection_is_plain(&selection), call,
                          err));
    }
    if (entries.archived > 0)
        dt_report_note(call, "archived runs are left out: 'dtrun list --archived' shows them");
    if (entries.more)
        dt_report_note(call, "there are %s: 'dtrun list -n 0' shows all",
                       selection.sort != NULL ? "more" : "older ones");
out:
    json_decref(rows);
    dt_run_entries_release(&entries);
    dt_store_close(store);
    return st;
}

static const dt_option options[] = {
    {.name = "state",
     .kind = DT_OPTION_CHOICE,
     .value = "STATE",
     .choices = states,
     .help = "only runs in this state"},
    {.name = "tag", .kind = DT_OPTION_LIST, .value = "TAG", .help = "only runs with this tag"},
    {.name = "group", .kind = DT_OPTION_TEXT, .value = "GROUP", .help = "only runs of this group"},
    {.name = "name",
     .kind = DT_OPTION_TEXT,
     .value = "GLOB",
     .help = "only runs of this name, as in --name 'gpt-*'"},
    {.name = "archived", .kind = DT_OPTION_FLAG, .help = "also runs that were archived"},
    {.name = "since",
     .kind = DT_OPTION_TEXT,
     .value = "TIME",
     .help = "only runs created since 90m, 2h or 3d ago, or since 2026-11-20"},
    {.name = "sort",
     .kind = DT_OPTION_TEXT,
     .value = "KEY",
     .help = "sort by this key, smallest first; -KEY: largest first"},
    {.name = "columns",
     .kind = DT_OPTION_TEXT,
     .value = "KEYS",
     .help = "show these columns, as in optimizer.lr,valid_loss.min; +KEYS adds to the usual ones"},
    {.name = "limit",
     .letter = 'n',
     .kind = DT_OPTION_INT,
     .value = "N",
     .fallback = "20",
     .low = 0,
     .high = 1e9,
     .help = "at most N runs; 0 for all"},
    {.name = "csv",
     .kind = DT_OPTION_FLAG,
     .help = "print CSV: the keys of --json, then --columns"},
    {0},
};

const dt_command dt_command_list = {
    .name = "list",
    .summary = "list runs, newest first",
    .operands = "[FILTER]...",
    .runs = DT_RUNS_REMOTE,
    .operands_max = -1,
    .options = options,
    .notes =

        "A FILTER is a key, one of = != < <= > >=, and a value: 'optimizer.lr>1e-4' 'loss<2'\n"
        "name='gpt-*'. A key is a recipe key, a key of 'dtrun list --json', elapsed (in seconds),\n"
        "or a metric, which means its last value; valid_loss.min and valid_loss.max are its\n"
        "minimum and maximum, valid_loss@1000 its value at step 1000. Runs that pass all filters\n"
        "are shown; a run without the key does not pass.\n"
        "\n"
        "Without --columns, the recipe keys that differ between the runs are added; a narrow\n"
        "terminal shows fewer columns.\n"
        "\n"
        "--csv prints a line of keys and a line for each run, quoted as in RFC 4180; lines end\n"
        "with line feeds. Tags are separated by blanks; parent is the run, parent_step its step;\n"
        "unknown values are empty. A text that begins with = + - or @ gets an apostrophe in\n"
        "front, so that a spreadsheet does not take it for a formula.\n",
    .run = list,
};
