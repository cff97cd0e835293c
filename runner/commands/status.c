/* dtrun status: prints state, progress and ranks of a run, once or until it ends. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/metric_kinds.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/queue/queue.h"
#include "runner/supervisor/folder/task_folder.h"
#include "runner/supervisor/supervisor.h"
#include "runner/sweep/sweep.h"
#include "runner/term/screen.h"
#include "runner/term/term.h"
#include "runner/top/top.h"
#include "runner/view/follow/follow.h"
#include "runner/view/runs/runs.h"
#include "runner/view/runs/why.h"

enum { BAR_COLUMNS = 40, BAR_LEAST = 8, BESIDE_BAR = 32, NUMBERS_COLUMNS = 64 };

/* Adds the cause of the last restart, if there is more than one attempt. */
static dt_status add_attempt(dt_strbuf *out, const dt_term *term, dt_store *store,
                             const dt_run *run, dt_arena *arena, dt_error *err)
{
    dt_attempt *attempts;
    dt_status st = DT_OK;
    int64_t count;

    DT_TRY(dt_store_attempt_list(store, &attempts, &count, run->id, arena, err));
    if (count > 1)
        dt_term_add(out, term, DT_STYLE_WARN, "  %s\n",
                    dt_runs_attempt_sentence(attempts, count - 1, arena));
out:
    return st;
}

static size_t bar_columns(const dt_term *term)
{
    int room = term->columns - BESIDE_BAR;

    if (!term->seen || room > BAR_COLUMNS)
        return BAR_COLUMNS;
    return (size_t)(room > BAR_LEAST ? room : BAR_LEAST);
}

static void add_run(dt_strbuf *out, const dt_term *term, const dt_run *run, const dt_timing *timing)
{
    double share = run->steps_total > 0 ? (double)run->step / (double)run->steps_total : 0;
    char a[DT_FORMAT_SIZE], b[DT_FORMAT_SIZE], c[DT_FORMAT_SIZE];
    bool command = dt_runs_is_command(run), has_numbers = true;

    dt_term_add(out, term, DT_STYLE_BOLD, "%s %s ", run->name, run->id);
    dt_term_add(out, term, dt_runs_activity_style(run, &timing->activity), "%s",
                dt_runs_shown_state(run, &timing->activity));
    dt_term_add(out, term, DT_STYLE_DIM, run->attempt > 1 ? ", attempt %lld\n" : "\n",
                (long long)run->attempt);
    if (run->reason[0] != '\0')
        dt_term_add(out, term, DT_STYLE_PLAIN, "  %s\n", run->reason);
    if (run->steps_total > 0 || !command) {
        dt_strbuf_add_str(out, "  ");
        dt_bar_add(out, term, dt_runs_run_style(run), share, bar_columns(term));
        dt_term_add(out, term, DT_STYLE_PLAIN, " %d%%  %s %s\n", (int)(share * 100),
                    dt_task_of_lines(run) ? "line" : "step",
                    dt_runs_progress(a, sizeof(a), " of ", run));
    } else if (run->step > 0) {
        dt_term_add(out, term, DT_STYLE_PLAIN, "  step %s\n",
                    dt_runs_progress(a, sizeof(a), " of ", run));
    }
    if (command && isnan(run->loss) && isnan(run->valid_loss))
        has_numbers = false; /* it reports none */
    else if (!dt_task_of_lines(run))
        dt_term_add(out, term, DT_STYLE_PLAIN, "  loss %s   validation loss %s%s",
                    dt_format_loss(a, sizeof(a), run->loss),
                    dt_format_loss(b, sizeof(b), run->valid_loss),
                    term->seen && term->columns < NUMBERS_COLUMNS ? "\n  " : "   ");
    else if (isnan(timing->lines_per_second))
        dt_strbuf_add_str(out, "  ");
    else
        dt_term_add(out, term, DT_STYLE_PLAIN, "  %s lines/s   ",
                    dt_format_count(a, sizeof(a), timing->lines_per_second));
    if (has_numbers)
        dt_term_add(out, term, DT_STYLE_PLAIN, "%s %s\n",
                    dt_format_count(c, sizeof(c), timing->tokens_per_second),
                    dt_runs_timed_speed(run));
    dt_term_add(out, term, DT_STYLE_PLAIN, "  elapsed %s",
                dt_clock_duration(a, sizeof(a), timing->elapsed_seconds));
    if (!dt_run_state_is_terminal(run->state) && !isnan(timing->eta_seconds))
        dt_term_add(out, term, DT_STYLE_PLAIN, "   left %s",
                    dt_format_seconds(b, sizeof(b), ceil(timing->eta_seconds)));
    else if (!dt_run_state_is_terminal(run->state) && run->first_step_ms != 0 && !command)
        dt_term_add(out, term, DT_STYLE_PLAIN, "   left -");
    dt_strbuf_add_char(out, '\n');
}

static void add_ranks(dt_strbuf *out, const dt_term *term, const dt_node_lines *lines,
                      dt_arena *arena)
{
    static const dt_table_column columns[] = {
        {"rank", true}, {"host", false}, {"device", false}, {"pid", true}, {"state", false}};
    const dt_rank *ranks = lines->ranks;
    dt_table table;

    dt_table_init(&table, columns, 5, arena);
    for (int64_t i = 0; i < lines->ranks_count; i++) {
        const char *host = "-";
        for (int64_t n = 0; n < lines->nodes_count; n++)
            if (lines->nodes[n].node == ranks[i].node)
                host = lines->nodes[n].name;
        dt_table_add(&table, DT_STYLE_PLAIN, "%lld", (long long)ranks[i].rank);
        dt_table_add(&table, DT_STYLE_PLAIN, "%s", host);
        dt_table_add(&table, DT_STYLE_PLAIN, "%s", ranks[i].device);
        if (ranks[i].pid > 0)
            dt_table_add(&table, DT_STYLE_PLAIN, "%lld", (long long)ranks[i].pid);
        else
            dt_table_add(&table, DT_STYLE_DIM, "-");
        dt_table_add(&table, DT_STYLE_PLAIN, "%s", dt_node_lines_rank(lines, &ranks[i]));
    }
    dt_table_write(out, &table, term, 2);
    if (lines->slowest_rank >= 0) {
        dt_strbuf_add_str(out, "\n  ");
        dt_node_lines_add_slowest(out, term, lines);
        dt_strbuf_add_char(out, '\n');
    }
}

/* Adds the ranks of a single node, or one line for each of several nodes. */
static dt_status add_nodes(dt_strbuf *out, const dt_term *term, dt_store *store, const dt_run *run,
                           const dt_activity *activity, dt_arena *arena, dt_error *err)
{
    dt_node_lines lines;
    dt_unsaved unsaved;
    dt_status st;

    DT_TRY(dt_node_lines_read(&lines, store, run, activity, arena, err));
    if (lines.ranks_count == 0)
        goto out;
    dt_strbuf_add_char(out, '\n');
    if (lines.nodes_count > 1 || activity->missing > 0)
        dt_node_lines_add(out, term, &lines, 0);
    else
        add_ranks(out, term, &lines, arena);
    DT_TRY(dt_unsaved_find(&unsaved, store, run, &lines, arena, err));
    if (unsaved.step >= 0)
        dt_term_add(
            out, term, DT_STYLE_WARN, "\n  the save at step %lld failed, rank %lld on %s: %s\n",
            (long long)unsaved.step, (long long)unsaved.rank, unsaved.node, unsaved.message);
out:
    return st;
}

static dt_status print_text(dt_store *store, const dt_run *run, const dt_call *call, dt_error *err)
{
    dt_incident incident;
    json_t *why = NULL;
    dt_status st = DT_OK;
    dt_timing timing;
    dt_strbuf text;
    dt_term term;

    dt_term_init(&term, STDOUT_FILENO);
    dt_strbuf_init(&text);
    DT_TRY(dt_why_now(&why, run, dt_clock_wall_ms(), call->arena, err));
    DT_TRY(dt_timing_read(&timing, store, run, dt_clock_wall_ms(), call->arena, err));
    add_run(&text, &term, run, &timing);
    DT_TRY(add_attempt(&text, &term, store, run, call->arena, err));
    dt_why_add_line(&text, &term, why);
    DT_TRY(add_nodes(&text, &term, store, run, &timing.activity, call->arena, err));
    if (run->state == DT_RUN_FAILED) {
        DT_TRY(dt_incident_find(&incident, store, run, call->arena, err));
        dt_summary_add_incident(&text, &term, &incident);
    }
    DT_TRY(dt_report_styled(&text, err));
out:
    json_decref(why);
    dt_strbuf_release(&text);
    return st;
}

/* Whether --watch without RUN shows all active runs, because several are active. */
static dt_status watches_all(bool *out, const dt_call *call, dt_error *err)
{
    dt_store *store = NULL;
    dt_status st = DT_OK;
    int64_t count;
    dt_run *runs;
    dt_term term;

    *out = false;
    dt_term_init(&term, STDOUT_FILENO);
    if (call->args->operands_count > 0 || !dt_arguments_flag(call->args, "watch") || call->json ||
        !dt_screen_possible(&term))
        return DT_OK;
    DT_TRY(dt_store_open_to_read(&store, NULL, err));
    DT_TRY(dt_store_run_list_since(store, &runs, &count, INT64_MAX, call->arena, err));
    *out = count > 1;
out:
    dt_store_close(store);
    return st;
}

/* Reports why the supervisor cannot work. With --json the object has it. */
static void report_trouble(const dt_run *run, const dt_call *call)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (!dt_run_state_is_terminal(run->state) && dt_supervisor_trouble(&text, run->id))
        dt_report_note(call, "dtrun: run '%s': %s", run->id, text.data);
    dt_strbuf_release(&text);
}

/* Says why a run waits. */
static void report_wait(const dt_run *run, dt_store *store, const dt_call *call)
{
    dt_queue_facts facts;

    if (run->state != DT_RUN_WAITING ||
        dt_queue_look(&facts, store, NULL, NULL, call->arena, NULL) != DT_OK)
        return;
    for (int64_t i = 0; i < facts.order.run_count; i++)
        if (strcmp(facts.runs[i].id, run->id) == 0)
            dt_report_note(call, "it waits: needs %s; %s",
                           dt_queue_needs(&facts.order, &facts.order.runs[i], call->arena),
                           dt_queue_reason(&facts, i, call->arena));
}

static dt_status status(dt_call *call, dt_error *err)
{
    const char *ref = call->args->operands_count > 0 ? call->args->operands[0] : "last";
    dt_store *store = NULL;
    json_t *object = NULL;
    dt_status st = DT_OK;
    dt_sweep_group group;
    bool all;
    dt_run run;

    DT_TRY(watches_all(&all, call, err));
    if (all)
        return dt_top(NULL, &(dt_top_wish){.metric = dt_metric_name(DT_METRIC_LOSS)}, call, err);
    if (dt_group_is_meant(&group, ref, call)) {
        if (dt_arguments_flag(call->args, "watch"))
            return dt_group_follow(group.name, call, err);
        DT_TRY(dt_store_open(&store, NULL, err));
        DT_TRY(dt_group_print(&group, store, call, err));
        goto out;
    }
    DT_TRY(dt_runs_open(&store, &run, ref, call, err));
    report_trouble(&run, call);
    if (dt_arguments_flag(call->args, "watch") && !dt_run_state_is_terminal(run.state)) {
        DT_TRY(dt_follow_to_end(store, run.id, call->json ? DT_FOLLOW_QUIET : DT_FOLLOW_AUTO,
                                DT_FOLLOW_FROM_NOW, call, err));
    } else if (call->json) {
        DT_TRY(dt_runs_status_json(&object, store, &run, call->arena, err));
        DT_TRY(dt_report_json(object, err));
    } else {
        DT_TRY(print_text(store, &run, call, err));
        report_wait(&run, store, call);
    }
    if (dt_arguments_flag(call->args, "watch") && dt_run_state_is_terminal(run.state))
        call->exit_code = dt_follow_exit_code(&run); /* it had ended before */
out:
    dt_store_close(store);
    return st;
}

static const dt_option options[] = {
    {.name = "watch",
     .letter = 'w',
     .kind = DT_OPTION_FLAG,
     .help =
         "follow the run until it ends, as launch does, and exit with the exit code of the run"},
    {0},
};

const dt_command dt_command_status = {
    .name = "status",
    .summary = "show state, step, losses, speed, time left and ranks",
    .operands = "[RUN|GROUP]",
    .takes = DT_OPERAND_RUN,
    .runs = DT_RUNS_REMOTE,
    .operands_max = 1,
    .options = options,
    .notes =

        "Without RUN, shows the newest run; with --watch and several active runs, shows all of\n"
        "them as 'dtrun top' does. The object of --json has at least run, name, state, attempt,\n"
        "step, steps_total, loss, tokens_per_second, eta_seconds and nodes[{host, state,\n"
        "ranks[{rank, pid, state}]}]; unknown values are null. unsaved is the last save if it\n"
        "failed: {step, rank, node, message}. slowest is {rank, seconds}: the\n"
        "rank that the others wait for and the time lost in a step, if it is more than 5 % of the\n"
        "step. slow is [{cause, rank, node, text, evidence, seconds, share}]: what slows the run\n"
        "down, the worst first (docs/slow.md). activity is what the run or a rank does, for\n"
        "example 'waiting for gpu-b', 'restarting' or 'not responding'; speed and time left are\n"
        "null while no step can come.\n"
        "trouble is why the supervisor of an active run cannot work, or null.\n"
        "GROUP is a sweep: prints one line a point; its object has group, ended and points[{name,\n"
        "values, state, run, step, loss, valid_loss}].\n",
    .run = status,
};
