/* benchmarks_int: what forms.c uses of row_parts.c.
 *
 * Errors  DT_ERR_USAGE naming the line and the field
 */
#ifndef DT_RUNNER_BENCHMARKS_BENCHMARKS_INT_H
#define DT_RUNNER_BENCHMARKS_BENCHMARKS_INT_H

#include "runner/benchmarks/benchmarks.h"

/* A row on its way. */
typedef struct dt_conversion {
    json_t *from, *to;
    const char *where;
    const char *unlabelled; /* what to do about a row without a right choice */
    dt_converted *counts;
    dt_error *err;
} dt_conversion;

/* Returns an error: the field is missing, or is not what is expected. */
dt_status dt_conversion_refuse(const dt_conversion *c, const char *field, const char *expected);
/* A copy of `text` without the marks of WikiHow. New reference. */
json_t *dt_conversion_clean(const char *text);
/* Adds a choice, or refuses it. clean: without the marks of WikiHow. */
dt_status dt_conversion_add_choice(dt_conversion *c, const json_t *value, bool clean,
                                   const char *field);
dt_status dt_conversion_add_list(dt_conversion *c, const json_t *list, bool clean,
                                 const char *field);
/* Returns the number that a whole number or a text of digits is; -1: another value. */
json_int_t dt_conversion_number(const json_t *value);
/* Returns an error: the row has no right choice, or the field is not what is expected. */
dt_status dt_conversion_refuse_label(const dt_conversion *c, const char *field,
                                     const char *expected);
/* Adds the index of the right choice. letters: or its letter. */
dt_status dt_conversion_add_index(dt_conversion *c, const char *field, size_t count, bool letters);

#endif
