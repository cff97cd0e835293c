/* merge: byte pair encoding of one word, and the places where no merge can cross, at which text is cut into
 * words. */
#include <stdlib.h>
#include <string.h>

#include "base/display.h"
#include "engine/tokens/tokens_int.h"

/* --- where no merge crosses */

static inline uint32_t hash(uint32_t left, uint32_t right)
{
    uint64_t both = (uint64_t)left << 32 | right;

    return (uint32_t)((both ^ both >> 29) * 0x9e3779b97f4a7c15ull >> (64 - DT_JOINTS_LOG));
}

static inline bool has_bit(const uint64_t *bits, uint32_t at)
{
    return (bits[at >> 6] >> (at & 63) & 1) != 0;
}

static void set_bit(uint64_t *bits, uint32_t at)
{
    bits[at >> 6] |= (uint64_t)1 << (at & 63);
}

/* Returns whether a word can end between the characters. Both must be tokens if unknown ones are not bytes: a run of
 * unknown characters becomes one token. */
static inline bool is_end(const dt_joints *joints, uint32_t left, uint32_t right)
{
    if (left < 128 && right < 128)
        return joints->ascii[left][right] != 0;
    return !has_bit(joints->others, hash(left, right)) &&
           (joints->known == NULL ||
            (has_bit(joints->known, left) && has_bit(joints->known, right)));
}

const unsigned char *dt_joints_next(const dt_joints *joints, const unsigned char *at,
                                    const unsigned char *end)
{
    size_t used;
    uint32_t left = dt_code_at(at, &used);

    for (at += used; at < end; at += used) {
        uint32_t right = dt_code_at(at, &used);

        if (is_end(joints, left, right))
            break;
        left = right;
    }
    return at;
}

/* --- finding them */

static uint32_t last_code(const char *text, size_t length)
{
    size_t at = length - 1, used;

    while (at > 0 && (text[at] & 0xc0) == 0x80)
        at--;
    return dt_code_at((const unsigned char *)text + at, &used);
}

static void add_pair(dt_joints *out, uint32_t left, uint32_t right)
{
    if (left < 128 && right < 128)
        out->ascii[left][right] = 0;
    else
        set_bit(out->others, hash(left, right));
}

/* Returns whether the token can stand for a byte, as "<0x0A>" does. */
static bool is_byte(const dt_joints_from *from, const char *text, size_t length)
{
    return from->bytes != NULL && length == 6 && memcmp(text, "<0x", 3) == 0;
}

/* Adds the last character of a merge's first part with the first character of its second part. A part without text
 * results from no character, and is never merged. Returns false if the text of a part is not that of its characters. */
static bool add_merge(dt_joints *out, const dt_joints_from *from, int32_t first, int32_t second)
{
    size_t length, second_length, used;
    const char *text = dt_vocab_text(from->vocab, first, &length);
    const char *behind = dt_vocab_text(from->vocab, second, &second_length);
    uint32_t left, right;

    if (is_byte(from, text, length) || is_byte(from, behind, second_length))
        return false;
    if (length == 0 || second_length == 0)
        return true;
    left = last_code(text, length);
    right = dt_code_at((const unsigned char *)behind, &used);
    add_pair(out, left, right);
    if (left == from->blank)
        add_pair(out, ' ', right);
    if (right == from->blank)
        add_pair(out, left, ' ');
    if (left == from->blank && right == from->blank)
        add_pair(out, ' ', ' ');
    if (left == '\n' && right != '\n')
        out->ends_at_breaks = false;
    return true;
}

static dt_status find_known(dt_joints *out, const dt_joints_from *from, dt_error *err)
{
    const dt_vocab *vocab = from->vocab;

    out->known = calloc(DT_UTF8_CODES / 64, sizeof(*out->known));
    if (out->known == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a vocabulary");
    for (int64_t id = 0; id < vocab->size; id++) {
        size_t length, used;
        const char *text = dt_vocab_text(vocab, id, &length);
        uint32_t code = length > 0 ? dt_code_at((const unsigned char *)text, &used) : 0;

        if (length > 0 && used == length)
            set_bit(out->known, code);
    }
    if (from->blank != 0)
        set_bit(out->known, ' '); /* the blank is a token */
    for (uint32_t left = 0; left < 128; left++)
        for (uint32_t right = 0; right < 128; right++)
            if (!has_bit(out->known, left) || !has_bit(out->known, right))
                out->ascii[left][right] = 0;
    return DT_OK;
}

/* Returns whether each byte has a token, so that no character is unknown. */
static bool has_all_bytes(const int32_t *bytes)
{
    for (int i = 0; i < 256; i++)
        if (bytes == NULL || bytes[i] < 0)
            return false;
    return true;
}

dt_status dt_joints_find(dt_joints *out, const dt_joints_from *from, dt_error *err)
{
    const dt_pairs *merges = from->merges;
    dt_status st = DT_OK;

    memset(out->ascii, 1, sizeof(out->ascii));
    out->ends_at_breaks = has_all_bytes(from->bytes);
    for (uint64_t i = 0; i <= merges->mask; i++) {
        uint64_t key = merges->slots[i].key;

        if (merges->slots[i].rank != DT_PAIR_NONE &&
            !add_merge(out, from, (int32_t)(key >> 32), (int32_t)key))
            goto out;
    }
    if (!has_all_bytes(from->bytes))
        DT_TRY(find_known(out, from, err));
    out->cuts = true;
out:
    return st;
}

void dt_joints_release(dt_joints *joints)
{
    free(joints->known);
    joints->known = NULL;
}

/* --- the merges of a word */

#define SHORT   48 /* tokens; from here on, a heap is faster than comparing all pairs */
#define NONE    UINT32_MAX
#define WINDOW  512 /* tokens */
#define AGAIN   8   /* tokens of a window that are merged again with the next one */
#define AT_ONCE 8   /* entries that `first_of` compares without a branch; SHORT is a multiple */
#define AT_BITS 6   /* bits of a position in a short word */
#define AT_MASK ((1 << AT_BITS) - 1)
#define RANKS   (1u << (31 - AT_BITS)) /* that fit an entry with a position */

/* --- short words: tokens stay where they are, and a bit says whether one was merged into its
 * predecessor */

typedef struct short_word {
    int32_t order
        [SHORT]; /* rank << AT_BITS | position of the merge with the next token; INT32_MAX: none */
    int32_t made[SHORT]; /* what that merge makes */
    int32_t *ids;
    uint64_t kept; /* positions that still have a token */
} short_word;

static inline void find_merge(short_word *w, int at, int next, const dt_pairs *merges)
{
    const dt_pair *pair = dt_pairs_get(merges, w->ids[at], w->ids[next]);

    w->order[at] =
        pair->rank == DT_PAIR_NONE ? INT32_MAX : (int32_t)(pair->rank << AT_BITS | (uint32_t)at);
    w->made[at] = pair->id;
}

/* Returns the smallest of the first `count` entries, in whole groups. */
static inline int32_t first_of(const int32_t *order, size_t count)
{
    int32_t least[AT_ONCE], first = INT32_MAX;

    memcpy(least, order, sizeof(least));
    for (size_t i = AT_ONCE; i < count; i += AT_ONCE)
        for (size_t j = 0; j < AT_ONCE; j++)
            least[j] = order[i + j] < least[j] ? order[i + j] : least[j];
    for (size_t j = 0; j < AT_ONCE; j++)
        first = least[j] < first ? least[j] : first;
    return first;
}

static size_t merge_short(int32_t *ids, size_t count, const dt_pairs *merges)
{
    size_t kept = 0;
    int32_t first;
    short_word w;

    w.ids = ids;
    w.kept = ((uint64_t)1 << count) - 1;
    for (size_t i = 0; i < SHORT; i++)
        w.order[i] = INT32_MAX;
    for (size_t i = 0; i + 1 < count; i++)
        find_merge(&w, (int)i, (int)i + 1, merges);
    while ((first = first_of(w.order, count)) != INT32_MAX) {
        int at = first & AT_MASK;
        uint64_t behind = w.kept & ~(uint64_t)1 << at, before = w.kept & (((uint64_t)1 << at) - 1);

        ids[at] = w.made[at];
        w.order[__builtin_ctzll(behind)] = w.order[at] = INT32_MAX;
        w.kept ^= behind & -behind;
        behind &= behind - 1;
        if (behind != 0)
            find_merge(&w, at, __builtin_ctzll(behind), merges);
        if (before != 0)
            find_merge(&w, 63 - __builtin_clzll(before), at, merges);
    }
    for (; w.kept != 0; w.kept &= w.kept - 1)
        ids[kept++] = ids[__builtin_ctzll(w.kept)];
    return kept;
}

/* --- long words: a linked list of tokens, and a heap of pairs, some of which are outdated */

static void sink(uint64_t *queue, size_t count, size_t at)
{
    uint64_t value = queue[at];

    for (size_t below = 2 * at + 1; below < count; below = 2 * at + 1) {
        if (below + 1 < count && queue[below + 1] < queue[below])
            below++;
        if (queue[below] >= value)
            break;
        queue[at] = queue[below];
        at = below;
    }
    queue[at] = value;
}

static void push(dt_merge_memory *m, uint64_t value)
{
    size_t at = m->queued++;

    for (; at > 0 && m->queue[(at - 1) / 2] > value; at = (at - 1) / 2)
        m->queue[at] = m->queue[(at - 1) / 2];
    m->queue[at] = value;
}

static uint64_t pop(dt_merge_memory *m)
{
    uint64_t first = m->queue[0];

    m->queue[0] = m->queue[--m->queued];
    if (m->queued > 0)
        sink(m->queue, m->queued, 0);
    return first;
}

static const dt_pair *pair_at(const dt_merge_memory *m, uint32_t at, const dt_pairs *merges)
{
    return dt_pairs_get(merges, m->symbols[at].id, m->symbols[m->symbols[at].behind].id);
}

/* Allocates the memory for `count` tokens. Each merge removes one pair from the heap and adds at
 * most two, and there are fewer merges than tokens: the heap never has more than twice as many
 * pairs as tokens. */
static dt_status make_room(dt_merge_memory *m, size_t count, dt_error *err)
{
    if (count <= m->room)
        return DT_OK;
    dt_merge_release(m);
    if (count < NONE) {
        m->symbols = malloc(count * sizeof(*m->symbols));
        m->queue = malloc(2 * count * sizeof(*m->queue));
    }
    if (m->symbols == NULL || m->queue == NULL) {
        dt_merge_release(m);
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a word of %zu bytes", count);
    }
    m->room = count;
    return DT_OK;
}

static void start(dt_merge_memory *m, const int32_t *ids, size_t count, const dt_pairs *merges)
{
    m->queued = 0;
    for (size_t i = 0; i < count; i++)
        m->symbols[i] = (dt_merge_symbol){ids[i], i > 0 ? (uint32_t)i - 1 : NONE,
                                          i + 1 < count ? (uint32_t)i + 1 : NONE};
    for (size_t i = 0; i + 1 < count; i++) {
        uint32_t rank = dt_pairs_get(merges, ids[i], ids[i + 1])->rank;

        if (rank != DT_PAIR_NONE)
            m->queue[m->queued++] = (uint64_t)rank << 32 | i;
    }
    for (size_t i = m->queued / 2; i > 0; i--)
        sink(m->queue, m->queued, i - 1);
}

static void queue_pair(dt_merge_memory *m, uint32_t at, const dt_pairs *merges)
{
    uint32_t rank = pair_at(m, at, merges)->rank;

    if (rank != DT_PAIR_NONE)
        push(m, (uint64_t)rank << 32 | at);
}

static void merge_at(dt_merge_memory *m, uint32_t at, const dt_pairs *merges)
{
    dt_merge_symbol *left = &m->symbols[at], *right = &m->symbols[left->behind];

    left->id = pair_at(m, at, merges)->id;
    right->id = -1;
    left->behind = right->behind;
    if (left->behind != NONE) {
        m->symbols[left->behind].before = at;
        queue_pair(m, at, merges);
    }
    if (left->before != NONE)
        queue_pair(m, left->before, merges);
}

/* Merges the tokens, and leaves the result in the linked list, from symbols[0] on. */
static dt_status merge_list(const int32_t *ids, size_t count, const dt_pairs *merges,
                            dt_merge_memory *m, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(make_room(m, count, err));
    start(m, ids, count, merges);
    while (m->queued > 0) {
        uint64_t next = pop(m);
        uint32_t at = (uint32_t)next;

        if (m->symbols[at].id >= 0 && m->symbols[at].behind != NONE &&
            pair_at(m, at, merges)->rank == next >> 32)
            merge_at(m, at, merges);
    }
out:
    return st;
}

static dt_status merge_whole(int32_t *ids, size_t *count, const dt_pairs *merges,
                             dt_merge_memory *m, dt_error *err)
{
    dt_status st = DT_OK;
    size_t kept = 0;

    DT_TRY(merge_list(ids, *count, merges, m, err));
    for (uint32_t at = 0; at != NONE; at = m->symbols[at].behind)
        ids[kept++] = m->symbols[at].id;
    *count = kept;
out:
    return st;
}

/* --- very long words, in windows whose heaps fit a processor's cache
 *
 * Tokens are the result of merging a word if the same is true of each two neighbours. For consider the first merge that
 * joins parts of two neighbouring tokens: before it, every merge was inside a token, as when only these two are merged,
 * so it would have been made there too. Thus a window can be merged alone, if its first token is compared with the last
 * token before it. The last tokens of a window are merged again with the next one.
 */

/* Tokens of the word so far, with the place of each in the word. */
typedef struct made_token {
    int32_t id;
    uint32_t start;
} made_token;

typedef struct windows {
    const int32_t *ids;
    size_t count; /* tokens of the word */
    made_token *made;
    size_t made_count;
} windows;

/* Returns whether two neighbouring tokens stay as they are if they are merged alone. */
static bool stay(const windows *w, const made_token *left, const made_token *right, size_t end,
                 const dt_pairs *merges)
{
    int32_t ids[SHORT];
    size_t count = end - left->start;

    if (count > SHORT)
        return false;
    memcpy(ids, w->ids + left->start, count * sizeof(*ids));
    return merge_short(ids, count, merges) == 2 && ids[0] == left->id && ids[1] == right->id;
}

/* Merges the window that starts at `from`, and appends its tokens, unless its first token is joined with the token
 * before it: *joined is then set. */
static dt_status add_window(windows *w, bool *joined, size_t from, size_t length,
                            const dt_pairs *merges, dt_merge_memory *m, dt_error *err)
{
    made_token first;
    dt_status st = DT_OK;
    size_t end;

    DT_TRY(merge_list(w->ids + from, length, merges, m, err));
    first = (made_token){m->symbols[0].id, (uint32_t)from};
    end = m->symbols[0].behind != NONE ? from + m->symbols[0].behind : from + length;
    *joined = w->made_count > 0 && !stay(w, &w->made[w->made_count - 1], &first, end, merges);
    for (uint32_t at = 0; at != NONE && !*joined; at = m->symbols[at].behind)
        w->made[w->made_count++] = (made_token){m->symbols[at].id, (uint32_t)from + at};
out:
    return st;
}

/* Merges the word in windows. Returns false in *good if that does not work: the word must then be merged as a whole.
 * A word needs few windows twice. */
static dt_status merge_windows(windows *w, bool *good, const dt_pairs *merges, dt_merge_memory *m,
                               dt_error *err)
{
    size_t from = 0, back = AGAIN, twice = w->count / WINDOW;
    dt_status st = DT_OK;

    *good = true;
    while (from < w->count) {
        size_t length = w->count - from < WINDOW ? w->count - from : WINDOW, had = w->made_count;
        bool joined;

        DT_TRY(add_window(w, &joined, from, length, merges, m, err));
        if (!joined && from + length == w->count)
            break;
        back = joined ? 2 * back : AGAIN;
        if (back >= w->made_count || (joined ? twice-- == 0 : w->made_count <= had + back)) {
            *good = false;
            break;
        }
        w->made_count -= back;
        from = w->made[w->made_count].start;
    }
out:
    return st;
}

static dt_status merge_long(int32_t *ids, size_t *count, const dt_pairs *merges, dt_merge_memory *m,
                            dt_error *err)
{
    windows w = {.ids = ids, .count = *count};
    dt_status st = DT_OK;
    bool good = false;

    if (*count > 2 * WINDOW && *count < NONE && merges->count <= RANKS) {
        w.made = malloc(*count * sizeof(*w.made));
        if (w.made == NULL)
            DT_THROW(err, DT_ERR_NOMEM, "no memory for a word of %zu bytes", *count);
        DT_TRY(merge_windows(&w, &good, merges, m, err));
    }
    if (!good) {
        DT_TRY(merge_whole(ids, count, merges, m, err));
        goto out;
    }
    for (size_t i = 0; i < w.made_count; i++)
        ids[i] = w.made[i].id;
    *count = w.made_count;
out:
    free(w.made);
    return st;
}

dt_status dt_merge(int32_t *ids, size_t *count, const dt_pairs *merges, dt_merge_memory *memory,
                   dt_error *err)
{
    if (*count > SHORT || merges->count > RANKS)
        return merge_long(ids, count, merges, memory, err);
    *count = merge_short(ids, *count, merges);
    return DT_OK;
}

void dt_merge_release(dt_merge_memory *memory)
{
    free(memory->symbols);
    free(memory->queue);
    *memory = (dt_merge_memory){0};
}
