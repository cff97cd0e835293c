/* rules_command: checks rules about commands and other tasks than training (recipes/rules/rules.h). */
#include <string.h>

#include "base/named_groups.h"
#include "recipes/fields/fields.h"
#include "recipes/rules/rules.h"

/* --- commands */

void dt_rule_command(const dt_rule_case *c)
{
    const dt_recipe *recipe = c->recipe;

    if (recipe->task != DT_TASK_COMMAND) {
        if (recipe->command.count > 0)
            dt_rule_broken(c, "command", "'command' and 'task: %s' cannot be combined: remove one",
                           dt_task_name(recipe->task));
        return;
    }
    if (recipe->command.count == 0 || recipe->command.items[0][0] == '\0')
        dt_rule_broken(c, "command", "'command' is missing or empty (the program to run)");
    else if (recipe->shell && recipe->command.count > 1)
        dt_rule_broken(c, "command",
                       "'shell: true' takes the command as one text, not as a list of words");
    if (strchr(recipe->activate, '\n') != NULL)
        dt_rule_broken(c, "activate",
                       "'activate' has several lines: write one, with '&&' between commands");
}

void dt_rule_processes(const dt_rule_case *c)
{
    int64_t processes = dt_recipe_processes(c->recipe), gpus = c->recipe->gpus;

    if (processes == DT_PROCESSES_WRONG)
        dt_rule_broken(c, "processes",
                       "'processes' is '%s': expected 'gpu', 'node' or a number from 1 to 1024",
                       c->recipe->processes);
    else if (processes > 0 && gpus > processes && gpus % processes != 0)
        dt_rule_broken(c, "processes",
                       "'processes' %lld does not divide 'gpus' %lld: use a divisor, or 'node'",
                       (long long)processes, (long long)gpus);
}

static bool is_variable(const char *assignment, size_t length)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    static const char more[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

    return length > 0 && assignment[length] == '=' && strchr(letters, assignment[0]) != NULL &&
           strspn(assignment, more) == length;
}

void dt_rule_env(const dt_rule_case *c)
{
    const dt_string_list *env = &c->recipe->env;

    for (int64_t i = 0; i < env->count; i++) {
        const char *item = env->items[i];
        size_t length = strcspn(item, "=");

        /* the value may be a secret: only the name is shown */
        if (!is_variable(item, length))
            dt_rule_broken_item(
                c, "env", i,
                "'env': '%.*s' is not a variable: expected a map of NAME: value, with "
                "names of letters, digits and '_'",
                (int)(length < 64 ? length : 64), item);
        else if (dt_command_sets_variable(item, length))
            dt_rule_broken_item(c, "env", i,
                                "'env.%.*s' is set by dtrun for each process: remove it",
                                (int)length, item);
        for (int64_t k = 0; k < i; k++)
            if (strncmp(env->items[k], item, length + 1) == 0)
                dt_rule_broken_item(c, "env", k, "'env' has '%.*s' twice", (int)length, item);
    }
}

void dt_rule_checkpoints(const dt_rule_case *c)
{
    const dt_recipe *recipe = c->recipe;
    const char *path = recipe->checkpoints.path, *number = strstr(path, "{step}");
    const char *marker = recipe->checkpoints.marker;

    if (number != NULL && (strstr(number + 1, "{step}") != NULL || strchr(number, '/') != NULL))
        dt_rule_broken(c, "checkpoints.path",
                       "'checkpoints' is '%s': {step} can be once in the last part of the path",
                       path);
    if (path[0] != '\0' && path[strlen(path) - 1] == '/')
        dt_rule_broken(c, "checkpoints.path", "'checkpoints' is '%s': remove the '/' at its end",
                       path);
    if (marker[0] != '\0' && path[0] == '\0')
        dt_rule_broken(c, "checkpoints.marker",
                       "'checkpoints.marker' has no effect without 'checkpoints.path'");
    if (strchr(marker, '/') != NULL)
        dt_rule_broken(c, "checkpoints.marker",
                       "'checkpoints.marker' is '%s': expected the name of a file in the folder of "
                       "a checkpoint",
                       marker);
    for (int64_t i = 0; i < recipe->resume.count; i++)
        if (strstr(recipe->resume.items[i], "{checkpoint}") != NULL && path[0] == '\0')
            dt_rule_broken(c, "resume",
                           "'resume' has {checkpoint}: add 'checkpoints', which says where they "
                           "are");
}

/* Returns the value of the argument; NULL: there is none. */
static const char *find_argument(const dt_string_list *args, const char *name, size_t length)
{
    for (int64_t i = 0; i < args->count; i++)
        if (strncmp(args->items[i], name, length) == 0 && args->items[i][length] == '=')
            return args->items[i] + length + 1;
    return NULL;
}

/* Checks that each {args.NAME} of the words has a value. */
static void check_uses(const dt_rule_case *c, const char *path, const dt_string_list *words)
{
    static const char opening[] = "{args.";

    for (int64_t i = 0; i < words->count; i++)
        for (const char *at = words->items[i]; (at = strstr(at, opening)) != NULL;) {
            size_t length = strcspn(at += sizeof(opening) - 1, "}");

            if (at[length] == '}' && find_argument(&c->recipe->args, at, length) == NULL)
                dt_rule_broken_item(c, path, i, "'%s' has {args.%.*s}, but 'args' has no '%.*s'",
                                    path, (int)length, at, (int)length, at);
        }
}

static bool is_used(const dt_string_list *words, const char *use)
{
    for (int64_t i = 0; i < words->count; i++)
        if (strstr(words->items[i], use) != NULL)
            return true;
    return false;
}

void dt_rule_args(const dt_rule_case *c)
{
    const dt_recipe *recipe = c->recipe;

    check_uses(c, "command", &recipe->command);
    check_uses(c, "resume", &recipe->resume);
    for (int64_t i = 0; i < recipe->args.count; i++) {
        const char *item = recipe->args.items[i];
        int length = (int)strcspn(item, "=");
        const char *use = dt_arena_printf(c->reading->arena, "{args.%.*s}", length, item);

        if (length == 0 || item[length] != '=' || strchr(item, '}') != NULL)
            dt_rule_broken_item(c, "args", i, "'args' has '%.64s': expected a map of NAME: value",
                                item);
        else if (!is_used(&recipe->command, use) && !is_used(&recipe->resume, use))
            dt_rule_broken_item(c, "args", i,
                                "'args.%.*s' has no effect: 'command' does not have %s", length,
                                item, use);
    }
}

void dt_rule_output_metrics(const dt_rule_case *c)
{
    const dt_recipe *recipe = c->recipe;
    dt_error problem = DT_ERROR_INIT;
    dt_named_groups *groups = NULL;

    if (recipe->metrics.pattern[0] == '\0')
        return;
    if (recipe->metrics.kind != DT_OUTPUT_METRICS_NONE)
        dt_rule_broken(c, "metrics.pattern",
                       "'metrics.kind' and 'metrics.pattern' cannot be combined: remove one");
    else if (dt_named_groups_open(&groups, recipe->metrics.pattern, &problem) != DT_OK)
        dt_rule_broken(c, "metrics.pattern", "'metrics.pattern': %s", problem.message);
    else if (dt_named_groups_count(groups) < (dt_named_groups_find(groups, "step") < 0 ? 1 : 2))
        dt_rule_broken(c, "metrics.pattern",
                       "'metrics.pattern' needs a group for each metric, as in 'step "
                       "(?P<step>\\d+).* loss (?P<loss>[\\d.]+)'");
    dt_named_groups_close(groups);
}

/* Returns whether the path stays in its folder. A slash at the end is accepted. */
static bool is_below(const char *path)
{
    if (path[0] == '\0' || path[0] == '/')
        return false;
    for (const char *at = path; *at != '\0'; at += strspn(at, "/")) {
        size_t length = strcspn(at, "/");

        if ((length == 1 && at[0] == '.') || (length == 2 && strncmp(at, "..", 2) == 0) ||
            strncmp(at + length, "//", 2) == 0)
            return false;
        at += length;
    }
    return true;
}

void dt_rule_collect(const dt_rule_case *c)
{
    const dt_string_list *collect = &c->recipe->collect;

    for (int64_t i = 0; i < collect->count; i++) {
        const char *path = collect->items[i];

        if (!is_below(path))
            dt_rule_broken_item(
                c, "collect", i,
                "'collect' has '%s': expected a file or folder in workdir, as in 'out/'", path);
        else if (strpbrk(path, "*?[") != NULL)
            dt_rule_broken_item(c, "collect", i,
                                "'collect' has '%s': patterns are not supported, name the folder",
                                path);
    }
}

/* --- other tasks */

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
    if (recipe->task == DT_TASK_EVALUATE && recipe->evaluate.tasks.count == 0)
        dt_rule_broken(c, "evaluate.tasks", "'evaluate.tasks' is missing (the files of the tasks)");
    if (recipe->task == DT_TASK_EVALUATE && recipe->precision.kind == DT_PRECISION_FP16)
        dt_rule_broken(
            c, "precision.kind",
            "unsupported precision 'fp16' with 'task: evaluate' (expected fp32 or bf16)");
    if (recipe->task != DT_TASK_EVALUATE && recipe->lines.input[0] == '\0')
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
