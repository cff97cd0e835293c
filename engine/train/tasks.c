/* tasks: evaluates the recipe's 'evaluate.tasks' during training. */
#include <stdlib.h>
#include <string.h>

#include "engine/channel/events.h"
#include "engine/evaluation/evaluator.h"
#include "engine/progress.h"
#include "engine/tokens/text_lines.h"
#include "engine/train/train_int.h"

#define TOGETHER    4 /* rows of a rank between two exchanges with the other ranks */
#define SUMMED_ONCE 4096

struct dt_train_tasks {
    dt_arena arena; /* the rows */
    dt_evaluation_task *tasks;
    size_t task_count;
    json_t **objects; /* (count) what the rows borrow from */
    dt_evaluation_row *rows;
    dt_evaluation_outcome *outcomes;
    int64_t count;
    dt_evaluation_results results;
    int32_t *first;
    dt_ids ends;
    dt_evaluator *evaluator;
};

/* --- opening */

static dt_status read_rows(dt_train_tasks *t, const dt_recipe *recipe, dt_error *err)
{
    const dt_string_list *files = &recipe->evaluate.tasks;
    dt_text_lines lines;
    dt_status st = DT_OK;
    const char *line;
    size_t length;
    dt_strbuf text;

    dt_strbuf_init(&text);
    t->task_count = t->results.count = (size_t)files->count;
    t->results.items = dt_arena_alloc_array(&t->arena, t->task_count, sizeof(*t->results.items));
    DT_TRY(dt_evaluation_read(&text, &t->tasks, files->items, t->task_count, &t->arena, err));
    for (size_t i = 0; i < t->task_count; i++)
        t->count += t->tasks[i].rows;
    t->objects = calloc((size_t)t->count, sizeof(*t->objects));
    t->rows = calloc((size_t)t->count, sizeof(*t->rows));
    t->outcomes = calloc((size_t)t->count, sizeof(*t->outcomes));
    if (t->objects == NULL || t->rows == NULL || t->outcomes == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for %lld rows", (long long)t->count);
    lines = (dt_text_lines){text.data, text.data + text.length};
    for (int64_t i = 0; dt_text_lines_next(&line, &length, &lines); i++) {
        DT_TRY(dt_json_parse(&t->objects[i], line, length, "row", err));
        DT_TRY(dt_evaluation_row_read(&t->rows[i], t->objects[i], "row", &t->arena, err));
    }
out:
    dt_strbuf_release(&text);
    return st;
}

static bool has_text(const dt_tokenizer *tokenizer)
{
    json_t *json = dt_tokenizer_to_json(tokenizer);
    const char *kind = json_string_value(json_object_get(json, "kind"));
    bool out = kind != NULL && strcmp(kind, "ids") != 0 && strcmp(kind, "rows") != 0;

    json_decref(json);
    return out;
}

static dt_status open_evaluator(dt_train_tasks *t, int64_t *longest, dt_train_session *session,
                                dt_error *err)
{
    dt_evaluator_setup setup = {.tokenizer = dt_dataset_tokenizer(session->data.dataset),
                                .ends = &t->ends,
                                .context = session->recipe->batch.tokens};
    dt_status st = DT_OK;
    int64_t tokens;

    if (!has_text(setup.tokenizer))
        DT_THROW(err, DT_ERR_RECIPE,
                 "the data are numbers: without 'data.tokenizer' tasks cannot be tokenized");
    DT_TRY(dt_tokenizer_ends(&t->ends, setup.tokenizer, session->recipe, err));
    DT_TRY(dt_tokenizer_first_tokens(&t->first, &setup.first_count, setup.tokenizer, err));
    setup.first = t->first;
    DT_TRY(dt_evaluator_open(&t->evaluator, &setup, err));
    for (int64_t i = 0; i < t->count; i++) {
        DT_TRY(dt_evaluator_measure(&tokens, t->evaluator, &t->rows[i], err));
        *longest = tokens > *longest ? tokens : *longest;
    }
out:
    return st;
}

dt_status dt_train_tasks_open(dt_train_session *session, dt_error *err)
{
    dt_train_tasks *t;
    int64_t longest = 2;
    dt_status st = DT_OK;

    if (session->recipe->evaluate.tasks.count == 0)
        return DT_OK;
    session->evaluation.tasks = t = calloc(1, sizeof(*t));
    if (t == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for tasks");
    dt_arena_init(&t->arena, 0);
    DT_TRY(read_rows(t, session->recipe, err));
    for (size_t i = 0; i < t->task_count; i++)
        DT_TRY(dt_evaluation_check_divided(&t->tasks[i], session->recipe->tensor.size, err));
    DT_TRY(open_evaluator(t, &longest, session, err));
    dt_side_model_need(&session->evaluation.side, longest);
out:
    if (st == DT_ERR_USAGE || st == DT_ERR_NOT_FOUND) /* a restart would not help */
        err->code = st = DT_ERR_RECIPE;
    if (st != DT_OK)
        dt_error_prefix(err, "'evaluate.tasks'");
    return st;
}

dt_status dt_train_tasks_use_model(dt_train_session *session, dt_error *err)
{
    dt_train_tasks *t = session->evaluation.tasks;

    return t == NULL ? DT_OK : dt_evaluator_use(t->evaluator, session->evaluation.side.model, err);
}

void dt_train_tasks_close(dt_train_tasks *t)
{
    if (t == NULL)
        return;
    dt_evaluator_close(t->evaluator);
    for (int64_t i = 0; t->objects != NULL && i < t->count; i++)
        json_decref(t->objects[i]);
    dt_ids_release(&t->ends);
    free(t->objects);
    free(t->rows);
    free(t->outcomes);
    free(t->first);
    dt_arena_release(&t->arena);
    free(t);
}

/* --- an evaluation */

/* Evaluates this data rank's rows among those from `first`, TOGETHER of each rank. */
static dt_status run_some(dt_train_session *session, int64_t first, dt_error *err)
{
    dt_train_tasks *t = session->evaluation.tasks;
    const dt_group *data = &session->mesh.data;
    json_t *result = NULL;
    dt_status st = DT_OK;

    for (int64_t k = 0; k < TOGETHER; k++) {
        int64_t i = first + k * data->size + data->rank;

        if (i >= t->count)
            break;
        /* ranks that divide layers evaluate the same rows, and must stop together */
        if (session->model->peers == NULL && dt_stop_asked())
            break;
        DT_TRY(dt_evaluator_run(&t->outcomes[i], &result, t->evaluator, &t->rows[i], err));
        json_decref(result);
        dt_progress_made();
    }
out:
    return st;
}

/* Each outcome was computed by one data rank and is zero on the others, so that the sums are exact. */
static dt_status gather(dt_train_session *session, dt_error *err)
{
    dt_train_tasks *t = session->evaluation.tasks;
    double *values = t->outcomes[0].values;
    int64_t count = t->count * DT_EVALUATION_VALUES;
    dt_status st = DT_OK;

    for (int64_t i = 0; i < count; i++)
        values[i] = dt_mesh_term(&session->mesh, DT_MESH_DATA, values[i]);
    for (int64_t i = 0; i < count; i += SUMMED_ONCE)
        DT_TRY(session->comm.all_reduce_f64(
            &session->comm, values + i, count - i < SUMMED_ONCE ? count - i : SUMMED_ONCE, err));
out:
    return st;
}

static void total(dt_train_tasks *t)
{
    int64_t first = 0;

    for (size_t i = 0; i < t->task_count; i++) {
        t->results.items[i].task = t->tasks[i].name;
        dt_evaluation_total(&t->results.items[i], t->tasks[i].kind, t->outcomes + first,
                            t->tasks[i].rows);
        first += t->tasks[i].rows;
    }
}

dt_status dt_train_tasks_run(const dt_evaluation_results **results, dt_train_session *session,
                             bool *stopped, dt_error *err)
{
    dt_train_tasks *t = session->evaluation.tasks;
    double asked = 0;
    dt_status st = DT_OK;

    *stopped = false;
    memset(t->outcomes, 0, (size_t)t->count * sizeof(*t->outcomes));
    DT_TRY(dt_side_model_take(&session->evaluation.side, session, err));
    for (int64_t first = 0; first < t->count; first += TOGETHER * session->mesh.data.size) {
        DT_TRY(run_some(session, first, err));
        asked = dt_stop_asked() ? 1 : 0;
        DT_TRY(session->comm.all_reduce_f64(&session->comm, &asked, 1, err));
        *stopped = asked > 0;
        if (*stopped)
            goto out;
    }
    DT_TRY(gather(session, err));
    total(t);
    *results = &t->results;
    session->evaluation.tasks_step = session->step;
out:
    return st;
}
