#include "runner/cli/suggest.h"

#include <stddef.h>
#include <string.h>

#include "base/banned.h"

enum { LONGEST = 32 }; /* longer words are nobody's typing mistake */

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t low = a < b ? a : b;
    return low < c ? low : c;
}

/* Letters to insert, remove, replace or swap with their neighbour (optimal string alignment). */
static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
    size_t d[LONGEST + 1][LONGEST + 1];

    for (size_t i = 0; i <= na; i++)
        d[i][0] = i;
    for (size_t j = 0; j <= nb; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        for (size_t j = 1; j <= nb; j++) {
            size_t replace = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            d[i][j] = min3(d[i - 1][j] + 1, d[i][j - 1] + 1, replace);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                d[i - 2][j - 2] + 1 < d[i][j])
                d[i][j] = d[i - 2][j - 2] + 1;
        }
    }
    return d[na][nb];
}

const char *dt_suggest(const char *word, const char *const *names)
{
    size_t length = strlen(word), best = LONGEST;
    const char *found = NULL;

    if (length == 0 || length > LONGEST)
        return NULL;
    for (size_t i = 0; names[i] != NULL; i++) {
        size_t name_length = strlen(names[i]), far, limit;
        if (name_length > LONGEST)
            continue;
        far = distance(word, length, names[i], name_length);
        limit = name_length > length ? name_length / 3 : length / 3;
        if (length >= 2 && strncmp(names[i], word, length) == 0)
            far = 0;
        if (far <= (limit > 0 ? limit : 1) && far < best) {
            best = far;
            found = names[i];
        }
    }
    return found;
}
