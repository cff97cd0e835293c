/* align: finds where the bytes of each token end in the text. */
#include <stdlib.h>
#include <string.h>

#include "engine/chat/chat_int.h"

enum { LOOK_AHEAD = 64, SAME_LEAST = 4 };

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* Moves over bytes of the text that the token has, and over a space that the tokenizer added to it or spaces that it
 * dropped. Returns false if the token's bytes are not there. */
static bool skip_token(size_t *at, const char *text, size_t length, const char *token, size_t size)
{
    size_t from = *at, added;

    for (added = 0; added <= (size > 0 && token[0] == ' '); added++)
        for (from = *at;; from++) {
            if (length - from >= size - added &&
                memcmp(text + from, token + added, size - added) == 0) {
                *at = from + size - added;
                return true;
            }
            if (from == length || !is_space(text[from]))
                break;
        }
    return false;
}

/* Two texts that differ in parts: the decoded tokens, and the text that they were made of. */
typedef struct two {
    const char *decoded, *text;
    size_t decoded_length, length;
} two;

static bool same_at(const two *t, size_t d, size_t at)
{
    size_t left = t->decoded_length - d, more = t->length - at;

    if (left < SAME_LEAST || more < SAME_LEAST) /* at the end all the rest must be the same */
        return left == more && memcmp(t->decoded + d, t->text + at, left) == 0;
    return memcmp(t->decoded + d, t->text + at, SAME_LEAST) == 0;
}

/* Finds the nearest places from which both are the same again. */
static bool find_same(const two *t, size_t *d, size_t *at)
{
    for (size_t sum = 1; sum <= LOOK_AHEAD; sum++)
        for (size_t k = 0; k <= sum; k++)
            if (*d + k <= t->decoded_length && *at + sum - k <= t->length &&
                same_at(t, *d + k, *at + sum - k)) {
                *d += k;
                *at += sum - k;
                return true;
            }
    return false;
}

/* Gives for each end of a decoded byte the end in the text. Where they differ, the ends of the text are divided evenly
 * among the bytes. */
static void map_bytes(uint32_t *map, const two *t)
{
    size_t d = 0, at = 0;

    while (d < t->decoded_length) {
        size_t next_d = d, next = at;

        if (at < t->length && t->decoded[d] == t->text[at]) {
            map[d++] = (uint32_t)++at;
            continue;
        }
        if (!find_same(t, &next_d, &next)) {
            next_d = t->decoded_length;
            next = t->length;
        }
        for (size_t k = d; k < next_d; k++)
            map[k] = (uint32_t)(at + (next - at) * (k + 1 - d) / (next_d - d));
        d = next_d;
        at = next;
    }
}

/* Sets the ends of tokens between two places that are certain. */
static void align_between(uint32_t *ends, const dt_bpe *tokenizer, const int32_t *ids, size_t count,
                          const char *text, size_t length, size_t offset, dt_arena *arena)
{
    uint32_t *map, *stops = dt_arena_alloc_array(arena, count, sizeof(*stops));
    dt_strbuf decoded;
    two t;

    dt_strbuf_init(&decoded);
    for (size_t i = 0; i < count; i++) {
        dt_bpe_decode(&decoded, tokenizer, ids[i]);
        stops[i] = (uint32_t)decoded.length;
    }
    t = (two){decoded.data, text, decoded.length, length};
    map = dt_arena_alloc_array(arena, decoded.length + 1, sizeof(*map));
    map_bytes(map, &t);
    for (size_t i = 0; i < count; i++)
        ends[i] = (uint32_t)offset + (stops[i] > 0 ? map[stops[i] - 1] : 0);
    dt_strbuf_release(&decoded);
}

/* Sets the ends of the tokens of text[from] .. text[to - 1], which has no added token. */
static void align_part(uint32_t *ends, const dt_bpe *tokenizer, const int32_t *ids, size_t count,
                       const char *text, size_t from, size_t to, dt_strbuf *token, dt_arena *arena)
{
    for (size_t i = 0; i < count; i++) {
        dt_strbuf_reset(token);
        dt_bpe_decode(token, tokenizer, ids[i]);
        if (!skip_token(&from, text, to, token->data, token->length)) {
            /* a normalizer changed the text */
            align_between(ends + i, tokenizer, ids + i, count - i, text + from, to - from, from,
                          arena);
            return;
        }
        ends[i] = (uint32_t)from;
    }
}

static int by_place(const void *a, const void *b)
{
    size_t x = ((const dt_chat_anchor *)a)->from, y = ((const dt_chat_anchor *)b)->from;

    return (x > y) - (x < y);
}

void dt_chat_align(uint32_t *ends, const dt_bpe *tokenizer, dt_chat_anchors *anchors,
                   const int32_t *ids, size_t count, const char *text, size_t length,
                   dt_arena *arena)
{
    size_t first = 0, at = 0, next;
    dt_strbuf token;

    dt_strbuf_init(&token);
    if (anchors->count > 1)
        qsort(anchors->items, (size_t)anchors->count, sizeof(*anchors->items), by_place);
    for (int64_t i = 0; i < anchors->count; i++) {
        const dt_chat_anchor *anchor = &anchors->items[i];

        for (next = first; next < count && ids[next] != anchor->id; next++)
            ;
        if (next == count || anchor->from < at)
            break;
        align_part(ends + first, tokenizer, ids + first, next - first, text, at, anchor->from,
                   &token, arena);
        ends[next] = (uint32_t)anchor->to;
        first = next + 1;
        at = anchor->to;
    }
    align_part(ends + first, tokenizer, ids + first, count - first, text, at, length, &token,
               arena);
    dt_strbuf_release(&token);
}
