#include "recipes/read/read_int.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "recipes/fields/values.h"

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
    {"fp16", "precision"},
    {"numtrainepochs", "schedule.epochs"},
    {"maxepochs", "schedule.epochs"},
    {"maxsteps", "schedule.steps"},
    {"maxiters", "schedule.steps"},
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

/* Names of other programs, without case and separators, that are a value of a field here, or belong elsewhere. */
static const struct {
    const char *name, *hint;
} hints[] = {
    {"fp16", "write 'precision: fp16'"},
    {"bf16", "write 'precision: bf16'"},
    {"fp32", "write 'precision: fp32'"},
    {"amp", "write 'precision: bf16' or 'precision: fp16'"},
    {"tag", "tags belong to a run: 'dtrun launch --tag NAME', or 'dtrun tag RUN NAME' later"},
    {"tags", "tags belong to a run: 'dtrun launch --tag NAME', or 'dtrun tag RUN NAME' later"},
    {"labels", "tags belong to a run: 'dtrun launch --tag NAME', or 'dtrun tag RUN NAME' later"},
    {"description", "a note belongs to a run: 'dtrun launch --note TEXT'"},
    {"note", "a note belongs to a run: 'dtrun launch --note TEXT'"},
    {"notes", "a note belongs to a run: 'dtrun launch --note TEXT'"},
    {"comment", "a note belongs to a run: 'dtrun launch --note TEXT', a comment begins with '#'"},
    {"project", "a group belongs to a run: 'dtrun launch --group NAME'"},
    {"group", "a group belongs to a run: 'dtrun launch --group NAME'"},
    {"experiment", "a group belongs to a run: 'dtrun launch --group NAME'"},
    {"runname", "write 'name: TEXT'"},
    {"numtrainepochs", "write 'schedule: {epochs: N}'"},
    {"maxepochs", "write 'schedule: {epochs: N}'"},
    {"maxepoch", "write 'schedule: {epochs: N}'"},
    {"numepochs", "write 'schedule: {epochs: N}'"},
    {"maxsteps", "write 'schedule: {steps: N}'"},
    {"maxiters", "write 'schedule: {steps: N}'"},
    {"trainsteps", "write 'schedule: {steps: N}'"},
    {"warmupratio", "write 'schedule: {warmup_steps: N}', in steps"},
    {"lrschedulertype", "write 'schedule: {kind: cosine}'"},
    {"adambeta1", "write 'optimizer: {beta1: X}'"},
    {"adambeta2", "write 'optimizer: {beta2: X}'"},
    {"adamepsilon", "write 'optimizer: {eps: X}'"},
    {"maxgradnorm", "write 'clip: X'"},
    {"gradclip", "write 'clip: X'"},
    {"gradientclipval", "write 'clip: X'"},
    {"optim", "write 'optimizer: adamw'"},
    {"gradientaccumulation", "write 'batch: {accumulate: N}'"},
    {"accumulategradbatches", "write 'batch: {accumulate: N}'"},
    {"gradientcheckpointing", "write 'activation_checkpointing: true'"},
    {"labelsmoothingfactor", "write 'model: {label_smoothing: X}'"},
    {"evaluationstrategy", "write 'evaluate: {every: N}'"},
    {"evalstrategy", "write 'evaluate: {every: N}'"},
    {"savestrategy", "write 'checkpoint: {every: N}'"},
    {"loadbestmodelatend", "write 'checkpoint: {keep_best: 1}'"},
    {"metricforbestmodel", "write 'checkpoint: {best_by: NAME}'"},
    {"deepspeed", "write 'strategy: fsdp'"},
    {"accelerator", "devices are found: 'gpus: 0' trains on the CPU"},
    {"device", "devices are found: 'gpus: 0' trains on the CPU"},
    {"cuda", "devices are found: 'gpus: 0' trains on the CPU"},
    {"compile", "nothing is compiled at run time: remove it"},
    {"torchcompile", "nothing is compiled at run time: remove it"},
    {"dataloadernumworkers", "data need no worker processes: remove it"},
    {"numworkers", "data need no worker processes: remove it"},
    {"outputdir", "files of a run are below ~/.local/state/dtrun, or XDG_STATE_HOME: remove it"},
    {"outdir", "files of a run are below ~/.local/state/dtrun, or XDG_STATE_HOME: remove it"},
    {"output", "files of a run are below ~/.local/state/dtrun, or XDG_STATE_HOME: remove it"},
    {"savedir", "files of a run are below ~/.local/state/dtrun, or XDG_STATE_HOME: remove it"},
    {"logdir", "files of a run are below ~/.local/state/dtrun, or XDG_STATE_HOME: remove it"},
    {"loggingdir", "files of a run are below ~/.local/state/dtrun, or XDG_STATE_HOME: remove it"},
    {"reportto", "metrics are in the history: 'dtrun export RUN --to mlflow' or 'tensorboard'"},
    {"wandb", "metrics are in the history: 'dtrun export RUN --to mlflow' or 'tensorboard'"},
    {"wandblog", "metrics are in the history: 'dtrun export RUN --to mlflow' or 'tensorboard'"},
    {"tensorboard", "metrics are in the history: 'dtrun export RUN --to mlflow' or 'tensorboard'"},
    {"resumefromcheckpoint",
     "'dtrun resume RUN' continues a run, 'dtrun fork RUN@STEP' starts from it"},
    {"resumefrom", "'dtrun resume RUN' continues a run, 'dtrun fork RUN@STEP' starts from it"},
    {"initfrom", "write 'model: {from: FOLDER}' for existing weights"},
    {"pretrained", "write 'model: {from: FOLDER}' for existing weights"},
    {"masterport", "ports are chosen: remove it"},
    {"masteraddr", "addresses are exchanged by dtrun: remove it, and name the machines in 'nodes'"},
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

const char *dt_suggest_hint(const char *key)
{
    char normal[DT_SUGGEST_SIZE];

    normalise(normal, key);
    for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++)
        if (strcmp(hints[i].name, normal) == 0)
            return hints[i].hint;
    return NULL;
}
