/* jinja: interprets a Jinja template, and knows of each byte of the result where it came from.
 *
 * Language   that of transformers' apply_chat_template: Jinja 3.1 with trim_blocks and lstrip_blocks, loop controls,
 *            {% generation %}, raise_exception, strftime_now, its tojson, and an immutable sandbox; strings, numbers,
 *            lists and dicts behave as in Python, integers have 64 bits. Not supported, and refused with the line:
 *            extends, include, import, block, autoescape, and the filters and methods that are not in filters.c and
 *            methods.c
 * Origins    every value of a variable carries a number that its caller chose. A part of a string keeps it through
 *            concatenation, slices, filters, methods, set blocks and macros; what the template adds has
 *            DT_JINJA_TEMPLATE
 * Limits     steps, nesting and bytes of one rendering; a template that exceeds them is refused
 * Ownership  a template is independent of its text; a run and all it makes are in the caller's arena
 * Threads    a template is read-only; a run belongs to one thread
 * Errors     "'NAME', line N: REASON". DT_ERR_UNSUPPORTED: the template cannot be read. DT_ERR_USAGE: it failed with
 *            these variables, also by raise_exception, with the template's own message
 */
#ifndef DT_BASE_JINJA_JINJA_H
#define DT_BASE_JINJA_JINJA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_JINJA_MAX_BYTES ((size_t)4 << 20) /* of a template */

#define DT_JINJA_TEMPLATE 0u
#define DT_JINJA_GENERATED \
    (1u << 31) /* added to the origin of what {% generation %} blocks contain */
#define DT_JINJA_PRINTED (1u << 30) /* and of strings that a printed list or dict contains */
#define DT_JINJA_ORIGIN  (DT_JINJA_PRINTED - 1) /* the number that the caller chose */

typedef struct dt_jinja dt_jinja;
typedef struct dt_jinja_run dt_jinja_run;

dt_status dt_jinja_parse(dt_jinja **out, const char *text, size_t length, const char *name,
                         dt_error *err);
void dt_jinja_free(dt_jinja *jinja); /* accepts NULL */

bool dt_jinja_has_generation(const dt_jinja *jinja);
/* Returns true if the template reads a variable of this name or an attribute of it. */
bool dt_jinja_names(const dt_jinja *jinja, const char *name);
/* Returns true if a text between tags or a string constant contains `part`. */
bool dt_jinja_contains(const dt_jinja *jinja, const char *part);

/* A value of a variable. Opaque, passed by value. */
typedef struct dt_jinja_value {
    uint8_t kind, shape;
    uint32_t origin;
    union {
        bool truth;
        int64_t integer;
        double real;
        const void *other;
    } as;
} dt_jinja_value;

/* Begins a rendering. The local time of strftime_now is `now`, in seconds since 1970. */
dt_jinja_run *dt_jinja_begin(const dt_jinja *jinja, int64_t now, dt_arena *arena);

/* Converts a JSON value; each of its strings gets the origin, and is borrowed until the last call with the run. */
dt_jinja_value dt_jinja_from_json(dt_jinja_run *run, const json_t *json, uint32_t origin);
dt_jinja_value dt_jinja_from_text(dt_jinja_run *run, const char *text, size_t length,
                                  uint32_t origin);
dt_jinja_value dt_jinja_from_bool(bool truth);
dt_jinja_value dt_jinja_none(void);

/* New containers of a run, and their items in order. `key` and its bytes are borrowed. */
dt_jinja_value dt_jinja_new_list(dt_jinja_run *run, uint32_t origin);
dt_jinja_value dt_jinja_new_dict(dt_jinja_run *run, uint32_t origin);
void dt_jinja_append(dt_jinja_run *run, dt_jinja_value list, dt_jinja_value item);
void dt_jinja_put(dt_jinja_run *run, dt_jinja_value dict, const char *key, dt_jinja_value item);

/* Sets a variable. */
void dt_jinja_set(dt_jinja_run *run, const char *name, dt_jinja_value value);

/* Bytes of one origin, from the end of the previous piece to `end`. There can be none: then an empty text of a variable
 * was printed there. */
typedef struct dt_jinja_piece {
    uint32_t end, origin;
} dt_jinja_piece;

typedef struct dt_jinja_output {
    const char *text; /* ends with a NUL byte that `length` does not count */
    size_t length;
    const dt_jinja_piece *pieces; /* neighbours differ in their origin */
    size_t count;
} dt_jinja_output;

/* Renders the template; once for each run. */
dt_status dt_jinja_render(dt_jinja_output *out, dt_jinja_run *run, dt_error *err);

#ifdef __cplusplus
}
#endif

#endif
