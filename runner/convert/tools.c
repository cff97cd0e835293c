/* tools: lists the programs whose command lines become recipes, finds the one that a script starts, and
 * converts scripts of sbatch with the command in them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/convert/tool.h"

const dt_convert_tool *const dt_convert_tools[] = {&dt_tool_fairseq, &dt_tool_llmc,
                                                   &dt_tool_nanogpt, &dt_tool_command, NULL};

static const dt_convert_tool *find(const dt_launcher *launcher, const dt_convert_tool *only)
{
    for (size_t i = 0; dt_convert_tools[i] != NULL; i++)
        if ((only == NULL ? dt_convert_tools[i] != &dt_tool_command
                          : dt_convert_tools[i] == only) &&
            dt_convert_tools[i]->knows(launcher))
            return dt_convert_tools[i];
    return NULL;
}

/* Appends a word, quoted if a shell would need it. */
static void add_word(dt_strbuf *out, const char *word)
{
    bool plain = word[0] != '\0' && strpbrk(word, " \t\n'\"\\()[]{}<>|&;*?!#") == NULL;

    if (plain) {
        dt_strbuf_add_str(out, word);
        return;
    }
    dt_strbuf_add_char(out, '\'');
    for (const char *c = word; *c != '\0'; c++)
        dt_strbuf_add_char(out, (unsigned char)*c < 0x20 || *c == 0x7f ? ' ' : *c);
    dt_strbuf_add_char(out, '\'');
}

/* Returns the word without the value of a variable that looks like a secret. */
static const char *hide(const dt_shell_word *word, dt_arena *arena)
{
    if (!dt_secret_is_variable(word->text))
        return word->text;
    return dt_arena_printf(arena, "%.*s=...", (int)strcspn(word->text, "="), word->text);
}

/* Formats the command as lines of about 90 columns, preferably broken before flags. */
static const char *show(const dt_shell_command *command, dt_arena *arena)
{
    enum { WIDTH = 90, INDENT = 4 };
    dt_strbuf out, word;
    size_t start = 0;
    const char *text;

    dt_strbuf_init(&out);
    dt_strbuf_init(&word);
    for (size_t i = 0; i < command->count; i++) {
        bool flag = command->words[i].text[0] == '-';

        dt_strbuf_reset(&word);
        add_word(&word, hide(&command->words[i], arena));
        if (i > 0 && out.length - start + word.length > (flag ? WIDTH - 20 : WIDTH)) {
            dt_strbuf_add_str(&out, " \\\n");
            start = out.length;
            dt_strbuf_add_fmt(&out, "%*s", INDENT, "");
        } else if (i > 0) {
            dt_strbuf_add_char(&out, ' ');
        }
        dt_strbuf_add(&out, word.data, word.length);
    }
    text = dt_arena_strdup(arena, out.data);
    dt_strbuf_release(&word);
    dt_strbuf_release(&out);
    return text;
}

/* --- commands */

/* Refuses words of the program that only a shell knows, and those that look like secrets. */
static dt_status check_words(const dt_script *script, const dt_launcher *launcher, dt_error *err)
{
    for (size_t i = 0; i < launcher->count; i++) {
        const dt_shell_word *word = &launcher->words[i];
        const char *next = i + 1 < launcher->count ? launcher->words[i + 1].text : NULL;
        const char *reason = dt_secret_reason(word->text, next, script->arena);

        if (word->open != NULL)
            return dt_script_refuse_open(script->source, word, word->text, err);
        if (reason != NULL && word->line > 0)
            return DT_FAIL(err, DT_ERR_USAGE, "%s:%d: %s", script->source, word->line, reason);
        if (reason != NULL)
            return DT_FAIL(err, DT_ERR_USAGE, "%s", reason);
    }
    return DT_OK;
}

static void add_settings(dt_draft *draft, const dt_script *script)
{
    dt_strbuf activate;

    for (size_t i = 0; i < script->redirections.count; i++)
        dt_draft_left(draft, script->redirections.items[i].text,
                      "dtrun keeps what ranks print: 'dtrun logs'");
    for (size_t i = 0; i < script->unused.count; i++)
        dt_draft_same(draft, script->unused.items[i].text, "it changes nothing of the run");
    if (script->folder != NULL)
        dt_draft_text(draft, "workdir.folder", script->folder, "cd");
    if (script->activate.count == 0)
        return;
    dt_strbuf_init(&activate);
    for (size_t i = 0; i < script->activate.count; i++)
        dt_strbuf_add_fmt(&activate, "%s%s", i > 0 ? " && " : "", script->activate.items[i].text);
    dt_draft_text(draft, "activate", activate.data, "%s", script->activate.items[0].text);
    dt_strbuf_release(&activate);
}

dt_status dt_tools_convert(const dt_convert_tool **found, dt_draft *draft, const dt_script *script,
                           const dt_launcher *job, const dt_convert_tool *tool, const char *folder,
                           dt_error *err)
{
    dt_draft attempt = *draft;
    dt_launcher launcher;
    dt_status st = DT_OK;

    *found = NULL;
    if (script->command.count == 0)
        return DT_OK;
    DT_TRY(dt_launcher_read(&launcher, script, job, tool == &dt_tool_command, &attempt, err));
    launcher.named = tool != NULL;
    launcher.folder = folder;
    *found = find(&launcher, tool);
    if (*found == NULL)
        goto out;
    DT_TRY(check_words(script, &launcher, err));
    *draft = attempt;
    if (*found == &dt_tool_command)
        add_settings(draft, script);
    else if (script->folder != NULL)
        dt_draft_left(draft, dt_arena_printf(draft->arena, "cd %s", script->folder),
                      "paths are relative to the recipe: put it into this folder");
    if (*found != &dt_tool_command)
        for (size_t i = 0; i < script->redirections.count; i++)
            dt_draft_left(draft, script->redirections.items[i].text,
                          "dtrun keeps what ranks print: 'dtrun logs'");
    if (draft->said == NULL)
        draft->said = show(&script->command, draft->arena);
    DT_TRY((*found)->convert(draft, &launcher, folder, err));
out:
    return st;
}

/* Scripts of sbatch: the nodes and devices of their options, and the training command in them. */

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
