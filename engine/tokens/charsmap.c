#include "engine/tokens/charsmap.h"

#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "engine/tokens/unicode.h"

enum { WHOLE_BYTES = 5 }; /* Clusters up to this length, in bytes, are looked up as a whole. */

/* --- the tree, in the layout of darts-clone */

static uint32_t number_at(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint32_t offset_of(uint32_t unit)
{
    return unit >> 10 << ((unit & 0x200) >> 6);
}

static bool is_value(uint32_t unit)
{
    return unit >> 31 != 0;
}

/* Returns the replacement of the shortest key that is a prefix of the text; NULL if there is
 * none. */
static const char *find(const dt_charsmap *map, const unsigned char *text, size_t length)
{
    uint32_t node = offset_of(number_at(map->units));

    for (size_t i = 0; i < length && text[i] != 0; i++) {
        uint32_t unit;

        node ^= text[i];
        if (node >= map->count)
            return NULL;
        unit = number_at(map->units + 4 * (size_t)node);
        if ((unit & 0x800000ffu) != text[i])
            return NULL;
        node ^= offset_of(unit);
        if ((unit & 0x100) == 0)
            continue;
        unit = node < map->count ? number_at(map->units + 4 * (size_t)node) : 0;
        return is_value(unit) ? map->replacements + (unit & 0x7fffffffu) : NULL;
    }
    return NULL;
}

static dt_status check_values(const dt_charsmap *map, dt_error *err)
{
    for (size_t i = 0; i < map->count; i++) {
        uint32_t unit = number_at(map->units + 4 * i), at = unit & 0x7fffffffu;

        if (is_value(unit) &&
            (at > map->length || ((unsigned char)map->replacements[at] & 0xc0) == 0x80))
            return DT_FAIL(err, DT_ERR_CORRUPT,
                           "unit %zu of the tree points to byte %u of %zu bytes of replacements, "
                           "which does not "
                           "begin a character",
                           i, at, map->length);
    }
    return DT_OK;
}

dt_status dt_charsmap_read(dt_charsmap *out, const char *bytes, size_t length, dt_error *err)
{
    dt_status st = DT_OK;
    size_t tree, good;

    *out = (dt_charsmap){.count = 0};
    tree = length >= 4 ? number_at((const unsigned char *)bytes) : 0;
    if (tree == 0 || tree % 4 != 0 || tree > length - 4)
        DT_THROW(err, DT_ERR_CORRUPT, "the tree has %zu bytes, and the whole map %zu", tree,
                 length);
    out->units = (const unsigned char *)bytes + 4;
    out->count = tree / 4;
    out->replacements = bytes + 4 + tree;
    out->length = length - 4 - tree;
    good = dt_utf8_valid_length(out->replacements, out->length);
    if (good < out->length)
        DT_THROW(err, DT_ERR_CORRUPT, "byte %zu of the replacements is not UTF-8 (0x%02x)", good,
                 (unsigned char)out->replacements[good]);
    DT_TRY(check_values(out, err));
    for (unsigned char c = 1; c < 128; c++)
        out->ascii[c] = find(out, &c, 1);
out:
    return st;
}

/* --- the text */

static size_t cluster_length(const unsigned char *at, size_t left)
{
    utf8proc_int32_t state = 0;
    size_t used, next_used;
    uint32_t code = dt_code_at(at, &used);

    while (used < left) {
        uint32_t next = dt_code_at(at + used, &next_used);

        if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)code, (utf8proc_int32_t)next,
                                             &state))
            break;
        code = next;
        used += next_used;
    }
    return used;
}

static void add_cluster(dt_strbuf *out, const dt_charsmap *map, const unsigned char *at,
                        size_t length)
{
    const char *whole = length <= WHOLE_BYTES ? find(map, at, length) : NULL;
    size_t used;

    if (whole != NULL) {
        dt_strbuf_add_str(out, whole);
        return;
    }
    for (const unsigned char *end = at + length; at < end; at += used) {
        const char *to;

        (void)dt_code_at(at, &used);
        to = find(map, at, used);
        if (to != NULL)
            dt_strbuf_add_str(out, to);
        else
            dt_strbuf_add(out, at, used);
    }
}

/* Returns whether the character is ASCII and a grapheme cluster of its own. */
static bool is_plain(const unsigned char *at, size_t left)
{
    return at[0] < 0x80 && (left == 1 || (at[1] < 0x80 && !(at[0] == '\r' && at[1] == '\n')));
}

void dt_charsmap_add(dt_strbuf *out, const dt_charsmap *map, const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + length;

    while (at < end) {
        const unsigned char *plain = at;
        size_t cluster;

        while (plain < end && is_plain(plain, (size_t)(end - plain)) && map->ascii[*plain] == NULL)
            plain++;
        dt_strbuf_add(out, at, (size_t)(plain - at));
        at = plain;
        if (at == end)
            break;
        cluster = is_plain(at, (size_t)(end - at)) ? 1 : cluster_length(at, (size_t)(end - at));
        add_cluster(out, map, at, cluster);
        at += cluster;
    }
}
