/* BPE on characters, with random merges and texts: words are cut and cached, and the ids are those of plain byte pair
 * encoding over the whole text. A text that is cut for several threads has the same ids too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "engine/tokens/bpe.h"

#define MARK "\xe2\x96\x81"

enum {
    TOKENS_MOST = 400,
    MERGES_MOST = 60,
    LONG = 400,
    LONGEST = 10000,
    BYTES = 256,
    UNKNOWN = 0,
    LETTERS = 3
};
enum { NO_BYTES, SOME_BYTES, ALL_BYTES };
enum { PLAIN, PREPEND, METASPACE, METASPACE_SPLIT, STYLES };

static const char *const alphabet[] = {"a", "b", "c", " ", "\n", MARK, "\xc3\xa9", "\xe5\xad\x97"};
static const char *const strangers[] = {"?", "\xe2\x82\xac"};

#define ALPHABET  (sizeof(alphabet) / sizeof(alphabet[0]))
#define STRANGERS (sizeof(strangers) / sizeof(strangers[0]))

/* A random tokenizer, as the reference below reads it. */
typedef struct model {
    char *tokens[TOKENS_MOST];
    int32_t count;
    int32_t merges[MERGES_MOST][3]; /* first, second, what they make; in the order of ranks */
    int merge_count;
    int fallback, style;
    bool fuses, wild;
    bool has_added; /* a token that is searched in the normalized text, in which spaces are marks */
} model;

static uint32_t state = 1;

static uint32_t pick(uint32_t below)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
}

/* --- random tokenizers */

static int32_t find(const model *m, const char *text, size_t length)
{
    for (int32_t i = 0; i < m->count; i++)
        if (strlen(m->tokens[i]) == length && memcmp(m->tokens[i], text, length) == 0)
            return i;
    return -1;
}

static int32_t add_token(model *m, const char *text)
{
    int32_t id = find(m, text, strlen(text));

    if (id >= 0)
        return id;
    assert_true(m->count < TOKENS_MOST);
    m->tokens[m->count] = strdup(text);
    return m->count++;
}

static bool has_merge(const model *m, int32_t first, int32_t second)
{
    for (int i = 0; i < m->merge_count; i++)
        if (m->merges[i][0] == first && m->merges[i][1] == second)
            return true;
    return false;
}

/* A part is a character or the result of an earlier merge; in a wild model also a token that stands for other
 * characters. */
static int32_t pick_part(const model *m, int32_t from)
{
    static const char *const wild[] = {"<unk>", "<0x3F>", "<0x0A>", "<0xE2>", "<0xAC>", "<0x61>"};
    const char *name = wild[pick(sizeof(wild) / sizeof(wild[0]))];
    int32_t id = find(m, name, strlen(name));

    return m->wild && id >= 0 && pick(3) == 0 ? id
                                              : from + (int32_t)pick((uint32_t)(m->count - from));
}

static void add_merges(model *m, int32_t from, int wanted)
{
    for (int i = 0; i < wanted; i++) {
        int32_t first = pick_part(m, from), second = pick_part(m, from);
        dt_strbuf both;

        if (has_merge(m, first, second))
            continue;
        dt_strbuf_init(&both);
        dt_strbuf_add_fmt(&both, "%s%s", m->tokens[first], m->tokens[second]);
        m->merges[m->merge_count][0] = first;
        m->merges[m->merge_count][1] = second;
        m->merges[m->merge_count++][2] = add_token(m, both.data);
        dt_strbuf_release(&both);
    }
}

static void make_model(model *m)
{
    int32_t from;

    *m = (model){.fallback = (int)pick(3),
                 .style = (int)pick(STYLES),
                 .fuses = pick(2) == 0,
                 .wild = pick(4) == 0,
                 .has_added = pick(4) == 0};
    (void)add_token(m, "<unk>");
    for (int byte = 0; byte < BYTES && m->fallback != NO_BYTES; byte++) {
        char name[8];

        snprintf(name, sizeof(name), "<0x%02X>", (unsigned)byte);
        if (m->fallback == ALL_BYTES || pick(3) > 0)
            (void)add_token(m, name);
    }
    from = m->count;
    for (size_t i = 0; i < ALPHABET; i++)
        if (pick(5) > 0)
            (void)add_token(m, alphabet[i]);
    (void)add_token(m, "a");
    add_merges(m, from, (int)pick(MERGES_MOST));
}

/* Few letters, of which most pairs are in a token. */
static void make_dense_model(model *m)
{
    *m = (model){.fallback = NO_BYTES, .style = PLAIN};
    (void)add_token(m, "<unk>");
    for (int i = 0; i < LETTERS; i++)
        (void)add_token(m, alphabet[i]);
    add_merges(m, 1, MERGES_MOST);
}

static void release_model(model *m)
{
    for (int32_t i = 0; i < m->count; i++)
        free(m->tokens[i]);
}

static json_t *normalizer_of(const model *m)
{
    return m->style != PREPEND
               ? json_null()
               : json_pack("{s:s, s:[{s:s, s:s}, {s:s, s:{s:s}, s:s}]}", "type", "Sequence",
                           "normalizers", "type", "Prepend", "prepend", MARK, "type", "Replace",
                           "pattern", "String", " ", "content", MARK);
}

static json_t *pre_tokenizer_of(const model *m)
{
    return m->style < METASPACE
               ? json_null()
               : json_pack("{s:s, s:s, s:s, s:b}", "type", "Metaspace", "replacement", MARK,
                           "prepend_scheme", m->style == METASPACE ? "first" : "always", "split",
                           m->style == METASPACE_SPLIT);
}

static dt_bpe *tokenizer_of(const model *m)
{
    json_t *vocab = json_object(), *merges = json_array(), *added = json_array(), *json;
    dt_error err = DT_ERROR_INIT;
    dt_bpe *bpe;
    char *text;

    for (int32_t i = 0; i < m->count; i++)
        json_object_set_new(vocab, m->tokens[i], json_integer(i));
    for (int i = 0; i < m->merge_count; i++)
        json_array_append_new(
            merges, json_pack("[s, s]", m->tokens[m->merges[i][0]], m->tokens[m->merges[i][1]]));
    if (m->has_added)
        json_array_append_new(added, json_pack("{s:i, s:s, s:b}", "id", m->count, "content", "@@",
                                               "normalized", true));
    json = json_pack("{s:o, s:o, s:o, s:{s:s, s:s, s:b, s:b, s:o, s:o}}", "added_tokens", added,
                     "normalizer", normalizer_of(m), "pre_tokenizer", pre_tokenizer_of(m), "model",
                     "type", "BPE", "unk_token", "<unk>", "fuse_unk", m->fuses, "byte_fallback",
                     m->fallback != NO_BYTES, "vocab", vocab, "merges", merges);
    text = json_dumps(json, JSON_COMPACT);
    if (dt_bpe_parse(&bpe, text, strlen(text), "random", &err) != DT_OK)
        fail_msg("%s", err.message);
    free(text);
    json_decref(json);
    return bpe;
}

/* --- the reference */

typedef struct list {
    int32_t ids[4 * LONGEST];
    size_t count;
} list;

/* Appends the tokens of a character's bytes; false if one has none. */
static bool add_bytes(list *out, const model *m, const char *text, size_t length)
{
    size_t first = out->count;

    for (size_t i = 0; i < length; i++) {
        char name[8];

        snprintf(name, sizeof(name), "<0x%02X>", (unsigned char)text[i]);
        out->ids[out->count] = find(m, name, strlen(name));
        if (m->fallback == NO_BYTES || out->ids[out->count++] < 0) {
            out->count = first;
            return false;
        }
    }
    return true;
}

static size_t bytes_of(const char *at)
{
    unsigned char byte = (unsigned char)*at;

    return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

/* [first][second]: index of the merge + 1; 0: none */
static int16_t ranks[TOKENS_MOST][TOKENS_MOST];

static void set_ranks(const model *m)
{
    memset(ranks, 0, sizeof(ranks));
    for (int i = 0; i < m->merge_count; i++)
        ranks[m->merges[i][0]][m->merges[i][1]] = (int16_t)(i + 1);
}

/* Makes the merge of the lowest rank, the first one of equals, as long as there is one. */
static void merge_all(list *word, const model *m)
{
    for (;;) {
        size_t best = 0;
        int16_t rank = 0;

        for (size_t i = 0; i + 1 < word->count; i++) {
            int16_t one = ranks[word->ids[i]][word->ids[i + 1]];

            if (one > 0 && (rank == 0 || one < rank)) {
                best = i;
                rank = one;
            }
        }
        if (rank == 0)
            return;
        word->ids[best] = m->merges[rank - 1][2];
        word->count--;
        memmove(word->ids + best + 1, word->ids + best + 2,
                (word->count - best - 1) * sizeof(word->ids[0]));
    }
}

static void add_word(list *out, const model *m, const char *text, size_t length)
{
    static list word;
    bool held = false;

    word.count = 0;

    for (size_t at = 0; at < length; at += bytes_of(text + at)) {
        int32_t id = find(m, text + at, bytes_of(text + at));

        if (id < 0 && add_bytes(&word, m, text + at, bytes_of(text + at)))
            continue;
        if (held && (id >= 0 || !m->fuses))
            word.ids[word.count++] = UNKNOWN;
        held = id < 0;
        if (id >= 0)
            word.ids[word.count++] = id;
    }
    if (held)
        word.ids[word.count++] = UNKNOWN;
    merge_all(&word, m);
    memcpy(out->ids + out->count, word.ids, word.count * sizeof(word.ids[0]));
    out->count += word.count;
}

static void encode(list *out, const model *m, const char *text)
{
    bool marked = text[0] == ' ' || strncmp(text, MARK, strlen(MARK)) == 0;
    dt_strbuf normal;
    size_t start = 0;

    out->count = 0;
    dt_strbuf_init(&normal);
    if (m->style == PREPEND || (m->style >= METASPACE && !marked))
        dt_strbuf_add_str(&normal, MARK);
    for (const char *at = text; *at != '\0'; at++)
        if (*at == ' ' && m->style != PLAIN)
            dt_strbuf_add_str(&normal, MARK);
        else
            dt_strbuf_add_char(&normal, *at);
    for (size_t at = 1; at < normal.length && m->style == METASPACE_SPLIT; at++)
        if (strncmp(normal.data + at, MARK, strlen(MARK)) == 0) {
            add_word(out, m, normal.data + start, at - start);
            start = at;
        }
    add_word(out, m, normal.data + start, normal.length - start);
    dt_strbuf_release(&normal);
}

/* --- tests */

/* Texts with characters that no vocabulary has, one in eight, and some long rows of one character. */
static void make_text(dt_strbuf *out)
{
    uint32_t length = 1 + pick(pick(8) == 0 ? LONG : 40);

    dt_strbuf_reset(out);
    for (uint32_t i = 0; i < length; i++)
        dt_strbuf_add_str(out,
                          pick(8) == 0 ? strangers[pick(STRANGERS)] : alphabet[pick(ALPHABET)]);
}

static void compare(const dt_ids *ids, const list *wanted, const model *m, const char *text)
{
    if (ids->count != wanted->count ||
        memcmp(ids->items, wanted->ids, ids->count * sizeof(ids->items[0])) != 0)
        fail_msg("'%s' has %zu tokens, expected %zu (style %d, bytes %d, fuse_unk %d, %d merges)",
                 text, ids->count, wanted->count, m->style, m->fallback, m->fuses, m->merge_count);
}

/* Encodes in parts, cut wherever possible. Returns the number of cuts. */
static int encode_parts(dt_ids *ids, const dt_bpe *bpe, dt_bpe_encoder *encoder, const char *text,
                        size_t length)
{
    int cuts = 0;
    size_t at = dt_bpe_cut(bpe, text, length, 1);

    assert_int_equal(dt_bpe_encode(ids, encoder, text, at, NULL), DT_OK);
    for (size_t end; at < length; at = end) {
        end = dt_bpe_cut(bpe, text, length, at + 1);
        assert_int_equal(dt_bpe_encode_rest(ids, encoder, text + at, end - at, NULL), DT_OK);
        cuts++;
    }
    return cuts;
}

static int compare_model(const model *m)
{
    dt_bpe *bpe = tokenizer_of(m);
    dt_bpe_encoder *encoder;
    dt_ids ids = {0};
    static list wanted;
    dt_strbuf text;
    int cuts = 0;

    set_ranks(m);
    dt_strbuf_init(&text);
    assert_int_equal(dt_bpe_encoder_open(&encoder, bpe, NULL), DT_OK);
    for (int i = 0; i < 30; i++) {
        make_text(&text);
        encode(&wanted, m, text.data);
        ids.count = 0;
        assert_int_equal(dt_bpe_encode(&ids, encoder, text.data, text.length, NULL), DT_OK);
        compare(&ids, &wanted, m, text.data);
        ids.count = 0;
        cuts += encode_parts(&ids, bpe, encoder, text.data, text.length);
        compare(&ids, &wanted, m, text.data);
    }
    dt_strbuf_release(&text);
    dt_ids_release(&ids);
    dt_bpe_encoder_close(encoder);
    dt_bpe_free(bpe);
    return cuts;
}

static void test_ids_are_those_of_merges_over_the_whole_text(void **unused)
{
    int cuts = 0;

    (void)unused;
    for (int i = 0; i < 400; i++) {
        model m;

        make_model(&m);
        cuts += compare_model(&m);
        release_model(&m);
    }
    assert_true(cuts > 200);
}

/* A text that is one word of thousands of characters, with rows of the same one: merged in windows. */
static void make_word(dt_strbuf *out)
{
    uint32_t length = LONGEST / 2 + pick(LONGEST / 4);

    dt_strbuf_reset(out);
    while (out->length < length)
        for (uint32_t same = pick(4) == 0 ? 1 + pick(30) : 1, one = pick(LETTERS); same > 0; same--)
            dt_strbuf_add_str(out, alphabet[one]);
}

static void test_very_long_words_are_merged_as_one(void **unused)
{
    static list wanted;
    dt_ids ids = {0};
    dt_strbuf text;

    (void)unused;
    dt_strbuf_init(&text);
    for (int i = 0; i < 30; i++) {
        dt_bpe_encoder *encoder;
        dt_bpe *bpe;
        model m;

        make_dense_model(&m);
        set_ranks(&m);
        bpe = tokenizer_of(&m);
        make_word(&text);
        encode(&wanted, &m, text.data);
        ids.count = 0;
        assert_int_equal(dt_bpe_encoder_open(&encoder, bpe, NULL), DT_OK);
        assert_int_equal(dt_bpe_encode(&ids, encoder, text.data, text.length, NULL), DT_OK);
        compare(&ids, &wanted, &m, "the long word");
        dt_bpe_encoder_close(encoder);
        dt_bpe_free(bpe);
        release_model(&m);
    }
    dt_strbuf_release(&text);
    dt_ids_release(&ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids_are_those_of_merges_over_the_whole_text),
        cmocka_unit_test(test_very_long_words_are_merged_as_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
