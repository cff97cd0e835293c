/* problems: collects the errors and warnings of a recipe, each with its position.
 *
 *   gpt.yaml:14:9: unknown key 'batchsize' (did you mean 'batch.sequences'?)
 *     14 | optimizer: {batchsize: 8}
 *        |             ^
 *
 * Order      sources in the order in which they were read, then line and column; missing
 *            fields come last in their source
 * Ownership  text lives in the arena that dt_problems_init was given
 */
#ifndef DT_RECIPES_READ_PROBLEMS_H
#define DT_RECIPES_READ_PROBLEMS_H

#include "base/json.h"
#include "base/memory.h"
#include "recipes/fields/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reading stops at this many problems. */
#define DT_PROBLEMS_MAX 50

typedef struct dt_problem {
    const char *message; /* complete, as in a dt_error; begins with the mark */
    dt_text_mark mark;   /* source NULL: unknown position */
    const char *rule;    /* what was broken: "syntax", "key", "value", or a rule's name (rules.h) */
    bool warning;
    bool printed; /* by the caller: it is not printed again with the errors that are found later */
    bool absent;  /* reported at the map that lacks a field: listed after the problems in the map */
    const char *line; /* line of the text for display; NULL: none, or it may contain a secret */
    int caret;        /* terminal column of the mark, from 1 */
} dt_problem;

typedef struct dt_problems {
    dt_problem items[DT_PROBLEMS_MAX];
    size_t count, errors; /* errors: without warnings */
    const char
        *unwritten; /* name of a source that is not a file: its positions are removed; NULL: none */
    dt_arena *arena;
} dt_problems;

/* A text that marks refer to. */
typedef struct dt_problem_source {
    const char *name, *text;
} dt_problem_source;

void dt_problems_init(dt_problems *problems, dt_arena *arena);
bool dt_problems_full(const dt_problems *problems);

/* Adds a recorded error, at the mark that begins its message if the mark is in one of the sources. NULL if
 * there are too many. */
dt_problem *dt_problems_add(dt_problems *problems, const dt_error *err, const char *rule,
                            bool warning, const dt_problem_source *sources, size_t sources_count);

/* Sorts the problems. */
void dt_problems_sort(dt_problems *problems, const dt_problem_source *sources,
                      size_t sources_count);

/* Returns the first error, or NULL. */
const dt_problem *dt_problems_first(const dt_problems *problems);

/* Turns every warning into an error. */
void dt_problems_be_strict(dt_problems *problems);

/* Adds the line and the caret below it, or nothing if there is no line to show. */
void dt_problem_write_place(dt_strbuf *out, const dt_problem *problem);

/* Returns the problems with their positions as JSON: [{"message", "severity", "rule", "source", "line", "column"}]. New
 * reference. */
json_t *dt_problems_to_json(const dt_problems *problems);

#ifdef __cplusplus
}
#endif
#endif
