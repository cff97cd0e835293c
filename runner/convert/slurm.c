/* slurm: what #SBATCH lines say of nodes and devices, and the command in the script that trains. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/convert/tool.h"

#include "base/banned.h"

#define PASSED "slurm.options, as it is"
#define OWN    "dtrun gives the job its own"

/* a line a flag */
/* clang-format off */
static const dt_flag rows[] = {
    {"--nodes", "-N", DT_TAKES_TEXT, DT_FLAG_PART, "nodes: slurm:N, and nodes_min of MIN-MAX", NULL},
    {"--ntasks-per-node", NULL, DT_TAKES_INT, DT_FLAG_PART, "gpus, where nothing else says how many", NULL},
    {"--ntasks", "-n", DT_TAKES_INT, DT_FLAG_LEFT, "ranks of a node are its 'gpus', or 'ranks'", NULL},
    {"--gpus-per-node", NULL, DT_TAKES_TEXT, DT_FLAG_PART, "gpus; with a type slurm.options as well", NULL},
    {"--gres", NULL, DT_TAKES_TEXT, DT_FLAG_PART, "gpus of gpu:N; slurm.options", NULL},
    {"--gpus", "-G", DT_TAKES_TEXT, DT_FLAG_PART, "gpus, divided among the nodes", NULL},
    {"--gpus-per-task", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "a rank has one device", "1"},
    {"--cpus-per-task", "-c", DT_TAKES_INT, DT_FLAG_FIELD, "threads", NULL},
    {"--job-name", "-J", DT_TAKES_TEXT, DT_FLAG_PART, "name", NULL},
    {"--partition", "-p", DT_TAKES_TEXT, DT_FLAG_PART, PASSED, NULL},
    {"--time", "-t", DT_TAKES_TEXT, DT_FLAG_PART, PASSED, NULL},
    {"--account", "-A", DT_TAKES_TEXT, DT_FLAG_PART, PASSED, NULL},
    {"--qos", "-q", DT_TAKES_TEXT, DT_FLAG_PART, PASSED, NULL},
    {"--constraint", "-C", DT_TAKES_TEXT, DT_FLAG_PART, PASSED, NULL},
    {"--reservation", NULL, DT_TAKES_TEXT, DT_FLAG_PART, PASSED, NULL},
    {"--nodelist", "-w", DT_TAKES_TEXT, DT_FLAG_PART, PASSED, NULL},
    {"--exclude", "-x", DT_TAKES_TEXT, DT_FLAG_PART, PASSED, NULL},
    {"--mem", NULL, DT_TAKES_TEXT, DT_FLAG_PART, PASSED, NULL},
    {"--mem-per-cpu", NULL, DT_TAKES_TEXT, DT_FLAG_PART, PASSED, NULL},
    {"--mem-per-gpu", NULL, DT_TAKES_TEXT, DT_FLAG_PART, PASSED, NULL},
    {"--mail-type", NULL, DT_TAKES_TEXT, DT_FLAG_PART, PASSED, NULL},
    {"--mail-user", NULL, DT_TAKES_TEXT, DT_FLAG_PART, PASSED, NULL},
    {"--dependency", "-d", DT_TAKES_TEXT, DT_FLAG_PART, PASSED, NULL},
    {"--comment", NULL, DT_TAKES_TEXT, DT_FLAG_PART, PASSED, NULL},
    {"--exclusive", NULL, DT_TAKES_NOTHING, DT_FLAG_PART, PASSED, NULL},
    {"--output", "-o", DT_TAKES_TEXT, DT_FLAG_LEFT, OWN " output: see 'dtrun logs'", NULL},
    {"--error", "-e", DT_TAKES_TEXT, DT_FLAG_LEFT, OWN " output: see 'dtrun logs'", NULL},
    {"--chdir", "-D", DT_TAKES_TEXT, DT_FLAG_LEFT, OWN " folder; paths start at the recipe's", NULL},
    {"--array", "-a", DT_TAKES_TEXT, DT_FLAG_LEFT, "a job is one run; 'sweep' makes several", NULL},
    {"--requeue", NULL, DT_TAKES_NOTHING, DT_FLAG_LEFT, "'dtrun resume' continues from the last checkpoint", NULL},
    {"--no-requeue", NULL, DT_TAKES_NOTHING, DT_FLAG_LEFT, "that is so", NULL},
    {"--signal", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "'time_limit' saves and ends a run in time", NULL},
    {"--open-mode", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, OWN " output: see 'dtrun logs'", NULL},
    {"--export", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "ranks get the environment that their agent makes", NULL},
    {"--label", "-l", DT_TAKES_NOTHING, DT_FLAG_LEFT, "'dtrun logs' says which rank spoke", NULL},
    {"--kill-on-bad-exit", "-K", DT_TAKES_TEXT, DT_FLAG_LEFT, "a rank that ends is seen at once", NULL},
    {"--cpu-bind", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "dtrun divides the cores of a node ('threads')", NULL},
};
/* clang-format on */

const dt_flag_table dt_slurm_flags = {
    .program = "sbatch", .flags = rows, .count = sizeof(rows) / sizeof(rows[0]), .attached = true};

/* --- the lines that sbatch reads --- */

/* Words of "#SBATCH" lines at the beginning, up to the first command, as one. */
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

            if (line == NULL)
                return DT_FAIL(err, DT_ERR_NOMEM, "no memory");
            st = dt_shell_read(&script, line, strlen(line), source, err);
        }
        for (size_t c = 0; c < script.count && st == DT_OK; c++)
            for (size_t w = 0; w < script.commands[c].count && st == DT_OK; w++)
                st = dt_shell_add_word(out, &script.commands[c].words[w], draft->arena, err);
    }
    return st;
}

/* "4", "a100:4", "gpu:4", "gpu:a100:4(S:0-1)": the number; 0: there is none. */
static int64_t devices_in(const char *text)
{
    const char *last = strrchr(text, ':'), *digits = last != NULL ? last + 1 : text;
    char *end;
    long long count = strtoll(digits, &end, 10);

    if (end == digits || count < 1 || count > 1024)
        return strcmp(text, "gpu") == 0 ? 1 : 0;
    return count;
}

static void take_nodes(dt_launcher *job, const dt_flags *flags, dt_draft *draft)
{
    const char *text = dt_flags_text(flags, "--nodes", "1"),
               *from = dt_flags_from(flags, "--nodes");
    long long first, last;
    char *end;

    first = last = strtoll(text, &end, 10);
    if (*end == '-')
        last = strtoll(end + 1, &end, 10);
    if (*end != '\0' || first < 1 || last < first || last > 1024) {
        dt_draft_left(draft, from, "expected 1 to 1024 nodes, or MIN-MAX");
        first = last = 1;
    }
    job->slurm = true;
    job->nodes = last;
    job->nodes_min = first < last ? first : 0;
    job->nodes_from = dt_flags_given(flags, "--nodes") ? from : "one node, sbatch's default";
}

static void take_devices(dt_launcher *job, const dt_flags *flags)
{
    static const char *const names[] = {"--gpus-per-node", "--gres", "--gpus", NULL};

    for (size_t i = 0; names[i] != NULL && job->per_node == 0; i++) {
        int64_t count = devices_in(dt_flags_text(flags, names[i], ""));

        if (count == 0 || (strcmp(names[i], "--gres") == 0 &&
                           strncmp(dt_flags_text(flags, names[i], ""), "gpu", 3) != 0))
            continue;
        job->per_node =
            strcmp(names[i], "--gpus") == 0 ? (count + job->nodes - 1) / job->nodes : count;
        job->from = dt_flags_from(flags, names[i]);
    }
}

/* What sbatch is given as it is, in its long form. */
static void carry_options(dt_draft *draft, const dt_flags *flags)
{
    enum { MOST = 64 };
    const char *options[MOST];
    size_t count = 0;

    for (size_t i = 0; i < flags->table->count && count < MOST; i++) {
        const dt_flag *flag = &flags->table->flags[i];
        const char *text = flags->uses[i].text;
        bool typed = strstr(flag->into, "slurm.options") != NULL && text != NULL &&
                     (strcmp(flag->into, PASSED) == 0 || strcmp(flag->name, "--gres") == 0 ||
                      strchr(text, ':') != NULL);

        if (!typed)
            continue;
        if (strcmp(flag->name, "--gpus-per-node") == 0) /* that is dtrun's own to set */
            options[count] = dt_arena_printf(draft->arena, "--gres=gpu:%s", text);
        else
            options[count] = flag->takes == DT_TAKES_NOTHING
                                 ? flag->name
                                 : dt_arena_printf(draft->arena, "%s=%s", flag->name, text);
        count += options[count] != NULL;
    }
    if (count > 0)
        dt_draft_texts(draft, "slurm.options", options, count, "#SBATCH");
}

/* A name that a recipe may have; else it is left out. */
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

/* What the script may ask for by name. */
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

/* The job's nodes and devices go over what a launcher inside of it says. */
static void carry_job(dt_draft *draft, const dt_launcher *job, const dt_flags *flags)
{
    dt_draft_remove(draft, "nodes");
    dt_draft_remove(draft, "nodes_min");
    if (job->per_node > 0)
        dt_draft_remove(draft, "gpus");
    dt_launcher_carry(job, draft);
    carry_options(draft, flags);
    carry_name(draft, flags);
    dt_flags_carry(flags);
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
    take_nodes(&job, &flags, draft);
    take_devices(&job, &flags);
    if (job.per_node == 0 && dt_flags_number(&flags, "--ntasks-per-node", 0) > 1) {
        job.per_node = (int64_t)dt_flags_number(&flags, "--ntasks-per-node", 0);
        job.from = dt_flags_from(&flags, "--ntasks-per-node");
    }
    DT_TRY(define_job(&script, &job, err));
    DT_TRY(dt_shell_read(&script, text, length, path, err));
    DT_TRY(dt_tools_convert(&found, draft, &script, NULL, folder, err));
    draft->is_layer = found == NULL;
    if (draft->is_layer)
        dt_draft_note(draft, path,
                      "it starts nothing that dtrun knows: this is a layer, to put on a recipe "
                      "('dtrun launch RECIPE -f FILE')");
    carry_job(draft, &job, &flags);
out:
    return st;
}
