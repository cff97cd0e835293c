#include "runner/slurm/name.h"

#include <stdlib.h>
#include <string.h>

/* Splits "slurm:" NUMBER `mark` REST; false if the name has another form. */
static bool split(const char *name, char mark, int64_t *number, const char **rest)
{
    size_t digits;

    if (strncmp(name, "slurm:", 6) != 0)
        return false;
    name += 6;
    digits = strspn(name, "0123456789");
    if (digits == 0 || digits > 15 || name[digits] != mark || name[digits + 1] == '\0')
        return false;
    *number = strtoll(name, NULL, 10);
    *rest = name + digits + 1;
    return *number > 0;
}

bool dt_slurm_name_is_host(const char *name, int64_t *job, const char **host)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._-";

    return split(name, '/', job, host) && (*host)[0] != '-' &&
           (*host)[strspn(*host, letters)] == '\0';
}

bool dt_slurm_name_is_place(const char *name, int64_t *count, int64_t *index)
{
    const char *rest;

    if (!split(name, '#', count, &rest) || strlen(rest) > 6 ||
        rest[strspn(rest, "0123456789")] != '\0')
        return false;
    *index = strtoll(rest, NULL, 10) - 1;
    return *index >= 0 && *index < *count;
}
