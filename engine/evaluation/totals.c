/* totals: computes the metrics of a task from the outcomes of its rows.
 *
 * Formula  a share is the mean of ones and zeros, its error the sample's deviation (n - 1) over sqrt(n)
 *          a perplexity is exp(-R), R = the sum of log-likelihoods over the sum of units (words, bytes, tokens).
 *          error of the ratio R: sqrt(n / (n - 1) * sum (l_i - R u_i)^2) / sum u (Cochran, "Sampling techniques",
 *          6.4), times the perplexity
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/evaluation/evaluation.h"
#include "engine/tokens/text_lines.h"

/* --- tables */

typedef enum form { FORM_SHARE, FORM_PERPLEXITY, FORM_BITS } form;

typedef struct metric_row {
    const char *name;
    form form;
    int value; /* of the outcome: the ones of a share, the units of a perplexity */
} metric_row;

typedef struct kind_table {
    const char *values[DT_EVALUATION_VALUES]; /* their names in a result; NULL: not used */
    metric_row metrics[DT_EVALUATION_METRICS];
} kind_table;

static const kind_table tables[DT_EVALUATION_KINDS] = {
    [DT_EVALUATION_CHOICE] = {.values = {[DT_CHOICE_ACC] = "acc",
                                         [DT_CHOICE_ACC_NORM] = "acc_norm",
                                         [DT_CHOICE_ACC_BYTES] = "acc_bytes",
                                         [DT_OUTCOME_CUT] = "cut"},
                              .metrics = {{"acc", FORM_SHARE, DT_CHOICE_ACC},
                                          {"acc_norm", FORM_SHARE, DT_CHOICE_ACC_NORM},
                                          {"acc_bytes", FORM_SHARE, DT_CHOICE_ACC_BYTES}}},
    [DT_EVALUATION_ANSWER] =
        {.values = {[DT_ANSWER_MATCH] = "exact_match", [DT_OUTCOME_CUT] = "cut"},
         .metrics = {{"exact_match", FORM_SHARE, DT_ANSWER_MATCH}}},
    [DT_EVALUATION_TEXT] = {.values = {[DT_TEXT_LIKELIHOOD] = "log_likelihood",
                                       [DT_TEXT_COUNT_TOKENS] = "tokens",
                                       [DT_TEXT_COUNT_WORDS] = "words",
                                       [DT_TEXT_COUNT_BYTES] = "bytes",
                                       [DT_OUTCOME_CUT] = "cut"},
                            .metrics = {{"word_perplexity", FORM_PERPLEXITY, DT_TEXT_COUNT_WORDS},
                                        {"byte_perplexity", FORM_PERPLEXITY, DT_TEXT_COUNT_BYTES},
                                        {"bits_per_byte", FORM_BITS, DT_TEXT_COUNT_BYTES},
                                        {"token_perplexity", FORM_PERPLEXITY,
                                         DT_TEXT_COUNT_TOKENS}}},
};

/* --- outcomes */

/* Counts, and ones and zeros, as whole numbers. */
static json_t *number(double value)
{
    return value == floor(value) && fabs(value) < 1e15 ? json_integer((json_int_t)value)
                                                       : dt_json_number(value);
}

void dt_evaluation_outcome_to_json(json_t *io, dt_evaluation_kind kind,
                                   const dt_evaluation_outcome *outcome)
{
    for (int i = 0; i < DT_EVALUATION_VALUES; i++)
        if (tables[kind].values[i] != NULL)
            json_object_set_new(io, tables[kind].values[i], number(outcome->values[i]));
}

dt_status dt_evaluation_outcome_read(dt_evaluation_outcome *out, dt_evaluation_kind kind,
                                     const json_t *result, dt_error *err)
{
    dt_status st = DT_OK;

    *out = (dt_evaluation_outcome){{0}};
    for (int i = 0; i < DT_EVALUATION_VALUES; i++)
        if (tables[kind].values[i] != NULL)
            DT_TRY(
                dt_json_get_number(&out->values[i], result, tables[kind].values[i], "result", err));
out:
    return st;
}

/* --- metrics */

static double sum_of(const dt_evaluation_outcome *outcomes, int64_t count, int value)
{
    double sum = 0;

    for (int64_t i = 0; i < count; i++)
        sum += outcomes[i].values[value];
    return sum;
}

static void add_share(dt_evaluation_metric *out, int value, const dt_evaluation_outcome *outcomes,
                      int64_t count)
{
    double mean = sum_of(outcomes, count, value) / (double)count, squares = 0;

    for (int64_t i = 0; i < count; i++)
        squares += (outcomes[i].values[value] - mean) * (outcomes[i].values[value] - mean);
    out->value = mean;
    out->error = count > 1 ? sqrt(squares / (double)(count - 1)) / sqrt((double)count) : NAN;
}

static void add_ratio(dt_evaluation_metric *out, const metric_row *of,
                      const dt_evaluation_outcome *outcomes, int64_t count)
{
    double units = sum_of(outcomes, count, of->value), squares = 0, ratio, error;

    ratio = sum_of(outcomes, count, DT_TEXT_LIKELIHOOD) / units;
    for (int64_t i = 0; i < count; i++) {
        double rest =
            outcomes[i].values[DT_TEXT_LIKELIHOOD] - ratio * outcomes[i].values[of->value];

        squares += rest * rest;
    }
    error = count > 1 ? sqrt((double)count / (double)(count - 1) * squares) / units : NAN;
    out->value = of->form == FORM_BITS ? -ratio / log(2) : exp(-ratio);
    out->error = of->form == FORM_BITS ? error / log(2) : error * out->value;
}

void dt_evaluation_total(dt_evaluation_result *out, dt_evaluation_kind kind,
                         const dt_evaluation_outcome *outcomes, int64_t count)
{
    out->kind = kind;
    out->rows = count;
    out->cut = (int64_t)sum_of(outcomes, count, DT_OUTCOME_CUT);
    out->count = 0;
    for (size_t i = 0; i < DT_EVALUATION_METRICS; i++) {
        const metric_row *of = &tables[kind].metrics[i];
        dt_evaluation_metric *to = &out->metrics[out->count];

        if (of->name == NULL)
            break;
        out->count++;
        to->name = of->name;
        if (of->form == FORM_SHARE)
            add_share(to, of->value, outcomes, count);
        else
            add_ratio(to, of, outcomes, count);
    }
}

/* --- from the results of rows */

typedef struct gathered {
    const char *task;
    dt_evaluation_kind kind;
    dt_evaluation_outcome *outcomes;
    int64_t count, room;
} gathered;

typedef struct gathering {
    gathered *tasks;
    size_t count;
    dt_arena *arena;
} gathering;

static dt_status read_kind(dt_evaluation_kind *out, const json_t *object, const char *key,
                           dt_error *err)
{
    const char *name;
    dt_status st = DT_OK;

    DT_TRY(dt_json_get_string(&name, object, key, "result", err));
    for (int k = 0; k < DT_EVALUATION_KINDS; k++)
        if (strcmp(name, dt_evaluation_kind_name(k)) == 0) {
            *out = k;
            return DT_OK;
        }
    st = DT_FAIL(err, DT_ERR_CORRUPT, "result: unknown kind '%s'", name);
out:
    return st;
}

static dt_status find_task(gathered **out, gathering *g, const char *task, dt_error *err)
{
    for (size_t i = 0; i < g->count; i++)
        if (strcmp(g->tasks[i].task, task) == 0) {
            *out = &g->tasks[i];
            return DT_OK;
        }
    if (g->count == DT_EVALUATION_TASKS)
        return DT_FAIL(err, DT_ERR_CORRUPT, "result: more than %d tasks", DT_EVALUATION_TASKS);
    *out = &g->tasks[g->count++];
    **out = (gathered){.task = dt_arena_strdup(g->arena, task)};
    return DT_OK;
}

static dt_status add_outcome(gathered *to, const dt_evaluation_outcome *outcome, dt_error *err)
{
    if (to->count == to->room) {
        int64_t room = to->room > 0 ? 2 * to->room : 64;
        dt_evaluation_outcome *grown = realloc(to->outcomes, (size_t)room * sizeof(*grown));

        if (grown == NULL)
            return DT_FAIL(err, DT_ERR_NOMEM, "no memory for %lld results", (long long)room);
        to->outcomes = grown;
        to->room = room;
    }
    to->outcomes[to->count++] = *outcome;
    return DT_OK;
}

static dt_status gather(gathering *g, const char *line, size_t length, dt_error *err)
{
    dt_evaluation_outcome outcome;
    dt_evaluation_kind kind;
    json_t *object = NULL;
    gathered *to = NULL;
    const char *task;
    dt_status st = DT_OK;

    DT_TRY(dt_json_parse_with_nul(&object, line, length, "result", err));
    DT_TRY(dt_json_get_string(&task, object, "task", "result", err));
    DT_TRY(read_kind(&kind, object, "kind", err));
    DT_TRY(find_task(&to, g, task, err));
    if (to->count > 0 && to->kind != kind)
        DT_THROW(err, DT_ERR_CORRUPT, "result: task '%s' has two kinds", task);
    to->kind = kind;
    DT_TRY(dt_evaluation_outcome_read(&outcome, kind, object, err));
    DT_TRY(add_outcome(to, &outcome, err));
out:
    json_decref(object);
    return st;
}

dt_status dt_evaluation_totals(dt_evaluation_results *out, const char *text, size_t length,
                               dt_arena *arena, dt_error *err)
{
    gathering g = {.arena = arena};
    dt_text_lines lines = {text, text + length};
    int64_t number = 0;
    dt_status st = DT_OK;
    const char *line;
    size_t bytes;

    g.tasks = dt_arena_alloc_array(arena, DT_EVALUATION_TASKS, sizeof(g.tasks[0]));
    while (dt_text_lines_next(&line, &bytes, &lines)) {
        number++;
        st = gather(&g, line, bytes, err);
        if (st != DT_OK)
            dt_error_prefix(err, "line %lld", (long long)number);
        DT_TRY(st);
    }
    out->items = dt_arena_alloc_array(arena, g.count, sizeof(out->items[0]));
    out->count = g.count;
    for (size_t i = 0; i < g.count; i++) {
        out->items[i].task = g.tasks[i].task;
        dt_evaluation_total(&out->items[i], g.tasks[i].kind, g.tasks[i].outcomes, g.tasks[i].count);
    }
out:
    for (size_t i = 0; i < g.count; i++)
        free(g.tasks[i].outcomes);
    return st;
}

/* --- as JSON */

json_t *dt_evaluation_to_json(const dt_evaluation_results *results)
{
    json_t *tasks = json_object(), *task, *metrics;

    for (size_t i = 0; i < results->count; i++) {
        const dt_evaluation_result *of = &results->items[i];

        metrics = json_object();
        for (size_t m = 0; m < of->count; m++)
            json_object_set_new(metrics, of->metrics[m].name,
                                json_pack("{s:o, s:o}", "value",
                                          dt_json_number(of->metrics[m].value), "stderr",
                                          dt_json_number(of->metrics[m].error)));
        task = json_pack("{s:s, s:I, s:I, s:o}", "kind", dt_evaluation_kind_name(of->kind), "rows",
                         (json_int_t)of->rows, "cut", (json_int_t)of->cut, "metrics", metrics);
        json_object_set_new(tasks, of->task, task);
    }
    return tasks;
}

static double number_or_nan(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

static dt_status read_result(dt_evaluation_result *out, const json_t *task, dt_error *err)
{
    json_t *metrics;
    dt_status st = DT_OK;

    DT_TRY(read_kind(&out->kind, task, "kind", err));
    DT_TRY(dt_json_get_int(&out->rows, task, "rows", "evaluation", err));
    DT_TRY(dt_json_get_int_or(&out->cut, task, "cut", 0, "evaluation", err));
    DT_TRY(dt_json_get_object(&metrics, task, "metrics", "evaluation", err));
    for (size_t i = 0; i < DT_EVALUATION_METRICS && tables[out->kind].metrics[i].name != NULL;
         i++) {
        const char *name = tables[out->kind].metrics[i].name;
        const json_t *metric = json_object_get(metrics, name);

        if (metric != NULL)
            out->metrics[out->count++] = (dt_evaluation_metric){
                name, number_or_nan(metric, "value"), number_or_nan(metric, "stderr")};
    }
out:
    return st;
}

dt_status dt_evaluation_from_json(dt_evaluation_results *out, const json_t *tasks, dt_arena *arena,
                                  dt_error *err)
{
    json_t *members = (json_t *)tasks, *task; /* jansson iterates over it without changing it */
    const char *name;
    dt_status st = DT_OK;

    out->count = 0;
    out->items = dt_arena_alloc_array(arena, json_object_size(tasks), sizeof(out->items[0]));
    json_object_foreach(members, name, task) {
        dt_evaluation_result *to = &out->items[out->count++];

        *to = (dt_evaluation_result){.task = dt_arena_strdup(arena, name)};
        DT_TRY(read_result(to, task, err));
    }
out:
    return st;
}

const dt_evaluation_metric *dt_evaluation_find(const dt_evaluation_results *results,
                                               const char *task, const char *metric)
{
    for (size_t i = 0; i < results->count; i++)
        for (size_t m = 0; m < results->items[i].count; m++)
            if (strcmp(results->items[i].task, task) == 0 &&
                strcmp(results->items[i].metrics[m].name, metric) == 0)
                return &results->items[i].metrics[m];
    return NULL;
}
