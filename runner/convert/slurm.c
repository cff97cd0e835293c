/* slurm: converts an #SBATCH script: the nodes and devices of its options, and the training command
 * in it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/convert/tool.h"

/* Copies options that sbatch gets unchanged to slurm.options, in their long form. */
static void carry_options(dt_draft *draft, const dt_flags *flags)
{
    enum { MOST = 64 };
    const char *options[MOST];
    size_t count = 0;
    dt_strbuf from;

    dt_strbuf_init(&from);
    dt_strbuf_add_str(&from, "#SBATCH");

    for (size_t i = 0; i < flags->table->count && count < MOST; i++) {
        const dt_flag *flag = &flags->table->flags[i];
        const char *text = flags->uses[i].text;
        bool typed = strstr(flag->into, "slurm.options") != NULL && text != NULL &&
                     (strcmp(flag->into, DT_SLURM_PASSED) == 0 ||
                      strcmp(flag->name, "--gres") == 0 || strchr(text, ':') != NULL);

        if (!typed)
            continue;
        if (strcmp(flag->name, "--gpus-per-node") == 0) /* dtrun itself sets --gpus-per-node */
            options[count] = dt_arena_printf(draft->arena, "--gres=gpu:%s", text);
        else
            options[count] = flag->takes == DT_TAKES_NOTHING || strcmp(text, "true") == 0
                                 ? flag->name
                                 : dt_arena_printf(draft->arena, "%s=%s", flag->name, text);
        dt_strbuf_add_fmt(&from, "%s %s", count > 0 ? "," : "", flags->uses[i].shown);
        count++;
    }
    if (count > 0)
        dt_draft_texts(draft, "slurm.options", options, count, from.data);
    dt_strbuf_release(&from);
}

/* Uses the job's name for the run, if it is valid in a recipe. */
static void carry_name(dt_draft *draft, const dt_flags *flags)
{
    static const char taken[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const char *name = dt_flags_text(flags, "--job-name", NULL);

    if (name == NULL)
        return;
    if (name[0] == '\0' || strchr("-.", name[0]) != NULL || strlen(name) > 64 ||
        name[strspn(name, taken)] != '\0')
        dt_draft_left(draft, dt_flags_about(flags, "--job-name"),
                      "a name has 1 to 64 letters, digits, '.', '_' or '-'");
    else
        dt_draft_text(draft, "name", name, "%s", dt_flags_from(flags, "--job-name"));
}

/* Defines the variables that Slurm sets in a script. */
static void define_job(dt_script *script, const dt_launcher *job)
{
    static const char *const of_nodes[] = {"SLURM_NNODES", "SLURM_JOB_NUM_NODES", NULL};
    static const char *const of_devices[] = {"SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE", NULL};
    char number[32];

    snprintf(number, sizeof(number), "%lld", (long long)job->nodes);
    for (size_t i = 0; of_nodes[i] != NULL && job->nodes_min == 0; i++)
        dt_script_define(script, of_nodes[i], number, false);
    snprintf(number, sizeof(number), "%lld", (long long)job->gpus);
    for (size_t i = 0; of_devices[i] != NULL && job->gpus > 0; i++)
        dt_script_define(script, of_devices[i], number, false);
    snprintf(number, sizeof(number), "%lld", (long long)job->tasks);
    if (job->tasks > 0)
        dt_script_define(script, "SLURM_NTASKS_PER_NODE", number, false);
    snprintf(number, sizeof(number), "%lld", (long long)(job->tasks * job->nodes));
    if (job->tasks > 0 && job->nodes_min == 0)
        dt_script_define(script, "SLURM_NTASKS", number, false);
    snprintf(number, sizeof(number), "%lld", (long long)job->task_threads);
    if (job->task_threads > 0)
        dt_script_define(script, "SLURM_CPUS_PER_TASK", number, false);
}

/* Adds the variables of --export to those that the script exports. */
static void take_exports(dt_script *script, const dt_flags *flags)
{
    for (size_t i = 0; i < flags->each_count; i++) {
        const char *text = flags->each[i].text;
        size_t length;

        for (const char *at = text; *at != '\0'; at += length + (at[length] == ',')) {
            const char *item;

            length = strcspn(at, ",");
            item = dt_arena_strndup(script->arena, at, length);
            if (dt_shell_assigned(item) > 0)
                dt_shell_add_to(&script->exported, item, length, 0, script->arena);
            else if (strcmp(item, "ALL") != 0)
                dt_draft_left(flags->draft, dt_arena_printf(script->arena, "--export %s", item),
                              "ranks get the environment of the node's login");
        }
    }
}

dt_status dt_slurm_convert(dt_draft *draft, const char *text, size_t length, const char *path,
                           const dt_shell_command *given, dt_error *err)
{
    const char *slash = strrchr(path, '/');
    const char *folder =
        slash != NULL ? dt_arena_strndup(draft->arena, path, (size_t)(slash - path)) : NULL;
    dt_launcher job = {.program = "", .slurm = true};
    const dt_convert_tool *found = NULL;
    dt_shell_command options = {0};
    dt_script script, none;
    dt_status st = DT_OK;
    dt_flags flags;

    dt_script_init(&none, path, draft->arena);
    DT_TRY(dt_script_read_sbatch(&none, text, length, err));
    options = none.sbatch;
    for (size_t i = 0; given != NULL && i < given->count; i++) /* the later one counts */
        DT_TRY(dt_shell_add_word(&options, &given->words[i], draft->arena, err));
    DT_TRY(dt_flags_read(&flags, &dt_slurm_flags, options.words, options.count, draft, err));
    if (flags.taken < options.count)
        DT_THROW(err, DT_ERR_USAGE, "%s:%d: '%s' is not an option of sbatch", path,
                 options.words[flags.taken].line, options.words[flags.taken].text);
    DT_TRY(dt_slurm_read_size(&job, &flags, err));
    if (job.nodes == 0 && job.tasks_total == 0) {
        job.nodes = 1;
        job.nodes_from = "one node, sbatch's default";
    }
    dt_script_init(&script, path, draft->arena);
    define_job(&script, &job);
    DT_TRY(dt_script_read(&script, text, length, err));
    take_exports(&script, &flags);
    if (dt_flags_given(&flags, "--chdir"))
        dt_draft_text(draft, "workdir.folder", dt_flags_text(&flags, "--chdir", ""), "%s",
                      dt_flags_from(&flags, "--chdir"));
    draft->is_layer = script.command.count == 0;
    if (!draft->is_layer) {
        DT_TRY(dt_tools_convert(&found, draft, &script, &job, NULL, folder, err));
        if (found == NULL)
            DT_TRY(dt_tools_convert(&found, draft, &script, &job, &dt_tool_command, folder, err));
    }
    if (draft->is_layer) {
        if (job.tasks_total > 0)
            DT_THROW(err, DT_ERR_USAGE, "%s: Slurm decides the number of nodes: give --nodes",
                     job.from);
        job.per_node = job.tasks;
        DT_TRY(dt_launcher_carry(&job, draft, err));
        dt_draft_note(draft, path,
                      "it starts no program: this file is a layer to apply to a recipe ('dtrun "
                      "launch RECIPE -f FILE')");
    }
    carry_options(draft, &flags);
    carry_name(draft, &flags);
    dt_flags_carry(&flags);
out:
    return st;
}
