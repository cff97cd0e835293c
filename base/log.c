#define _GNU_SOURCE
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/display.h"

#include "base/banned.h"

static struct {
    char who[64];
    dt_log_level level;
} logger = {"dtrun", DT_LOG_INFO};

static const char *const level_names[] = {"error", "warn", "info", "debug"};

void dt_log_init(const char *who)
{
    const char *wanted = getenv("DTRUN_LOG");

    snprintf(logger.who, sizeof(logger.who), "%s", who);
    for (int i = 0; wanted != NULL && i <= DT_LOG_DEBUG; i++)
        if (strcmp(wanted, level_names[i]) == 0)
            logger.level = (dt_log_level)i;
}

/* As dt_display_add does, in place: it gets no longer. Returns the new length. */
static size_t make_fit(char *text, size_t length)
{
    size_t kept = 0, step;

    for (size_t at = 0; at < length; at += step) {
        if (dt_display_next(&step, (const unsigned char *)text + at, length - at) ==
            DT_DISPLAY_PLAIN) {
            memmove(text + kept, text + at, step);
            kept += step;
        } else {
            text[kept++] = '?';
        }
    }
    return kept;
}

void dt_log_write(dt_log_level level, const char *fmt, ...)
{
    char line[4096], when[DT_CLOCK_ISO_SIZE];
    va_list args;
    int head, body;
    size_t length;

    if (level > logger.level)
        return;
    head = snprintf(line, sizeof(line), "%s %s %s: ", dt_clock_iso(when, dt_clock_wall_ms()),
                    level_names[level], logger.who);
    va_start(args, fmt);
    body = vsnprintf(line + head, sizeof(line) - (size_t)head, fmt, args);
    va_end(args);
    length = (size_t)head + (size_t)(body > 0 ? body : 0);
    if (length > sizeof(line) - 2)
        length = sizeof(line) - 2;
    length = make_fit(line, length);
    line[length++] = '\n';
    if (write(STDERR_FILENO, line, length) < 0)
        return; /* nowhere left to say it */
}
