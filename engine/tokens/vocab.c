/* vocab: the tables of a tokenizer: pairs, tokens, and added tokens, which are found in a text before it is
 * split. */
#include "engine/tokens/vocab.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "engine/tokens/tokens_int.h"

/* --- pairs */

dt_status dt_pairs_init(dt_pairs *out, uint64_t count, dt_error *err)
{
    uint64_t slots = 16;

    *out = (dt_pairs){.shift = 60};
    while (slots < count * 2) {
        slots *= 2;
        out->shift--;
    }
    out->mask = slots - 1;
    out->slots = calloc(slots, sizeof(*out->slots));
    out->filter = calloc(slots / 8, sizeof(*out->filter));
    if (out->slots == NULL || out->filter == NULL) {
        dt_pairs_release(out);
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for %llu pairs of tokens",
                       (unsigned long long)count);
    }
    for (uint64_t i = 0; i < slots; i++)
        out->slots[i].rank = DT_PAIR_NONE;
    return DT_OK;
}

void dt_pairs_release(dt_pairs *pairs)
{
    free(pairs->slots);
    free(pairs->filter);
    *pairs = (dt_pairs){0};
}

static dt_pair *pair_slot(dt_pairs *pairs, uint64_t key)
{
    uint64_t at = dt_pair_hash(key) >> pairs->shift;

    while (pairs->slots[at].rank != DT_PAIR_NONE && pairs->slots[at].key != key)
        at = (at + 1) & pairs->mask;
    return &pairs->slots[at];
}

/* Puts a pair into a table that has room for it. */
static void put(dt_pairs *pairs, const dt_pair *pair)
{
    uint64_t bit = dt_pair_bit(pairs, dt_pair_hash(pair->key));
    dt_pair *slot = pair_slot(pairs, pair->key);

    pairs->count += slot->rank == DT_PAIR_NONE;
    pairs->filter[bit / 64] |= (uint64_t)1 << bit % 64;
    *slot = *pair;
}

static dt_status grow(dt_pairs *pairs, dt_error *err)
{
    dt_status st = DT_OK;
    dt_pairs wider;

    DT_TRY(dt_pairs_init(&wider, (pairs->mask + 1), err));
    for (uint64_t i = 0; i <= pairs->mask; i++)
        if (pairs->slots[i].rank != DT_PAIR_NONE)
            put(&wider, &pairs->slots[i]);
    dt_pairs_release(pairs);
    *pairs = wider;
out:
    return st;
}

dt_status dt_pairs_put(dt_pairs *pairs, int32_t first, int32_t second, uint32_t rank, int32_t id,
                       dt_error *err)
{
    dt_pair pair = {dt_pair_key(first, second), rank, id};
    dt_status st = DT_OK;

    DT_ASSERT(rank != DT_PAIR_NONE);
    if ((pairs->count + 1) * 2 > pairs->mask + 1)
        DT_TRY(grow(pairs, err));
    put(pairs, &pair);
out:
    return st;
}

/* --- tokens */

#define FIRST_SLOTS ((uint64_t)1 << 10)

dt_status dt_vocab_init(dt_vocab *out, dt_error *err)
{
    *out = (dt_vocab){.mask = FIRST_SLOTS - 1};
    dt_strbuf_init(&out->bytes);
    out->slots = calloc(FIRST_SLOTS, sizeof(*out->slots));
    return out->slots != NULL ? DT_OK : DT_FAIL(err, DT_ERR_NOMEM, "no memory for a vocabulary");
}

void dt_vocab_release(dt_vocab *vocab)
{
    dt_strbuf_release(&vocab->bytes);
    free(vocab->tokens);
    free(vocab->slots);
    *vocab = (dt_vocab){0};
}

const char *dt_vocab_text(const dt_vocab *vocab, int64_t id, size_t *length)
{
    *length = 0;
    if (id < 0 || id >= vocab->size || !vocab->tokens[id].there)
        return NULL;
    *length = vocab->tokens[id].length;
    return vocab->bytes.data + vocab->tokens[id].start;
}

/* Returns the slot that has these bytes, or the free slot for them. */
static uint64_t token_slot(const dt_vocab *vocab, const int32_t *slots, uint64_t mask,
                           const void *bytes, size_t length)
{
    uint64_t at = XXH3_128bits(bytes, length).low64 & mask;
    const char *there;
    size_t its_length = 0;

    for (; slots[at] != 0; at = (at + 1) & mask) {
        there = dt_vocab_text(vocab, slots[at] - 1, &its_length);
        if (its_length == length && memcmp(there, bytes, length) == 0)
            break;
    }
    return at;
}

int32_t dt_vocab_find(const dt_vocab *vocab, const void *bytes, size_t length)
{
    return vocab->slots[token_slot(vocab, vocab->slots, vocab->mask, bytes, length)] - 1;
}

static dt_status widen_slots(dt_vocab *vocab, dt_error *err)
{
    uint64_t mask = vocab->mask * 2 + 1;
    int32_t *slots = calloc(mask + 1, sizeof(*slots));
    size_t length = 0;

    if (slots == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a vocabulary");
    for (uint64_t i = 0; i <= vocab->mask; i++)
        if (vocab->slots[i] != 0) {
            const char *bytes = dt_vocab_text(vocab, vocab->slots[i] - 1, &length);

            slots[token_slot(vocab, slots, mask, bytes, length)] = vocab->slots[i];
        }
    free(vocab->slots);
    vocab->slots = slots;
    vocab->mask = mask;
    return DT_OK;
}

static dt_status widen_tokens(dt_vocab *vocab, int64_t id, dt_error *err)
{
    int64_t before = vocab->capacity;
    dt_vocab_token *tokens =
        dt_array_try_room(vocab->tokens, id + 1, &vocab->capacity, sizeof(*tokens));

    if (tokens == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for %lld tokens", (long long)id + 1);
    memset(tokens + before, 0, (size_t)(vocab->capacity - before) * sizeof(*tokens));
    vocab->tokens = tokens;
    return DT_OK;
}

dt_status dt_vocab_add(dt_vocab *vocab, int64_t id, const char *bytes, size_t length, bool findable,
                       dt_error *err)
{
    dt_status st = DT_OK;
    uint64_t slot;

    if (id < 0 || id >= DT_VOCAB_MAX)
        DT_THROW(err, DT_ERR_CORRUPT, "token '%.40s' has the id %lld (expected 0 to %lld)", bytes,
                 (long long)id, (long long)DT_VOCAB_MAX - 1);
    if (length > UINT32_MAX)
        DT_THROW(err, DT_ERR_CORRUPT, "token %lld has %zu bytes", (long long)id, length);
    if (id >= vocab->capacity)
        DT_TRY(widen_tokens(vocab, id, err));
    if (vocab->tokens[id].there)
        DT_THROW(err, DT_ERR_CORRUPT, "two tokens have the id %lld; one of them is '%.40s'",
                 (long long)id, bytes);
    if (findable && (vocab->found + 1) * 2 > vocab->mask + 1)
        DT_TRY(widen_slots(vocab, err));
    slot = token_slot(vocab, vocab->slots, vocab->mask, bytes, length);
    if (findable && vocab->slots[slot] != 0)
        DT_THROW(err, DT_ERR_CORRUPT, "tokens %d and %lld are the same, '%.40s'",
                 vocab->slots[slot] - 1, (long long)id, bytes);
    vocab->tokens[id] = (dt_vocab_token){vocab->bytes.length, (uint32_t)length, true};
    dt_strbuf_add(&vocab->bytes, bytes, length);
    if (id >= vocab->size)
        vocab->size = id + 1;
    if (findable) {
        vocab->slots[slot] = (int32_t)id + 1;
        vocab->found++;
    }
out:
    return st;
}

/* --- added tokens */

static dt_status add_node(int32_t *out, dt_added *added, dt_error *err)
{
    dt_added_token *nodes = NULL;

    if (added->count < INT32_MAX)
        nodes = dt_array_try_room(added->nodes, added->count + 1, &added->capacity, sizeof(*nodes));
    if (nodes == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for added tokens");
    added->nodes = nodes;
    added->nodes[added->count] = (dt_added_token){.id = -1};
    *out = (int32_t)added->count++;
    return DT_OK;
}

dt_status dt_added_init(dt_added *out, dt_error *err)
{
    dt_status st = DT_OK;
    int32_t root;

    *out = (dt_added){0};
    DT_TRY(dt_pairs_init(&out->edges, 64, err));
    DT_TRY(add_node(&root, out, err));
out:
    return st;
}

void dt_added_release(dt_added *added)
{
    dt_pairs_release(&added->edges);
    free(added->nodes);
    *added = (dt_added){0};
}

bool dt_added_is_empty(const dt_added *added)
{
    return added->count == 1; /* the root */
}

dt_status dt_added_put(dt_added *added, const char *text, size_t length,
                       const dt_added_token *token, dt_error *err)
{
    dt_status st = DT_OK;
    int32_t node = 0, next;

    DT_ASSERT(length > 0);
    if (memchr(added->first, text[0], (size_t)added->first_count) == NULL)
        added->first[added->first_count++] = (unsigned char)text[0];
    for (size_t i = 0; i < length; i++) {
        const dt_pair *edge = dt_pairs_get(&added->edges, node, (unsigned char)text[i]);

        next = edge->id;
        if (edge->rank == DT_PAIR_NONE) {
            DT_TRY(add_node(&next, added, err));
            DT_TRY(dt_pairs_put(&added->edges, node, (unsigned char)text[i], 0, next, err));
        }
        node = next;
    }
    added->nodes[node] = *token;
out:
    return st;
}

/* Returns the length of the longest added token at `text`; 0 if there is none. */
static size_t longest(dt_added_token *token, const dt_added *added, const unsigned char *text,
                      size_t length)
{
    size_t best = 0;
    int32_t node = 0;

    for (size_t i = 0; i < length; i++) {
        const dt_pair *edge = dt_pairs_get(&added->edges, node, text[i]);

        if (edge->rank == DT_PAIR_NONE)
            break;
        node = edge->id;
        if (added->nodes[node].id >= 0) {
            *token = added->nodes[node];
            best = i + 1;
        }
    }
    return best;
}

static size_t spaces_before(const unsigned char *text, size_t from, size_t at)
{
    size_t used;

    while (at > from) {
        size_t start = at - 1;

        while (start > from && (text[start] & 0xc0) == 0x80)
            start--;
        if (dt_code_class_of(dt_code_at(text + start, &used)) != DT_CODE_SPACE)
            break;
        at = start;
    }
    return at;
}

static size_t spaces_behind(const unsigned char *text, size_t at, size_t length)
{
    size_t used;

    for (; at < length; at += used)
        if (dt_code_class_of(dt_code_at(text + at, &used)) != DT_CODE_SPACE)
            break;
    return at;
}

/* Returns the first byte at or after text[from] that a token begins with; `length` if there is none. Each byte is
 * searched for only as far as another was found, and in windows, so that a rare one costs little. */
static size_t next_first(const dt_added *added, const unsigned char *text, size_t length,
                         size_t from)
{
    enum { WINDOW = 1024 };

    if (added->first_count == 0)
        return length;
    for (size_t at = from; at < length; at += WINDOW) {
        size_t window = length - at < WINDOW || added->first_count == 1 ? length - at : WINDOW;
        size_t most = window;

        for (int i = 0; i < added->first_count; i++) {
            const unsigned char *found = memchr(text + at, added->first[i], most);

            if (found != NULL)
                most = (size_t)(found - text - at);
        }
        if (most < window)
            return at + most;
        if (window == length - at)
            return length;
    }
    return length;
}

bool dt_added_next(const dt_added *added, const char *text, size_t length, size_t from,
                   size_t *start, size_t *end, int32_t *id)
{
    const unsigned char *bytes = (const unsigned char *)text;
    dt_added_token token;

    for (size_t at = from; (at = next_first(added, bytes, length, at)) < length; at++) {
        size_t found = longest(&token, added, bytes + at, length - at);

        if (found == 0)
            continue;
        *start = token.lstrip ? spaces_before(bytes, from, at) : at;
        *end = token.rstrip ? spaces_behind(bytes, at + found, length) : at + found;
        *id = token.id;
        return true;
    }
    return false;
}

/* --- the list of added tokens */

void dt_bpe_note_added(dt_bpe *bpe, const char *text, int64_t id, bool special)
{
    bpe->added = dt_arena_array_room(&bpe->arena, bpe->added, bpe->added_count + 1,
                                     &bpe->added_capacity, sizeof(*bpe->added));
    bpe->added[bpe->added_count++] =
        (dt_bpe_added){dt_arena_strdup(&bpe->arena, text), (int32_t)id, special};
}

const dt_bpe_added *dt_bpe_get_added(size_t *count, const dt_bpe *bpe)
{
    *count = (size_t)bpe->added_count;
    return bpe->added;
}

const char *dt_bpe_find_written(const char **end, const dt_bpe *bpe, int32_t id, const char *part,
                                size_t part_length, const char *normal, size_t start, size_t stop)
{
    const char *token = NULL, *found, *at;
    size_t before = 0, length;

    for (int64_t i = 0; i < bpe->added_count && token == NULL; i++)
        token = bpe->added[i].id == id ? bpe->added[i].text : NULL;
    for (at = normal;
         (at = memmem(at, (size_t)(normal + start - at), normal + start, stop - start)) != NULL;
         at++)
        before++;
    *end = part + part_length;
    length = token != NULL ? strlen(token) : 0;
    for (at = part; length > 0; at = found + 1) {
        found = memmem(at, (size_t)(*end - at), token, length);
        if (found == NULL)
            break;
        if (before-- == 0) {
            *end = found + length;
            return found;
        }
    }
    return part;
}
