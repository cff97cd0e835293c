/* python_values: reads the assignments of a Python settings file, without running it.
 *
 * Known      NAME = VALUE at the beginning of a line, where VALUE is a number, a text, True, False, None, a name
 *            from above, or these with + - * / // % ** and parentheses
 * Not known  every other statement: it is kept with its line, and a name that it changes becomes unknown
 * Errors     DT_ERR_USAGE with source and line: an unclosed string or parenthesis
 * Ownership  text lives in the arena
 */
#ifndef DT_RUNNER_CONVERT_PYTHON_VALUES_H
#define DT_RUNNER_CONVERT_PYTHON_VALUES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

typedef enum dt_python_kind {
    DT_PYTHON_UNKNOWN,
    DT_PYTHON_NUMBER,
    DT_PYTHON_TEXT,
    DT_PYTHON_BOOL,
    DT_PYTHON_NONE
} dt_python_kind;

typedef struct dt_python_value {
    dt_python_kind kind;
    double number;    /* for a bool: 0 or 1 */
    const char *text; /* for a text */
} dt_python_value;

typedef struct dt_python_statement {
    const char *name; /* the assigned name; NULL: not an assignment */
    dt_python_value value;
    const char *shown; /* the source text, on one line */
    int line;
} dt_python_statement;

typedef struct dt_python_file {
    dt_arena *arena;
    dt_python_statement *statements;
    size_t count, capacity;
} dt_python_file;

void dt_python_init(dt_python_file *out, dt_arena *arena);
/* Appends the statements of the text, which ends with a NUL. */
dt_status dt_python_read(dt_python_file *file, const char *text, size_t length, const char *source,
                         dt_error *err);
/* Evaluates an expression with the names of the file; false: unknown. */
bool dt_python_evaluate(dt_python_value *out, const dt_python_file *file, const char *expression);
/* Returns the value as text, such as "1024", "True" or "gpt2". */
const char *dt_python_text(const dt_python_value *value, dt_arena *arena);

#endif
