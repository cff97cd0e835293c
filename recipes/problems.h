/* problems: all that is wrong with a recipe, or doubtful, each at its place.
 *
 *   gpt.yaml:14:9: unknown key 'batchsize' (did you mean 'batch.sequences'?)
 *     14 | optimizer: {batchsize: 8}
 *        |             ^
 *
 * Order      as they stand: sources in the order in which they were read, then line and column;
 *            what is missing from a source comes last
 * Ownership  text lives in the arena that dt_problems_init was given
 */
#ifndef DT_RECIPES_PROBLEMS_H
#define DT_RECIPES_PROBLEMS_H

#include "base/arena.h"
#include "base/json.h"
#include "recipes/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* More are not looked for: the first ones tell what kind of file it is. */
#define DT_PROBLEMS_MAX 50

typedef struct dt_problem {
    const char *message; /* whole, as in a dt_error: begins with the mark */
    dt_text_mark mark;   /* source NULL: nowhere that is known */
    const char *rule;    /* what was broken: "syntax", "key", "value", or a rule's name (rules.h) */
    bool warning;
    bool absent;      /* at the map that lacks something: told after what stands there */
    const char *line; /* of the text, as it may be shown; NULL: none, or it may hold a secret */
    int caret;        /* column of a terminal that is under its mark, from 1 */
} dt_problem;

typedef struct dt_problems {
    dt_problem items[DT_PROBLEMS_MAX];
    size_t count, errors; /* errors: those that are no warnings */
    dt_arena *arena;
} dt_problems;

/* A text that marks stand in. */
typedef struct dt_problem_source {
    const char *name, *text;
} dt_problem_source;

void dt_problems_init(dt_problems *problems, dt_arena *arena);
bool dt_problems_full(const dt_problems *problems);

/* A recorded error; where its message begins with a mark in one of the sources it stands there. NULL
 * where there are too many. */
dt_problem *dt_problems_add(dt_problems *problems, const dt_error *err, const char *rule,
                            bool warning, const dt_problem_source *sources, size_t sources_count);

/* Into their order. */
void dt_problems_sort(dt_problems *problems, const dt_problem_source *sources,
                      size_t sources_count);

/* The first that is no warning, or NULL. */
const dt_problem *dt_problems_first(const dt_problems *problems);

/* From here on every warning is an error. */
void dt_problems_be_strict(dt_problems *problems);

/* The line and the caret below it; nothing where there is none to show. */
void dt_problem_write_place(dt_strbuf *out, const dt_problem *problem);

/* Each with its place, as JSON: [{"message", "severity", "rule", "source", "line", "column"}]. New
 * reference. */
json_t *dt_problems_to_json(const dt_problems *problems);

#ifdef __cplusplus
}
#endif
#endif
