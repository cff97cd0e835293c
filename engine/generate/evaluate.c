#include <stdlib.h>

#include "engine/evaluation/evaluator.h"
#include "engine/generate/generate.h"
#include "engine/tokens/text_lines.h"

typedef struct evaluation {
    const dt_evaluate_options *options;
    dt_loaded from;
    int32_t *first;
    dt_evaluator *evaluator;
    dt_arena row; /* of the current row */
} evaluation;

/* --- rows */

static dt_status read_row(json_t **object, dt_evaluation_row *out, evaluation *of, const char *line,
                          size_t length, dt_error *err)
{
    dt_status st = DT_OK;

    dt_arena_reset(&of->row);
    DT_TRY(dt_json_parse(object, line, length, "row", err));
    DT_TRY(dt_evaluation_row_read(out, *object, "row", &of->row, err));
out:
    return st;
}

/* Calls `take` for each row. */
static dt_status each_row(evaluation *of,
                          dt_status (*take)(evaluation *of, const dt_evaluation_row *row,
                                            void *self, dt_error *err),
                          void *self, dt_error *err)
{
    dt_text_lines lines = {of->options->text, of->options->text + of->options->length};
    dt_evaluation_row row;
    json_t *object = NULL;
    dt_status st = DT_OK;
    const char *line;
    size_t length;

    while (dt_text_lines_next(&line, &length, &lines)) {
        DT_TRY(read_row(&object, &row, of, line, length, err));
        DT_TRY(take(of, &row, self, err));
        json_decref(object);
        object = NULL;
    }
out:
    json_decref(object);
    return st;
}

static dt_status measure(evaluation *of, const dt_evaluation_row *row, void *self, dt_error *err)
{
    int64_t tokens, *longest = self;
    dt_status st = dt_evaluator_measure(&tokens, of->evaluator, row, err);

    if (st == DT_OK && tokens > *longest)
        *longest = tokens;
    return st;
}

static dt_status run(evaluation *of, const dt_evaluation_row *row, void *self, dt_error *err)
{
    dt_evaluation_outcome outcome;
    json_t *result = NULL;
    dt_status st = DT_OK;
    dt_strbuf line;

    (void)self;
    dt_strbuf_init(&line);
    DT_TRY(dt_evaluator_run(&outcome, &result, of->evaluator, row, err));
    dt_json_write(&line, result);
    DT_TRY(of->options->emit(of->options->context, &line, err));
out:
    json_decref(result);
    dt_strbuf_release(&line);
    return st;
}

/* --- the model */

static dt_status open_model(evaluation *of, dt_error *err)
{
    const dt_evaluate_options *options = of->options;
    dt_loaded *from = &of->from;
    dt_evaluator_setup setup = {
        .ends = &from->ends, .before = options->before, .self = options->context};
    dt_loaded_room room = {.batch = 1, .sequences = 1, .tokens = 2};
    dt_status st = DT_OK;

    if (options->checkpoint[0] != '\0')
        DT_TRY(dt_loaded_open(from, options->checkpoint, options->base, err));
    else
        DT_TRY(dt_loaded_open_weights(from, options->recipe, options->base, err));
    setup.tokenizer = from->tokenizer;
    setup.context = from->recipe.batch.tokens;
    DT_TRY(dt_loaded_first_tokens(&of->first, &setup.first_count, from, err));
    setup.first = of->first;
    DT_TRY(dt_evaluator_open(&of->evaluator, &setup, err));
    DT_TRY(each_row(of, measure, &room.tokens, err));
    room.kept = room.tokens;
    DT_TRY(dt_loaded_open_model(from, options->device, options->threads, options->precision, &room,
                                err));
    DT_TRY(dt_evaluator_use(of->evaluator, from->model, err));
out:
    return st;
}

dt_status dt_evaluate_lines(const dt_evaluate_options *options, dt_error *err)
{
    evaluation of = {.options = options};
    dt_status st = DT_OK;

    dt_arena_init(&of.row, 0);
    DT_TRY(open_model(&of, err));
    DT_TRY(each_row(&of, run, NULL, err));
out:
    dt_evaluator_close(of.evaluator);
    free(of.first);
    dt_loaded_close(&of.from);
    dt_arena_release(&of.row);
    return st;
}
