#include "runner/convert/launcher.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

enum { NODES_MOST = 1024 };

const char *dt_launcher_name(const char *program)
{
    const char *slash = strrchr(program, '/');

    return slash != NULL ? slash + 1 : program;
}

static bool is_one_of(const char *word, const char *const *words)
{
    for (size_t i = 0; words[i] != NULL; i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

static void drop(dt_launcher *l, size_t words)
{
    l->words += words;
    l->count -= words;
}

/* --- NAME=value --- */

static int64_t count_listed(const char *list)
{
    int64_t count = list[0] != '\0';

    for (const char *c = list; *c != '\0'; c++)
        count += *c == ',';
    return count;
}

static void take_variable(dt_launcher *l, const dt_shell_word *word, dt_draft *draft)
{
    size_t length = dt_shell_assigned(word->text);
    const char *value = word->text + length + 1;

    if (length == 20 && strncmp(word->text, "CUDA_VISIBLE_DEVICES", length) == 0 && !word->open) {
        l->visible = count_listed(value);
        if (l->from == NULL)
            l->from = word->text;
        if (value[0] != '\0' && value[0] != '0')
            dt_draft_note(draft, word->text,
                          "'gpus' is how many; dtrun takes the first so many of those it sees: set "
                          "this variable where dtrun is started, for others");
    } else if (length == 15 && strncmp(word->text, "OMP_NUM_THREADS", length) == 0 && !word->open &&
               strtol(value, NULL, 10) > 0 && strtol(value, NULL, 10) <= NODES_MOST) {
        dt_draft_number(draft, "threads", (double)strtol(value, NULL, 10), "%s", word->text);
    } else {
        dt_draft_left(draft, word->text, "ranks get the environment that their agent makes");
    }
}

/* --- torchrun --- */

/* "2", or "2:4" for 2 to 4. */
static void take_nodes(dt_launcher *l, const dt_flags *flags, dt_draft *draft)
{
    const char *text = dt_flags_text(flags, "--nnodes", NULL), *colon;
    long long first, last;
    char *end;

    if (text == NULL)
        return;
    first = last = strtoll(text, &end, 10);
    colon = *end == ':' ? end : NULL;
    if (colon != NULL)
        last = strtoll(colon + 1, &end, 10);
    if (end == text || *end != '\0' || first < 1 || last < first || last > NODES_MOST) {
        dt_draft_left(draft, dt_flags_about(flags, "--nnodes"),
                      "expected 1 to %d nodes, or MIN:MAX", NODES_MOST);
        return;
    }
    l->nodes = last;
    l->nodes_min = colon != NULL ? first : 0;
    l->nodes_from = dt_flags_from(flags, "--nnodes");
}

static void take_per_node(dt_launcher *l, const dt_flags *flags, dt_draft *draft)
{
    const char *text = dt_flags_text(flags, "--nproc_per_node", NULL);
    const char *shown = dt_flags_from(flags, "--nproc_per_node");
    char *end;

    if (text == NULL || strcmp(text, "gpu") == 0 || strcmp(text, "auto") == 0)
        return; /* all that there are, as dtrun has it */
    l->per_node = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || l->per_node < 1 || l->per_node > NODES_MOST) {
        dt_draft_left(draft, shown, "expected 1 to %d processes, or 'gpu'", NODES_MOST);
        l->per_node = 0;
    } else {
        l->from = shown;
    }
}

static dt_status take_torch(dt_launcher *l, dt_draft *draft, dt_error *err)
{
    dt_flags flags;
    dt_status st = dt_flags_read(&flags, &dt_launcher_torch_flags, l->words, l->count, draft, err);

    if (st != DT_OK)
        return st;
    dt_flags_carry(&flags);
    take_nodes(l, &flags, draft);
    take_per_node(l, &flags, draft);
    l->first_node = dt_flags_text(&flags, "--master_addr", NULL);
    drop(l, flags.taken);
    return DT_OK;
}

/* --- mpirun, srun --- */

static dt_status take_mpi(dt_launcher *l, dt_draft *draft, dt_error *err)
{
    dt_flags flags;
    dt_status st = dt_flags_read(&flags, &dt_launcher_mpi_flags, l->words, l->count, draft, err);

    if (st != DT_OK)
        return st;
    dt_flags_carry(&flags);
    l->total = (int64_t)dt_flags_number(&flags, "-np", dt_flags_number(&flags, "--np", 0));
    l->per_node = (int64_t)dt_flags_number(&flags, "-N", dt_flags_number(&flags, "-ppn", 0));
    l->from = dt_flags_from(&flags, l->per_node > 0 ? dt_flags_given(&flags, "-N") ? "-N" : "-ppn"
                                    : dt_flags_given(&flags, "-np") ? "-np"
                                                                    : "--np");
    if (dt_flags_given(&flags, "-H") || dt_flags_given(&flags, "-host"))
        dt_draft_left(draft, dt_flags_about(&flags, dt_flags_given(&flags, "-H") ? "-H" : "-host"),
                      "put these names into 'nodes'");
    drop(l, flags.taken);
    return DT_OK;
}

/* Inside of a job srun starts what the job has: its own numbers say the same again. */
static dt_status take_srun(dt_launcher *l, dt_draft *draft, dt_error *err)
{
    dt_flag_table table = dt_slurm_flags;
    dt_flags flags;
    dt_status st;

    table.stops_at_operand = true;
    st = dt_flags_read(&flags, &table, l->words, l->count, draft, err);
    if (st != DT_OK)
        return st;
    l->slurm = true;
    if (dt_flags_given(&flags, "--nodes")) {
        l->nodes = strtoll(dt_flags_text(&flags, "--nodes", "0"), NULL, 10);
        l->nodes_from = dt_flags_from(&flags, "--nodes");
    }
    l->per_node = (int64_t)dt_flags_number(&flags, "--ntasks-per-node", 0);
    if (l->per_node > 0)
        l->from = dt_flags_from(&flags, "--ntasks-per-node");
    drop(l, flags.taken);
    return DT_OK;
}

/* --- the line --- */

/* "python -u -m torch.distributed.launch": behind the flags of Python itself. */
static dt_status take_python(dt_launcher *l, dt_draft *draft, dt_error *err)
{
    drop(l, 1);
    while (l->count > 1 && l->words[0].text[0] == '-' && strcmp(l->words[0].text, "-m") != 0)
        drop(l, 1);
    if (l->count == 0 || strcmp(l->words[0].text, "-m") != 0)
        return DT_OK;
    drop(l, 1);
    if (l->count == 0 || (strcmp(l->words[0].text, "torch.distributed.launch") != 0 &&
                          strcmp(l->words[0].text, "torch.distributed.run") != 0))
        return DT_OK;
    drop(l, 1);
    return take_torch(l, draft, err);
}

/* One thing in front of the program; *more: there may be another. */
static dt_status take_one(bool *more, dt_launcher *l, dt_draft *draft, dt_error *err)
{
    static const char *const plain[] = {"nohup", "exec",  "time",  "env", "if", "then", "else",
                                        "do",    "while", "until", "!",   "{",  "sudo", NULL};
    static const char *const mpis[] = {"mpirun", "mpiexec", "mpiexec.hydra", NULL};
    const char *word = l->words[0].text, *name = dt_launcher_name(word);

    *more = true;
    if (dt_shell_assigned(word) > 0) {
        take_variable(l, &l->words[0], draft);
        drop(l, 1);
    } else if (is_one_of(name, plain)) {
        drop(l, 1);
    } else if (strncmp(name, "python", 6) == 0 &&
               name[6 + strspn(name + 6, "0123456789.")] == '\0') {
        return take_python(l, draft, err);
    } else if (strcmp(name, "torchrun") == 0) {
        drop(l, 1);
        return take_torch(l, draft, err);
    } else if (is_one_of(name, mpis)) {
        drop(l, 1);
        return take_mpi(l, draft, err);
    } else if (strcmp(name, "srun") == 0) {
        drop(l, 1);
        return take_srun(l, draft, err);
    } else {
        *more = false;
    }
    return DT_OK;
}

dt_status dt_launcher_read(dt_launcher *out, const dt_shell_command *command, dt_draft *draft,
                           dt_error *err)
{
    bool more = true;
    dt_status st = DT_OK;

    *out = (dt_launcher){
        .program = "", .words = command->words, .count = command->count, .visible = -1};
    while (st == DT_OK && more && out->count > 0)
        st = take_one(&more, out, draft, err);
    if (st == DT_OK && out->count > 0) {
        out->program = out->words[0].text;
        drop(out, 1);
    }
    return st;
}

/* --- what it comes to --- */

int64_t dt_launcher_devices(const dt_launcher *l)
{
    int64_t nodes = l->nodes > 0 ? l->nodes : 1;

    if (l->per_node > 0)
        return l->per_node;
    if (l->total > 0 && l->total % nodes == 0)
        return l->total / nodes;
    return l->visible > 0 ? l->visible : 0;
}

int64_t dt_launcher_world(const dt_launcher *l)
{
    return dt_launcher_devices(l) * (l->nodes > 0 ? l->nodes : 1);
}

/* The command line names the first at most. */
static void carry_nodes(const dt_launcher *l, dt_draft *draft)
{
    dt_strbuf names;

    dt_strbuf_init(&names);
    for (int64_t i = 0; i < l->nodes; i++) {
        const char *first = i == 0 && l->first_node != NULL ? l->first_node : NULL;

        dt_strbuf_add_fmt(&names, "%s", i > 0 ? ", " : "[");
        if (first != NULL &&
            first[strspn(first, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789.-_")] == '\0')
            dt_strbuf_add_fmt(&names, "\"%s\"", first);
        else
            dt_strbuf_add_fmt(&names, "node%lld", (long long)i + 1);
    }
    dt_strbuf_add_char(&names, ']');
    dt_draft_word(draft, "nodes", names.data, "%s", l->nodes_from);
    dt_draft_note(draft, l->nodes_from,
                  "the command line does not say what %s nodes are called: put their names into "
                  "'nodes', as 'ssh NAME' takes them",
                  l->first_node != NULL ? "the other" : "the");
    dt_strbuf_release(&names);
}

void dt_launcher_carry(const dt_launcher *l, dt_draft *draft)
{
    int64_t devices = dt_launcher_devices(l);

    if (l->slurm && l->nodes > 0)
        dt_draft_text(draft, "nodes",
                      dt_arena_printf(draft->arena, "slurm:%lld", (long long)l->nodes), "%s",
                      l->nodes_from);
    else if (l->nodes > 1)
        carry_nodes(l, draft);
    if (l->nodes_min > 0)
        dt_draft_number(draft, "nodes_min", (double)l->nodes_min, "%s", l->nodes_from);
    if (devices > 0)
        dt_draft_number(draft, "gpus", (double)devices, "%s", l->from != NULL ? l->from : "");
    else if (l->visible == 0)
        dt_draft_word(draft, "gpus", "none", "CUDA_VISIBLE_DEVICES= is empty");
}
