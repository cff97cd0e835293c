/* slurm: converts an #SBATCH script: the nodes and devices of its options, and the training command
 * in it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/convert/tool.h"

#include "base/banned.h"

/* --- the #SBATCH lines --- */

/* Collects the words of all "#SBATCH" lines as one command. */
static dt_status find_options(dt_shell_command *out, dt_draft *draft, const char *text,
                              const char *source, dt_error *err)
{
    static const char mark[] = "#SBATCH";
    dt_shell_script script;
    dt_status st = DT_OK;
    size_t length;

    for (const char *at = text; *at != '\0' && st == DT_OK; at += length + (at[length] == '\n')) {
        length = strcspn(at, "\n");
        if (strncmp(at, mark, sizeof(mark) - 1) != 0 ||
            strchr(" \t", at[sizeof(mark) - 1]) == NULL || length < sizeof(mark))
            continue;
        dt_shell_init(&script, draft->arena);
        {
            const char *line =
                dt_arena_strndup(draft->arena, at + sizeof(mark) - 1, length - sizeof(mark) + 1);

            st = dt_shell_read(&script, line, strlen(line), source, err);
        }
        for (size_t c = 0; c < script.count && st == DT_OK; c++)
            for (size_t w = 0; w < script.commands[c].count && st == DT_OK; w++)
                st = dt_shell_add_word(out, &script.commands[c].words[w], draft->arena, err);
    }
    return st;
}

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
            options[count] = flag->takes == DT_TAKES_NOTHING
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
static dt_status define_job(dt_shell_script *script, const dt_launcher *job, dt_error *err)
{
    static const char *const of_nodes[] = {"SLURM_NNODES", "SLURM_JOB_NUM_NODES", NULL};
    static const char *const of_devices[] = {"SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE",
                                             "SLURM_NTASKS_PER_NODE", NULL};
    char number[32];
    dt_status st = DT_OK;

    snprintf(number, sizeof(number), "%lld", (long long)job->nodes);
    for (size_t i = 0; of_nodes[i] != NULL && st == DT_OK; i++)
        st = dt_shell_define(script, of_nodes[i], number, err);
    snprintf(number, sizeof(number), "%lld", (long long)job->per_node);
    for (size_t i = 0; of_devices[i] != NULL && job->per_node > 0 && st == DT_OK; i++)
        st = dt_shell_define(script, of_devices[i], number, err);
    return st;
}

dt_status dt_slurm_convert(dt_draft *draft, const char *text, size_t length, const char *path,
                           dt_error *err)
{
    const char *slash = strrchr(path, '/');
    const char *folder =
        slash != NULL ? dt_arena_strndup(draft->arena, path, (size_t)(slash - path)) : NULL;
    dt_launcher job = {.program = "", .visible = -1};
    const dt_convert_tool *found = NULL;
    dt_shell_command options = {0};
    dt_shell_script script;
    dt_status st = DT_OK;
    dt_flags flags;

    dt_shell_init(&script, draft->arena);
    DT_TRY(find_options(&options, draft, text, path, err));
    DT_TRY(dt_flags_read(&flags, &dt_slurm_flags, options.words, options.count, draft, err));
    job.slurm = true;
    dt_slurm_read_size(&job, &flags, draft);
    if (job.nodes == 0) {
        job.nodes = 1;
        job.nodes_from = "one node, sbatch's default";
    }
    DT_TRY(define_job(&script, &job, err));
    DT_TRY(dt_shell_read(&script, text, length, path, err));
    DT_TRY(dt_tools_convert(&found, draft, &script, &job, NULL, folder, err));
    if (found == NULL)
        DT_TRY(dt_tools_convert(&found, draft, &script, &job, &dt_tool_command, folder, err));
    draft->is_layer = found == NULL;
    if (draft->is_layer) {
        dt_launcher_carry(&job, draft);
        dt_draft_note(draft, path,
                      "it starts no program over several processes: this file is a layer to apply "
                      "to a recipe ('dtrun launch RECIPE -f FILE')");
    }
    carry_options(draft, &flags);
    carry_name(draft, &flags);
    dt_flags_carry(&flags);
out:
    return st;
}
