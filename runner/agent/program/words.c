/* words: makes the words of the program for one rank, and the paths of its recipe. */
#include "runner/agent/program/program_int.h"

#include <string.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "recipes/fields/fields.h"

typedef struct replacement {
    const char *name;
    const char *value;
} replacement;

static void add(replacement *all, size_t *count, const char *name, const char *value)
{
    all[(*count)++] = (replacement){name, value};
}

static void add_int(replacement *all, size_t *count, const char *name, int64_t value,
                    dt_arena *arena)
{
    add(all, count, name, dt_arena_printf(arena, "%lld", (long long)value));
}

static const char *replace(const char *word, const replacement *all, size_t count, dt_arena *arena)
{
    const char *result;
    dt_strbuf out;

    dt_strbuf_init(&out);
    while (*word != '\0') {
        size_t i = 0;

        while (i < count && strncmp(word, all[i].name, strlen(all[i].name)) != 0)
            i++;
        if (i < count) {
            dt_strbuf_add_str(&out, all[i].value);
            word += strlen(all[i].name);
        } else {
            dt_strbuf_add_char(&out, *word++);
        }
    }
    result = dt_arena_strdup(arena, out.length > 0 ? out.data : "");
    dt_strbuf_release(&out);
    return result;
}

/* Returns the processes of the run; with `processes: node` those that a launcher starts on each node. */
static int64_t count_processes(const dt_plan *plan)
{
    int64_t count = 0;

    for (int64_t r = 0; r < plan->world_size; r++)
        count += plan->ranks[r].replicas;
    return count;
}

/* Lists what is replaced. *count: their number. */
static replacement *list(size_t *count, const dt_plan *plan, const dt_words_facts *facts,
                         dt_arena *arena)
{
    const dt_plan_rank *own = &plan->ranks[facts->rank];
    const dt_string_list *args = &plan->recipe.args;
    bool one = dt_recipe_processes(&plan->recipe) == DT_PROCESSES_NODE;
    replacement *all = dt_arena_alloc_array(arena, (size_t)args->count + 16, sizeof(*all));

    *count = 0;
    add_int(all, count, "{nnodes}", plan->node_count, arena);
    add_int(all, count, "{node_rank}", own->node, arena);
    add_int(all, count, "{nproc}", one ? own->replicas : facts->local_ranks, arena);
    add_int(all, count, "{world_size}", count_processes(plan), arena);
    add_int(all, count, "{rank}", facts->rank, arena);
    add_int(all, count, "{local_rank}", own->local_rank, arena);
    add(all, count, "{master_addr}", facts->master_address);
    add_int(all, count, "{master_port}", facts->master_port, arena);
    add(all, count, "{run}", plan->run);
    /* a shell gets the path as a variable, since it may have any characters */
    add(all, count, "{checkpoint}",
        plan->recipe.shell ? "\"$DTRUN_RESUME_FROM\"" : plan->program_checkpoint);
    for (int64_t i = 0; i < args->count; i++) {
        const char *item = args->items[i];
        size_t length = strcspn(item, "=");

        add(all, count, dt_arena_printf(arena, "{args.%.*s}", (int)length, item),
            item + length + (item[length] == '='));
    }
    return all;
}

static bool continues(const dt_plan *plan)
{
    return plan->attempt > 1 &&
           (plan->recipe.checkpoints.path[0] == '\0' || plan->program_checkpoint[0] != '\0');
}

/* Puts a shell before the program that changes its environment and becomes the program. Returns its words. */
static size_t add_activation(const char **out, const dt_recipe *recipe, dt_arena *arena)
{
    size_t count = 0;
    bool has_bash = access(DT_ACTIVATE_SHELL, X_OK) == 0;

    out[count++] = has_bash ? DT_ACTIVATE_SHELL : "/bin/sh";
    if (has_bash)
        out[count++] = "-l";
    out[count++] = "-c";
    out[count++] = dt_command_activated(recipe->activate, "exec \"$@\"", arena);
    out[count++] = "activate"; /* $0 */
    return count;
}

const char **dt_program_words(const dt_plan *plan, const dt_words_facts *facts, dt_arena *arena)
{
    const dt_recipe *recipe = &plan->recipe;
    const dt_string_list *command = &recipe->command, *resume = &recipe->resume;
    size_t words = (size_t)(command->count + resume->count) + 8, count = 0, replacements;
    const char **out = dt_arena_alloc_array(arena, words, sizeof(*out));
    const replacement *all = list(&replacements, plan, facts, arena);

    if (recipe->activate[0] != '\0')
        count = add_activation(out, recipe, arena);

    if (recipe->shell) {
        out[count++] = "/bin/sh";
        out[count++] = "-c";
    }
    for (int64_t i = 0; i < command->count; i++)
        out[count++] = replace(command->items[i], all, replacements, arena);
    for (int64_t i = 0; continues(plan) && i < resume->count; i++) {
        const char *word = replace(resume->items[i], all, replacements, arena);

        if (recipe->shell)
            out[count - 1] = dt_arena_printf(arena, "%s %s", out[count - 1], word);
        else
            out[count++] = word;
    }
    out[count] = NULL;
    return out;
}

const char *dt_program_replace_run(const dt_plan *plan, const char *text, dt_arena *arena)
{
    const replacement run = {"{run}", plan->run};

    return replace(text, &run, 1, arena);
}

const char *dt_program_path(const dt_plan *plan, const char *path, bool pattern, dt_arena *arena)
{
    const char *text = dt_program_replace_run(plan, path, arena);
    const char *folder = plan->recipe.workdir.folder;
    dt_strbuf out;

    if (text[0] == '/' || folder[0] == '\0')
        return text;
    dt_strbuf_init(&out);
    for (; *folder != '\0'; folder++) {
        if (pattern && strchr("*?[\\", *folder) != NULL)
            dt_strbuf_add_char(&out, '\\');
        dt_strbuf_add_char(&out, *folder);
    }
    if (text[0] != '\0')
        dt_strbuf_add_fmt(&out, "/%s", text);
    text = dt_arena_strdup(arena, out.data);
    dt_strbuf_release(&out);
    return text;
}
