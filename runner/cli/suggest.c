#include "runner/cli/options.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"

const char *dt_suggest(const char *word, const char *const *names)
{
    size_t length = strlen(word);
    const char *found = NULL;
    int best = DT_DISTANCE_MAX;

    if (length == 0)
        return NULL;
    for (size_t i = 0; names[i] != NULL; i++) {
        size_t name_length = strlen(names[i]);
        int limit = (int)(name_length > length ? name_length : length) / 3;
        int far = abs((int)name_length - (int)length); /* lower bound: difference of the lengths */

        if (length >= 2 && strncmp(names[i], word, length) == 0)
            far = 0;
        else if (far <= (limit > 0 ? limit : 1) && far < best)
            far = dt_distance(word, names[i]);
        if (far <= (limit > 0 ? limit : 1) && far < best) {
            best = far;
            found = names[i];
        }
    }
    return found;
}
