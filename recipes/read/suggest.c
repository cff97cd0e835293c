#include "recipes/read/suggest.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/distance.h"
#include "recipes/fields/values.h"

#include "base/banned.h"

/* Names that other programs use for dtrun's fields or similar ones, in addition to the aliases of the table,
 * without case and separators. */
static const struct {
    const char *name, *path;
} elsewhere[] = {
    {"batchsize", "batch.sequences"},
    {"perdevicetrainbatchsize", "batch.sequences"},
    {"contextlength", "batch.tokens"},
    {"maxseqlen", "batch.tokens"},
    {"sequencelength", "batch.tokens"},
    {"tokenspersample", "batch.tokens"},
    {"gradaccum", "batch.accumulate"},
    {"updatefreq", "batch.accumulate"},
    {"epsilon", "optimizer.eps"},
    {"maxupdate", "schedule.steps"},
    {"numsteps", "schedule.steps"},
    {"iterations", "schedule.steps"},
    {"warmup", "schedule.warmup_steps"},
    {"warmupupdates", "schedule.warmup_steps"},
    {"lrdecayiters", "schedule.period_steps"},
    {"lrscheduler", "schedule"},
    {"scheduler", "schedule"},
    {"clipnorm", "clip"},
    {"width", "model.embed"},
    {"architecture", "model"},
    {"arch", "model"},
    {"dtype", "precision"},
    {"bf16", "precision"},
    {"mixedprecision", "precision"},
    {"dataset", "data"},
    {"trainfile", "data.train"},
    {"validfile", "data.validation"},
    {"tokenizer", "data.tokenizer"},
    {"textfield", "data.field"},
    {"textcolumn", "data.field"},
    {"evalinterval", "evaluate.every"},
    {"evalsteps", "evaluate.every"},
    {"evaliters", "evaluate.sequences"},
    {"savesteps", "checkpoint.every"},
    {"saveinterval", "checkpoint.every"},
    {"savetotallimit", "checkpoint.keep"},
    {"loginterval", "log.every"},
    {"loggingsteps", "log.every"},
    {"nprocpernode", "ranks"},
    {"worldsize", "ranks"},
    {"workers", "ranks"},
    {"hosts", "nodes"},
    {"devices", "gpus"},
    {"ompnumthreads", "threads"},
};

/* Copies letters and digits in lower case, cut to the room. */
static void normalise(char out[DT_SUGGEST_SIZE], const char *text)
{
    size_t length = 0;

    for (; *text != '\0' && length + 1 < DT_SUGGEST_SIZE; text++)
        if (isalnum((unsigned char)*text))
            out[length++] = (char)tolower((unsigned char)*text);
    out[length] = '\0';
}

typedef struct search {
    char key[DT_SUGGEST_SIZE];
    int best; /* a candidate must be nearer than this */
    const char *found;
    size_t length; /* bytes of `found` that are the answer */
} search;

/* Compares `name`; if it is the best match, the first `length` bytes of `path` become the answer. */
static void consider(search *s, const char *name, const char *path, size_t length)
{
    char normal[DT_SUGGEST_SIZE];
    int far;

    normalise(normal, name);
    far = (int)strlen(normal) - (int)strlen(s->key);
    if (abs(far) >= s->best) /* each additional or missing letter counts as a wrong one */
        return;
    far = dt_distance(s->key, normal);
    if (far < s->best) {
        s->best = far;
        s->found = path;
        s->length = length;
    }
}

static void consider_field(search *s, const dt_field *field, const char *group)
{
    size_t length = dt_field_group_length(field);
    const char *key = length != 0 ? field->path + length + 1 : field->path;
    char map[DT_SUGGEST_SIZE];

    if (length != 0 && group[0] == '\0') { /* the name of a map, at the top level */
        snprintf(map, sizeof(map), "%.*s", (int)length, field->path);
        consider(s, map, field->path, length);
    }
    /* names such as 'kind' and 'size' say nothing about which map was meant */
    if (!field->shorthand || group[0] == '\0' || dt_field_in_group(field, group))
        consider(s, key, field->path, strlen(field->path));
    for (size_t i = 0; field->aliases != NULL && field->aliases[i] != NULL; i++)
        consider(s, field->aliases[i], field->path, strlen(field->path));
    consider(s, field->path, field->path, strlen(field->path));
}

const char *dt_suggest_field(char *out, const char *group, const char *key)
{
    search s = {.found = NULL};

    normalise(s.key, key);
    if (s.key[0] == '\0')
        return NULL;
    /* a third of the letters may be wrong, at least one and at most three */
    s.best = (int)strlen(s.key) / 3;
    s.best = (s.best > 3 ? 3 : s.best < 1 ? 1 : s.best) + 1;
    for (size_t i = 0; i < dt_fields_count; i++) /* fields of the same map first: they win a tie */
        if (group[0] == '\0' ? dt_field_group_length(&dt_fields[i]) == 0
                             : dt_field_in_group(&dt_fields[i], group))
            consider_field(&s, &dt_fields[i], group);
    for (size_t i = 0; i < dt_fields_count; i++)
        consider_field(&s, &dt_fields[i], group);
    for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
        consider(&s, elsewhere[i].name, elsewhere[i].path, strlen(elsewhere[i].path));
    if (s.found == NULL)
        return NULL;
    snprintf(out, DT_SUGGEST_SIZE, "%.*s", (int)s.length, s.found);
    return out;
}
