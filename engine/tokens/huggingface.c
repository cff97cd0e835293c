#include <string.h>

#include "engine/tokens/bpe_int.h"
#include "engine/tokens/unicode.h"

static bool is_set(const json_t *json, const char *key)
{
    const json_t *value = json_object_get(json, key);

    return value != NULL && !json_is_null(value);
}

/* Sets the token between documents: the first of these that the file has. Base models were trained
 * with them; the last one is DeepSeek's. */
static void find_end_of_text(dt_bpe *bpe, const json_t *added)
{
    static const char *const names[] = {"<|endoftext|>",
                                        "<|end_of_text|>",
                                        "</s>",
                                        "<|eos|>",
                                        "<eos>",
                                        "<\xef\xbd\x9c"
                                        "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>"};
    const json_t *token;
    size_t k;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        json_array_foreach((json_t *)added, k, token) {
            const char *content = json_string_value(json_object_get(token, "content"));

            if (content == NULL || strcmp(content, names[i]) != 0)
                continue;
            bpe->end_of_text = (int32_t)json_integer_value(json_object_get(token, "id"));
            return;
        }
}

/* Sets separates_lines: whether two lines together give the same words as the lines one by one.
 * This requires that white space is dropped, that every word gets its mark, and that no step of the
 * normalizer depends on the start of the text or joins the two sides of a line break. dt_bpe_cut
 * cuts only after printable ASCII, so each of these characters is tried before the break. */
static dt_status find_separates_lines(dt_bpe *bpe, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf probe;

    dt_strbuf_init(&probe);
    if (!bpe->drops_spaces || bpe->prefix_space ||
        (bpe->metaspace.mark != NULL && bpe->metaspace.prepend != DT_PREPEND_ALWAYS))
        goto out;
    for (int i = 0; i < bpe->step_count; i++)
        if (bpe->steps[i].kind == DT_NORMAL_PREPEND ||
            (bpe->steps[i].kind == DT_NORMAL_REPLACE &&
             strpbrk(bpe->steps[i].from, " \t\r\n") != NULL))
            goto out;
    for (char c = '!'; c <= '~'; c++) {
        const char text[] = {c, '\n', 'y'};
        const char *end;

        dt_strbuf_reset(&probe);
        DT_TRY(dt_bpe_normalize(&probe, bpe, text, sizeof(text), true, err));
        end = probe.data + probe.length;
        if (probe.length < 3 || end[-1] != 'y' || (end[-2] != ' ' && end[-2] != '\n') ||
            (unsigned char)end[-3] <= ' ')
            goto out;
    }
    bpe->separates_lines = true;
out:
    dt_strbuf_release(&probe);
    return st;
}

/* Returns the character that replaces spaces, if words can have spaces in its place: it is a token, and nothing else
 * looks at the normalized text. Returns NULL for other tokenizers. */
static const char *find_blank(const dt_bpe *bpe, uint32_t *code)
{
    const dt_normal_step *last = bpe->step_count > 0 ? &bpe->steps[bpe->step_count - 1] : NULL;
    const char *blank = bpe->metaspace.mark;
    size_t used;

    if (blank == NULL && last != NULL && last->kind == DT_NORMAL_REPLACE &&
        strcmp(last->from, " ") == 0)
        blank = last->to;
    if (blank == NULL || (unsigned char)blank[0] < 0x80 || bpe->split.count > 0 ||
        bpe->metaspace.split || bpe->drops_spaces || !dt_added_is_empty(&bpe->normalized) ||
        dt_vocab_find(&bpe->vocab, blank, strlen(blank)) < 0)
        return NULL;
    *code = dt_code_at((const unsigned char *)blank, &used);
    return used == strlen(blank) ? blank : NULL;
}

/* Only for models in which merges alone decide: not for those that search the whole word in the vocabulary first. */
static dt_status find_joints(dt_bpe *bpe, dt_error *err)
{
    dt_joints_from from = {.vocab = &bpe->vocab,
                           .merges = &bpe->merges,
                           .bytes = bpe->byte_fallback ? bpe->bytes : NULL};
    dt_status st = DT_OK;
    const char *blank;

    if (bpe->is_unigram || bpe->byte_level || bpe->ignore_merges)
        return DT_OK;
    blank = find_blank(bpe, &from.blank);
    DT_TRY(dt_joints_find(&bpe->joints, &from, err));
    if (blank == NULL || !bpe->joints.cuts)
        goto out;
    bpe->keeps_spaces = true;
    bpe->ascii[' '] = dt_vocab_find(&bpe->vocab, blank, strlen(blank));
    if (bpe->metaspace.mark == NULL)
        bpe->step_count--;
out:
    return st;
}

dt_status dt_bpe_read_huggingface(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    static const char *const keys[] = {
        "version",        "truncation", "padding", "normalizer",   "pre_tokenizer",
        "post_processor", "decoder",    "model",   "added_tokens", NULL};
    const json_t *model = json_object_get(json, "model"), *added;
    const char *version = json_string_value(json_object_get(json, "version"));
    dt_status st = DT_OK;

    DT_TRY(dt_bpe_check_keys(json, "tokenizer.json", keys, err));
    bpe->ignores_limits = is_set(json, "truncation") || is_set(json, "padding");
    if (!json_is_object(model))
        DT_THROW(err, DT_ERR_CORRUPT, "'model' is missing: this is not a tokenizer");
    if (version != NULL && strcmp(version, "1.0") != 0)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "unsupported 'version' %.40s (expected 1.0)", version);
    DT_TRY(dt_bpe_read_normalizer(bpe, json_object_get(json, "normalizer"), err));
    DT_TRY(dt_bpe_read_pre_tokenizer(bpe, json_object_get(json, "pre_tokenizer"), err));
    DT_TRY(dt_bpe_read_decoder(bpe, json_object_get(json, "decoder"), err));
    DT_TRY(dt_bpe_read_model(bpe, model, err));
    added = json_object_get(json, "added_tokens");
    DT_TRY(dt_bpe_read_added(bpe, added, json_object_get(model, "vocab"), err));
    DT_TRY(dt_bpe_read_post_processor(bpe, json_object_get(json, "post_processor"), err));
    DT_TRY(find_joints(bpe, err));
    DT_TRY(find_separates_lines(bpe, err));
    find_end_of_text(bpe, added);
out:
    return st;
}
