/* Rules about the model, how it is stepped, and for how long: recipes/rules.h. */
#include <string.h>

#include "recipes/architecture/architecture.h"
#include "recipes/rules.h"

#include "base/banned.h"

/* What one kind of model has and another lacks is refused where it is given, and not left without
 * effect. */
void dt_rule_model_fields(const dt_rule_case *c)
{
    static const struct {
        const char *path;
        bool rows; /* of models on rows, else of those on tokens */
    } fields[] = {
        {"model.preset", false},
        {"model.heads", false},
        {"model.vocab", false},
        {"model.dropout", false},
        {"model.attention_dropout", false},
        {"model.positions", false},
        {"model.scale_embedding", false},
        {"model.tied", false},
        {"batch.tokens", false},
        {"data.tokens", false},
        {"model.inputs", true},
        {"model.outputs", true},
        {"model.loss", true},
    };
    const dt_architecture *architecture = dt_architecture_find(c->recipe->model.kind);

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (fields[i].rows != architecture->reads_rows &&
            dt_reading_written(c->reading, fields[i].path))
            dt_rule_broken(c, fields[i].path, "'%s' has no effect on a model of kind '%s'",
                           fields[i].path, architecture->name);
}

void dt_rule_rows(const dt_rule_case *c)
{
    if (!dt_architecture_find(c->recipe->model.kind)->reads_rows)
        return;
    if (c->recipe->model.inputs == 0)
        dt_rule_broken(c, "model.inputs",
                       "'model.inputs' is missing: how many columns of a row go in");
    if (c->recipe->model.outputs == 0)
        dt_rule_broken(
            c, "model.outputs",
            "'model.outputs' is missing: how many classes there are, or how many numbers "
            "are predicted");
}

void dt_rule_heads(const dt_rule_case *c)
{
    long long heads = c->recipe->model.heads, embed = c->recipe->model.embed;
    long long below = heads, above = heads;

    if (embed % heads == 0)
        return;
    while (below > 1 && embed % below != 0)
        below--;
    while (above < embed && embed % above != 0)
        above++;
    if (heads > embed)
        above = embed;
    if (below < above)
        dt_rule_broken(c, "model.heads",
                       "'model.heads' %lld does not divide 'model.embed' %lld: the nearest that do "
                       "are %lld and %lld",
                       heads, embed, below, above);
    else
        dt_rule_broken(
            c, "model.heads",
            "'model.heads' %lld does not divide 'model.embed' %lld: the nearest that does is "
            "%lld",
            heads, embed, above);
}

/* --- optimizer --- */

void dt_rule_nesterov(const dt_rule_case *c)
{
    if (c->recipe->optimizer.nesterov && c->recipe->optimizer.momentum == 0)
        dt_rule_broken(c, "optimizer.nesterov",
                       "'optimizer.nesterov' needs 'optimizer.momentum' above 0");
}

void dt_rule_adamw_lr(const dt_rule_case *c)
{
    const dt_optimizer_facts *facts = &dt_optimizers[c->recipe->optimizer.kind];

    if (c->recipe->optimizer.adamw_lr > 0 && !facts->whole_matrices)
        dt_rule_broken(
            c, "optimizer.adamw_lr",
            "'optimizer.adamw_lr' is for an optimizer that leaves some parameters to AdamW, and "
            "'%s' steps them all",
            facts->name);
}

/* --- schedule --- */

void dt_rule_length(const dt_rule_case *c)
{
    if (c->recipe->schedule.steps == 0 && c->recipe->schedule.epochs == 0)
        dt_rule_broken(c, "schedule.steps",
                       "'schedule.steps' is missing (length of the whole run)");
}

void dt_rule_warmup(const dt_rule_case *c)
{
    long long steps = c->recipe->schedule.steps, warmup = c->recipe->schedule.warmup_steps;

    if (steps > 0 && warmup > steps)
        dt_rule_broken(c, "schedule.warmup_steps",
                       "'schedule.warmup_steps' %lld is over 'schedule.steps' %lld", warmup, steps);
}

void dt_rule_min_lr(const dt_rule_case *c)
{
    if (c->recipe->schedule.min_lr > c->recipe->optimizer.lr)
        dt_rule_broken(c, "schedule.min_lr", "'schedule.min_lr' %g is over 'optimizer.lr' %g",
                       c->recipe->schedule.min_lr, c->recipe->optimizer.lr);
}

void dt_rule_two_lengths(const dt_rule_case *c)
{
    if (c->recipe->schedule.steps > 0 && c->recipe->schedule.epochs > 0)
        dt_rule_broken(c, "schedule.epochs",
                       "'schedule.steps' %lld and 'schedule.epochs' %lld are both given, and the "
                       "run ends with whichever is over first",
                       (long long)c->recipe->schedule.steps, (long long)c->recipe->schedule.epochs);
}

void dt_rule_all_warmup(const dt_rule_case *c)
{
    if (c->recipe->schedule.steps > 0 &&
        c->recipe->schedule.warmup_steps == c->recipe->schedule.steps)
        dt_rule_broken(c, "schedule.warmup_steps",
                       "'schedule.warmup_steps' %lld is the whole run: it ends where the learning "
                       "rate is reached",
                       (long long)c->recipe->schedule.warmup_steps);
}

void dt_rule_decay(const dt_rule_case *c)
{
    long long steps = c->recipe->schedule.steps, warmup = c->recipe->schedule.warmup_steps,
              decay = c->recipe->schedule.decay_steps;

    if (c->recipe->schedule.kind == DT_SCHEDULE_WARMUP_STABLE_DECAY && steps > 0 &&
        warmup <= steps && decay > steps - warmup)
        dt_rule_broken(c, "schedule.decay_steps",
                       "'schedule.decay_steps' %lld is over the %lld steps that the warm-up "
                       "leaves",
                       decay, steps - warmup);
}
