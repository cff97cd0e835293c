#include "engine/generate/generate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "engine/generate/text.h"
#include "engine/search/search.h"
#include "engine/tokens/text_lines.h"
#include "recipes/architecture/architecture.h"

typedef struct line {
    size_t first, count; /* range of the line in the tokens of all sources */
    char *translation;   /* NULL until it is translated, and after it was given */
    size_t length;
    double score;
} line;

typedef struct translation {
    const dt_translate_options *options;
    dt_loaded from;
    const dt_sides *sides;
    dt_ids sources;
    line *lines;
    int64_t count, begun, given; /* given: lines passed to the caller, in order */
    int64_t *asked;              /* indices of the lines that are translated; blank lines are not */
    int64_t asked_count;
    dt_translator *translator;
    dt_strbuf text;
} translation;

/* Number of a line in messages, from 1. */
static long long number_of(const translation *t, int64_t at)
{
    return (t->options->numbers != NULL ? t->options->numbers[at] : at) + 1;
}

/* --- before translating */

static int64_t count_lines(const dt_translate_options *options)
{
    dt_text_lines text_lines = {options->text, options->text + options->length};
    const char *text;
    int64_t count = 0;
    size_t length;

    while (dt_text_lines_next(&text, &length, &text_lines))
        count++;
    return count;
}

static bool is_blank(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (strchr(" \t\r", text[i]) == NULL || text[i] == '\0')
            return false;
    return true;
}

/* Encode a line. The translation of a blank line is empty. */
static dt_status read_line(translation *t, dt_side_encoder *encoder, const char *text,
                           size_t length, dt_error *err)
{
    int64_t most = t->from.recipe.batch.tokens;
    line *to = &t->lines[t->count];
    dt_status st = DT_OK;

    to->first = t->sources.count;
    if (is_blank(text, length)) {
        to->translation = calloc(1, 1);
        if (to->translation == NULL)
            DT_THROW(err, DT_ERR_NOMEM, "no memory for a line");
        goto out;
    }
    DT_TRY(dt_side_encode(&t->sources, encoder, text, length, err));
    to->count = t->sources.count - to->first;
    if ((int64_t)to->count > most)
        DT_THROW(err, DT_ERR_USAGE,
                 "it has %zu tokens; the run was trained on sentences of at most %lld", to->count,
                 (long long)most);
out:
    return st;
}

static dt_status read_lines(translation *t, dt_error *err)
{
    dt_text_lines text_lines = {t->options->text, t->options->text + t->options->length};
    int64_t most = count_lines(t->options);
    dt_side_encoder encoder = {0};
    dt_status st = DT_OK;
    const char *text;
    size_t length;

    t->lines = calloc((size_t)most + 1, sizeof *t->lines);
    t->asked = calloc((size_t)most + 1, sizeof *t->asked);
    if (t->lines == NULL || t->asked == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for %lld lines", (long long)most);
    DT_TRY(dt_side_encoder_open(&encoder, t->sides->source, err));
    for (; dt_text_lines_next(&text, &length, &text_lines); t->count++) {
        st = read_line(t, &encoder, text, length, err);
        if (st != DT_OK)
            dt_error_prefix(err, "line %lld", number_of(t, t->count));
        DT_TRY(st);
    }
out:
    dt_side_encoder_close(&encoder);
    return st;
}

/* How many sentences to translate at once. */
static int64_t sentences_of(const translation *t)
{
    const dt_translate_options *options = t->options;
    int64_t sentences = options->batch < t->count ? options->batch : t->count;
    int64_t exact = dt_translations_within(DT_TRANSLATIONS_EXACT, options->beams);

    return strcmp(options->device, DT_DEVICE_CPU) == 0 && sentences > exact ? exact : sentences;
}

static dt_status open_translation(translation *t, dt_error *err)
{
    const dt_translate_options *options = t->options;
    dt_loaded_room room = {.batch = 1};
    dt_status st = DT_OK;

    DT_TRY(dt_loaded_open(&t->from, options->checkpoint, NULL, err));
    t->sides = dt_tokenizer_sides(t->from.tokenizer);
    if (t->sides == NULL)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "the run was not trained on sentence pairs and cannot translate lines");
    DT_TRY(read_lines(t, err));
    if (t->count == 0)
        return DT_OK;
    room.sequences = sentences_of(t);
    room.versions = options->beams;
    DT_TRY(dt_loaded_open_model(&t->from, options->device, options->threads, options->precision,
                                &room, err));
    DT_TRY(dt_translator_open(&t->translator, t->from.model, &t->from.tokens_in, t->sides,
                              options->length_penalty, options->past_end, err));
out:
    return st;
}

static void close_translation(translation *t)
{
    dt_translator_close(t->translator);
    for (int64_t i = 0; i < t->count; i++)
        free(t->lines[i].translation);
    free(t->lines);
    free(t->asked);
    dt_ids_release(&t->sources);
    dt_strbuf_release(&t->text);
    dt_loaded_close(&t->from);
}

/* --- callbacks for the translator */

static dt_status next(void *context, const int32_t **source, int64_t *count, dt_error *err)
{
    translation *t = context;
    const line *from;

    *source = NULL;
    while (t->begun < t->count && t->lines[t->begun].count == 0)
        t->begun++;
    if (t->begun == t->count)
        return DT_OK;
    from = &t->lines[t->begun];
    *source = t->sources.items + from->first;
    *count = (int64_t)from->count;
    t->asked[t->asked_count++] = t->begun++;
    return DT_OK;
}

/* Pass the finished lines to the caller, in their order. */
static dt_status give(translation *t, dt_error *err)
{
    const dt_translate_options *options = t->options;
    dt_status st = DT_OK;

    for (; t->given < t->begun && t->lines[t->given].translation != NULL; t->given++) {
        line *next_line = &t->lines[t->given];

        DT_TRY(options->emit(options->context, next_line->translation, next_line->length,
                             next_line->score, err));
        free(next_line->translation);
        next_line->translation = NULL;
    }
out:
    return st;
}

static dt_status done(void *context, int64_t i, const dt_beam_result *found, dt_error *err)
{
    translation *t = context;
    line *to = &t->lines[t->asked[i]];
    dt_status st = DT_OK;

    if (!isfinite(found->score)) {
        st = dt_loaded_diverged(err);
        dt_error_prefix(err, "line %lld", number_of(t, t->asked[i]));
        goto out;
    }
    dt_translator_line(&t->text, t->sides->target, found->tokens, found->count);
    to->translation = malloc(t->text.length + 1);
    if (to->translation == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for line %lld", number_of(t, t->asked[i]));
    memcpy(to->translation, t->text.data, t->text.length);
    to->length = t->text.length;
    to->score = found->score;
    DT_TRY(give(t, err));
out:
    return st;
}

dt_status dt_translate(const dt_translate_options *options, dt_error *err)
{
    translation t = {.options = options};
    dt_translator_work work = {next, done, &t};
    dt_status st = DT_OK;

    dt_strbuf_init(&t.text);
    DT_TRY(open_translation(&t, err));
    if (t.count > 0) {
        DT_TRY(dt_translator_run(t.translator, &work, err));
        DT_TRY(give(&t, err)); /* passes on blank lines at the end */
    }
out:
    close_translation(&t);
    return st;
}
