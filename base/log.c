#include "base/log.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/display.h"

static struct {
    char who[64];
    dt_log_level level;
    char path[4096]; /* "": stderr is not a log file */
    int64_t most_bytes;
} logger = {.who = "dtrun", .level = DT_LOG_INFO};

static const char *const level_names[] = {"error", "warn", "info", "debug"};

void dt_log_init(const char *who)
{
    const char *wanted = getenv("DTRUN_LOG");

    snprintf(logger.who, sizeof(logger.who), "%s", who);
    for (int i = 0; wanted != NULL && i <= DT_LOG_DEBUG; i++)
        if (strcmp(wanted, level_names[i]) == 0)
            logger.level = (dt_log_level)i;
}

/* Replaces characters in place as dt_display_add does; the text never grows. Returns the new length. */
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

/* Returns true if stderr is still the file at the path. */
static bool is_own(const char *path, struct stat *own)
{
    struct stat there;

    return fstat(STDERR_FILENO, own) == 0 && S_ISREG(own->st_mode) && stat(path, &there) == 0 &&
           own->st_dev == there.st_dev && own->st_ino == there.st_ino;
}

void dt_log_bound(const char *path, int64_t most_bytes)
{
    struct stat own;

    logger.path[0] = '\0';
    if (strlen(path) + 3 > sizeof(logger.path) || !is_own(path, &own))
        return;
    snprintf(logger.path, sizeof(logger.path), "%s", path);
    logger.most_bytes = most_bytes;
}

static atomic_flag rotating = ATOMIC_FLAG_INIT;

/* Renames a log that is too large and starts a new one. If this fails, writing continues in the old file. */
static void rotate(void)
{
    char older[sizeof(logger.path) + 2];
    struct stat own;
    int fd = -1;

    if (logger.path[0] == '\0' || atomic_flag_test_and_set(&rotating))
        return;
    snprintf(older, sizeof(older), "%s.1", logger.path);
    if (is_own(logger.path, &own) && own.st_size >= logger.most_bytes &&
        rename(logger.path, older) == 0)
        fd = open(logger.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, own.st_mode & 0777);
    if (fd >= 0) {
        (void)dup2(fd, STDERR_FILENO);
        close(fd);
    }
    atomic_flag_clear(&rotating);
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
    rotate();
    if (write(STDERR_FILENO, line, length) < 0)
        return; /* there is no other place to report it */
}
