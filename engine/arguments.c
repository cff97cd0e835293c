#include "engine/arguments.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

dt_status dt_argument_whole(int64_t *out, const char *text, const char *what, int64_t low,
                            int64_t high, dt_error *err)
{
    char *end;
    long long value;

    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < low || value > high)
        return DT_FAIL(err, DT_ERR_USAGE, "%s is '%s': expected a whole number from %lld to %lld",
                       what, text, (long long)low, (long long)high);
    *out = value;
    return DT_OK;
}

dt_status dt_argument_number(double *out, const char *text, const char *what, double low,
                             double high, dt_error *err)
{
    char *end;
    double value;

    errno = 0;
    value = strtod(text, &end);
    if (errno != 0 || end == text || *end != '\0' || !(value >= low && value <= high))
        return DT_FAIL(err, DT_ERR_USAGE, "%s is '%s': expected a number from %g to %g", what, text,
                       low, high);
    *out = value;
    return DT_OK;
}

dt_status dt_argument_refuse(char **argv, int option, dt_error *err)
{
    const char *what = option == -1 ? argv[optind] : argv[optind - 1];

    return option == ':' ? DT_FAIL(err, DT_ERR_USAGE, "'%s' needs a value", what)
                         : DT_FAIL(err, DT_ERR_USAGE, "unknown argument '%s'", what);
}

dt_status dt_print_line(const dt_strbuf *text, dt_error *err)
{
    if (fwrite(text->data, 1, text->length, stdout) != text->length || putchar('\n') == EOF ||
        fflush(stdout) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot write to stdout: %s", strerror(errno));
    return DT_OK;
}
