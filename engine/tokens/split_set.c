#include "engine/tokens/split.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "engine/tokens/tokens_int.h"

enum { MOST_RANGES = 256 };

/* --- the pattern */

/* A set while its pattern is parsed. */
typedef struct draft {
    unsigned classes;
    dt_code_range ranges[MOST_RANGES];
    int count;
} draft;

static const struct {
    const char *name;
    unsigned classes;
} properties[] = {{"L", DT_CODE_LETTER}, {"N", DT_CODE_NUMBER}, {"P", DT_CODE_PUNCT},
                  {"S", DT_CODE_SYMBOL}, {"M", DT_CODE_MARK},   {"Ll", DT_CODE_LOWER}};

/* Reads `\s` or `\p{L}`, for example. Returns its classes; 0 if the text is neither. */
static unsigned read_class(const char **at)
{
    size_t length;

    if (strncmp(*at, "\\s", 2) == 0) {
        *at += 2;
        return DT_CODE_SPACE;
    }
    if (strncmp(*at, "\\p{", 3) != 0)
        return 0;
    length = strcspn(*at + 3, "}");
    for (size_t i = 0; i < sizeof(properties) / sizeof(properties[0]); i++)
        if (strlen(properties[i].name) == length &&
            strncmp(properties[i].name, *at + 3, length) == 0 && (*at)[3 + length] == '}') {
            *at += 4 + length;
            return properties[i].classes;
        }
    return 0;
}

/* Reads a character, or an escaped one. Returns false if it has an unsupported special meaning. */
static bool read_code(uint32_t *out, const char **at, const char *special)
{
    size_t used = 1;

    if (**at == '\0' || strchr(special, **at) != NULL)
        return false;
    if (**at == '\\') {
        char c = (*at)[1];

        if (c == '\0' || (unsigned char)c >= 0x80)
            return false;
        if (((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9')) {
            const char *letter = strchr("rnt", c);

            if (letter == NULL)
                return false;
            c = "\r\n\t"[letter - "rnt"];
        }
        *out = (unsigned char)c;
        *at += 2;
        return true;
    }
    *out = dt_code_at((const unsigned char *)*at, &used);
    *at += used;
    return true;
}

static bool add_range(draft *set, uint32_t first, uint32_t last)
{
    if (set->count == MOST_RANGES || first > last)
        return false;
    set->ranges[set->count++] = (dt_code_range){first, last};
    return true;
}

static bool read_brackets(draft *set, const char **at)
{
    uint32_t first, last;

    if (*++*at == '^')
        return false;
    while (**at != ']') {
        unsigned classes = read_class(at);

        set->classes |= classes;
        if (classes != 0)
            continue;
        if (!read_code(&first, at, "[]&"))
            return false;
        last = first;
        if (**at == '-' && (*at)[1] != ']') {
            ++*at;
            if (!read_code(&last, at, "[]&"))
                return false;
        }
        if (!add_range(set, first, last))
            return false;
    }
    ++*at;
    return set->count > 0 || set->classes != 0;
}

static bool read_set(draft *set, const char **at)
{
    uint32_t code;

    set->classes = 0;
    set->count = 0;
    if (**at == '[')
        return read_brackets(set, at);
    set->classes = read_class(at);
    if (set->classes != 0)
        return true;
    return read_code(&code, at, ".^$*+?()[]{}|") && add_range(set, code, code);
}

static int by_first(const void *a, const void *b)
{
    const dt_code_range *left = a, *right = b;

    return left->first < right->first ? -1 : left->first > right->first;
}

/* Joins overlapping ranges, so that a binary search finds the only range that can contain a code
 * point. */
static void join_ranges(draft *set)
{
    int kept = 0;

    qsort(set->ranges, (size_t)set->count, sizeof(set->ranges[0]), by_first);
    for (int i = 1; i < set->count; i++) {
        if (set->ranges[i].first > set->ranges[kept].last)
            set->ranges[++kept] = set->ranges[i];
        else if (set->ranges[i].last > set->ranges[kept].last)
            set->ranges[kept].last = set->ranges[i].last;
    }
    set->count = set->count > 0 ? kept + 1 : 0;
}

static bool has(const dt_code_set *set, uint32_t code)
{
    int low = 0, high = set->count;

    while (low < high) {
        int middle = (low + high) / 2;

        if (set->ranges[middle].last < code)
            low = middle + 1;
        else
            high = middle;
    }
    return (low < set->count && set->ranges[low].first <= code) ||
           (set->classes != 0 && (set->classes & dt_code_class_of(code)) != 0);
}

static void keep(dt_code_set *out, dt_arena *arena, draft *from)
{
    dt_code_range *ranges = NULL;

    join_ranges(from);
    if (from->count > 0) {
        ranges = dt_arena_alloc_array(arena, (size_t)from->count, sizeof(*ranges));
        memcpy(ranges, from->ranges, (size_t)from->count * sizeof(*ranges));
    }
    *out = (dt_code_set){.classes = from->classes, .ranges = ranges, .count = from->count};
    for (uint32_t code = 0; code < 128; code++)
        out->ascii[code] = has(out, code);
}

bool dt_code_set_parse(dt_code_set *out, dt_arena *arena, const char **at)
{
    draft set;

    if (!read_set(&set, at))
        return false;
    keep(out, arena, &set);
    return true;
}

void dt_split_set_after(dt_split_set *out, dt_arena *arena, uint32_t code)
{
    draft set = {.ranges = {{code, code}}, .count = 1};

    *out = (dt_split_set){.most = 1, .joins_previous = true};
    keep(&out->of, arena, &set);
}

bool dt_split_set_parse(dt_split_set *out, dt_arena *arena, const char *pattern)
{
    const char *at = pattern;
    draft set;

    *out = (dt_split_set){.most = 1};
    if (!read_set(&set, &at))
        return false;
    if (*at == '?') {
        at++;
        keep(&out->before, arena, &set);
        if (!read_set(&set, &at))
            return false;
    }
    keep(&out->of, arena, &set);
    if (*at == '+') {
        out->most = INT_MAX;
        at++;
    } else if (strncmp(at, "{1,", 3) == 0 && at[3] >= '1' && at[3] <= '9' && at[4] == '}') {
        out->most = at[3] - '0';
        at += 5;
    }
    out->at_end = *at == '$';
    at += out->at_end;
    return *at == '\0' && (!out->at_end || (out->most == INT_MAX && out->before.classes == 0 &&
                                            out->before.count == 0));
}

bool dt_split_set_is_number(const dt_split_set *set)
{
    return set->of.classes == DT_CODE_NUMBER && set->of.count == 0 && set->most == 1 &&
           set->before.classes == 0 && set->before.count == 0 && !set->at_end;
}

bool dt_split_set_is_line_break(const dt_split_set *set)
{
    int characters = 0;

    for (int code = 0; code < 128; code++)
        characters += set->of.ascii[code];
    return set->of.ascii['\n'] && set->of.ascii['\r'] && characters == 2 && set->most == 1 &&
           set->before.classes == 0 && set->before.count == 0;
}

/* --- the text */

static inline bool look(const dt_code_set *set, const unsigned char *at, size_t *used)
{
    if (*at < 0x80) {
        *used = 1;
        return set->ascii[*at];
    }
    return has(set, dt_code_at(at, used));
}

bool dt_code_set_has(const dt_code_set *set, uint32_t code)
{
    return code < 128 ? set->ascii[code] : has(set, code);
}

static const unsigned char *skip(const dt_split_set *set, const unsigned char *at,
                                 const unsigned char *end)
{
    size_t used;

    for (int i = 0; i < set->most && at < end && look(&set->of, at, &used); i++)
        at += used;
    return at;
}

/* Returns the end of a match at `at`; NULL if there is none. */
static const unsigned char *match(const dt_split_set *set, const unsigned char *at,
                                  const unsigned char *end)
{
    const unsigned char *behind;
    size_t used;

    if (look(&set->before, at, &used)) {
        behind = skip(set, at + used, end);
        if (behind > at + used)
            return behind;
    }
    behind = skip(set, at, end);
    return behind > at ? behind : NULL;
}

/* Returns the start of the run of characters of the set at the end of the piece; `end` if there is
 * no such run. */
static const unsigned char *tail(const dt_split_set *set, const unsigned char *at,
                                 const unsigned char *end)
{
    size_t used;

    while (end > at) {
        const unsigned char *last = end - 1;

        while (last > at && (*last & 0xc0) == 0x80)
            last--;
        if (!look(&set->of, last, &used))
            break;
        end = last;
    }
    return end;
}

const unsigned char *dt_split_set_piece(const dt_split_set *set, const unsigned char *at,
                                        const unsigned char *end)
{
    const unsigned char *behind;
    size_t used;

    if (set->joins_previous) {
        bool found = false;

        for (; at < end && !found; at += used)
            found = look(&set->of, at, &used);
        return at;
    }
    if (set->at_end) {
        behind = tail(set, at, end);
        return behind > at ? behind : end;
    }
    behind = match(set, at, end);
    if (behind != NULL)
        return behind;
    do {
        (void)dt_code_at(at, &used);
        at += used;
    } while (at < end && match(set, at, end) == NULL);
    return at;
}
