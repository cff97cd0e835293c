#include <stdlib.h>
#include <string.h>

#include "engine/tokens/tokens_int.h"

/* --- the expression */

/* Reads `+`, `{2,}` or `{1,3}`; without one of them the set matches one character. */
static bool read_times(int64_t *least, int64_t *most, const char **at)
{
    char *end;

    *least = *most = 1;
    if (**at == '+') {
        *most = INT64_MAX;
        ++*at;
        return true;
    }
    if (**at != '{')
        return true;
    if ((*at)[1] < '1' || (*at)[1] > '9')
        return false;
    *least = strtol(*at + 1, &end, 10);
    if (end[0] != ',')
        return false;
    *most = end[1] == '}' ? INT64_MAX : strtol(end + 1, &end, 10);
    end += *most == INT64_MAX;
    if (*end != '}' || *least > 1000 || *most < *least)
        return false;
    *at = end + 1;
    return true;
}

/* Returns whether no character is in both sets, as far as their parts tell. */
static bool are_apart(const dt_code_set *a, const dt_code_set *b)
{
    if ((a->classes & b->classes) != 0)
        return false;
    for (int i = 0; i < a->count; i++)
        for (int k = 0; k < b->count; k++)
            if (a->ranges[i].first <= b->ranges[k].last && b->ranges[k].first <= a->ranges[i].last)
                return false;
    for (int i = 0; i < 2; i++) {
        const dt_code_set *ranges = i == 0 ? a : b, *classes = i == 0 ? b : a;

        for (int k = 0; classes->classes != 0 && k < ranges->count; k++) /* one character each */
            if (ranges->ranges[k].first != ranges->ranges[k].last ||
                dt_code_set_has(classes, ranges->ranges[k].first))
                return false;
    }
    return true;
}

static bool read_sequence(dt_pattern_sequence *out, dt_arena *arena, const char **at)
{
    *out = (dt_pattern_sequence){.whole = **at == '^'};
    *at += out->whole;
    while (**at != '\0' && **at != '|' && **at != '$') {
        if (out->count == DT_PATTERN_SETS ||
            !dt_code_set_parse(&out->sets[out->count], arena, at) ||
            !read_times(&out->least[out->count], &out->most[out->count], at))
            return false;
        out->count++;
    }
    if (out->whole != (**at == '$'))
        return false;
    *at += out->whole;
    return out->count == 1 || (out->count == 2 && are_apart(&out->sets[0], &out->sets[1]));
}

bool dt_pattern_parse(dt_pattern *out, dt_arena *arena, const char *expression)
{
    *out = (dt_pattern){.count = 0};
    for (;;) {
        if (out->count == DT_PATTERN_MOST ||
            !read_sequence(&out->sequences[out->count++], arena, &expression))
            return false;
        if (*expression == '\0')
            return true;
        if (*expression++ != '|')
            return false;
    }
}

bool dt_pattern_has_line_breaks(const dt_pattern *pattern)
{
    for (int i = 0; i < pattern->count; i++) {
        const dt_pattern_sequence *one = &pattern->sequences[i];

        if (!one->whole && one->count == 1 && one->least[0] == 1 && one->sets[0].ascii['\n'])
            return true;
    }
    return false;
}

/* --- the text */

typedef const unsigned char *place;

/* Returns the end of the characters of a set at `at`, and their number, at most `most`. */
static place skip(int64_t *count, const dt_code_set *set, place at, place end, int64_t most)
{
    size_t used;

    for (*count = 0; at < end && *count < most; at += used, ++*count)
        if (!dt_code_set_has(set, dt_code_at(at, &used)))
            break;
    return at;
}

/* Returns the end of a match at `at`; NULL if there is none. *tried: the end of the characters of the first set, at none
 * of which the sequence matches either if it has no limit. */
static place match(place *tried, const dt_pattern_sequence *one, place at, place start, place end)
{
    int64_t count;

    *tried = at;
    if (one->whole && at > start)
        return NULL;
    for (int i = 0; i < one->count; i++) {
        at = skip(&count, &one->sets[i], at, end, one->most[i]);
        if (i == 0 && one->most[0] == INT64_MAX)
            *tried = at;
        if (count < one->least[i])
            return NULL;
    }
    return one->whole && at < end ? NULL : at;
}

void dt_pattern_replace(dt_strbuf *out, const dt_pattern *pattern, const char *text, size_t length,
                        const char *to)
{
    place start = (place)text, end = start + length, at = start;
    place fails[DT_PATTERN_MOST]; /* before it, the sequence does not match */
    size_t used;

    for (int i = 0; i < pattern->count; i++)
        fails[i] = start;
    while (at < end) {
        place behind = NULL;

        for (int i = 0; behind == NULL && i < pattern->count; i++)
            if (at >= fails[i])
                behind = match(&fails[i], &pattern->sequences[i], at, start, end);
        if (behind != NULL) {
            dt_strbuf_add_str(out, to);
            at = behind;
            continue;
        }
        (void)dt_code_at(at, &used);
        dt_strbuf_add(out, at, used);
        at += used;
    }
}
