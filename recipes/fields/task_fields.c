#include "recipes/fields/task_fields.h"

#include <string.h>

#include "base/banned.h"

/* Fields, and maps of fields, of generate and score. */
static const char *const of_both[] = {
    "name",    "task",  "nodes",         "hostfile", "nodes_min", "gpus",  "ranks", "threads",
    "network", "slurm", "grace_seconds", "failure",  "notify",    "lines", NULL};

typedef struct option {
    const char *path, *name;
} option;

static const option of_generate[] = {
    {"seed", "seed"},
    {"precision.kind", "precision"},
    {"generate.tokens", "tokens"},
    {"generate.batch", "batch"},
    {"generate.beam", "beam"},
    {"generate.length_penalty", "length-penalty"},
    {"generate.stop", "stop"},
    {"generate.past_end", "past-end"},
    {"generate.no_special", "no-special"},
    {"generate.temperature", "temperature"},
    {"generate.top_k", "top-k"},
    {"generate.top_p", "top-p"},
    {"generate.repetition_penalty", "repetition-penalty"},
};

const char *dt_field_generate_option(const dt_field *field)
{
    for (size_t i = 0; i < sizeof(of_generate) / sizeof(of_generate[0]); i++)
        if (strcmp(field->path, of_generate[i].path) == 0)
            return of_generate[i].name;
    return NULL;
}

bool dt_field_is_of_task(const dt_field *field, dt_task_kind task)
{
    if (task == DT_TASK_TRAIN)
        return !dt_field_in_group(field, "lines") && !dt_field_in_group(field, "generate");
    if (strcmp(field->path, "lines.target") == 0)
        return task == DT_TASK_SCORE;
    for (size_t i = 0; of_both[i] != NULL; i++)
        if (strcmp(field->path, of_both[i]) == 0 || dt_field_in_group(field, of_both[i]))
            return true;
    return task == DT_TASK_GENERATE && dt_field_generate_option(field) != NULL;
}

const char *dt_task_name(dt_task_kind task)
{
    return dt_field_find("task")->choices[task];
}
