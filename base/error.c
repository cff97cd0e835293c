#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

dt_status dt_error_set(dt_error *err, dt_status code, const char *file, int line, const char *fmt,
                       ...)
{
    va_list args;

    if (err == NULL || err->code != DT_OK)
        return code;
    err->code = code;
    err->file = file;
    err->line = line;
    va_start(args, fmt);
    vsnprintf(err->message, sizeof(err->message), fmt, args);
    va_end(args);
    return code;
}

void dt_error_prefix(dt_error *err, const char *fmt, ...)
{
    char text[2 * sizeof(err->message)];
    va_list args;
    size_t used;

    if (err == NULL || err->code == DT_OK)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof(err->message), fmt, args);
    va_end(args);
    used = strlen(text);
    snprintf(text + used, sizeof(text) - used, ": %s", err->message);
    text[sizeof(err->message) - 1] = '\0';
    memcpy(err->message, text, sizeof(err->message));
}

void dt_error_clear(dt_error *err)
{
    if (err != NULL) {
        err->code = DT_OK;
        err->message[0] = '\0';
    }
}

const char *dt_status_name(dt_status code)
{
    static const char *const names[DT_STATUS_COUNT] = {
        [DT_OK] = "ok",
        [DT_ERR_USAGE] = "usage",
        [DT_ERR_RECIPE] = "recipe",
        [DT_ERR_NOMEM] = "no-memory",
        [DT_ERR_IO] = "io",
        [DT_ERR_CORRUPT] = "corrupt",
        [DT_ERR_CUDA] = "cuda",
        [DT_ERR_COMM] = "comm",
        [DT_ERR_PEER] = "peer",
        [DT_ERR_TIMEOUT] = "timeout",
        [DT_ERR_UNSUPPORTED] = "unsupported",
        [DT_ERR_NOT_FOUND] = "not-found",
        [DT_ERR_BUSY] = "busy",
    };
    return (unsigned)code < DT_STATUS_COUNT ? names[code] : "unknown";
}

void dt_assert_failed(const char *cond, const char *file, int line)
{
    fprintf(stderr, "%s:%d: this is a bug in dtrun: %s does not hold\n", file, line, cond);
    abort();
}
