#include "runner/convert/launcher.h"

#include <stdlib.h>
#include <string.h>

static bool is_one_of(const char *word, const char *const *words)
{
    for (size_t i = 0; words[i] != NULL; i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

static dt_status refuse_word(const dt_shell_word *word, const char *reason, dt_error *err)
{
    if (word->line > 0)
        return DT_FAIL(err, DT_ERR_USAGE, "line %d: '%s': %s", word->line, word->text, reason);
    return DT_FAIL(err, DT_ERR_USAGE, "'%s': %s", word->text, reason);
}

/* --- NAME=value --- */

static void take_variable(dt_launcher *l, const dt_shell_word *word, dt_draft *draft)
{
    size_t length = dt_shell_assigned(word->text);
    const char *value = word->text + length + 1;

    if (length == 20 && strncmp(word->text, "CUDA_VISIBLE_DEVICES", length) == 0 &&
        word->open == NULL) {
        dt_launcher_choose(l, value, word->text, draft);
    } else if (length == 15 && strncmp(word->text, "OMP_NUM_THREADS", length) == 0 &&
               word->open == NULL && strtol(value, NULL, 10) > 0 &&
               strtol(value, NULL, 10) <= DT_LAUNCHER_NODES_MOST) {
        dt_draft_number(draft, "threads", (double)strtol(value, NULL, 10), "%s", word->text);
    } else if (l->keeps) {
        dt_launcher_variable(l, word->text, word->open, draft);
    } else {
        dt_draft_left(draft, word->text, "ranks get the environment that their agent makes");
    }
}

/* --- srun */

/* Adds the variables of --export: NAME=value, NAME, ALL. */
static void take_exports(dt_launcher *l, const char *list, dt_draft *draft)
{
    size_t length;

    for (const char *at = list; *at != '\0'; at += length + (at[length] == ',')) {
        const char *item;

        length = strcspn(at, ",");
        item = dt_arena_strndup(draft->arena, at, length);
        if (strcmp(item, "ALL") == 0 || strcmp(item, "NONE") == 0 || strcmp(item, "NIL") == 0)
            dt_draft_left(draft, dt_arena_printf(draft->arena, "--export %s", item),
                          "ranks get the environment of the node's login");
        else if (l->keeps)
            dt_launcher_variable(l, item, NULL, draft);
        else
            dt_draft_left(draft, item, "ranks get the environment that their agent makes");
    }
}

/* Reads srun's options, which replace those of the job for its step. */
static dt_status take_srun(dt_launcher *l, dt_draft *draft, dt_error *err)
{
    dt_flags flags;
    dt_launcher own = {0};
    dt_status st;

    if (l->steps)
        return DT_FAIL(err, DT_ERR_USAGE, "srun starts srun: give one of them");
    DT_TRY(dt_flags_read(&flags, &dt_srun_flags, l->words, l->count, draft, err));
    own.nodes = 0;
    DT_TRY(dt_slurm_read_size(&own, &flags, err));
    if (own.tasks_total > 0 && l->nodes > 0) {
        if (own.tasks_total % l->nodes != 0)
            DT_THROW(err, DT_ERR_USAGE, "%s: the tasks cannot be divided among %lld nodes",
                     own.from, (long long)l->nodes);
        own.tasks = own.tasks_total / l->nodes;
        own.tasks_total = 0;
    }
    if (own.nodes > 0 && l->nodes > 0 && own.nodes != l->nodes)
        DT_THROW(err, DT_ERR_USAGE,
                 "srun uses %lld of the job's %lld nodes: a run uses all of its nodes",
                 (long long)own.nodes, (long long)l->nodes);
    if (own.gpus > 0 && l->gpus > 0 && own.gpus != l->gpus &&
        !dt_flags_given(&flags, "--gpus-per-task"))
        DT_THROW(err, DT_ERR_USAGE, "srun uses %lld of the job's %lld GPUs: give the same number",
                 (long long)own.gpus, (long long)l->gpus);
    if (own.nodes > 0) {
        if (l->nodes > 0)
            dt_draft_same(draft, own.nodes_from, "the job has the same value");
        l->nodes_from = own.nodes_from;
        l->nodes_min = l->nodes > 0 ? l->nodes_min : own.nodes_min;
        l->nodes = own.nodes;
    }
    if (own.tasks > 0 || own.tasks_total > 0) {
        l->tasks = own.tasks;
        l->tasks_total = own.tasks_total;
        l->from = own.from;
    }
    if (own.gpus > 0 && l->gpus == 0) {
        l->gpus = own.gpus;
        l->gpus_from = own.gpus_from;
    } else if (own.gpus > 0) {
        dt_draft_same(draft, own.gpus_from, "the job has the same value");
    }
    if (own.task_threads > 0) {
        l->task_threads = own.task_threads;
        l->threads_from = own.threads_from;
    }
    l->slurm = l->steps = true;
    if (dt_flags_given(&flags, "--chdir"))
        dt_draft_text(draft, "workdir.folder", dt_flags_text(&flags, "--chdir", ""), "%s",
                      dt_flags_from(&flags, "--chdir"));
    for (size_t i = 0; i < flags.each_count; i++)
        take_exports(l, flags.each[i].text, draft);
    for (size_t i = 0; i < flags.table->count; i++)
        if (strcmp(flags.table->flags[i].into, DT_SLURM_PASSED) == 0 && flags.uses[i].shown != NULL)
            dt_draft_left(draft, flags.uses[i].shown,
                          "the options of the job are in 'slurm.options' of the recipe");
    dt_flags_carry(&flags);
    dt_launcher_drop(l, flags.taken);
out:
    return st;
}

/* --- python */

/* Skips Python's own flags; reads torch.distributed's flags in "python -u -m torch.distributed.launch". */
static dt_status take_python(bool *more, dt_launcher *l, dt_draft *draft, dt_error *err)
{
    static const char *const alone[] = {"-u", "-O", "-OO", "-B", "-E", "-s", "-S",
                                        "-I", "-q", "-v",  "-b", "-d", "-P", NULL};
    const char *module;
    size_t at = 1;

    while (at < l->count && l->words[at].text[0] == '-' && strcmp(l->words[at].text, "-m") != 0 &&
           strcmp(l->words[at].text, "-c") != 0) {
        bool takes = strcmp(l->words[at].text, "-X") == 0 || strcmp(l->words[at].text, "-W") == 0;

        if (!takes && !is_one_of(l->words[at].text, alone) &&
            strncmp(l->words[at].text, "-X", 2) != 0 && strncmp(l->words[at].text, "-W", 2) != 0)
            return refuse_word(&l->words[at], "unknown flag of python", err);
        at += takes ? 2 : 1;
    }
    module = at + 1 < l->count && strcmp(l->words[at].text, "-m") == 0 ? l->words[at + 1].text : "";
    if (strcmp(module, "torch.distributed.launch") == 0 ||
        strcmp(module, "torch.distributed.run") == 0) {
        for (size_t i = 0; l->keeps && i < at; i++)
            dt_launcher_keep(l, &l->words[i], draft);
        dt_launcher_drop(l, at + 2);
        return dt_launcher_torch(l, "", strcmp(module, "torch.distributed.launch") == 0, draft,
                                 err);
    }
    if (strcmp(module, "accelerate.commands.launch") == 0 && l->keeps)
        return dt_launcher_accelerate(l, at + 2, draft, err);
    if (strncmp(module, "deepspeed.launcher", 18) == 0)
        return refuse_word(&l->words[at + 1], "give the command 'deepspeed'", err);
    if (at >= l->count)
        return refuse_word(&l->words[0], "it starts no program", err);
    *more = false;
    if (l->keeps) /* Python is the program */
        return DT_OK;
    dt_launcher_drop(l, module[0] != '\0' ? at + 1 : at);
    return DT_OK;
}

/* --- programs that start another program in its environment, and stay in the command */

static const struct wrapper {
    const char *name, *second; /* "uv", "run" */
    const char *takes;         /* " --name ": options that take a word */
    const char *alone;         /* options that take none */
} wrappers[] = {
    {"uv", "run",
     " --with --python -p --extra --group --project --package --env-file --with-requirements ",
     " --frozen --locked --no-sync --active --isolated --offline --no-dev --all-extras "
     "--no-project -q --quiet "},
    {"poetry", "run", " ", " "},
    {"pipenv", "run", " ", " "},
    {"pdm", "run", " ", " "},
    {"pixi", "run", " -e --environment --manifest-path ", " --frozen --locked "},
    {"conda", "run", " -n --name -p --prefix --cwd ", " --no-capture-output --live-stream -v "},
    {"mamba", "run", " -n --name -p --prefix --cwd ", " --no-capture-output --live-stream -v "},
    {"micromamba", "run", " -n --name -p --prefix --cwd ", " -v "},
};

static const struct wrapper *find_wrapper(const char *name)
{
    for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++)
        if (strcmp(wrappers[i].name, name) == 0)
            return &wrappers[i];
    return NULL;
}

static dt_status take_wrapper(dt_launcher *l, const struct wrapper *wrapper, dt_draft *draft,
                              dt_error *err)
{
    dt_strbuf words;
    size_t at = 2;

    if (l->count < 3 || strcmp(l->words[1].text, wrapper->second) != 0)
        return refuse_word(&l->words[0], "it starts no program with 'run'", err);
    for (; at < l->count && l->words[at].text[0] == '-'; at++) {
        const char *word = l->words[at].text;
        const char *padded = dt_arena_printf(draft->arena, " %.*s ", (int)strcspn(word, "="), word);

        if (strcmp(word, "--") == 0) {
            at++;
            break;
        }
        if (strstr(wrapper->takes, padded) != NULL)
            at += strchr(word, '=') == NULL;
        else if (strstr(wrapper->alone, padded) == NULL)
            return refuse_word(&l->words[at],
                               dt_arena_printf(draft->arena, "unknown flag of %s", wrapper->name),
                               err);
    }
    at = at < l->count ? at : l->count;
    dt_strbuf_init(&words);
    for (size_t i = 0; i < at; i++) {
        dt_strbuf_add_fmt(&words, "%s%s", i > 0 ? " " : "", l->words[i].text);
        if (l->keeps)
            dt_launcher_keep(l, &l->words[i], draft);
    }
    if (!l->keeps)
        dt_draft_left(draft, words.data, "dtrun's ranks need no Python");
    dt_strbuf_release(&words);
    dt_launcher_drop(l, at);
    return DT_OK;
}

/* --- the beginning of the command --- */

static dt_status once(dt_launcher *l, const char *name, dt_error *err)
{
    if (l->by != NULL)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "%s starts %s, which starts processes too: give one of them", l->by, name);
    l->by = name;
    return DT_OK;
}

/* Returns the reason why a program before the command is refused; NULL: it is not. */
static const char *wrapper_reason(const char *name)
{
    static const char *const cores[] = {"numactl", "taskset", "nice", "ionice", "chrt", NULL};
    static const char *const prints[] = {"stdbuf", "unbuffer", "strace", "ltrace", "nsys", "ncu",
                                         "perf",   "valgrind", "gdb",    "py-spy", NULL};

    if (strcmp(name, "timeout") == 0)
        return "set 'time_limit' of the recipe, and remove it";
    if (is_one_of(name, cores))
        return "dtrun divides the cores of a node among its ranks ('threads'): remove it";
    if (is_one_of(name, prints))
        return "it starts the command in another way: remove it";
    return dt_script_refused_program(name);
}

/* Skips one item before the program, such as NAME=value or a launcher. *more: another one may follow. */
static dt_status take_one(bool *more, dt_launcher *l, dt_draft *draft, dt_error *err)
{
    static const char *const plain[] = {"nohup", "env", "time", "command", "setsid", NULL};
    static const char *const mpis[] = {"mpirun",         "mpiexec",         "mpiexec.hydra",
                                       "mpirun.openmpi", "mpiexec.openmpi", "mpirun.mpich",
                                       "mpiexec.mpich",  "orterun",         NULL};
    const dt_shell_word *first = &l->words[0];
    const char *word = first->text, *name = dt_launcher_name(word);
    dt_status st;

    *more = true;
    if (first->assigns) {
        take_variable(l, first, draft);
        dt_launcher_drop(l, 1);
        return DT_OK;
    }
    if (is_one_of(name, plain)) {
        if (l->count > 1 && l->words[1].text[0] == '-')
            return refuse_word(&l->words[1], "an option before the command: remove it", err);
        dt_launcher_drop(l, 1);
        return DT_OK;
    }
    if (wrapper_reason(name) != NULL)
        return refuse_word(first, wrapper_reason(name), err);
    if (find_wrapper(name) != NULL)
        return take_wrapper(l, find_wrapper(name), draft, err);
    if (strncmp(name, "python", 6) == 0 && name[6 + strspn(name + 6, "0123456789.")] == '\0')
        return take_python(more, l, draft, err);
    if (strcmp(name, "srun") == 0) {
        dt_launcher_drop(l, 1);
        return take_srun(l, draft, err);
    }
    if (strcmp(name, "torchrun") == 0) {
        dt_launcher_drop(l, 1);
        return dt_launcher_torch(l, word, false, draft, err);
    }
    if (is_one_of(name, mpis)) {
        dt_launcher_drop(l, 1);
        st = once(l, "mpirun", err);
        return st == DT_OK ? dt_launcher_mpi(l, draft, err) : st;
    }
    *more = false;
    if (strcmp(name, "deepspeed") == 0 && l->keeps) {
        dt_launcher_drop(l, 1);
        st = once(l, "deepspeed", err);
        *more = false;
        return st == DT_OK ? dt_launcher_deepspeed(l, word, draft, err) : st;
    }
    if (strcmp(name, "accelerate-launch") == 0 && l->keeps)
        return dt_launcher_accelerate(l, 1, draft, err);
    if (strcmp(name, "accelerate") == 0 && l->keeps) {
        if (l->count < 2 || strcmp(l->words[1].text, "launch") != 0)
            return refuse_word(first, "it starts no training without 'launch'", err);
        return dt_launcher_accelerate(l, 2, draft, err);
    }
    return DT_OK;
}

/* Combines a Slurm job with the launcher that it starts. */
static dt_status settle_slurm(dt_launcher *l, const dt_launcher *job, dt_error *err)
{
    const char *by = l->by != NULL ? l->by : "the program";

    if (l->tasks_total > 0)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "%s: Slurm decides the number of nodes: give --nodes, or --ntasks-per-node "
                       "with --nodes",
                       l->from);
    if (l->nodes == 0) {
        l->nodes = 1;
        l->nodes_from = job != NULL ? "one node, sbatch's default" : "one node, srun's default";
    }
    if (l->by != NULL && strcmp(l->by, "mpirun") == 0 && !l->steps) {
        if (l->per_node == 0 && l->nodes == 1)
            l->per_node = l->total > 0 ? l->total : l->tasks;
        if (l->per_node == 0 && l->tasks > 0 && (l->total == 0 || l->total == l->tasks * l->nodes))
            l->per_node = l->tasks;
        if (l->per_node == 0 || (l->total > 0 && l->total != l->per_node * l->nodes))
            return DT_FAIL(err, DT_ERR_USAGE,
                           "it is not certain how many processes mpirun starts on each of %lld "
                           "nodes: give -npernode",
                           (long long)l->nodes);
        return DT_OK;
    }
    if (l->asked > 0 && (l->asked != l->nodes || (l->asked_min > 0 && l->nodes_min == 0)))
        return DT_FAIL(err, DT_ERR_USAGE, "%s: %s uses %lld nodes, and the job has %lld",
                       l->asked_from, by, (long long)l->asked, (long long)l->nodes);
    if (!l->steps && l->nodes > 1)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "the script starts %s on the first of %lld nodes only: put 'srun' before "
                       "it",
                       by, (long long)l->nodes);
    if (l->by == NULL) {
        l->per_node = l->steps && l->tasks > 0 ? l->tasks : 1;
        l->any = true;
    } else if (l->steps && l->tasks > 1) {
        return DT_FAIL(err, DT_ERR_USAGE,
                       "srun starts %s %lld times on each node (%s): it must start it once", by,
                       (long long)l->tasks, l->from);
    }
    return DT_OK;
}

dt_status dt_launcher_read(dt_launcher *out, const dt_script *script, const dt_launcher *job,
                           bool keeps, dt_draft *draft, dt_error *err)
{
    const dt_shell_command *command = &script->command;
    bool more = true;
    dt_status st = DT_OK;

    *out = job != NULL ? *job : (dt_launcher){0};
    out->program = "";
    out->words = command->words;
    out->count = command->count;
    out->keeps = keeps;
    out->workdir = script->folder;
    for (size_t i = 0; i < script->exported.count; i++)
        take_variable(out, &script->exported.items[i], draft);
    while (st == DT_OK && more && out->count > 0)
        st = take_one(&more, out, draft, err);
    if (st != DT_OK)
        return st;
    if (out->count == 0 || (out->words[0].text[0] == '-' && !out->by_node))
        return DT_FAIL(err, DT_ERR_USAGE, "the command line starts no program");
    out->program = out->words[0].text;
    out->in_path = out->words[0].in_path;
    if (out->words[0].open != NULL)
        return dt_script_refuse_open(script->source, &out->words[0], out->program, err);
    dt_launcher_drop(out, 1);
    if (out->slurm)
        return settle_slurm(out, job, err);
    if (out->nodes == 0 && out->asked > 0) {
        out->nodes = out->asked;
        out->nodes_min = out->asked_min;
        out->nodes_from = out->asked_from;
    }
    return DT_OK;
}
