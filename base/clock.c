#include "base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

int64_t dt_clock_wall_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

double dt_clock_monotonic_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void dt_clock_sleep_seconds(double seconds)
{
    struct timespec left;

    left.tv_sec = (time_t)seconds;
    left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

/* Writes `digits` digits of value and the character `after`; returns the end. */
static char *add_digits(char *out, int value, int digits, char after)
{
    for (int at = digits - 1; at >= 0; at--, value /= 10)
        out[at] = (char)('0' + value % 10);
    out[digits] = after;
    return out + digits + 1;
}

/* Formats without strftime, since exports format a time for each point. */
char *dt_clock_iso(char *out, int64_t wall_ms)
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm parts;
    char *at = out;

    gmtime_r(&seconds, &parts);
    at = add_digits(at, (parts.tm_year + 1900) % 10000, 4, '-');
    at = add_digits(at, parts.tm_mon + 1, 2, '-');
    at = add_digits(at, parts.tm_mday, 2, 'T');
    at = add_digits(at, parts.tm_hour, 2, ':');
    at = add_digits(at, parts.tm_min, 2, ':');
    at = add_digits(at, parts.tm_sec, 2, '.');
    at = add_digits(at, (int)(wall_ms % 1000 + 1000) % 1000, 3, 'Z');
    *at = '\0';
    return out;
}

char *dt_clock_duration(char *out, size_t size, double seconds)
{
    long whole = seconds > 0 ? lround(seconds) : 0;

    if (!(seconds >= 0) || seconds > 1e9)
        snprintf(out, size, "-");
    else if (seconds < 1)
        snprintf(out, size, "%.0fms", seconds * 1e3);
    else if (seconds < 59.95)
        snprintf(out, size, "%.1fs", seconds);
    else if (whole < 3600)
        snprintf(out, size, "%ldm%02lds", whole / 60, whole % 60);
    else if (whole < 48 * 3600)
        snprintf(out, size, "%ldh%02ldm", whole / 3600, whole % 3600 / 60);
    else
        snprintf(out, size, "%ldd%02ldh", whole / 86400, whole % 86400 / 3600);
    return out;
}
