/* rules_tell: adds violations of rules to the problems. */
#include <stdarg.h>
#include <stdio.h>

#include "recipes/rules/rules.h"

static dt_problem *add(const dt_rule_case *c)
{
    const dt_reading *reading = c->reading;
    dt_problem *problem =
        dt_problems_add(reading->problems, reading->err, c->rule->name, c->rule->warning,
                        reading->origins->sources, reading->origins->sources_count);

    dt_error_clear(reading->err);
    if (problem != NULL && c->rule->secret)
        problem->line = NULL;
    return problem;
}

void dt_rule_fault(const dt_rule_case *c, dt_status st)
{
    if (st == DT_ERR_RECIPE)
        (void)add(c);
    else if (*c->st == DT_OK)
        *c->st = st;
}

/* Reports a violation at the mark of the path; index -1: of the whole field. */
static void broken(const dt_rule_case *c, const char *path, int64_t index, const char *fmt,
                   va_list args)
{
    dt_error *err = c->reading->err;
    char message[sizeof(err->message)];
    dt_problem *problem;

    vsnprintf(message, sizeof(message), fmt, args);
    DT_FAIL(err, DT_ERR_RECIPE, "%s%s%s", message, c->rule->remedy != NULL ? ": " : "",
            c->rule->remedy != NULL ? c->rule->remedy : "");
    dt_text_mark_prefix(err, dt_reading_item_mark(c->reading, path, index));
    problem = add(c);
    if (problem != NULL)
        problem->absent = !dt_reading_given(c->reading, path);
}

void dt_rule_broken(const dt_rule_case *c, const char *path, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    broken(c, path, -1, fmt, args);
    va_end(args);
}

void dt_rule_broken_item(const dt_rule_case *c, const char *path, int64_t index, const char *fmt,
                         ...)
{
    va_list args;

    va_start(args, fmt);
    broken(c, path, index, fmt, args);
    va_end(args);
}
