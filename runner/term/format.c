#include "runner/term/format.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* Writes three significant digits of value / 1000^n; returns n. */
static int scaled(char *out, size_t size, double value)
{
    int power = 0;

    while (value >= 999.5 && power < 5) {
        value /= 1000;
        power++;
    }
    if (power == 0)
        snprintf(out, size, "%.0f", value);
    else
        snprintf(out, size, "%.*f", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value);
    return power;
}

char *dt_format_count(char *out, size_t size, double value)
{
    static const char *const suffixes[] = {"", "k", "M", "G", "T", "P"};
    char digits[DT_FORMAT_SIZE];
    int power;

    if (!(value >= 0) || isinf(value)) {
        snprintf(out, size, "-");
        return out;
    }
    power = scaled(digits, sizeof(digits), value);
    snprintf(out, size, "%s%s", digits, suffixes[power]);
    return out;
}

char *dt_format_value(char *out, size_t size, double value)
{
    char digits[DT_FORMAT_SIZE];

    if (isnan(value))
        snprintf(out, size, "-");
    else if (fabs(value) >= 10000 && fabs(value) < 1e15)
        snprintf(out, size, "%s%s", value < 0 ? "-" : "",
                 dt_format_count(digits, sizeof(digits), fabs(value)));
    else
        snprintf(out, size, "%.5g", value);
    return out;
}

char *dt_format_bytes(char *out, size_t size, double bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    char digits[DT_FORMAT_SIZE];
    int power;

    if (!(bytes >= 0) || isinf(bytes)) {
        snprintf(out, size, "-");
        return out;
    }
    power = scaled(digits, sizeof(digits), bytes);
    snprintf(out, size, "%s %s", digits, units[power]);
    return out;
}

char *dt_format_whole(char *out, size_t size, int64_t value)
{
    char digits[DT_FORMAT_SIZE];
    size_t length, used = 0;

    snprintf(digits, sizeof(digits), "%lld", (long long)value);
    length = strlen(digits);
    for (size_t i = 0; i < length && used + 2 < size; i++) {
        out[used++] = digits[i];
        if (digits[i] != '-' && i + 1 < length && (length - i - 1) % 3 == 0)
            out[used++] = ',';
    }
    out[used] = '\0';
    return out;
}

char *dt_format_loss(char *out, size_t size, double value)
{
    if (isfinite(value))
        snprintf(out, size, "%.4f", value);
    else
        snprintf(out, size, isnan(value) ? "-" : "nan");
    return out;
}

char *dt_format_seconds(char *out, size_t size, double seconds)
{
    if (seconds >= 0 && seconds < 60)
        snprintf(out, size, "%ds", (int)seconds);
    else
        dt_clock_duration(out, size, floor(seconds));
    return out;
}

char *dt_format_ago(char *out, size_t size, int64_t then_ms, int64_t now_ms)
{
    int64_t seconds = (now_ms - then_ms) / 1000;

    if (then_ms <= 0)
        snprintf(out, size, "-");
    else if (seconds < 5)
        snprintf(out, size, "just now");
    else if (seconds < 60)
        snprintf(out, size, "%llds ago", (long long)seconds);
    else if (seconds < 3600)
        snprintf(out, size, "%lldm ago", (long long)(seconds / 60));
    else if (seconds < 48 * 3600)
        snprintf(out, size, "%lldh ago", (long long)(seconds / 3600));
    else
        snprintf(out, size, "%lldd ago", (long long)(seconds / 86400));
    return out;
}

static bool reads_back(char *out, size_t size, double value, int digits)
{
    snprintf(out, size, "%.*g", digits, value);
    return strtod(out, NULL) == value;
}

/* Finds the fewest digits that read back by binary search: more digits are never farther from the
 * value. Powers of two are searched linearly, because their lower neighbour is closer than the
 * upper one. */
char *dt_format_exact(char *out, size_t size, double value)
{
    int low = 6, high = 17, exponent;

    if (isnan(value)) {
        snprintf(out, size, "nan");
        return out;
    }
    if (reads_back(out, size, value, low) || isinf(value))
        return out;
    if (fabs(frexp(value, &exponent)) == 0.5) {
        while (!reads_back(out, size, value, ++low) && low < high)
            ;
        return out;
    }
    while (high - low > 1) { /* low does not read back, high does */
        int middle = (low + high) / 2;

        if (reads_back(out, size, value, middle))
            high = middle;
        else
            low = middle;
    }
    snprintf(out, size, "%.*g", high, value);
    return out;
}
