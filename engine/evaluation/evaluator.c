#include "engine/evaluation/evaluator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct dt_evaluator {
    dt_evaluator_setup setup;
    dt_model *model;
    dt_device_arena memory;
    void *inputs[2];     /* ids and targets of a pass */
    dt_ids ids, targets; /* of the current text */
    dt_bpe_encoder *bpe; /* NULL: another kind of tokenizer */
    const bool *special; /* [special_count]: control tokens, which are not text */
    bool *special_memory;
    int64_t special_count;
    float *logits;
};

/* --- opening */

static dt_status list_special(dt_evaluator *e, dt_error *err)
{
    const dt_bpe *bpe = dt_tokenizer_bpe(e->setup.tokenizer);
    const dt_bpe_added *added;
    size_t count;

    if (bpe == NULL)
        return DT_OK;
    e->special_count = dt_tokenizer_vocab(e->setup.tokenizer);
    e->special_memory = calloc((size_t)e->special_count, sizeof(bool));
    if (e->special_memory == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a tokenizer");
    added = dt_bpe_get_added(&count, bpe);
    for (size_t i = 0; i < count; i++)
        if (added[i].special && added[i].id >= 0 && added[i].id < e->special_count)
            e->special_memory[added[i].id] = true;
    e->special = e->special_memory;
    return dt_bpe_encoder_open(&e->bpe, bpe, err);
}

dt_status dt_evaluator_open(dt_evaluator **out, const dt_evaluator_setup *setup, dt_error *err)
{
    dt_evaluator *e = calloc(1, sizeof(*e));
    dt_status st = DT_OK;

    *out = e;
    if (e == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for an evaluation");
    e->setup = *setup;
    if (dt_tokenizer_sides(setup->tokenizer) != NULL || setup->first_count == 0)
        DT_THROW(err, DT_ERR_USAGE,
                 "an evaluation needs a model that predicts the next token of a text, with its "
                 "tokenizer");
    DT_TRY(list_special(e, err));
out:
    if (st != DT_OK) {
        dt_evaluator_close(e);
        *out = NULL;
    }
    return st;
}

dt_status dt_evaluator_use(dt_evaluator *e, dt_model *model, dt_error *err)
{
    size_t bytes = (size_t)(e->setup.context + 1) * sizeof(int32_t);
    dt_model_text text;
    dt_status st = DT_OK;

    e->model = model;
    DT_TRY(dt_model_text_of(&text, model, err));
    e->logits = calloc((size_t)text.vocab, sizeof(*e->logits));
    if (e->logits == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the logits of %lld tokens",
                 (long long)text.vocab);
    DT_TRY(dt_device_arena_open(&e->memory, model->device, 2 * (bytes + 64), err));
    for (int i = 0; i < 2; i++)
        e->inputs[i] = dt_device_arena_take(&e->memory, bytes);
out:
    return st;
}

void dt_evaluator_close(dt_evaluator *e)
{
    if (e == NULL)
        return;
    dt_bpe_encoder_close(e->bpe);
    dt_ids_release(&e->ids);
    dt_ids_release(&e->targets);
    dt_device_arena_close(&e->memory);
    free(e->special_memory);
    free(e->logits);
    free(e);
}

/* --- tokens */

static dt_status add_ids(dt_ids *out, const int32_t *ids, int64_t count, dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t i = 0; i < count && st == DT_OK; i++)
        st = dt_ids_add(out, ids[i], err);
    return st;
}

/* Whether the text begins with the text of the begin token, as one made with a chat template does. */
static bool has_begun(const dt_evaluator *e, const char *text, size_t length)
{
    dt_strbuf first;
    bool out;

    dt_strbuf_init(&first);
    dt_tokenizer_decode(&first, e->setup.tokenizer, e->setup.first[0]);
    out = first.length > 0 && length >= first.length && memcmp(text, first.data, first.length) == 0;
    dt_strbuf_release(&first);
    return out;
}

static dt_status encode(dt_evaluator *e, const char *text, size_t length, dt_error *err)
{
    int32_t *ids = NULL;
    int64_t count = 0;
    dt_status st = DT_OK;

    if (length == 0)
        return DT_OK;
    if (e->bpe != NULL)
        return dt_bpe_encode(&e->ids, e->bpe, text, length, err);
    DT_TRY(dt_tokenizer_encode(&ids, &count, e->setup.tokenizer, text, length, err));
    DT_TRY(add_ids(&e->ids, ids, count, err));
out:
    free(ids);
    return st;
}

/* Sets e->ids to the tokens of a text, after the tokenizer's begin tokens. */
static dt_status encode_text(dt_evaluator *e, const char *text, size_t length, dt_error *err)
{
    dt_bpe_around around = dt_tokenizer_around(e->setup.tokenizer);
    dt_status st = DT_OK;

    e->ids.count = 0;
    if (!has_begun(e, text, length))
        DT_TRY(add_ids(&e->ids, around.before, (int64_t)around.before_count, err));
    DT_TRY(encode(e, text, length, err));
out:
    return st;
}

/* Sets e->ids to the token that stands for an empty prompt, and the tokens of a text. */
static dt_status encode_alone(dt_evaluator *e, const char *text, size_t length, dt_error *err)
{
    dt_status st = DT_OK;

    e->ids.count = 0;
    DT_TRY(dt_ids_add(&e->ids, e->setup.first[0], err));
    DT_TRY(encode(e, text, length, err));
    if (e->ids.count > 1 && e->ids.items[1] == e->ids.items[0]) /* the text has it already */
        memmove(e->ids.items, e->ids.items + 1, --e->ids.count * sizeof(e->ids.items[0]));
out:
    return st;
}

/* Sets e->ids to the tokens of prompt and choice; *given: those of the prompt. */
static dt_status encode_choice(int64_t *given, dt_evaluator *e, const dt_evaluation_row *row,
                               size_t choice, dt_error *err)
{
    size_t length = strlen(row->text), kept = length - dt_evaluation_blank_end(row->text, length);
    dt_status st = DT_OK;
    dt_strbuf whole;

    dt_strbuf_init(&whole);
    dt_strbuf_add_str(&whole, row->text);
    dt_strbuf_add_fmt(&whole, "%s%s", row->delimiter, row->choices.items[choice]);
    if (length == 0) {
        *given = 1;
        DT_TRY(encode_alone(e, whole.data, whole.length, err));
        goto out;
    }
    DT_TRY(encode_text(e, whole.data, kept, err));
    *given = (int64_t)e->ids.count;
    if (*given == 0) { /* the prompt is white space */
        *given = 1;
        DT_TRY(encode_alone(e, whole.data, whole.length, err));
        goto out;
    }
    DT_TRY(encode_text(e, whole.data, whole.length, err));
out:
    dt_strbuf_release(&whole);
    return st;
}

/* --- a pass */

static dt_status before(const dt_evaluator *e, dt_error *err)
{
    return e->setup.before != NULL ? e->setup.before(e->setup.self, err) : DT_OK;
}

static dt_status put(const dt_evaluator *e, dt_tensor *out, int place, const int32_t *ids,
                     int64_t count, dt_error *err)
{
    dt_device *device = e->model->device;

    *out = dt_tensor_2d(e->inputs[place], DT_I32, 1, count);
    return device->copy_in(device, out->data, ids, (size_t)count * sizeof(*ids), err);
}

static dt_status diverged(dt_error *err)
{
    return DT_FAIL(err, DT_ERR_RECIPE,
                   "the model's outputs are not finite: the run diverged before this checkpoint "
                   "(use an earlier one)");
}

/* Adds the log-likelihood of tokens `given` .. end of e->ids, at most the context before each, in one pass that begins
 * at `begin`. */
static dt_status add_pass(double *io, dt_evaluator *e, int64_t begin, int64_t given, int64_t end,
                          dt_error *err)
{
    const int32_t *ids = e->ids.items;
    int64_t count = end - begin - 1;
    dt_batch batch = {.seed = 0};
    double loss = 0, counted = 0;
    dt_status st = DT_OK;

    DT_TRY(before(e, err));
    e->targets.count = 0;
    for (int64_t i = begin + 1; i < end; i++)
        DT_TRY(dt_ids_add(&e->targets, i < given ? -1 : ids[i], err));
    DT_TRY(put(e, &batch.inputs[DT_DECODER_TOKENS], 0, ids + begin, count, err));
    DT_TRY(put(e, &batch.inputs[DT_DECODER_TARGETS], 1, e->targets.items, count, err));
    DT_TRY(dt_model_evaluate(e->model, &batch, &loss, &counted, err));
    if (!isfinite(loss))
        DT_TRY(diverged(err));
    *io -= loss;
out:
    return st;
}

/* --- kind choice */

/* Checks e->ids, the tokens of prompt and choice. */
static dt_status check_choice(const dt_evaluator *e, int64_t given, size_t choice, dt_error *err)
{
    int64_t count = (int64_t)e->ids.count;

    if (count <= given)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "choice %zu adds no token to the prompt: they share a token (set "
                       "'delimiter')",
                       choice);
    if (count - given > e->setup.context)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "choice %zu has %lld tokens, and the model reads at most %lld", choice,
                       (long long)(count - given), (long long)e->setup.context);
    return DT_OK;
}

static dt_status score_choice(double *out, bool *cut, dt_evaluator *e, const dt_evaluation_row *row,
                              size_t choice, dt_error *err)
{
    int64_t given, count, begin;
    dt_status st = DT_OK;

    *out = 0;
    DT_TRY(encode_choice(&given, e, row, choice, err));
    count = (int64_t)e->ids.count;
    begin = count > e->setup.context + 1 ? count - e->setup.context - 1 : 0;
    *cut = *cut || begin > 0;
    DT_TRY(add_pass(out, e, begin, given, count, err));
out:
    return st;
}

/* The first choice with the largest likelihood per unit. */
static size_t best(const double *likelihoods, const dt_evaluation_texts *choices,
                   int64_t (*units)(const char *text))
{
    double value, largest = -INFINITY;
    size_t out = 0;

    for (size_t i = 0; i < choices->count; i++) {
        value = likelihoods[i] / (double)units(choices->items[i]);
        if (value > largest) {
            largest = value;
            out = i;
        }
    }
    return out;
}

static int64_t one(const char *text)
{
    (void)text;
    return 1;
}

static int64_t bytes_of(const char *text)
{
    return (int64_t)strlen(text);
}

static bool is_right(const dt_evaluation_row *row, size_t choice)
{
    for (size_t i = 0; i < row->right_count; i++)
        if (row->right[i] == (int64_t)choice)
            return true;
    return false;
}

static dt_status run_choice(dt_evaluation_outcome *out, json_t *result, dt_evaluator *e,
                            const dt_evaluation_row *row, dt_error *err)
{
    double *likelihoods = calloc(row->choices.count, sizeof(*likelihoods));
    json_t *list = json_array();
    bool cut = false;
    dt_status st = DT_OK;

    json_object_set_new(result, "log_likelihoods", list);
    if (likelihoods == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a row");
    for (size_t i = 0; i < row->choices.count; i++) {
        DT_TRY(score_choice(&likelihoods[i], &cut, e, row, i, err));
        json_array_append_new(list, json_real(likelihoods[i]));
    }
    json_object_set_new(result, "choice",
                        json_integer((json_int_t)best(likelihoods, &row->choices, one)));
    out->values[DT_CHOICE_ACC] = is_right(row, best(likelihoods, &row->choices, one));
    out->values[DT_CHOICE_ACC_NORM] =
        is_right(row, best(likelihoods, &row->choices, dt_evaluation_characters));
    out->values[DT_CHOICE_ACC_BYTES] = is_right(row, best(likelihoods, &row->choices, bytes_of));
    out->values[DT_OUTCOME_CUT] = cut;
out:
    free(likelihoods);
    return st;
}

/* --- kind text */

/* Windows of e->ids, the first of which is not predicted, so that each other token is predicted once. */
static dt_status run_text(dt_evaluation_outcome *out, dt_evaluator *e, const dt_evaluation_row *row,
                          dt_error *err)
{
    int64_t context = e->setup.context, count, done;
    size_t length = strlen(row->text);
    double likelihood = 0;
    dt_status st = DT_OK;

    DT_TRY(encode_text(e, row->text, length, err));
    DT_TRY(dt_ids_add(&e->ids, 0, err));
    memmove(e->ids.items + 1, e->ids.items, (e->ids.count - 1) * sizeof(e->ids.items[0]));
    e->ids.items[0] = e->setup.first[0];
    count = (int64_t)e->ids.count;
    for (done = 1; done < count;) {
        int64_t end = count - done < context ? count : done + context;
        int64_t begin = end > context + 1 ? end - context - 1 : 0;

        DT_TRY(add_pass(&likelihood, e, begin, done, end, err));
        done = end;
    }
    out->values[DT_TEXT_LIKELIHOOD] = likelihood;
    out->values[DT_TEXT_COUNT_TOKENS] = (double)(count - 1);
    out->values[DT_TEXT_COUNT_WORDS] = (double)dt_evaluation_words(row->text, length);
    out->values[DT_TEXT_COUNT_BYTES] = (double)length;
    out->values[DT_OUTCOME_CUT] = 0;
out:
    return st;
}

/* --- kind answer */

static bool ends(const dt_evaluator *e, int32_t token)
{
    for (size_t i = 0; i < e->setup.ends->count; i++)
        if (e->setup.ends->items[i] == token)
            return true;
    return false;
}

static dt_status likeliest(int32_t *out, const dt_evaluator *e, dt_error *err)
{
    int64_t vocab = dt_tokenizer_vocab(e->setup.tokenizer), most = 0;
    float sum = 0;

    for (int64_t v = 0; v < vocab; v++) {
        sum += e->logits[v] * 0; /* NaN for a NaN or an infinity */
        most = e->logits[v] > e->logits[most] ? v : most;
    }
    *out = (int32_t)most;
    return sum == 0 ? DT_OK : diverged(err);
}

/* Cuts the text before the first of `until`. Returns whether there is one. */
static bool cut_until(dt_strbuf *io, const dt_evaluation_texts *until)
{
    const char *first = NULL, *found;

    for (size_t i = 0; i < until->count; i++) {
        found = strstr(io->data, until->items[i]);
        if (found != NULL && (first == NULL || found < first))
            first = found;
    }
    if (first == NULL)
        return false;
    io->length = (size_t)(first - io->data);
    io->data[io->length] = '\0';
    return true;
}

static void add_token(dt_strbuf *out, const dt_evaluator *e, int32_t token)
{
    const dt_bpe *bpe = dt_tokenizer_bpe(e->setup.tokenizer);
    bool first = out->length == 0;

    if (token < e->special_count && e->special[token])
        return;
    dt_tokenizer_decode(out, e->setup.tokenizer, token);
    if (first && bpe != NULL && dt_bpe_drops_first_space(bpe) && out->length > 0 &&
        out->data[0] == ' ')
        dt_strbuf_remove_front(out, 1);
}

/* Appends the text that the model adds to e->ids, of which the last tokens are the prompt. */
static dt_status generate(dt_strbuf *out, dt_evaluator *e, const dt_evaluation_row *row,
                          dt_error *err)
{
    dt_model *model = e->model;
    int64_t read = 0;
    dt_status st = DT_OK;
    dt_tensor tokens;
    int32_t token;

    DT_TRY(dt_model_replace(model, 0, DT_SEQUENCE_EMPTY, err));
    for (int64_t added = 0; added < row->tokens; added++) {
        DT_TRY(before(e, err));
        DT_TRY(put(e, &tokens, 0, e->ids.items + read, (int64_t)e->ids.count - read, err));
        read = (int64_t)e->ids.count;
        DT_TRY(dt_model_extend(model, 0, &tokens, e->logits, err));
        DT_TRY(likeliest(&token, e, err));
        if (ends(e, token))
            break;
        DT_TRY(dt_ids_add(&e->ids, token, err));
        add_token(out, e, token);
        if (cut_until(out, &row->until))
            break;
    }
out:
    return st;
}

/* Sets e->ids to the end of the prompt that leaves room for the new tokens. */
static dt_status encode_prompt(bool *cut, dt_evaluator *e, const dt_evaluation_row *row,
                               dt_error *err)
{
    int64_t room = e->setup.context - row->tokens, count;
    size_t length = strlen(row->text);
    dt_status st = DT_OK;

    if (room < 1)
        DT_THROW(err, DT_ERR_USAGE,
                 "'tokens' is %lld, and the model's context has %lld tokens for prompt and text: "
                 "lower 'tokens'",
                 (long long)row->tokens, (long long)e->setup.context);
    DT_TRY(encode_text(e, row->text, length, err));
    if (e->ids.count == 0)
        DT_TRY(add_ids(&e->ids, e->setup.first, 1, err));
    count = (int64_t)e->ids.count;
    *cut = count > room;
    if (*cut) {
        memmove(e->ids.items, e->ids.items + (count - room),
                (size_t)room * sizeof(e->ids.items[0]));
        e->ids.count = (size_t)room;
    }
out:
    return st;
}

static dt_status run_answer(dt_evaluation_outcome *out, json_t *result, dt_evaluator *e,
                            const dt_evaluation_row *row, dt_error *err)
{
    dt_strbuf text, valid, extracted;
    dt_status st = DT_OK;
    bool cut;

    dt_strbuf_init(&text);
    dt_strbuf_init(&valid);
    dt_strbuf_init(&extracted);
    DT_TRY(encode_prompt(&cut, e, row, err));
    DT_TRY(generate(&text, e, row, err));
    dt_evaluation_add_valid(&valid, text.data, strlen(text.data)); /* a model can generate U+0000 */
    dt_evaluation_extract(&extracted, &row->compare, valid.data);
    json_object_set_new(result, "text", json_string(valid.data));
    if (row->compare.extract[0] != '\0')
        json_object_set_new(result, "extracted", json_string(extracted.data));
    out->values[DT_ANSWER_MATCH] = dt_evaluation_matches(row, extracted.data);
    out->values[DT_OUTCOME_CUT] = cut;
out:
    dt_strbuf_release(&text);
    dt_strbuf_release(&valid);
    dt_strbuf_release(&extracted);
    return st;
}

/* --- a row */

static dt_status at_row(dt_status st, const dt_evaluation_row *row, dt_error *err)
{
    if (st != DT_OK)
        dt_error_prefix(err, "task '%s', line %lld", row->task, (long long)row->number);
    return st;
}

static dt_status measure(int64_t *out, dt_evaluator *e, const dt_evaluation_row *row, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t given, count;
    bool cut;

    *out = 1;
    if (row->kind == DT_EVALUATION_ANSWER) {
        DT_TRY(encode_prompt(&cut, e, row, err));
        *out = (int64_t)e->ids.count + row->tokens;
    } else if (row->kind == DT_EVALUATION_TEXT) {
        DT_TRY(encode_text(e, row->text, strlen(row->text), err));
        *out = (int64_t)e->ids.count;
    }
    for (size_t i = 0; i < row->choices.count; i++) {
        DT_TRY(encode_choice(&given, e, row, i, err));
        DT_TRY(check_choice(e, given, i, err));
        count = (int64_t)e->ids.count - 1;
        *out = count > *out ? count : *out;
    }
    *out = *out < e->setup.context ? *out : e->setup.context;
out:
    return st;
}

dt_status dt_evaluator_measure(int64_t *tokens, dt_evaluator *e, const dt_evaluation_row *row,
                               dt_error *err)
{
    return at_row(measure(tokens, e, row, err), row, err);
}

dt_status dt_evaluator_run(dt_evaluation_outcome *out, json_t **result, dt_evaluator *e,
                           const dt_evaluation_row *row, dt_error *err)
{
    dt_status st = DT_OK;

    *out = (dt_evaluation_outcome){{0}};
    *result = json_pack("{s:s, s:I, s:s}", "task", row->task, "row", (json_int_t)row->number,
                        "kind", dt_evaluation_kind_name(row->kind));
    if (row->kind == DT_EVALUATION_CHOICE)
        st = run_choice(out, *result, e, row, err);
    else if (row->kind == DT_EVALUATION_ANSWER)
        st = run_answer(out, *result, e, row, err);
    else
        st = run_text(out, e, row, err);
    if (st != DT_OK) {
        json_decref(*result);
        *result = NULL;
        return at_row(st, row, err);
    }
    dt_evaluation_outcome_to_json(*result, row->kind, out);
    return DT_OK;
}
