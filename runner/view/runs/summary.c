/* summary: selects the events that users must see, finds the rank that made a run fail, and prints how a
 * run ended. */
#include "runner/view/runs/runs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/metric_kinds.h"
#include "recipes/architecture/architecture.h"
#include "runner/cli/report.h"
#include "runner/supervisor/folder/resume_point.h"
#include "runner/supervisor/folder/task_folder.h"
#include "runner/term/term.h"
#include "store/activity.h"
#include "store/curve.h"

static json_t *parse(const dt_store_event *event)
{
    json_t *json = NULL;

    /* Events were checked when they were stored; a damaged one is only left out. */
    if (dt_json_parse(&json, event->json, strlen(event->json), "event", NULL) != DT_OK)
        return NULL;
    return json;
}

/* Reports only the preparation that can take hours: waiting for a Slurm job. */
static const char *preparing_sentence(const json_t *json, dt_arena *arena)
{
    const char *message;

    if (dt_json_get_string_or(&message, json, "message", "", "event", NULL) != DT_OK ||
        strncmp(message, "Slurm job ", strlen("Slurm job ")) != 0)
        return NULL;
    return dt_arena_strdup(arena, message);
}

static const char *message_sentence(const json_t *json, dt_arena *arena)
{
    const char *message = json_string_value(json_object_get(json, "message"));

    return message != NULL ? dt_arena_strdup(arena, message) : NULL;
}

static const char *checkpoint_failed_sentence(const json_t *json, dt_arena *arena)
{
    const char *message;
    int64_t step;

    if (dt_json_get_string_or(&message, json, "message", "", "event", NULL) != DT_OK ||
        dt_json_get_int_or(&step, json, "step", 0, "event", NULL) != DT_OK)
        return NULL;
    return dt_arena_printf(arena, "step %lld  checkpoint failed, training continues: %s",
                           (long long)step, message);
}

static const char *restart_sentence(const json_t *json, dt_arena *arena)
{
    const char *reason;
    int64_t attempt, step;

    if (dt_json_get_string_or(&reason, json, "reason", "", "event", NULL) != DT_OK ||
        dt_json_get_int_or(&attempt, json, "attempt", 0, "event", NULL) != DT_OK ||
        dt_json_get_int_or(&step, json, "step", 0, "event", NULL) != DT_OK)
        return NULL;
    return dt_arena_printf(arena, "attempt %lld continues from step %lld: %s", (long long)attempt,
                           (long long)step, reason);
}

const char *dt_incident_sentence(const dt_store_event *event, dt_arena *arena)
{
    const char *(*say)(const json_t *json, dt_arena *arena) = NULL;
    const char *sentence;
    json_t *json;

    if (strcmp(event->kind, "preparing") == 0)
        say = preparing_sentence;
    else if (strcmp(event->kind, "checkpoint_failed") == 0)
        say = checkpoint_failed_sentence;
    else if (strcmp(event->kind, "restart") == 0)
        say = restart_sentence;
    else if (strcmp(event->kind, "collected") == 0 || strcmp(event->kind, "kept") == 0)
        say = message_sentence;
    json = say != NULL ? parse(event) : NULL;
    sentence = json != NULL ? say(json, arena) : NULL;
    json_decref(json);
    return sentence;
}

/* Whether a rank ended other than with exit code 0. */
static bool ended_badly(const json_t *exited)
{
    const json_t *code = json_object_get(exited, "code");

    return !json_is_integer(code) || json_integer_value(code) != 0;
}

static void keep_lines(const char ***out, int64_t *count, const json_t *lines, dt_arena *arena)
{
    size_t total = json_is_array(lines) ? json_array_size(lines) : 0;

    *count = 0;
    *out = dt_arena_alloc_array(arena, total + 1, sizeof((*out)[0]));
    for (size_t i = 0; i < total; i++) {
        const char *text = json_string_value(json_array_get(lines, i));
        (*out)[(*count)++] = dt_arena_strdup(arena, text != NULL ? text : "");
    }
}

static void keep(dt_incident *out, int64_t rank, const json_t *exited, dt_arena *arena)
{
    *out = (dt_incident){.rank = rank};
    keep_lines(&out->lines, &out->lines_count, json_object_get(exited, "lines"), arena);
    keep_lines(&out->kernel_lines, &out->kernel_lines_count,
               json_object_get(exited, "kernel_lines"), arena);
}

/* How likely a rank is the cause of a failure, the most likely first. A rank that lost its peer, or that was
 * stopped because of another, only shows the failure of the other. */
enum { BLAME_OWN, BLAME_PEER, BLAME_ENDED, BLAME_NONE };

/* Whether this rank reported a lost peer, in the events up to `count`. */
static bool lost_its_peer(const dt_store_event *events, int64_t count, int64_t attempt,
                          int64_t rank)
{
    bool lost = false;

    for (int64_t i = 0; i < count && !lost; i++) {
        json_t *json;
        const char *status = NULL;
        if (events[i].attempt != attempt || events[i].rank != rank ||
            strcmp(events[i].kind, "failed") != 0)
            continue;
        json = parse(&events[i]);
        if (json != NULL)
            status = json_string_value(json_object_get(json, "status"));
        lost = status != NULL && (strcmp(status, dt_status_name(DT_ERR_PEER)) == 0 ||
                                  strcmp(status, dt_status_name(DT_ERR_COMM)) == 0);
        json_decref(json);
    }
    return lost;
}

static int blame_of(const json_t *exited, bool lost_peer)
{
    static const char *const ended[] = {"peer_failed", "stopped", "agent_stopped", "launcher_lost"};
    const char *reason = json_string_value(json_object_get(exited, "reason"));

    for (size_t i = 0; reason != NULL && i < sizeof(ended) / sizeof(ended[0]); i++)
        if (strcmp(reason, ended[i]) == 0)
            return BLAME_ENDED;
    return lost_peer ? BLAME_PEER : BLAME_OWN;
}

dt_status dt_incident_find(dt_incident *out, dt_store *store, const dt_run *run, dt_arena *arena,
                           dt_error *err)
{
    int blame, least = BLAME_NONE;
    dt_store_event *events;
    dt_status st = DT_OK;
    json_t *json = NULL;
    int64_t count, first_ms = 0;

    *out = (dt_incident){.rank = -1};
    DT_TRY(dt_store_event_list(store, &events, &count, run->id, 0, 0, arena, err));
    for (int64_t i = 0; i < count; i++) {
        if (events[i].attempt != run->attempt || strcmp(events[i].kind, "exited") != 0)
            continue;
        json = parse(&events[i]);
        if (json != NULL && ended_badly(json)) {
            blame = blame_of(json, lost_its_peer(events, i, run->attempt, events[i].rank));
            if (blame < least || (blame == least && events[i].time_ms < first_ms)) {
                least = blame;
                first_ms = events[i].time_ms;
                keep(out, events[i].rank, json, arena);
            }
        }
        json_decref(json);
        json = NULL;
    }
out:
    json_decref(json);
    return st;
}

/* Finds the newest checkpoint that is on disk; NULL if none. */
static dt_status newest_checkpoint(const dt_store_checkpoint **out, dt_store *store,
                                   const dt_run *run, dt_arena *arena, dt_error *err)
{
    dt_store_checkpoint *all;
    int64_t count;
    dt_status st = DT_OK;

    *out = NULL;
    DT_TRY(dt_store_checkpoint_list(store, &all, &count, run->id, arena, err));
    for (int64_t i = 0; i < count && *out == NULL; i++)
        if (dt_store_checkpoint_exists(&all[i]))
            *out = &all[i];
out:
    return st;
}

static void add_row(dt_table *table, const char *label, const char *value)
{
    dt_table_add(table, DT_STYLE_DIM, "%s", label);
    dt_table_add(table, DT_STYLE_PLAIN, "%s", value);
}

static void add_numbers(dt_strbuf *out, const dt_term *term, const dt_run *run,
                        const dt_metric_end *bleu, const dt_timing *timing,
                        const dt_store_checkpoint *checkpoint, dt_arena *arena)
{
    static const dt_table_column columns[] = {{NULL, false}, {NULL, false}};
    char text[DT_FORMAT_SIZE];
    dt_table table;

    dt_table_init(&table, columns, 2, arena);
    if (!isnan(run->loss))
        add_row(&table, "loss", dt_format_loss(text, sizeof(text), run->loss));
    if (!isnan(run->valid_loss))
        add_row(&table, "validation loss", dt_format_loss(text, sizeof(text), run->valid_loss));
    if (bleu->there) {
        snprintf(text, sizeof(text), "%.2f", bleu->value);
        add_row(&table, "validation BLEU", text);
    }
    if (!isnan(timing->tokens_per_second))
        add_row(&table, dt_runs_timed_speed(run),
                dt_format_count(text, sizeof(text), timing->tokens_per_second));
    if (checkpoint != NULL)
        add_row(&table, "checkpoint", dt_run_checkpoint_here(run->id, checkpoint, arena));
    dt_table_write(out, &table, term, 2);
}

void dt_summary_add_incident(dt_strbuf *out, const dt_term *term, const dt_incident *incident)
{
    if (incident->kernel_lines_count > 0)
        dt_term_add(out, term, DT_STYLE_DIM, "\nkernel messages on rank %lld:\n",
                    (long long)incident->rank);
    for (int64_t i = 0; i < incident->kernel_lines_count; i++)
        dt_term_add(out, term, DT_STYLE_PLAIN, "  %s\n", incident->kernel_lines[i]);
    if (incident->rank < 0 || incident->lines_count == 0)
        return;
    dt_term_add(out, term, DT_STYLE_DIM, "\nlast lines of rank %lld:\n", (long long)incident->rank);
    for (int64_t i = 0; i < incident->lines_count; i++)
        dt_term_add(out, term, DT_STYLE_PLAIN, "  %s\n", incident->lines[i]);
}

/* Whether the run was trained on conversations. */
static bool is_chat(const dt_run *run)
{
    json_t *recipe = NULL;
    const char *format = NULL;
    bool out;

    if (dt_json_parse(&recipe, run->recipe_json, strlen(run->recipe_json), "stored recipe", NULL) ==
        DT_OK)
        format = json_string_value(json_object_get(json_object_get(recipe, "data"), "format"));
    out = format != NULL && strcmp(format, "chat") == 0;
    json_decref(recipe);
    return out;
}

/* Adds commands to try next, with the name by which this program was called. */
static void add_next(dt_strbuf *out, const dt_term *term, const dt_run *run,
                     const dt_store_checkpoint *checkpoint)
{
    const dt_architecture *kind = dt_runs_architecture(run);
    const char *dtrun = program_invocation_name;
    bool generates = run->state == DT_RUN_FINISHED && checkpoint != NULL && dt_task_of(run) == NULL;

    dt_term_add(out, term, DT_STYLE_DIM, "\nNext:\n");
    if (generates && kind != NULL && kind->reads_pairs)
        dt_term_add(out, term, DT_STYLE_PLAIN,
                    "  %s generate %s --input FILE    translate the lines of a file\n", dtrun,
                    run->id);
    else if (generates && is_chat(run))
        dt_term_add(out, term, DT_STYLE_PLAIN, "  %s chat %s        talk with the model\n", dtrun,
                    run->id);
    else if (generates && (kind == NULL || !kind->reads_rows))
        dt_term_add(out, term, DT_STYLE_PLAIN, "  %s generate %s    generate text\n", dtrun,
                    run->id);
    if (run->state == DT_RUN_FAILED || dt_runs_is_command(run))
        dt_term_add(out, term, DT_STYLE_PLAIN, "  %s logs %s        show the output of all ranks\n",
                    dtrun, run->id);
    if (run->state != DT_RUN_FINISHED && checkpoint != NULL &&
        (run->steps_total == 0 || checkpoint->step < run->steps_total))
        dt_term_add(out, term, DT_STYLE_PLAIN, "  %s resume %s      continue from step %lld\n",
                    dtrun, run->id, (long long)checkpoint->step);
    dt_term_add(out, term, DT_STYLE_PLAIN, "  %s show %s        show all details of the run\n",
                dtrun, run->id);
    dt_term_add(out, term, DT_STYLE_PLAIN,
                "  %s serve              serve the web page with charts\n", dtrun);
}

dt_status dt_summary_text(dt_store *store, const dt_run *run, dt_arena *arena, dt_error *err)
{
    const dt_store_checkpoint *checkpoint;
    dt_incident incident = {.rank = -1};
    dt_status st = DT_OK;
    dt_metric_end bleu;
    dt_timing timing;
    dt_strbuf text;
    dt_term term;
    char took[DT_FORMAT_SIZE], step[DT_FORMAT_SIZE];

    dt_term_init(&term, STDOUT_FILENO);
    dt_strbuf_init(&text);
    DT_TRY(newest_checkpoint(&checkpoint, store, run, arena, err));
    DT_TRY(dt_timing_read(&timing, store, run, dt_clock_wall_ms(), arena, err));
    DT_TRY(dt_store_metric_end(store, &bleu, run->id, dt_metric_name(DT_METRIC_VALID_BLEU),
                               DT_METRIC_LAST, err));
    if (run->state == DT_RUN_FAILED)
        DT_TRY(dt_incident_find(&incident, store, run, arena, err));

    dt_term_add(&text, &term, DT_STYLE_BOLD, "%s %s ", run->name, run->id);
    dt_term_add(&text, &term, dt_runs_run_style(run), "%s", dt_run_state_word(run));
    if (run->step > 0 || !dt_runs_is_command(run))
        dt_term_add(&text, &term, DT_STYLE_PLAIN, " at step %s",
                    dt_format_whole(step, sizeof(step), run->step));
    dt_term_add(&text, &term, DT_STYLE_PLAIN, " after %s\n",
                dt_clock_duration(took, sizeof(took), timing.elapsed_seconds));
    if (run->reason[0] != '\0')
        dt_term_add(&text, &term, dt_runs_run_style(run), "%s\n", run->reason);
    dt_summary_add_incident(&text, &term, &incident);
    dt_strbuf_add_char(&text, '\n');
    add_numbers(&text, &term, run, &bleu, &timing, checkpoint, arena);
    add_next(&text, &term, run, checkpoint);
    DT_TRY(dt_report_styled(&text, err));
out:
    dt_strbuf_release(&text);
    return st;
}

static json_t *lines_to_json(const char *const *lines, int64_t count)
{
    json_t *array = json_array();

    for (int64_t i = 0; i < count; i++)
        json_array_append_new(array, dt_json_text(lines[i]));
    return array;
}

static json_t *trouble_to_json(const dt_incident *incident)
{
    if (incident->rank < 0)
        return json_null();
    return json_pack("{s:I, s:o, s:o}", "rank", (json_int_t)incident->rank, "lines",
                     lines_to_json(incident->lines, incident->lines_count), "kernel_lines",
                     lines_to_json(incident->kernel_lines, incident->kernel_lines_count));
}

dt_status dt_summary_object(json_t **out, dt_store *store, const dt_run *run, dt_arena *arena,
                            dt_error *err)
{
    const dt_store_checkpoint *checkpoint;
    dt_incident incident = {.rank = -1};
    dt_status st = DT_OK;
    dt_metric_end bleu;
    dt_timing timing;
    json_t *object;

    DT_TRY(newest_checkpoint(&checkpoint, store, run, arena, err));
    DT_TRY(dt_timing_read(&timing, store, run, dt_clock_wall_ms(), arena, err));
    DT_TRY(dt_store_metric_end(store, &bleu, run->id, dt_metric_name(DT_METRIC_VALID_BLEU),
                               DT_METRIC_LAST, err));
    if (run->state == DT_RUN_FAILED)
        DT_TRY(dt_incident_find(&incident, store, run, arena, err));
    object = dt_runs_to_json(run);
    json_object_set_new(object, "failure", trouble_to_json(&incident));
    json_object_set_new(object, "steps", json_integer(run->step));
    if (bleu.there)
        json_object_set_new(object, "valid_bleu", dt_json_number(bleu.value));
    json_object_set_new(object, "mean_tokens_per_second", dt_json_number(timing.tokens_per_second));
    json_object_set_new(object, "seconds", dt_json_number(timing.elapsed_seconds));
    json_object_set_new(object, "checkpoint",
                        checkpoint != NULL ? dt_json_text(checkpoint->path) : json_null());
    *out = object;
out:
    return st;
}

dt_status dt_summary_json(dt_store *store, const dt_run *run, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    json_t *object;

    DT_TRY(dt_summary_object(&object, store, run, arena, err));
    DT_TRY(dt_report_json(object, err));
out:
    return st;
}
