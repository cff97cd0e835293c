#include "runner/view/compare/compare.h"

#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/version.h"
#include "engine/tokens/text_lines.h"

const char *const dt_bleu_tokenizers[] = {"13a", "none", "char", NULL};

static int64_t count_lines(const dt_strbuf *text)
{
    dt_text_lines lines = {text->data, text->data + text->length};
    const char *line;
    int64_t count = 0;
    size_t length;

    while (dt_text_lines_next(&line, &length, &lines))
        count++;
    return count;
}

static dt_status count_file(int64_t *out, const char *path, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    DT_TRY(dt_file_read(&text, path, DT_BLEU_FILE_MOST, err));
    *out = count_lines(&text);
out:
    dt_strbuf_release(&text);
    return st;
}

dt_status dt_bleu_expect(const char *input, const char *reference, dt_error *err)
{
    struct stat is;
    int64_t ours, theirs;
    dt_status st = DT_OK;

    if (strcmp(input, "-") == 0 || stat(input, &is) != 0 || !S_ISREG(is.st_mode))
        return DT_OK;
    DT_TRY(count_file(&ours, input, err));
    DT_TRY(count_file(&theirs, reference, err));
    if (ours != theirs)
        DT_THROW(
            err, DT_ERR_USAGE,
            "--input '%s' has %lld lines, and --reference '%s' has %lld: expected one for each",
            input, (long long)ours, reference, (long long)theirs);
out:
    return st;
}

dt_status dt_bleu_compare(dt_bleu_report *out, const dt_strbuf *ours, const dt_strbuf *theirs,
                          const char *const names[2], const char *tokenizer, dt_arena *arena,
                          dt_error *err)
{
    dt_text_lines lines[] = {{ours->data, ours->data + ours->length},
                             {theirs->data, theirs->data + theirs->length}};
    int64_t counts[] = {count_lines(ours), count_lines(theirs)};
    dt_bleu_words words = DT_BLEU_WORDS_13A;
    const char *line, *reference;
    size_t length, reference_length;
    dt_status st = DT_OK;

    *out = (dt_bleu_report){.lines = counts[0]};
    if (!dt_bleu_words_find(&words, tokenizer))
        DT_THROW(err, DT_ERR_USAGE, "unknown BLEU tokenizer '%s'", tokenizer);
    if (counts[0] != counts[1])
        DT_THROW(err, DT_ERR_USAGE, "%s has %lld lines, and %s has %lld: expected one for each",
                 names[0], (long long)counts[0], names[1], (long long)counts[1]);
    if (counts[0] == 0)
        DT_THROW(err, DT_ERR_USAGE, "%s has no lines", names[0]);
    while (dt_text_lines_next(&line, &length, &lines[0]) &&
           dt_text_lines_next(&reference, &reference_length, &lines[1]))
        DT_TRY(dt_bleu_add(&out->counts, words, line, length, reference, reference_length, err));
    out->bleu = dt_bleu_of(&out->counts);
    out->signature =
        dt_arena_printf(arena, "nrefs:1|case:mixed|eff:no|tok:%s|smooth:exp|version:dtrun-%s",
                        dt_bleu_words_name(words), DT_VERSION);
out:
    return st;
}

static double ratio(const dt_bleu_counts *counts)
{
    return counts->reference_length > 0 ? (double)counts->length / (double)counts->reference_length
                                        : 0;
}

void dt_bleu_add_text(dt_strbuf *out, const dt_bleu_report *report)
{
    const dt_bleu_counts *counts = &report->counts;
    const dt_bleu *bleu = &report->bleu;

    dt_strbuf_add_fmt(out, "BLEU|%s = %.2f %.1f/%.1f/%.1f/%.1f (BP = %.3f ratio = %.3f",
                      report->signature, bleu->score, bleu->precisions[0], bleu->precisions[1],
                      bleu->precisions[2], bleu->precisions[3], bleu->brevity, ratio(counts));
    dt_strbuf_add_fmt(out, " hyp_len = %lld ref_len = %lld)\n", (long long)counts->length,
                      (long long)counts->reference_length);
}

void dt_bleu_add_json(json_t *object, const dt_bleu_report *report)
{
    json_t *precisions = json_array();

    for (int i = 0; i < DT_BLEU_ORDERS; i++)
        json_array_append_new(precisions, json_real(report->bleu.precisions[i]));
    json_object_set_new(object, "bleu", json_real(report->bleu.score));
    json_object_set_new(object, "precisions", precisions);
    json_object_set_new(object, "brevity_penalty", json_real(report->bleu.brevity));
    json_object_set_new(object, "ratio", json_real(ratio(&report->counts)));
    json_object_set_new(object, "hypothesis_words", json_integer(report->counts.length));
    json_object_set_new(object, "reference_words", json_integer(report->counts.reference_length));
    json_object_set_new(object, "lines", json_integer(report->lines));
    json_object_set_new(object, "signature", json_string(report->signature));
}
