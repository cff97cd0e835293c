/* rules_task: checks rules about tasks other than training (recipes/rules/rules.h). */
#include <string.h>

#include "recipes/fields/task_fields.h"
#include "recipes/rules/rules.h"

static void look_at_training(const dt_rule_case *c)
{
    for (size_t i = 0; i < dt_fields_count; i++) {
        const char *path = dt_fields[i].path;

        if (dt_field_is_of_task(&dt_fields[i], DT_TASK_TRAIN) ||
            !dt_reading_written(c->reading, path))
            continue;
        if (dt_field_is_of_task(&dt_fields[i], DT_TASK_COMMAND))
            dt_rule_broken(c, path,
                           "'%s' has no effect without a 'command': add it, or remove '%s'", path,
                           path);
        else
            dt_rule_broken(c, path,
                           "'%s' has no effect on training: add 'task: generate' or 'task: score', "
                           "or remove it",
                           path);
    }
}

/* dtrun does not know what the program does. */
static void look_at_command(const dt_rule_case *c)
{
    for (size_t i = 0; i < dt_fields_count; i++) {
        const char *path = dt_fields[i].path;

        if (dt_field_is_of_task(&dt_fields[i], DT_TASK_COMMAND) ||
            !dt_reading_written(c->reading, path))
            continue;
        if (strcmp(path, "ranks") == 0)
            dt_rule_broken(c, path, "'ranks' has no effect on a command: use 'processes'");
        else
            dt_rule_broken(c, path,
                           "'%s' has no effect on a command, which is not trained by dtrun's "
                           "engine: put it into the command, or remove it",
                           path);
    }
}

/* Everything about the model and its training comes from the checkpoint. */
static void look_at_others(const dt_rule_case *c)
{
    const char *task = dt_task_name(c->recipe->task);

    for (size_t i = 0; i < dt_fields_count; i++)
        if (!dt_field_is_of_task(&dt_fields[i], c->recipe->task) &&
            dt_reading_written(c->reading, dt_fields[i].path))
            dt_rule_broken(c, dt_fields[i].path, "'%s' has no effect on 'task: %s': remove it",
                           dt_fields[i].path, task);
    if (c->reading->sweep != NULL)
        dt_rule_broken(c, "task", "'task: %s' and 'sweep' cannot be combined", task);
}

void dt_rule_task(const dt_rule_case *c)
{
    const dt_recipe *recipe = c->recipe;

    if (recipe->task == DT_TASK_TRAIN) {
        look_at_training(c);
        return;
    }
    if (recipe->task == DT_TASK_COMMAND) {
        look_at_command(c);
        return;
    }
    look_at_others(c);
    if (recipe->lines.run[0] == '\0')
        dt_rule_broken(c, "lines.run", "'lines.run' is missing (the run whose checkpoint is used)");
    if (recipe->lines.input[0] == '\0')
        dt_rule_broken(c, "lines.input", "'lines.input' is missing (the file with the lines)");
}

void dt_rule_generate(const dt_rule_case *c)
{
    static const char *const samples[] = {"generate.stop", "generate.repetition_penalty",
                                          "generate.top_k", "generate.top_p",
                                          "generate.temperature"};
    const dt_recipe *recipe = c->recipe;

    if (recipe->task != DT_TASK_GENERATE)
        return;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]) && recipe->generate.beam > 1; i++)
        if (dt_reading_written(c->reading, samples[i]) &&
            !(strcmp(samples[i], "generate.temperature") == 0 && recipe->generate.temperature == 0))
            dt_rule_broken(c, samples[i], "'generate.beam' and '%s' cannot be combined: remove one",
                           samples[i]);
    if (recipe->precision.kind == DT_PRECISION_FP16)
        dt_rule_broken(
            c, "precision.kind",
            "unsupported precision 'fp16' with 'task: generate' (expected fp32 or bf16)");
}
