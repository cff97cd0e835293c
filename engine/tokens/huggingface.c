/* huggingface: reads a tokenizer.json: its added tokens, the tokens around a text, and all other parts by
 * huggingface_*.c. */
#include <string.h>

#include "engine/tokens/tokens_int.h"

/* --- added tokens */

static const char where[] = "added_tokens";

typedef struct entry {
    const char *content;
    int64_t id;
    dt_added_token token;
    bool normalized, single_word, special;
} entry;

static dt_status read_entry(entry *out, const json_t *json, dt_error *err)
{
    static const char *const keys[] = {"id",     "content",    "single_word", "lstrip",
                                       "rstrip", "normalized", "special",     NULL};
    dt_status st = DT_OK;

    *out = (entry){0};
    DT_TRY(dt_bpe_check_keys(json, where, keys, err));
    DT_TRY(dt_bpe_get_text(&out->content, json, "content", where, err));
    DT_TRY(dt_json_get_int(&out->id, json, "id", where, err));
    DT_TRY(dt_bpe_get_bool(&out->token.lstrip, json, "lstrip", false, where, err));
    DT_TRY(dt_bpe_get_bool(&out->token.rstrip, json, "rstrip", false, where, err));
    DT_TRY(dt_bpe_get_bool(&out->special, json, "special", false, where, err));
    DT_TRY(dt_bpe_get_bool(&out->normalized, json, "normalized", !out->special, where, err));
    DT_TRY(dt_bpe_get_bool(&out->single_word, json, "single_word", false, where, err));
    if (out->content[0] == '\0')
        DT_THROW(err, DT_ERR_CORRUPT, "'%s': token %lld is empty", where, (long long)out->id);
    if (out->single_word)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "'%s': '%.80s' has 'single_word', which is not supported",
                 where, out->content);
    out->token.id = (int32_t)out->id;
out:
    return st;
}

/* Returns the id of a text in the model's vocabulary; -1 if it has none. `vocab` is the file's
 * vocabulary, needed because a BPE model may spell bytes in another way than dt_vocab. */
static int64_t number_in_model(const dt_bpe *bpe, const json_t *vocab, const char *text)
{
    const json_t *id = json_object_get(vocab, text);

    if (bpe->is_unigram)
        return dt_vocab_find(&bpe->vocab, text, strlen(text));
    return id != NULL ? json_integer_value(id) : -1;
}

/* Adds a token to the vocabulary. If the model has the same token, both must have the same id. */
static dt_status add_to_vocab(dt_bpe *bpe, const entry *added, const json_t *vocab, dt_error *err)
{
    int64_t id = number_in_model(bpe, vocab, added->content);

    if (id < 0)
        return dt_vocab_add(&bpe->vocab, added->id, added->content, strlen(added->content), false,
                            err);
    if (id != added->id)
        return DT_FAIL(err, DT_ERR_CORRUPT,
                       "'%s': '%.80s' has the id %lld, but %lld in the vocabulary", where,
                       added->content, (long long)added->id, (long long)id);
    return DT_OK;
}

static dt_status add_entry(dt_bpe *bpe, const entry *added, dt_strbuf *scratch, dt_error *err)
{
    dt_status st = DT_OK;

    if (!added->normalized)
        return dt_added_put(&bpe->raw, added->content, strlen(added->content), &added->token, err);
    dt_strbuf_reset(scratch);
    DT_TRY(dt_bpe_normalize(scratch, bpe, added->content, strlen(added->content), true, err));
    if (scratch->length > 0)
        DT_TRY(dt_added_put(&bpe->normalized, scratch->data, scratch->length, &added->token, err));
out:
    return st;
}

static dt_status bpe_read_added(dt_bpe *bpe, const json_t *list, const json_t *vocab, dt_error *err)
{
    dt_status st = DT_OK;
    const json_t *item;
    dt_strbuf scratch;
    entry added;
    size_t i;

    dt_strbuf_init(&scratch);
    if (list != NULL && !json_is_null(list) && !json_is_array(list))
        DT_THROW(err, DT_ERR_CORRUPT, "'%s': expected a list", where);
    json_array_foreach((json_t *)list, i, item) {
        DT_TRY(read_entry(&added, item, err));
        DT_TRY(add_to_vocab(bpe, &added, vocab, err));
        DT_TRY(add_entry(bpe, &added, &scratch, err));
        dt_bpe_note_added(bpe, added.content, added.id, added.special);
        /* a line break may become a space in the normalizer, before such a token is searched */
        bpe->drops_breaks = bpe->drops_breaks || added.token.rstrip;
        bpe->reaches_over_breaks = bpe->reaches_over_breaks || added.token.lstrip ||
                                   strpbrk(added.content, added.normalized ? " \n" : "\n") != NULL;
    }
out:
    dt_strbuf_release(&scratch);
    return st;
}

/* huggingface_around: reads from the post_processor of a tokenizer.json the tokens that surround a text. */

enum { DEEPEST = 8 }; /* nested Sequences, at most */

/* The ids that one step adds to each side of the text. */
typedef struct step {
    dt_ids before, after;
} step;

static dt_status add(dt_ids *to, const dt_bpe *bpe, const json_t *id, dt_error *err)
{
    json_int_t value = json_integer_value(id);

    if (!json_is_integer(id) || value < 0 || value >= bpe->vocab.size)
        return DT_FAIL(err, DT_ERR_CORRUPT,
                       "the post_processor has a special token whose id is not in the vocabulary");
    return dt_ids_add(to, (int32_t)value, err);
}

/* Reads {"id": "<s>", "type_id": 0}; the ids of "<s>" are in "special_tokens". */
static dt_status add_special(dt_ids *to, const dt_bpe *bpe, const json_t *token,
                             const json_t *table, dt_error *err)
{
    const char *name = json_string_value(json_object_get(token, "id"));
    const json_t *ids = name != NULL ? json_object_get(json_object_get(table, name), "ids") : NULL;
    dt_status st = DT_OK;

    if (!json_is_array(ids))
        return DT_FAIL(err, DT_ERR_CORRUPT,
                       "the post_processor names a special token '%.80s' that is not in its "
                       "'special_tokens'",
                       name != NULL ? name : "");
    for (size_t i = 0; i < json_array_size(ids) && st == DT_OK; i++)
        st = add(to, bpe, json_array_get(ids, i), err);
    return st;
}

/* Reads "single": special tokens, the sequence A once, special tokens. */
static dt_status read_template(step *out, const dt_bpe *bpe, const json_t *json, dt_error *err)
{
    const json_t *items = json_object_get(json, "single"), *item;
    const json_t *table = json_object_get(json, "special_tokens");
    dt_status st = DT_OK;
    bool seen = false;
    size_t i;

    if (!json_is_array(items))
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "'single' of the post_processor is not a list of tokens and a sequence");
    json_array_foreach((json_t *)items, i, item) {
        const json_t *token = json_object_get(item, "SpecialToken");

        if (token != NULL) {
            DT_TRY(add_special(seen ? &out->after : &out->before, bpe, token, table, err));
        } else if (json_object_get(item, "Sequence") != NULL && !seen) {
            seen = true;
        } else {
            DT_THROW(err, DT_ERR_UNSUPPORTED,
                     "'single' of the post_processor has item %zu, which is neither a special "
                     "token nor the first sequence",
                     i + 1);
        }
    }
    if (!seen)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "'single' of the post_processor has no sequence");
out:
    return st;
}

/* Reads a pair such as ["[CLS]", 101]. */
static dt_status read_pair(dt_ids *to, const dt_bpe *bpe, const json_t *json, const char *key,
                           dt_error *err)
{
    const json_t *pair = json_object_get(json, key);

    if (json_array_size(pair) != 2)
        return DT_FAIL(err, DT_ERR_CORRUPT, "'%s' of the post_processor is not a token and its id",
                       key);
    return add(to, bpe, json_array_get(pair, 1), err);
}

/* Puts the tokens of a step outside those that are already around the text. */
static dt_status wrap(dt_bpe *bpe, step *template, dt_error *err)
{
    dt_ids inner = bpe->before;
    dt_status st = DT_OK;

    bpe->before = template->before;
    template->before = inner;
    for (size_t i = 0; i < inner.count && st == DT_OK; i++)
        st = dt_ids_add(&bpe->before, inner.items[i], err);
    for (size_t i = 0; i < template->after.count && st == DT_OK; i++)
        st = dt_ids_add(&bpe->after, template->after.items[i], err);
    return st;
}

static dt_status read_one(dt_bpe *bpe, const json_t *json, int depth, dt_error *err)
{
    dt_status st = DT_OK;
    const json_t *item;
    const char *type;
    step parsed = {0};
    size_t i;

    DT_TRY(dt_bpe_get_type(&type, json, "post_processor", err));
    if (strcmp(type, "TemplateProcessing") == 0) {
        DT_TRY(read_template(&parsed, bpe, json, err));
    } else if (strcmp(type, "RobertaProcessing") == 0 || strcmp(type, "BertProcessing") == 0) {
        DT_TRY(read_pair(&parsed.before, bpe, json, "cls", err));
        DT_TRY(read_pair(&parsed.after, bpe, json, "sep", err));
    } else if (strcmp(type, "Sequence") == 0 && depth < DEEPEST) {
        json_array_foreach(json_object_get(json, "processors"), i, item)
            DT_TRY(read_one(bpe, item, depth + 1, err));
    } else if (strcmp(type, "ByteLevel") != 0) {
        DT_THROW(err, DT_ERR_UNSUPPORTED, "unsupported post_processor '%.80s'", type);
    }
    DT_TRY(wrap(bpe, &parsed, err));
out:
    dt_ids_release(&parsed.before);
    dt_ids_release(&parsed.after);
    return st;
}

static dt_status bpe_read_post_processor(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    return json == NULL || json_is_null(json) ? DT_OK : read_one(bpe, json, 0, err);
}

/* --- the whole */

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
        if (bpe->steps[i].kind == DT_NORMAL_PREPEND || bpe->steps[i].kind == DT_NORMAL_PATTERN ||
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

    if (bpe->is_unigram || bpe->byte_level || bpe->ignore_merges || bpe->wordpiece.prefix != NULL)
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
    const char *version = json_string_value(json_object_get(json, "version")), *type;
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
    type = json_string_value(json_object_get(model, "type"));
    if (type != NULL && strcmp(type, "WordPiece") == 0)
        DT_TRY(dt_wordpiece_read(bpe, model, err));
    else
        DT_TRY(dt_bpe_read_model(bpe, model, err));
    added = json_object_get(json, "added_tokens");
    DT_TRY(bpe_read_added(bpe, added, json_object_get(model, "vocab"), err));
    DT_TRY(bpe_read_post_processor(bpe, json_object_get(json, "post_processor"), err));
    DT_TRY(find_joints(bpe, err));
    DT_TRY(find_separates_lines(bpe, err));
    find_end_of_text(bpe, added);
out:
    return st;
}
