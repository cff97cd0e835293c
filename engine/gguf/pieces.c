/* pieces: SentencePiece's BPE in a GGUF file.
 *
 * A tokenizer.json lists pairs of tokens in the order in which they are merged. llama.cpp merges any pair whose text is a
 * token, that of the highest score first, as SentencePiece does. Both are the same if every pair of tokens that makes a
 * token is listed, and the pairs of one token follow each other: a token's score is minus the place of its pairs.
 */
#include <string.h>

#include "engine/gguf/gguf_int.h"

#define MARK        "\xe2\x96\x81" /* for a space */
#define MARK_BYTES  3
#define BYTES       256
#define LEAST_SCORE (-1e6F) /* of a token that no pair makes */

static const char *type_of(const json_t *part)
{
    const char *type = json_string_value(json_object_get(part, "type"));

    return type != NULL ? type : "";
}

static bool is_word(const json_t *object, const char *key, const char *word)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL && strcmp(text, word) == 0;
}

bool dt_gguf_is_pieces(const json_t *tokenizer)
{
    const json_t *model = json_object_get(tokenizer, "model");

    return strcmp(type_of(model), "BPE") == 0 &&
           json_is_true(json_object_get(model, "byte_fallback"));
}

bool dt_gguf_is_spaces(const json_t *added)
{
    const char *text = json_string_value(json_object_get(added, "content"));

    return text != NULL && strstr(text, MARK) != NULL &&
           !json_is_true(json_object_get(added, "special"));
}

/* --- spaces */

typedef struct spaces {
    bool marked;  /* spaces become marks */
    bool prefix;  /* one is put before a text */
    bool first;   /* only before the first part, not after special tokens */
    bool kept;    /* not before a text that begins with one */
    bool divided; /* words end before a mark */
} spaces;

/* A step of the normalizer; false: another one. */
static bool read_step(spaces *out, const json_t *step)
{
    if (strcmp(type_of(step), "Prepend") == 0 && is_word(step, "prepend", MARK)) {
        out->prefix = true;
        return true;
    }
    if (strcmp(type_of(step), "Replace") == 0 && is_word(step, "content", MARK) &&
        is_word(json_object_get(step, "pattern"), "String", " ")) {
        out->marked = true;
        return true;
    }
    return false;
}

static bool read_normalizer(spaces *out, const json_t *normalizer)
{
    const json_t *step;
    size_t i;

    if (normalizer == NULL || json_is_null(normalizer))
        return true;
    if (strcmp(type_of(normalizer), "Sequence") != 0)
        return read_step(out, normalizer);
    json_array_foreach(json_object_get(normalizer, "normalizers"), i, step)
        if (!read_step(out, step))
            return false;
    return true;
}

static bool read_pre_tokenizer(spaces *out, const json_t *pre)
{
    const json_t *prefix = json_object_get(pre, "add_prefix_space");
    const char *scheme = json_string_value(json_object_get(pre, "prepend_scheme"));

    if (pre == NULL || json_is_null(pre))
        return true;
    if (strcmp(type_of(pre), "Split") == 0) /* without effect: no space is left */
        return out->marked && is_word(json_object_get(pre, "pattern"), "String", " ");
    if (strcmp(type_of(pre), "Metaspace") != 0 || !is_word(pre, "replacement", MARK))
        return false;
    out->marked = true;
    out->divided = !json_is_false(json_object_get(pre, "split"));
    out->first = scheme != NULL && strcmp(scheme, "first") == 0;
    out->prefix = scheme != NULL ? strcmp(scheme, "never") != 0 : !json_is_false(prefix);
    out->kept = out->prefix;
    return true;
}

static dt_status read_spaces(spaces *out, dt_gguf_header *header, const json_t *tokenizer,
                             dt_error *err)
{
    *out = (spaces){0};
    if (!read_normalizer(out, json_object_get(tokenizer, "normalizer")) ||
        !read_pre_tokenizer(out, json_object_get(tokenizer, "pre_tokenizer")) || !out->marked)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "tokenizer.json has a normalizer or pre_tokenizer that llama.cpp does not "
                       "apply to a vocabulary with tokens for bytes (expected spaces to become "
                       "'" MARK "', and nothing else)");
    if (out->first || out->kept)
        dt_gguf_note(header, out->first
                                 ? "llama.cpp puts a space after each special token, and before "
                                   "texts that begin with one; this tokenizer only before others"
                                 : "llama.cpp puts a space also before texts that begin with one");
    return DT_OK;
}

/* --- merges */

typedef struct merges {
    const json_t *vocab; /* text: id */
    json_t *pairs;       /* "left right" of each */
    json_t *added;       /* texts that are cut out before */
    int64_t tokens;
    float *scores;
    dt_strbuf pair;
} merges;

static const char *pair_of(merges *m, const char *left, size_t left_length, const char *right,
                           size_t right_length)
{
    dt_strbuf_reset(&m->pair);
    dt_strbuf_add(&m->pair, left, left_length);
    dt_strbuf_add_char(&m->pair, ' ');
    dt_strbuf_add(&m->pair, right, right_length);
    return m->pair.data;
}

/* The two texts of a pair, which is a list or "left right". */
static bool parts_of(const char **left, size_t *length, const char **right, const json_t *pair)
{
    const char *text = json_string_value(pair), *blank;

    if (text == NULL) {
        *left = json_string_value(json_array_get(pair, 0));
        *right = json_string_value(json_array_get(pair, 1));
        *length = *left != NULL ? strlen(*left) : 0;
        return *left != NULL && *right != NULL;
    }
    blank = strchr(text, ' ');
    *left = text;
    *length = blank != NULL ? (size_t)(blank - text) : 0;
    *right = blank != NULL ? blank + 1 : NULL;
    return blank != NULL;
}

/* Scores of the tokens that pairs make. */
static dt_status rank(merges *m, const json_t *list, dt_error *err)
{
    const char *left, *right;
    int64_t place = 0, last = -1, id;
    const json_t *item;
    size_t i, length;
    dt_status st = DT_OK;
    dt_strbuf made;

    dt_strbuf_init(&made);
    json_array_foreach((json_t *)list, i, item) {
        if (!parts_of(&left, &length, &right, item))
            DT_THROW(err, DT_ERR_CORRUPT, "tokenizer.json: merge %zu is not a pair", i);
        dt_strbuf_reset(&made);
        dt_strbuf_add(&made, left, length);
        dt_strbuf_add_str(&made, right);
        item = json_object_get(m->vocab, made.data);
        id = json_is_integer(item) ? json_integer_value(item) : -1;
        if (id < 0 || id >= m->tokens)
            DT_THROW(err, DT_ERR_CORRUPT, "tokenizer.json: merge %zu makes '%.40s', not a token", i,
                     made.data);
        json_object_set_new(m->pairs, pair_of(m, left, length, right, strlen(right)), json_true());
        if (id == last)
            continue;
        if (m->scores[id] > LEAST_SCORE)
            DT_THROW(err, DT_ERR_RECIPE,
                     "tokenizer.json merges '%.40s' at two places, and llama.cpp has one score for "
                     "it: its merges are not those of a SentencePiece model",
                     made.data);
        m->scores[id] = (float)-place++;
        last = id;
    }
out:
    dt_strbuf_release(&made);
    return st;
}

static size_t letter(const char *text)
{
    size_t length = text[0] != '\0';

    while ((text[length] & 0xC0) == 0x80)
        length++;
    return length;
}

static bool is_token(const merges *m, const char *text, size_t length, dt_strbuf *room)
{
    if (letter(text) >= length)
        return true;
    dt_strbuf_reset(room);
    dt_strbuf_add(room, text, length);
    return json_object_get(m->vocab, room->data) != NULL;
}

/* Every pair of tokens that makes this one is listed. */
static dt_status check_pairs(merges *m, const char *text, dt_strbuf *room, dt_error *err)
{
    size_t length = strlen(text);

    for (size_t at = letter(text); at < length; at += letter(text + at))
        if (is_token(m, text, at, room) && is_token(m, text + at, length - at, room) &&
            json_object_get(m->pairs, pair_of(m, text, at, text + at, length - at)) == NULL)
            return DT_FAIL(err, DT_ERR_RECIPE,
                           "tokenizer.json does not merge '%.*s' and '%.40s', and llama.cpp would, "
                           "since the result is a token: its merges are not those of a "
                           "SentencePiece model",
                           (int)(at < 40 ? at : 40), text, text + at);
    return DT_OK;
}

static bool is_byte(const char *text)
{
    return strlen(text) == 6 && strncmp(text, "<0x", 3) == 0 && text[5] == '>';
}

static dt_status check_tokens(merges *m, bool divided, dt_error *err)
{
    const char *text;
    json_t *id;
    dt_status st = DT_OK;
    dt_strbuf room;
    int bytes = 0;

    dt_strbuf_init(&room);
    json_object_foreach((json_t *)m->vocab, text, id) {
        bytes += is_byte(text);
        if (is_byte(text) || json_object_get(m->added, text) != NULL)
            continue;
        if (divided && strlen(text) > MARK_BYTES && strstr(text + 1, MARK) != NULL)
            DT_THROW(err, DT_ERR_RECIPE,
                     "tokenizer.json splits words before '" MARK
                     "', and llama.cpp would make the token '%.40s' of several",
                     text);
        DT_TRY(check_pairs(m, text, &room, err));
    }
    if (bytes != BYTES)
        DT_THROW(err, DT_ERR_RECIPE,
                 "tokenizer.json has tokens for %d of 256 bytes, and llama.cpp needs all", bytes);
out:
    dt_strbuf_release(&room);
    return st;
}

dt_status dt_gguf_read_pieces(dt_gguf_pieces *out, dt_gguf_header *header, const json_t *tokenizer,
                              int64_t tokens, dt_error *err)
{
    const json_t *model = json_object_get(tokenizer, "model"), *item;
    merges m = {.vocab = json_object_get(model, "vocab"), .tokens = tokens};
    dt_status st = DT_OK;
    const char *text;
    spaces at;
    size_t i;

    m.pairs = json_object();
    m.added = json_object();
    dt_strbuf_init(&m.pair);
    m.scores = dt_arena_alloc_array(header->arena, (size_t)tokens, sizeof(m.scores[0]));
    for (int64_t id = 0; id < tokens; id++)
        m.scores[id] = LEAST_SCORE;
    if (json_is_true(json_object_get(model, "ignore_merges")))
        DT_THROW(err, DT_ERR_RECIPE,
                 "tokenizer.json has 'ignore_merges', which llama.cpp does not apply to a "
                 "vocabulary with tokens for bytes");
    DT_TRY(read_spaces(&at, header, tokenizer, err));
    json_array_foreach(json_object_get(tokenizer, "added_tokens"), i, item) {
        text = json_string_value(json_object_get(item, "content"));
        if (text != NULL && !dt_gguf_is_spaces(item))
            json_object_set_new(m.added, text, json_true());
    }
    DT_TRY(rank(&m, json_object_get(model, "merges"), err));
    DT_TRY(check_tokens(&m, at.divided, err));
    *out = (dt_gguf_pieces){.scores = m.scores, .prefix = at.prefix};
out:
    json_decref(m.pairs);
    json_decref(m.added);
    dt_strbuf_release(&m.pair);
    return st;
}
