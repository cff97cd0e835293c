/* dtrun show: prints everything that the history has about a run. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/metric_kinds.h"
#include "recipes/fields/fields.h"
#include "recipes/read/origins.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/launch/provenance.h"
#include "runner/supervisor/folder/resume_point.h"
#include "runner/supervisor/folder/task_folder.h"
#include "runner/supervisor/supervisor.h"
#include "runner/term/term.h"
#include "runner/view/compare/compare.h"
#include "runner/view/recipe/recipe_report.h"
#include "runner/view/runs/results.h"
#include "runner/view/runs/runs.h"
#include "runner/view/runs/why.h"

enum { SPARK_COLUMNS = 40, BESIDE_SPARK = 29, EVALUATIONS_SHOWN = 6 };

typedef struct facts {
    dt_attempt *attempts;
    dt_store_checkpoint *checkpoints;
    const char **metric_names;
    const char *run, *folder;
    const char *loss_spark, *valid_spark; /* "" if none */
    dt_task_results *results;             /* of evaluation tasks, of each step */
    int64_t attempts_count, checkpoints_count, metric_names_count, results_count;
} facts;

static dt_status gather(facts *out, dt_store *store, const dt_run *run, dt_arena *arena,
                        dt_error *err)
{
    int64_t kept = 0;
    dt_status st = DT_OK;

    out->run = run->id;
    DT_TRY(dt_run_path(&out->folder, run->id, NULL, arena, err));
    DT_TRY(dt_store_attempt_list(store, &out->attempts, &out->attempts_count, run->id, arena, err));
    DT_TRY(dt_store_metric_names(store, &out->metric_names, &out->metric_names_count, run->id,
                                 arena, err));
    DT_TRY(dt_store_checkpoint_list(store, &out->checkpoints, &out->checkpoints_count, run->id,
                                    arena, err));
    DT_TRY(dt_results_list(&out->results, &out->results_count, store, run->id, arena, err));
    for (int64_t i = 0; i < out->checkpoints_count; i++)
        if (dt_store_checkpoint_exists(&out->checkpoints[i]))
            out->checkpoints[kept++] = out->checkpoints[i];
    out->checkpoints_count = kept;
out:
    return st;
}

static dt_status print_json(dt_store *store, const dt_run *run, const facts *all, dt_arena *arena,
                            dt_error *err)
{
    json_t *object = dt_report_object(), *recipe = NULL, *names = json_array();
    json_t *status = NULL, *paths = json_array(), *origins = NULL;
    dt_status st = DT_OK;
    dt_plan plan;

    json_object_set_new(object, "changes",
                        dt_overrides_to_json(all->attempts, all->attempts_count));
    json_object_set_new(object, "provenance",
                        dt_provenance_to_json(all->attempts, all->attempts_count));
    DT_TRY(dt_runs_status_json(&status, store, run, arena, err));
    json_object_update(object, status);
    DT_TRY(
        dt_json_parse(&recipe, run->recipe_json, strlen(run->recipe_json), "stored recipe", err));
    for (int64_t i = 0; i < all->metric_names_count; i++)
        json_array_append_new(names, dt_json_text(all->metric_names[i]));
    for (int64_t i = 0; i < all->checkpoints_count; i++)
        json_array_append_new(paths, dt_json_text(all->checkpoints[i].path));
    origins = dt_origins_read(all->folder, run->attempt, arena);
    if (origins != NULL)
        json_object_set(object, "origins", json_object_get(origins, "fields"));
    json_object_set_new(object, "folder", dt_json_text(all->folder));
    json_object_set_new(object, "recipe_path", dt_json_text(run->recipe_path));
    json_object_set_new(object, "recipe_hash", json_string(run->recipe_hash));
    json_object_set(object, "checkpoints", paths);
    json_object_set(object, "metrics", names);
    json_object_set_new(object, "evaluations",
                        dt_results_to_json(all->results, all->results_count));
    json_object_set(object, "recipe", recipe);
    if (dt_task_of_lines(run) && dt_task_plan(&plan, run, arena, NULL) == DT_OK)
        json_object_set_new(object, "output", dt_json_text(plan.task.output));
    DT_TRY(dt_report_json(json_incref(object), err));
out:
    json_decref(object);
    json_decref(origins);
    json_decref(status);
    json_decref(recipe);
    json_decref(names);
    json_decref(paths);
    return st;
}

static void add_fact(dt_table *table, const char *label, const char *value)
{
    dt_table_add(table, DT_STYLE_DIM, "%s", label);
    dt_table_add(table, DT_STYLE_PLAIN, "%s", value);
}

static void add_time(dt_table *table, const char *label, int64_t wall_ms)
{
    char time[DT_CLOCK_ISO_SIZE];

    if (wall_ms > 0)
        add_fact(table, label, dt_clock_iso(time, wall_ms));
}

static void add_command(dt_table *table, const dt_recipe *recipe)
{
    dt_strbuf words;

    dt_strbuf_init(&words);
    dt_command_words(&words, recipe);
    add_fact(table, "command", words.data);
    add_fact(table, "folder", recipe->workdir.folder);
    dt_strbuf_release(&words);
}

/* Adds the task of a run that does not train, and its command, or its checkpoint and output. */
static void add_task(dt_table *table, const dt_run *run, dt_arena *arena)
{
    const char *task = dt_task_of(run), *step;
    dt_plan plan;

    if (task == NULL)
        return;
    add_fact(table, "task", task);
    if (dt_task_plan(&plan, run, arena, NULL) != DT_OK)
        return;
    if (plan.recipe.task == DT_TASK_COMMAND) {
        add_command(table, &plan.recipe);
        return;
    }
    step = strrchr(plan.resume_from, '/');
    dt_table_add(table, DT_STYLE_DIM, "with");
    if (strchr(plan.task.run, '/') != NULL)
        dt_table_add(table, DT_STYLE_PLAIN, "%s", plan.task.run);
    else
        dt_table_add(table, DT_STYLE_PLAIN, "%s of run %s",
                     step != NULL ? step + 1 : plan.resume_from, plan.task.run);
    add_fact(table, "output", plan.task.output);
}

static void add_loss(dt_table *table, const char *name, double loss, const char *spark)
{
    char text[DT_FORMAT_SIZE];

    dt_table_add(table, DT_STYLE_DIM, "%s", name);
    dt_table_add(table, DT_STYLE_PLAIN, "%s  %s", dt_format_loss(text, sizeof(text), loss), spark);
}

static void add_facts(dt_strbuf *out, const dt_term *term, const dt_run *run,
                      const dt_timing *timing, const facts *all, dt_arena *arena)
{
    static const dt_table_column columns[] = {{NULL, false}, {NULL, false}};
    bool steps = !dt_task_of_lines(run), command = dt_runs_is_command(run);
    char a[DT_FORMAT_SIZE];
    dt_table table;

    dt_table_init(&table, columns, 2, arena);
    if (run->note[0] != '\0')
        add_fact(&table, "note", run->note);
    if (run->tags[0] != '\0')
        add_fact(&table, "tags", run->tags);
    if (run->group[0] != '\0')
        add_fact(&table, "group", run->group);
    if (run->parent[0] != '\0') {
        dt_table_add(&table, DT_STYLE_DIM, "forked from");
        dt_table_add(&table, DT_STYLE_PLAIN, "%s at step %lld", run->parent,
                     (long long)run->parent_step);
    }
    add_task(&table, run, arena);
    dt_table_add(&table, DT_STYLE_DIM, "state");
    dt_table_add(&table, dt_runs_activity_style(run, &timing->activity), "%s",
                 dt_runs_shown_state(run, &timing->activity));
    if (run->reason[0] != '\0')
        add_fact(&table, "reason", run->reason);
    if (!command || run->steps_total > 0 || run->step > 0)
        add_fact(&table, steps ? "step" : "lines", dt_runs_progress(a, sizeof(a), " of ", run));
    if ((steps && !command) || !isnan(run->loss))
        add_loss(&table, "loss", run->loss, all->loss_spark);
    if ((steps && !command) || !isnan(run->valid_loss))
        add_loss(&table, "validation loss", run->valid_loss, all->valid_spark);
    if (!command || !isnan(timing->tokens_per_second))
        add_fact(&table, dt_runs_timed_speed(run),
                 dt_format_count(a, sizeof(a), timing->tokens_per_second));
    add_time(&table, "created", run->created_ms);
    add_time(&table, "started", run->started_ms);
    add_time(&table, "ended", run->ended_ms);
    add_fact(&table, "elapsed", dt_clock_duration(a, sizeof(a), timing->elapsed_seconds));
    dt_provenance_add(&table, all->attempts, all->attempts_count);
    add_fact(&table, "recipe", run->recipe_path);
    dt_table_add(&table, DT_STYLE_DIM, "hash");
    dt_table_add_whole(&table, DT_STYLE_PLAIN, "%s", run->recipe_hash);
    add_fact(&table, "folder", all->folder);
    dt_table_write(out, &table, term, 2);
}

static void add_attempts(dt_strbuf *out, const dt_term *term, const facts *all, dt_arena *arena)
{
    static const dt_table_column columns[] = {{"attempt", true},
                                              {"state", false},
                                              {"from step", true},
                                              {"took", true},
                                              {"reason", false}};
    char took[DT_FORMAT_SIZE];
    dt_table table;

    dt_table_init(&table, columns, 5, arena);
    for (int64_t i = 0; i < all->attempts_count; i++) {
        const dt_attempt *attempt = &all->attempts[i];
        dt_table_add(&table, DT_STYLE_PLAIN, "%lld", (long long)attempt->attempt);
        dt_table_add(&table, dt_runs_style(attempt->state), "%s",
                     dt_run_state_name(attempt->state));
        dt_table_add(&table, DT_STYLE_PLAIN, "%lld", (long long)attempt->start_step);
        dt_table_add(
            &table, DT_STYLE_PLAIN, "%s",
            attempt->elapsed_ms < 0
                ? "-"
                : dt_clock_duration(took, sizeof(took), (double)attempt->elapsed_ms / 1e3));
        dt_table_add(&table, DT_STYLE_PLAIN, "%s", attempt->reason);
    }
    dt_strbuf_add_char(out, '\n');
    dt_table_write(out, &table, term, 2);
}

static void add_checkpoints(dt_strbuf *out, const dt_term *term, const facts *all, dt_arena *arena)
{
    static const dt_table_column columns[] = {
        {"checkpoint", true}, {"size", true}, {"path", false}};
    char text[DT_FORMAT_SIZE];
    dt_table table;

    if (all->checkpoints_count == 0)
        return;
    dt_table_init(&table, columns, 3, arena);
    for (int64_t i = 0; i < all->checkpoints_count; i++) {
        const dt_store_checkpoint *checkpoint = &all->checkpoints[i];
        dt_table_add(&table, DT_STYLE_PLAIN, "%s",
                     dt_format_whole(text, sizeof(text), checkpoint->step));
        dt_table_add(&table, DT_STYLE_PLAIN, "%s",
                     dt_format_bytes(text, sizeof(text), (double)checkpoint->bytes));
        dt_table_add(&table, DT_STYLE_PLAIN, "%s",
                     dt_run_checkpoint_here(all->run, checkpoint, arena));
    }
    dt_strbuf_add_char(out, '\n');
    dt_table_write(out, &table, term, 2);
}

/* Adds the results of evaluation tasks: the first step that was evaluated, and the last ones. */
static void add_results(dt_strbuf *out, const dt_term *term, const facts *all, dt_arena *arena)
{
    int64_t count = all->results_count, left_out = count - EVALUATIONS_SHOWN;
    dt_results_column *columns = dt_arena_alloc_array(arena, EVALUATIONS_SHOWN, sizeof(columns[0]));
    size_t shown = 0;

    for (int64_t i = 0; i < count; i++)
        if (i == 0 || i > left_out)
            columns[shown++] = (dt_results_column){
                dt_arena_printf(arena, "step %lld", (long long)all->results[i].step),
                &all->results[i].results};
    if (shown == 0)
        return;
    dt_strbuf_add_char(out, '\n');
    dt_results_add(out, term, columns, shown, 2, arena);
    if (left_out > 0)
        dt_term_add(out, term, DT_STYLE_DIM, "  and %lld more steps (--json has all)\n",
                    (long long)left_out);
}

/* Adds what happened to the files that the newest attempt of a command made. */
static dt_status add_files(dt_strbuf *out, const dt_term *term, dt_store *store, const dt_run *run,
                           dt_arena *arena, dt_error *err)
{
    dt_store_event *events;
    bool first = true;
    dt_status st;
    int64_t count;

    if (!dt_runs_is_command(run))
        return DT_OK;
    DT_TRY(dt_store_event_list(store, &events, &count, run->id, 0, 0, arena, err));
    for (int64_t i = 0; i < count; i++) {
        const char *text;

        if (events[i].attempt != run->attempt ||
            (strcmp(events[i].kind, "collected") != 0 && strcmp(events[i].kind, "kept") != 0))
            continue;
        text = dt_incident_sentence(&events[i], arena);
        if (text == NULL)
            continue;
        dt_term_add(out, term, DT_STYLE_DIM, "%s", first ? "\n  files of the command\n" : "");
        dt_term_add(out, term, DT_STYLE_PLAIN, "  %s\n", text);
        first = false;
    }
out:
    return st;
}

static void add_recipe(dt_strbuf *out, const dt_term *term, const char *text)
{
    dt_term_add(out, term, DT_STYLE_DIM, "\n  recipe as written\n");
    while (*text != '\0') {
        int length = (int)strcspn(text, "\n");
        dt_term_add(out, term, DT_STYLE_PLAIN, length > 0 ? "  %.*s\n" : "%.*s\n", length, text);
        text += length + (text[length] == '\n');
    }
}

/* Draws the whole curve of a metric in SPARK_COLUMNS columns, or in those that the terminal has room for;
 * "" if it has fewer than two points. */
static dt_status make_spark(const char **out, const dt_term *term, dt_store *store,
                            const dt_run *run, const char *name, dt_arena *arena, dt_error *err)
{
    int room = term->columns - BESIDE_SPARK;
    int columns = !term->seen || room > SPARK_COLUMNS ? SPARK_COLUMNS : room > 1 ? room : 1;
    dt_status st = DT_OK;
    dt_curve curve;
    dt_strbuf text;

    *out = "";
    dt_strbuf_init(&text);
    DT_TRY(dt_curve_sketch(&curve, store, run->id, name, (size_t)columns, arena, err));
    if (curve.count < 2)
        goto out;
    dt_plot_spark(&text, term, curve.means, curve.buckets);
    *out = dt_arena_strdup(arena, text.data);
out:
    dt_strbuf_release(&text);
    return st;
}

static dt_status print_text(dt_store *store, const dt_run *run, facts *all, dt_arena *arena,
                            dt_error *err)
{
    dt_status st = DT_OK;
    dt_timing timing;
    dt_strbuf text;
    dt_term term;

    dt_term_init(&term, STDOUT_FILENO);
    dt_strbuf_init(&text);
    DT_TRY(dt_timing_read(&timing, store, run, dt_clock_wall_ms(), arena, err));
    DT_TRY(make_spark(&all->loss_spark, &term, store, run, dt_metric_name(DT_METRIC_LOSS), arena,
                      err));
    DT_TRY(make_spark(&all->valid_spark, &term, store, run, dt_metric_name(DT_METRIC_VALID_LOSS),
                      arena, err));
    dt_term_add(&text, &term, DT_STYLE_BOLD, "%s %s\n\n", run->name, run->id);
    dt_overrides_add(&text, &term, all->attempts, all->attempts_count, arena);
    add_facts(&text, &term, run, &timing, all, arena);
    add_attempts(&text, &term, all, arena);
    add_checkpoints(&text, &term, all, arena);
    add_results(&text, &term, all, arena);
    DT_TRY(add_files(&text, &term, store, run, arena, err));
    add_recipe(&text, &term, run->recipe_text);
    DT_TRY(dt_report_styled(&text, err));
out:
    dt_strbuf_release(&text);
    return st;
}

static dt_status print_origins(const dt_run *run, const facts *all, dt_arena *arena, dt_error *err)
{
    json_t *document = dt_origins_read(all->folder, run->attempt, arena);
    dt_status st = DT_OK;
    dt_strbuf text;
    dt_term term;

    dt_term_init(&term, STDOUT_FILENO);
    dt_strbuf_init(&text);
    if (document == NULL)
        DT_THROW(err, DT_ERR_NOT_FOUND,
                 "run '%s' has no origins file ('dtrun show %s' prints the recipe as "
                 "written)",
                 run->id, run->id);
    dt_origins_view(&text, &term, json_object_get(document, "fields"), arena);
    DT_TRY(dt_report_styled(&text, err));
out:
    json_decref(document);
    dt_strbuf_release(&text);
    return st;
}

static dt_status print_why(const dt_run *run, const dt_call *call, dt_error *err)
{
    json_t *why = NULL;
    dt_status st = DT_OK;
    dt_strbuf text;
    dt_term term;

    dt_term_init(&term, STDOUT_FILENO);
    dt_strbuf_init(&text);
    DT_TRY(dt_why_of_run(&why, run, call->arena, err));
    if (why == NULL)
        DT_THROW(err, DT_ERR_NOT_FOUND,
                 "run '%s' has no judgement of its speed: it comes some seconds after the first "
                 "steps, once all ranks were heard",
                 run->id);
    if (call->json) {
        json_t *object = dt_report_object();

        json_object_update(object, why);
        DT_TRY(dt_report_json(object, err));
        goto out;
    }
    dt_term_add(&text, &term, DT_STYLE_BOLD, "%s %s\n\n", run->name, run->id);
    dt_why_add(&text, &term, why, call->arena);
    DT_TRY(dt_report_styled(&text, err));
out:
    json_decref(why);
    dt_strbuf_release(&text);
    return st;
}

typedef dt_status steps_list(dt_store *store, int64_t **out, int64_t *count, const char *run,
                             dt_arena *arena, dt_error *err);

/* Finds the step to show: that of --step, or else the newest one. what: "samples"; why: how a run gets them. */
static dt_status find_step(int64_t *out, steps_list *list, const char *what, const char *why,
                           dt_store *store, const dt_run *run, const dt_call *call, dt_error *err)
{
    const dt_value *wanted = dt_arguments_get(call->args, "step");
    dt_status st = DT_OK;
    int64_t *steps, count;

    DT_TRY(list(store, &steps, &count, run->id, call->arena, err));
    if (count == 0)
        DT_THROW(err, DT_ERR_NOT_FOUND, "run '%s' has no %s: %s", run->id, what, why);
    *out = wanted->given ? wanted->integer : steps[count - 1];
    for (int64_t i = 0; i < count; i++)
        if (steps[i] == *out) {
            if (call->json && !wanted->given)
                *out = DT_STORE_ALL_STEPS;
            return DT_OK;
        }
    DT_THROW(err, DT_ERR_NOT_FOUND, "run '%s' has no %s of step %lld (newest: %lld)", run->id, what,
             (long long)*out, (long long)steps[count - 1]);
out:
    return st;
}

/* Prints an object with the run and `value`, which is stolen. */
static dt_status print_list(const dt_run *run, const char *key, json_t *value, dt_error *err)
{
    json_t *object = dt_report_object();

    json_object_set_new(object, "run", dt_json_text(run->id));
    json_object_set_new(object, key, value);
    return dt_report_json(object, err);
}

static dt_status print_samples(dt_store *store, const dt_run *run, const dt_call *call,
                               dt_error *err)
{
    dt_store_sample *samples;
    dt_status st = DT_OK;
    int64_t step = 0, count;
    dt_strbuf text;
    dt_term term;

    dt_term_init(&term, STDOUT_FILENO);
    dt_strbuf_init(&text);
    DT_TRY(find_step(&step, dt_store_sample_steps, "samples",
                     "its recipe needs 'evaluate.samples', and they are generated at its "
                     "evaluations",
                     store, run, call, err));
    DT_TRY(dt_store_sample_list(store, &samples, &count, run->id, step, call->arena, err));
    if (call->json) {
        DT_TRY(print_list(run, "samples", dt_samples_to_json(samples, count), err));
        goto out;
    }
    dt_term_add(&text, &term, DT_STYLE_BOLD, "%s %s\n\n", run->name, run->id);
    dt_samples_add(&text, &term, samples, count, call->arena);
    DT_TRY(dt_report_styled(&text, err));
out:
    dt_strbuf_release(&text);
    return st;
}

static dt_status print_confusion(dt_store *store, const dt_run *run, const dt_call *call,
                                 dt_error *err)
{
    dt_store_confusion *list;
    dt_status st = DT_OK;
    int64_t step = 0, count;
    dt_strbuf text;
    dt_term term;

    dt_term_init(&term, STDOUT_FILENO);
    dt_strbuf_init(&text);
    DT_TRY(find_step(&step, dt_store_confusion_steps, "counts of classes",
                     "evaluations of a classifier (kind mlp) with at most 100 classes make them",
                     store, run, call, err));
    DT_TRY(dt_store_confusion_list(store, &list, &count, run->id, step, call->arena, err));
    if (call->json) {
        DT_TRY(print_list(run, "confusion", dt_confusions_to_json(list, count), err));
        goto out;
    }
    dt_term_add(&text, &term, DT_STYLE_BOLD, "%s %s\n\n", run->name, run->id);
    DT_TRY(dt_confusion_add(&text, &term, list, call->arena, err));
    DT_TRY(dt_report_styled(&text, err));
out:
    dt_strbuf_release(&text);
    return st;
}

static dt_status show(dt_call *call, dt_error *err)
{
    dt_store *store = NULL;
    dt_status st = DT_OK;
    facts all = {0};
    dt_run run;

    if (dt_arguments_get(call->args, "step")->given && !dt_arguments_flag(call->args, "samples") &&
        !dt_arguments_flag(call->args, "confusion"))
        DT_THROW(err, DT_ERR_USAGE, "--step needs --samples or --confusion");
    DT_TRY(dt_runs_open(&store, &run, call->args->operands[0], call, err));
    if (dt_arguments_flag(call->args, "samples")) {
        DT_TRY(print_samples(store, &run, call, err));
        goto out;
    }
    if (dt_arguments_flag(call->args, "confusion")) {
        DT_TRY(print_confusion(store, &run, call, err));
        goto out;
    }
    if (dt_arguments_flag(call->args, "why")) {
        DT_TRY(print_why(&run, call, err));
        goto out;
    }
    DT_TRY(gather(&all, store, &run, call->arena, err));
    if (dt_arguments_flag(call->args, "origins") && !call->json) {
        DT_TRY(print_origins(&run, &all, call->arena, err));
        goto out;
    }
    DT_TRY(call->json ? print_json(store, &run, &all, call->arena, err)
                      : print_text(store, &run, &all, call->arena, err));
out:
    dt_store_close(store);
    return st;
}

static const dt_option options[] = {
    {.name = "origins",
     .kind = DT_OPTION_FLAG,
     .help = "show which line or --set gave each value of the recipe, and what it overrides"},
    {.name = "why",
     .kind = DT_OPTION_FLAG,
     .help = "show what a step's time is spent on, and which rank slows down the others, and why"},
    {.name = "samples",
     .kind = DT_OPTION_FLAG,
     .help = "show the texts that the model generated for evaluate.samples"},
    {.name = "confusion",
     .kind = DT_OPTION_FLAG,
     .help = "show the rows of each class by the class that a classifier predicts"},
    {.name = "step",
     .kind = DT_OPTION_INT,
     .value = "N",
     .low = 0,
     .high = 9007199254740991.0,
     .help = "with --samples and --confusion: of this step, not the newest one"},
    {0},
};

const dt_command dt_command_show = {
    .name = "show",
    .summary = "show numbers, attempts, checkpoints and recipe of a run",
    .operands = "RUN",
    .takes = DT_OPERAND_RUN,
    .runs = DT_RUNS_REMOTE,
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes =

        "Prints what --set changed, the numbers, and the provenance: the command, user, host and\n"
        "dtrun version of each launch and resume, the git commit of the recipe's folder with the\n"
        "number of files changed since, and the data with their digests.\n"
        "Prints results of evaluation tasks (`dtrun evaluate`) of each step.\n"
        "--json has them as changes and provenance, the origins of recipe values as origins, and\n"
        "the results of tasks as evaluations: attempt, step, time_ms and tasks.\n"
        "--why prints the last judgement of the supervisor, of the last seconds of training. With\n"
        "--json: step_seconds, parts, ranks and findings, each with text and evidence\n"
        "(docs/slow.md).\n"
        "--samples prints the newest texts, or those of --step. With --json: samples, of all\n"
        "steps or of --step, each with step, attempt, time_ms, index, prompt, text, tokens and\n"
        "ended.\n"
        "--confusion prints a line for each class. With --json: confusion, of all steps or of\n"
        "--step, each with step, attempt, time_ms and counts, a list for each class.\n",
    .run = show,
};
