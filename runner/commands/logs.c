/* logs: prints the output of a run's ranks and its steps, as lines or JSON, and follows them. */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/term/term.h"
#include "runner/view/follow/follow.h"
#include "runner/view/runs/runs.h"

/* Printing lines of log_tail: as text with a separator between attempts, as JSON lines, or as one object. */

/* The boundaries between attempts, printed between the lines by their times with the cause. Starts zeroed. */
typedef struct dt_log_boundaries {
    dt_attempt *attempts;
    int64_t count, printed; /* printed: attempts whose boundary was printed */
    bool begun;
} dt_log_boundaries;

static dt_status log_boundaries_read(dt_log_boundaries *out, dt_store *store, const char *run,
                                     dt_arena *arena, dt_error *err)
{
    return dt_store_attempt_list(store, &out->attempts, &out->count, run, arena, err);
}

static bool is_before(const char *line, const dt_attempt *attempt, char *when)
{
    dt_clock_iso(when, attempt->created_ms);
    return strncmp(line, when, strlen(when)) < 0; /* both start with an ISO time */
}

static void add_boundary(dt_strbuf *out, const dt_term *term, const dt_log_boundaries *between,
                         int64_t at, dt_arena *arena)
{
    char when[DT_CLOCK_ISO_SIZE];

    if (at > 0)
        dt_term_add(out, term, DT_STYLE_WARN, "%s --- %s\n",
                    dt_clock_iso(when, between->attempts[at].created_ms),
                    dt_runs_attempt_sentence(between->attempts, at, arena));
}

/* Adds the boundaries before a line (NULL: all that remain). Before the first line only the newest one is
 * added, since the output may start long after it. */
static void add_boundaries(dt_strbuf *out, const dt_term *term, dt_log_boundaries *between,
                           const char *line, dt_arena *arena)
{
    int64_t from = between->printed;
    char when[DT_CLOCK_ISO_SIZE];

    while (between->printed < between->count &&
           (line == NULL || !is_before(line, &between->attempts[between->printed], when)))
        between->printed++;
    if (!between->begun && line != NULL && between->printed > 0)
        from = between->printed - 1;
    for (int64_t at = from; at < between->printed; at++)
        add_boundary(out, term, between, at, arena);
    between->begun = true;
}

/* Prefixes lines with their rank if there are several. Control characters are removed on a terminal only. */
static dt_status log_print_lines(const dt_log_line *lines, int64_t count, const dt_log_tail *tail,
                                 dt_log_boundaries *between, const dt_term *term, dt_arena *arena,
                                 dt_error *err)
{
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    for (int64_t i = 0; i < count; i++) {
        add_boundaries(&text, term, between, lines[i].text, arena);
        if (lines[i].rank >= 0 && tail->count > 1 && tail->several_nodes)
            dt_term_add(&text, term, DT_STYLE_DIM, "[rank %lld %s] ", (long long)lines[i].rank,
                        lines[i].node);
        else if (lines[i].rank >= 0 && tail->count > 1)
            dt_term_add(&text, term, DT_STYLE_DIM, "[rank %lld] ", (long long)lines[i].rank);
        if (term->seen)
            dt_term_add(&text, term, DT_STYLE_PLAIN, "%s", lines[i].text);
        else
            dt_strbuf_add_str(&text, lines[i].text);
        dt_strbuf_add_char(&text, '\n');
    }
    add_boundaries(&text, term, between, NULL, arena);
    st = dt_report_styled(&text, err);
    dt_strbuf_release(&text);
    return st;
}

static json_t *line_to_json(const dt_log_line *line)
{
    json_t *object = json_object();

    json_object_set_new(object, "rank", json_integer(line->rank));
    json_object_set_new(object, "node", json_string(line->node));
    json_object_set_new(object, "text", dt_json_text(line->text));
    return object;
}

/* Returns the part after the time: lines of ranks are "TIME TEXT", lines of the run "TIME OBJECT". */
static const char *after_time(const char *text)
{
    const char *blank = strchr(text, ' ');

    return blank != NULL ? blank + 1 : text;
}

/* Prints one object with lines and history. */
static dt_status log_print_json(const dt_log_line *lines, int64_t count,
                                const dt_log_boundaries *between, const dt_run *run, dt_error *err)
{
    json_t *object = dt_report_object(), *array = json_array(), *history = json_array(), *one;
    const char *text;

    for (int64_t i = 0; i < count; i++) {
        text = after_time(lines[i].text);
        if (lines[i].rank >= 0)
            json_array_append_new(array, line_to_json(&lines[i]));
        else if (dt_json_parse(&one, text, strlen(text), "history", NULL) == DT_OK)
            json_array_append_new(history, one);
    }
    json_object_set_new(object, "run", json_string(run->id));
    json_object_set_new(object, "attempts",
                        dt_runs_attempts_json(between->attempts, between->count));
    json_object_set_new(object, "lines", array);
    json_object_set_new(object, "history", history);
    return dt_report_json(object, err);
}

static void add_rank_object(dt_strbuf *out, const dt_log_line *line)
{
    const char *text = after_time(line->text);
    int length = text > line->text ? (int)(text - line->text) - 1 : 0;
    json_t *object =
        json_pack("{ss# ss sI ss so}", "time", line->text, length, "kind", "log", "rank",
                  (json_int_t)line->rank, "node", line->node, "text", dt_json_text(text));

    dt_json_write(out, object);
    json_decref(object);
}

/* Prints one object a line; restarts are among the objects of the run. */
static dt_status log_print_objects(const dt_log_line *lines, int64_t count, dt_error *err)
{
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    for (int64_t i = 0; i < count; i++) {
        if (lines[i].rank >= 0)
            add_rank_object(&text, &lines[i]);
        else
            dt_strbuf_add_str(&text, after_time(lines[i].text));
        dt_strbuf_add_char(&text, '\n');
    }
    st = dt_report_text(&text, err);
    dt_strbuf_release(&text);
    return st;
}

/* dtrun logs: prints the steps and events of a run, and the output of its ranks. */

#define LOOK_SECONDS 0.25

static const char *const formats[] = {"text", "jsonl", NULL};
enum { FORMAT_TEXT, FORMAT_JSONL };

/* Where lines are read from: the logs of the ranks, the steps of the run, or both. */
typedef struct source {
    dt_log_tail tail;
    dt_step_log steps;
    bool ranks, history;
    int format;
} source;

static dt_status read_lines(source *from, dt_log_line **lines, int64_t *count, dt_log_amount amount,
                            int64_t most, dt_store *store, const dt_run *run, dt_arena *arena,
                            dt_error *err)
{
    dt_step_lines steps = {0};
    dt_status st = DT_OK;

    *lines = NULL;
    *count = 0;
    if (from->ranks)
        DT_TRY(dt_log_tail_read(&from->tail, lines, count, amount, most, store, run, arena, err));
    if (!from->history)
        return DT_OK;
    DT_TRY(dt_step_log_read(&from->steps, &steps, store, run, most, arena, err));
    dt_log_lines_join(lines, count, &steps, most, arena);
out:
    return st;
}

static dt_status print(const dt_log_line *lines, int64_t count, const source *from,
                       dt_log_boundaries *between, const dt_term *term, dt_arena *arena,
                       dt_error *err)
{
    return from->format == FORMAT_JSONL
               ? log_print_objects(lines, count, err)
               : log_print_lines(lines, count, &from->tail, between, term, arena, err);
}

/* Prints new lines until the run has ended and everything is read, or until Ctrl-C. */
static dt_status follow(source *from, dt_log_boundaries *between, const dt_term *term,
                        dt_store *store, const char *id, dt_call *call, dt_error *err)
{
    dt_upkeep upkeep = {0};
    const char *news;
    dt_status st = DT_OK;
    dt_log_line *lines;
    dt_arena arena;
    int64_t count;
    dt_run run;

    dt_arena_init(&arena, 0);
    dt_interrupt_catch();
    do {
        dt_arena_reset(&arena);
        (void)dt_store_renew(store, id);
        DT_TRY(dt_store_run_find(store, &run, id, &arena, err));
        DT_TRY(read_lines(from, &lines, &count,
                          dt_run_state_is_terminal(run.state) ? DT_LOG_REST : DT_LOG_LIVE, 0, store,
                          &run, &arena, err));
        DT_TRY(log_boundaries_read(between, store, id, &arena, err));
        DT_TRY(print(lines, count, from, between, term, &arena, err));
        DT_TRY(dt_upkeep_look(&news, &upkeep, &run, err));
        if (news != NULL)
            dt_report_say("dtrun: run '%s': %s", id, news);
        if (!dt_run_state_is_terminal(run.state))
            (void)dt_store_wait(store, LOOK_SECONDS);
    } while (!dt_run_state_is_terminal(run.state) && !dt_interrupt_seen());
    if (!dt_run_state_is_terminal(run.state))
        call->exit_code = DT_EXIT_INTERRUPTED;
out:
    dt_arena_release(&arena);
    return st;
}

static dt_status open_source(source *out, dt_store *store, const dt_run *run, const dt_call *call,
                             dt_error *err)
{
    const dt_value *rank = dt_arguments_get(call->args, "rank");
    bool steps = dt_arguments_flag(call->args, "steps");

    if (rank->given && steps)
        return DT_FAIL(err, DT_ERR_USAGE, "--rank and --steps cannot be combined");
    out->ranks = !steps;
    out->history = !rank->given;
    out->format = dt_arguments_get(call->args, "format")->choice;
    dt_step_log_init(&out->steps, call->json || out->format == FORMAT_JSONL);
    out->steps.without_restarts = out->format == FORMAT_TEXT && !call->json;
    return dt_log_tail_init(&out->tail, store, run, rank->given ? rank->integer : -1, call->arena,
                            err);
}

static void report_dropped(const dt_log_tail *tail, const dt_call *call)
{
    for (int64_t i = 0; i < tail->count; i++)
        if (tail->readers[i].dropped > 0)
            dt_report_note(call, "rank %lld: the oldest %lld MB of its log were discarded",
                           (long long)tail->readers[i].rank,
                           (long long)(tail->readers[i].dropped >> 20));
}

static dt_status logs(dt_call *call, dt_error *err)
{
    int64_t most = dt_arguments_get(call->args, "lines")->integer, count;
    bool following = dt_arguments_flag(call->args, "follow");
    dt_store *store = NULL;
    dt_status st = DT_OK;
    dt_log_line *lines;
    source from = {0};
    dt_log_boundaries between = {0};
    dt_term term;
    dt_run run;

    if (following && call->json)
        DT_THROW(err, DT_ERR_USAGE,
                 "--follow and --json cannot be combined; use --format jsonl (one object a line)");
    dt_term_init(&term, STDOUT_FILENO);
    DT_TRY(dt_runs_open(&store, &run, call->args->operands[0], call, err));
    DT_TRY(open_source(&from, store, &run, call, err));
    DT_TRY(read_lines(&from, &lines, &count, DT_LOG_LAST, most, store, &run, call->arena, err));
    DT_TRY(log_boundaries_read(&between, store, run.id, call->arena, err));
    if (most == 0)
        report_dropped(&from.tail, call);
    DT_TRY(call->json ? log_print_json(lines, count, &between, &run, err)
                      : print(lines, count, &from, &between, &term, call->arena, err));
    if (following)
        DT_TRY(follow(&from, &between, &term, store, run.id, call, err));
out:
    dt_store_close(store);
    return st;
}

static const dt_option options[] = {
    {.name = "follow",
     .letter = 'f',
     .kind = DT_OPTION_FLAG,
     .help = "keep printing new lines until the run ends"},
    {.name = "rank",
     .letter = 'r',
     .kind = DT_OPTION_INT,
     .value = "N",
     .low = 0,
     .high = 1e6,
     .help = "only the output of this rank (default: steps and all ranks, by time)"},
    {.name = "steps",
     .letter = 's',
     .kind = DT_OPTION_FLAG,
     .help = "only steps, evaluations, checkpoints and restarts"},
    {.name = "lines",
     .letter = 'n',
     .kind = DT_OPTION_INT,
     .value = "N",
     .fallback = "100",
     .low = 0,
     .high = 1e9,
     .help = "print the last N lines; 0 for all"},
    {.name = "format",
     .kind = DT_OPTION_CHOICE,
     .value = "FORMAT",
     .choices = formats,
     .fallback = "text",
     .help = "output format (jsonl is one object a line, also with --follow)"},
    {0},
};

const dt_command dt_command_logs = {
    .name = "logs",
    .summary = "print steps, events and rank output of a run",
    .operands = "RUN",
    .takes = DT_OPERAND_RUN,
    .runs = DT_RUNS_REMOTE,
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes =

        "Prints one line for every logged step, evaluation, checkpoint and restart (with its\n"
        "cause), and the lines of the ranks. Objects of --format jsonl have time and kind: step\n"
        "(with the values reported with the loss), evaluation, checkpoint, restart, or log (rank,\n"
        "node, text). --json is one object with lines and history. Steps that a later attempt\n"
        "repeated are shown once, as that attempt did them.\n",
    .run = logs,
};
