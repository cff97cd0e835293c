/* dtrun score: how near translations are to references. */
#include <string.h>

#include "base/file.h"
#include "base/version.h"
#include "engine/bleu/bleu.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"

#include "base/banned.h"

#define FILE_MOST ((size_t)1 << 30)

typedef struct lines {
    const char *path;
    dt_strbuf text;
    size_t at; /* of the next */
    int64_t count;
} lines;

static dt_status read_lines(lines *out, const char *path, dt_error *err)
{
    dt_status st = DT_OK;

    out->path = path;
    DT_TRY(dt_file_read(&out->text, strcmp(path, "-") == 0 ? "/dev/stdin" : path, FILE_MOST, err));
    for (size_t i = 0; i < out->text.length; i++)
        out->count += out->text.data[i] == '\n' || i + 1 == out->text.length;
    if (out->count == 0)
        DT_THROW(err, DT_ERR_USAGE, "'%s' has no lines", path);
out:
    return st;
}

static const char *next_line(size_t *length, lines *from)
{
    const char *line = from->text.data + from->at;
    const char *end = memchr(line, '\n', from->text.length - from->at);

    *length = end != NULL ? (size_t)(end - line) : from->text.length - from->at;
    from->at += *length + (end != NULL);
    return line;
}

static dt_status count_all(dt_bleu_counts *counts, lines *ours, lines *theirs, dt_bleu_words words,
                           dt_error *err)
{
    dt_status st = DT_OK;

    if (ours->count != theirs->count)
        DT_THROW(err, DT_ERR_USAGE, "'%s' has %lld lines, and '%s' has %lld: expected one for each",
                 ours->path, (long long)ours->count, theirs->path, (long long)theirs->count);
    for (int64_t i = 0; i < ours->count; i++) {
        size_t length, reference_length;
        const char *line = next_line(&length, ours);
        const char *reference = next_line(&reference_length, theirs);

        DT_TRY(dt_bleu_add(counts, words, line, length, reference, reference_length, err));
    }
out:
    return st;
}

static double ratio(const dt_bleu_counts *counts)
{
    return counts->reference_length > 0 ? (double)counts->length / (double)counts->reference_length
                                        : 0;
}

static dt_status print_text(const char *signature, const dt_bleu_counts *counts,
                            const dt_bleu *bleu, dt_error *err)
{
    dt_status st;
    dt_strbuf out;

    dt_strbuf_init(&out);
    dt_strbuf_add_fmt(&out, "BLEU|%s = %.2f %.1f/%.1f/%.1f/%.1f (BP = %.3f ratio = %.3f", signature,
                      bleu->score, bleu->precisions[0], bleu->precisions[1], bleu->precisions[2],
                      bleu->precisions[3], bleu->brevity, ratio(counts));
    dt_strbuf_add_fmt(&out, " hyp_len = %lld ref_len = %lld)\n", (long long)counts->length,
                      (long long)counts->reference_length);
    st = dt_report_text(&out, err);
    dt_strbuf_release(&out);
    return st;
}

static dt_status print_json(const char *signature, int64_t count, const dt_bleu_counts *counts,
                            const dt_bleu *bleu, dt_error *err)
{
    json_t *object = dt_report_object(), *precisions = json_array();

    for (int i = 0; i < DT_BLEU_ORDERS; i++)
        json_array_append_new(precisions, json_real(bleu->precisions[i]));
    json_object_set_new(object, "bleu", json_real(bleu->score));
    json_object_set_new(object, "precisions", precisions);
    json_object_set_new(object, "brevity_penalty", json_real(bleu->brevity));
    json_object_set_new(object, "ratio", json_real(ratio(counts)));
    json_object_set_new(object, "hypothesis_words", json_integer(counts->length));
    json_object_set_new(object, "reference_words", json_integer(counts->reference_length));
    json_object_set_new(object, "lines", json_integer(count));
    json_object_set_new(object, "signature", json_string(signature));
    return dt_report_json(object, err);
}

static const char *const tokenizers[] = {"13a", "none", "char", NULL};

static dt_status score(dt_call *call, dt_error *err)
{
    const char *hypothesis = dt_arguments_get(call->args, "hypothesis")->text;
    const char *reference = dt_arguments_get(call->args, "reference")->text;
    const char *tokenizer = dt_arguments_get(call->args, "tokenize")->text;
    dt_bleu_counts counts = {.length = 0};
    lines ours = {.at = 0}, theirs = {.at = 0};
    dt_bleu_words words = DT_BLEU_WORDS_13A;
    dt_status st = DT_OK;
    const char *signature;
    dt_bleu bleu;

    dt_strbuf_init(&ours.text);
    dt_strbuf_init(&theirs.text);
    if (hypothesis == NULL || reference == NULL)
        DT_THROW(err, DT_ERR_USAGE, "--%s is missing: expected the file of the %s",
                 hypothesis == NULL ? "hypothesis" : "reference",
                 hypothesis == NULL ? "translations" : "references");
    if (strcmp(hypothesis, "-") == 0 && strcmp(reference, "-") == 0)
        DT_THROW(err, DT_ERR_USAGE, "--hypothesis and --reference are both stdin; name a file");
    DT_TRY(read_lines(&ours, hypothesis, err));
    DT_TRY(read_lines(&theirs, reference, err));
    if (!dt_bleu_words_find(&words, tokenizer))
        DT_THROW(err, DT_ERR_USAGE, "--tokenize knows no '%s'", tokenizer);
    DT_TRY(count_all(&counts, &ours, &theirs, words, err));
    signature =
        dt_arena_printf(call->arena, "nrefs:1|case:mixed|eff:no|tok:%s|smooth:exp|version:dtrun-%s",
                        dt_bleu_words_name(words), DT_VERSION);
    if (signature == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    bleu = dt_bleu_of(&counts);
    if (call->json)
        DT_TRY(print_json(signature, ours.count, &counts, &bleu, err));
    else
        DT_TRY(print_text(signature, &counts, &bleu, err));
out:
    dt_strbuf_release(&ours.text);
    dt_strbuf_release(&theirs.text);
    return st;
}

static const dt_option options[] = {
    {.name = "hypothesis",
     .kind = DT_OPTION_TEXT,
     .value = "FILE",
     .help = "translations, one a line; - reads them from stdin"},
    {.name = "reference",
     .kind = DT_OPTION_TEXT,
     .value = "FILE",
     .help = "what they should be, one a line"},
    {.name = "tokenize",
     .kind = DT_OPTION_CHOICE,
     .value = "HOW",
     .fallback = "13a",
     .choices = tokenizers,
     .help = "what a word is"},
    {0},
};

const dt_command dt_command_score = {
    .name = "score",
    .summary = "BLEU of translations against references",
    .operands = "",
    .operands_min = 0,
    .operands_max = 0,
    .options = options,
    .notes =
        "Corpus BLEU as sacreBLEU has it: n-grams of one to four words, one reference a\n"
        "line, case kept, `exp` smoothing; its signature stands before the score. With\n"
        "--json: bleu, precisions, brevity_penalty, ratio, hypothesis_words,\n"
        "reference_words, lines, signature.\n"
        "  dtrun generate RUN -i test.de | dtrun score --hypothesis - --reference test.en\n",
    .run = score,
};
