/* names: maps parameter names of dtrun to those of published models. */
#include <string.h>

#include "engine/weights/weights_int.h"

/* Match a name with a pattern, whose '*' stands for digits; returns them. False if it does not
 * match. */
static bool match(const char **number, int *length, const char *pattern, const char *name)
{
    size_t before = strcspn(pattern, "*");

    *number = "";
    *length = 0;
    if (pattern[before] == '\0')
        return strcmp(pattern, name) == 0;
    if (strncmp(pattern, name, before) != 0)
        return false;
    *number = name + before;
    *length = (int)strspn(*number, "0123456789");
    return *length > 0 && strcmp(pattern + before + 1, *number + *length) == 0;
}

bool dt_weights_matches(const char *pattern, const char *name)
{
    const char *number;
    int length;

    return match(&number, &length, pattern, name);
}

const char *dt_weights_name(const dt_published_tensor **row, const dt_published *family,
                            const char *ours, dt_arena *arena)
{
    const char *number;
    int length;

    for (*row = family->tensors; (*row)->ours != NULL; ++*row) {
        int before = (int)strcspn((*row)->theirs, "*");
        const char *after = (*row)->theirs + before;

        if (match(&number, &length, (*row)->ours, ours))
            return dt_arena_printf(arena, "%.*s%.*s%s", before, (*row)->theirs, length, number,
                                   *after == '*' ? after + 1 : after);
    }
    return NULL;
}

const char *dt_weights_full_name(const dt_published *family, const char *theirs, dt_arena *arena)
{
    return theirs[0] == '/' ? theirs + 1 : dt_arena_printf(arena, "%s%s", family->prefix, theirs);
}
