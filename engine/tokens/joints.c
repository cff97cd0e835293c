#include "engine/tokens/joints.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "engine/tokens/unicode.h"

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
