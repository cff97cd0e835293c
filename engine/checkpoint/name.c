#include "engine/checkpoint/name.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dt_checkpoint_name_format(char *out, const dt_checkpoint_name *name)
{
    char copy[24] = "";

    if (name->copy > 1)
        snprintf(copy, sizeof(copy), "-%lld", (long long)name->copy);
    snprintf(out, DT_CHECKPOINT_NAME_SIZE, "step-%08lld%s%s", (long long)name->step, copy,
             name->partial ? DT_CHECKPOINT_PARTIAL : "");
}

static bool number(int64_t *out, const char **at)
{
    char *end;

    if (!isdigit((unsigned char)**at))
        return false;
    errno = 0;
    *out = strtoll(*at, &end, 10);
    *at = end;
    return errno == 0;
}

bool dt_checkpoint_name_parse(dt_checkpoint_name *out, const char *text)
{
    char again[DT_CHECKPOINT_NAME_SIZE];
    const char *at = text;

    memset(out, 0, sizeof(*out));
    out->copy = 1;
    if (strncmp(at, "step-", 5) != 0)
        return false;
    at += 5;
    if (!number(&out->step, &at))
        return false;
    if (*at == '-') {
        at++;
        if (!number(&out->copy, &at))
            return false;
    }
    out->partial = strcmp(at, DT_CHECKPOINT_PARTIAL) == 0;
    dt_checkpoint_name_format(again, out);
    return strcmp(again, text) == 0;
}
