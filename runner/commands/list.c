/* dtrun list: the runs, newest first. */
#include <unistd.h>

#include "base/clock.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/supervisor/folder/mend.h"
#include "runner/supervisor/supervisor.h"
#include "runner/term/format.h"
#include "runner/term/table.h"
#include "runner/view/runs.h"

#include "base/banned.h"

static const char *const states[] = {"queued",   "preparing", "starting", "running", "stopping",
                                     "finished", "failed",    "stopped",  NULL};

static dt_status print_json(const dt_run *runs, int64_t count, dt_error *err)
{
    json_t *object = dt_report_object(), *array = json_array();

    for (int64_t i = 0; i < count; i++) {
        json_t *run = dt_runs_to_json(&runs[i]);
        json_object_del(run, "version"); /* stands once, at the top */
        json_array_append_new(array, run);
    }
    json_object_set_new(object, "runs", array);
    return dt_report_json(object, err);
}

static void add_run(dt_table *table, const dt_run *run, int64_t now_ms)
{
    char a[DT_FORMAT_SIZE], b[DT_FORMAT_SIZE];

    dt_table_add(table, DT_STYLE_BOLD, "%s", run->id);
    dt_table_add(table, DT_STYLE_PLAIN, "%s", run->name);
    dt_table_add(table, dt_runs_style(run->state), "%s", dt_run_state_name(run->state));
    dt_table_add(table, DT_STYLE_PLAIN, "%s/%s", dt_format_whole(a, sizeof(a), run->step),
                 dt_runs_total(b, sizeof(b), run));
    dt_table_add(table, DT_STYLE_PLAIN, "%s", dt_format_loss(a, sizeof(a), run->loss));
    dt_table_add(table, DT_STYLE_PLAIN, "%s", dt_format_loss(a, sizeof(a), run->valid_loss));
    dt_table_add(table, DT_STYLE_PLAIN, "%s",
                 dt_format_count(a, sizeof(a), run->tokens_per_second));
    dt_table_add(table, DT_STYLE_DIM, "%s", dt_format_ago(a, sizeof(a), run->created_ms, now_ms));
}

static dt_status print_text(const dt_run *runs, int64_t count, const dt_call *call, dt_error *err)
{
    static const dt_table_column columns[] = {
        {"run", false}, {"name", false},      {"state", false},   {"step", true},
        {"loss", true}, {"validation", true}, {"tokens/s", true}, {"created", true}};
    static const int spare[] = {0, 0, 0, 1, 2, 4, 5, 3};
    int64_t now_ms = dt_clock_wall_ms();
    dt_table table;
    dt_strbuf text;
    dt_term term;
    dt_status st;

    dt_term_init(&term, STDOUT_FILENO);
    dt_strbuf_init(&text);
    dt_table_init(&table, columns, sizeof(columns) / sizeof(columns[0]), call->arena);
    table.spare = spare;
    for (int64_t i = 0; i < count; i++)
        add_run(&table, &runs[i], now_ms);
    dt_table_write(&text, &table, &term, 0);
    if (count == 0)
        dt_report_note(call, "no runs%s",
                       dt_arguments_get(call->args, "state")->given ? " in this state" : " yet");
    st = count > 0 ? dt_report_styled(&text, err) : DT_OK;
    dt_strbuf_release(&text);
    return st;
}

static dt_status list(dt_call *call, dt_error *err)
{
    const dt_value *state_asked = dt_arguments_get(call->args, "state");
    int64_t limit = dt_arguments_get(call->args, "limit")->integer, count;
    dt_run_state state = DT_RUN_QUEUED;
    dt_store *store = NULL;
    dt_status st = DT_OK;
    bool more;
    dt_run *runs;

    if (state_asked->given && !dt_run_state_parse(&state, state_asked->text))
        DT_THROW(err, DT_ERR_USAGE, "--state: unknown state '%s'", state_asked->text);
    DT_TRY(dt_store_open_to_read(&store, NULL, err));
    dt_mend_all(store);
    DT_TRY(dt_store_run_list(store, &runs, &count, state_asked->given ? (int)state : -1,
                             limit > 0 ? limit + 1 : 0, call->arena, err));
    more = limit > 0 && count > limit;
    count -= more;
    for (int64_t i = 0; i < count; i++)
        (void)dt_runs_ensure(&runs[i], call);
    DT_TRY(call->json ? print_json(runs, count, err) : print_text(runs, count, call, err));
    if (more)
        dt_report_note(call, "there are older ones: 'dtrun list -n 0' shows all");
out:
    dt_store_close(store);
    return st;
}

static const dt_option options[] = {
    {.name = "state",
     .kind = DT_OPTION_CHOICE,
     .value = "STATE",
     .choices = states,
     .help = "only runs in this state"},
    {.name = "limit",
     .letter = 'n',
     .kind = DT_OPTION_INT,
     .value = "N",
     .fallback = "20",
     .low = 0,
     .high = 1e9,
     .help = "the newest N; 0 for all"},
    {0},
};

const dt_command dt_command_list = {
    .name = "list",
    .summary = "the runs, newest first",
    .operands = "",
    .options = options,
    .run = list,
};
