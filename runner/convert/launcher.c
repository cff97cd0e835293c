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

/* Adds a word to those that precede the program. */
static void keep(dt_launcher *l, const char *text, bool open, dt_draft *draft)
{
    dt_shell_add_to(&l->before, text, strlen(text), 0, draft->arena);
    l->before.items[l->before.count - 1].open = open;
}

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
                          "'gpus' is a number, and dtrun uses the first visible GPUs: to use "
                          "others, set this variable where dtrun is started");
    } else if (length == 15 && strncmp(word->text, "OMP_NUM_THREADS", length) == 0 && !word->open &&
               strtol(value, NULL, 10) > 0 && strtol(value, NULL, 10) <= NODES_MOST) {
        dt_draft_number(draft, "threads", (double)strtol(value, NULL, 10), "%s", word->text);
    } else if (l->keeps) {
        dt_shell_add_to(&l->env, word->text, strlen(word->text), 0, draft->arena);
        l->env.items[l->env.count - 1].open = word->open;
    } else {
        dt_draft_left(draft, word->text, "ranks get the environment that their agent makes");
    }
}

/* --- torchrun --- */

/* Parses --nnodes: "2", or "2:4" for 2 to 4 nodes. */
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

    if (text == NULL)
        return;
    if (strcmp(text, "gpu") == 0 || strcmp(text, "auto") == 0) {
        dt_draft_same(draft, shown, "all GPUs of a node are used by default");
        return;
    }
    l->per_node = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || l->per_node < 1 || l->per_node > NODES_MOST) {
        dt_draft_left(draft, shown, "expected 1 to %d processes, or 'gpu'", NODES_MOST);
        l->per_node = 0;
    } else {
        l->from = shown;
    }
}

/* Adds the Python that a launcher runs a script with: `python`, or the one of the launcher's folder. */
static void keep_python(dt_launcher *l, const char *launcher, const dt_flags *flags,
                        dt_draft *draft)
{
    size_t folder = (size_t)(dt_launcher_name(launcher) - launcher);

    if (!l->keeps)
        return;
    if (!dt_flags_given(flags, "--no_python") && launcher[0] != '\0')
        keep(l, dt_arena_printf(draft->arena, "%.*spython", (int)folder, launcher), false, draft);
    if (dt_flags_given(flags, "--module"))
        keep(l, "-m", false, draft);
}

/* launcher: as written; "" for "python -m torch.distributed.launch", whose Python is kept already. */
static dt_status take_torch(dt_launcher *l, const char *launcher, dt_draft *draft, dt_error *err)
{
    dt_flags flags;
    dt_status st = dt_flags_read(&flags, &dt_launcher_torch_flags, l->words, l->count, draft, err);

    if (st != DT_OK)
        return st;
    l->distributes = true;
    l->adds_local_rank = l->adds_local_rank && !dt_flags_given(&flags, "--use_env");
    keep_python(l, launcher, &flags, draft);
    dt_flags_carry(&flags);
    take_nodes(l, &flags, draft);
    take_per_node(l, &flags, draft);
    l->first_node = dt_flags_text(&flags, "--master_addr", NULL);
    l->first_from = dt_flags_from(&flags, "--master_addr");
    drop(l, flags.taken);
    return DT_OK;
}

/* --- mpirun, srun --- */

static bool is_host_name(const char *text, size_t length)
{
    return length > 0 && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789.-_") >= length;
}

/* Parses "h1:8,h2" as hosts with their slots, one slot without a number. *count is 0 if the text is malformed. */
static void split_hosts(dt_launcher_host *out, int64_t *count, const char *text, dt_arena *arena)
{
    size_t length, name;

    *count = 0;
    for (const char *at = text; *at != '\0'; at += length + (at[length] == ',')) {
        char *end;

        length = strcspn(at, ",");
        name = strcspn(at, ":,");
        if (!is_host_name(at, name) || *count == NODES_MOST)
            break;
        out[*count] = (dt_launcher_host){dt_arena_strndup(arena, at, name), 1};
        end = (char *)(uintptr_t)(at + name);
        if (name < length)
            out[*count].processes = strtoll(at + name + 1, &end, 10);
        if (end != at + length || out[*count].processes < 1 || out[*count].processes > NODES_MOST)
            break;
        ++*count;
        if (at[length] == '\0')
            return;
    }
    *count = 0;
}

/* Divides the processes as mpirun does: the first host takes its share (its slots, or -N), then the next one, until
 * -np processes are placed. Without slots and -N the shares are equal. */
static void fill_hosts(dt_launcher *l, bool slots)
{
    int64_t left = l->total > 0 ? l->total : INT64_MAX, used = 0;
    int64_t each = l->per_node > 0 ? l->per_node : slots ? 0 : l->total / l->nodes;

    for (int64_t i = 0; i < l->nodes; i++) {
        dt_launcher_host *host = &l->hosts[i];

        if (each > 0)
            host->processes = each;
        host->processes = host->processes < left ? host->processes : left;
        left -= host->processes;
        used += host->processes > 0;
        l->uneven = l->uneven || (host->processes > 0 && host->processes != l->hosts[0].processes);
    }
    l->nodes = used;
    if (!l->uneven)
        l->per_node = l->hosts[0].processes;
}

static void take_hosts(dt_launcher *l, const dt_flags *flags, const char *flag, dt_draft *draft)
{
    const char *text = dt_flags_text(flags, flag, "");
    dt_launcher_host *hosts = dt_arena_alloc_array(draft->arena, NODES_MOST, sizeof(hosts[0]));
    bool slots = strchr(text, ':') != NULL;
    int64_t count, room = 0;

    split_hosts(hosts, &count, text, draft->arena);
    for (int64_t i = 0; i < count; i++)
        room += hosts[i].processes;
    if (l->per_node > 0)
        room = l->per_node * count;
    if (count == 0 || ((slots || l->per_node > 0) && l->total > room) ||
        (!slots && l->per_node == 0 && l->total % count != 0)) {
        dt_draft_left(draft, dt_flags_about(flags, flag),
                      "the processes cannot be divided among these hosts: put their names into "
                      "'nodes', as in [\"NAME gpus=N\"]");
        return;
    }
    l->hosts = hosts;
    l->nodes = count;
    l->nodes_from = dt_flags_from(flags, flag);
    if (l->from == NULL)
        l->from = l->nodes_from;
    fill_hosts(l, slots || l->total == 0);
}

static dt_status take_mpi(dt_launcher *l, dt_draft *draft, dt_error *err)
{
    const char *total, *each;
    dt_flags flags;
    dt_status st = dt_flags_read(&flags, &dt_launcher_mpi_flags, l->words, l->count, draft, err);

    if (st != DT_OK)
        return st;
    l->distributes = true;
    dt_flags_carry(&flags);
    l->total = (int64_t)dt_flags_number(&flags, "-np", dt_flags_number(&flags, "--np", 0));
    l->per_node = (int64_t)dt_flags_number(&flags, "-N", dt_flags_number(&flags, "-ppn", 0));
    total =
        l->total > 0 ? dt_flags_from(&flags, dt_flags_given(&flags, "-np") ? "-np" : "--np") : NULL;
    each = l->per_node > 0 ? dt_flags_from(&flags, dt_flags_given(&flags, "-N") ? "-N" : "-ppn")
                           : NULL;
    if (total != NULL && each != NULL)
        l->from = dt_arena_printf(draft->arena, "%s, %s", total, each);
    else if (total != NULL || each != NULL)
        l->from = total != NULL ? total : each;
    if (dt_flags_given(&flags, "-H") || dt_flags_given(&flags, "-host"))
        take_hosts(l, &flags, dt_flags_given(&flags, "-H") ? "-H" : "-host", draft);
    drop(l, flags.taken);
    return st;
}

/* Reads srun's options. Inside a job they usually repeat the job's own numbers. */
static dt_status take_srun(dt_launcher *l, dt_draft *draft, dt_error *err)
{
    dt_flag_table table = dt_slurm_flags;
    dt_flags flags;
    dt_status st;

    table.stops_at_operand = true;
    st = dt_flags_read(&flags, &table, l->words, l->count, draft, err);
    if (st != DT_OK)
        return st;
    l->slurm = l->distributes = true;
    dt_slurm_read_size(l, &flags, draft);
    drop(l, flags.taken);
    return DT_OK;
}

/* --- deepspeed, accelerate */

static dt_status take_deepspeed(dt_launcher *l, const char *launcher, dt_draft *draft,
                                dt_error *err)
{
    dt_flags flags;
    dt_status st =
        dt_flags_read(&flags, &dt_launcher_deepspeed_flags, l->words, l->count, draft, err);

    if (st != DT_OK)
        return st;
    l->distributes = true;
    l->adds_local_rank = !dt_flags_given(&flags, "--no_local_rank");
    l->nodes = (int64_t)dt_flags_number(&flags, "--num_nodes", 0);
    l->nodes_from = dt_flags_from(&flags, "--num_nodes");
    l->per_node = (int64_t)dt_flags_number(&flags, "--num_gpus", 0);
    l->from = dt_flags_from(&flags, "--num_gpus");
    l->first_node = dt_flags_text(&flags, "--master_addr", NULL);
    l->first_from = dt_flags_from(&flags, "--master_addr");
    if (l->nodes < 0 || l->nodes > NODES_MOST || l->per_node < 0 || l->per_node > NODES_MOST)
        return DT_FAIL(err, DT_ERR_USAGE, "deepspeed: expected 1 to %d nodes and GPUs", NODES_MOST);
    keep_python(l, launcher, &flags, draft);
    dt_flags_carry(&flags);
    drop(l, flags.taken);
    return DT_OK;
}

/* Reads a flag of accelerate that dtrun sets. Returns the words it has; 0: another flag. */
static size_t take_machine_flag(dt_launcher *l, dt_draft *draft)
{
    static const char *const names[] = {"--num_machines",    "--machine_rank",
                                        "--main_process_ip", "--main_process_port",
                                        "--num_processes",   NULL};
    const char *word = l->words[0].text, *equals = strchr(word, '='), *value, *shown;
    size_t length = equals != NULL ? (size_t)(equals - word) : strlen(word), i = 0;
    long long number;

    while (names[i] != NULL && (strlen(names[i]) != length || strncmp(names[i], word, length) != 0))
        i++;
    if (names[i] == NULL || (equals == NULL && l->count < 2))
        return 0;
    value = equals != NULL ? equals + 1 : l->words[1].text;
    shown = dt_arena_printf(draft->arena, "%s %s", names[i], value);
    number = strtoll(value, NULL, 10);
    if (i == 0 && number >= 1 && number <= NODES_MOST) {
        l->nodes = number;
        l->nodes_from = shown;
    } else if (i == 4 && number >= 1 && number <= NODES_MOST) {
        l->total = number;
        l->from = shown;
    } else if (i == 2) {
        l->first_node = dt_arena_strdup(draft->arena, value);
        l->first_from = shown;
    } else {
        dt_draft_same(draft, shown, "dtrun sets it on each node");
    }
    return equals != NULL ? 1 : 2;
}

/* Keeps "accelerate launch" with its own flags, since it passes settings to the program in its own way; the flags about
 * machines get dtrun's values. */
static void take_accelerate(dt_launcher *l, dt_draft *draft)
{
    static const char *const machines[] = {"--num_machines",
                                           "{nnodes}",
                                           "--machine_rank",
                                           "{node_rank}",
                                           "--main_process_ip",
                                           "{master_addr}",
                                           "--main_process_port",
                                           "{master_port}",
                                           "--num_processes",
                                           "{world_size}",
                                           NULL};

    l->distributes = l->by_node = true;
    keep(l, l->words[0].text, false, draft);
    keep(l, "launch", false, draft);
    drop(l, 2);
    for (size_t i = 0; machines[i] != NULL; i++)
        keep(l, machines[i], false, draft);
    while (l->count > 0) {
        const char *word = l->words[0].text;
        size_t length = strlen(word), taken = take_machine_flag(l, draft);
        bool module = strcmp(word, "-m") == 0 || strcmp(word, "--module") == 0;

        if (length > 3 && strcmp(word + length - 3, ".py") == 0)
            break;
        if (taken == 0)
            keep(l, word, l->words[0].open, draft);
        drop(l, taken > 0 ? taken : 1);
        if (module)
            break;
    }
}

/* --- the beginning of the command --- */

/* Skips Python's own flags; reads torch.distributed's flags in "python -u -m
 * torch.distributed.launch". */
static dt_status take_python(bool *more, dt_launcher *l, dt_draft *draft, dt_error *err)
{
    size_t at = 1, flags;
    bool older;

    while (at + 1 < l->count && l->words[at].text[0] == '-' && strcmp(l->words[at].text, "-m") != 0)
        at++;
    flags = at;
    at += at < l->count && strcmp(l->words[at].text, "-m") == 0;
    older =
        at > flags && at < l->count && strcmp(l->words[at].text, "torch.distributed.launch") == 0;
    if (at > flags && at < l->count &&
        (older || strcmp(l->words[at].text, "torch.distributed.run") == 0)) {
        for (size_t i = 0; l->keeps && i < flags; i++)
            keep(l, l->words[i].text, l->words[i].open, draft);
        l->adds_local_rank = older;
        drop(l, at + 1);
        return take_torch(l, "", draft, err);
    }
    if (l->keeps)
        *more = false; /* Python is the program */
    else
        drop(l, at);
    return DT_OK;
}

/* Programs that start another program. */
static const struct wrapper {
    const char *name;
    const char *takes; /* letters of the short options that take a word */
    const char
        *long_takes; /* " name name ": long options that take a word, unless it follows a '=' */
    size_t operands; /* number of operands before the program */
    const char *why;
} wrappers[] = {
    {"timeout", "sk", " signal kill-after ", 1, "'time_limit' limits the time of a run"},
    {"nice", "n", " adjustment ", 0, "ranks run at the priority of their agent"},
    {"ionice", "cn", " class classdata ", 0, "ranks run at the priority of their agent"},
    {"taskset", "", "", 1, "dtrun divides the cores of a node among its ranks ('threads')"},
    {"numactl", "CNmip", " cpunodebind physcpubind membind interleave preferred ", 0,
     "dtrun divides the cores of a node among its ranks ('threads')"},
    {"stdbuf", "ioe", " input output error ", 0, "'dtrun logs -f' follows what ranks print"},
    {"unbuffer", "", "", 0, "'dtrun logs -f' follows what ranks print"},
    {"conda", "np", " name prefix ", 1, "dtrun's ranks need no Python"},
    {"mamba", "np", " name prefix ", 1, "dtrun's ranks need no Python"},
    {"poetry", "", "", 1, "dtrun's ranks need no Python"},
    {"pipenv", "", "", 1, "dtrun's ranks need no Python"},
    {"uv", "p", " python with ", 1, "dtrun's ranks need no Python"},
    {"sudo", "ugC", " user group close-from ", 0, "ranks run as the user who signs in to the node"},
};

static bool takes_word(const struct wrapper *wrapper, const char *option)
{
    const char *found;

    if (option[1] != '-')
        return option[2] == '\0' && strchr(wrapper->takes, option[1]) != NULL;
    found = option[2] != '\0' ? strstr(wrapper->long_takes, option + 2) : NULL;
    return found != NULL && found[-1] == ' ' && found[strlen(option + 2)] == ' ';
}

/* Skips a wrapper with its options and operands, and adds them to `left` as one entry. */
static void take_wrapper(dt_launcher *l, const struct wrapper *wrapper, dt_draft *draft)
{
    size_t at = 1, operands = wrapper->operands;
    dt_strbuf words;

    while (at < l->count) {
        const char *word = l->words[at].text;

        if (word[0] == '-' && word[1] != '\0') {
            at += takes_word(wrapper, word) ? 2 : 1;
        } else if (operands > 0) {
            operands--;
            at++;
        } else {
            break;
        }
    }
    at = at < l->count ? at : l->count;
    dt_strbuf_init(&words);
    for (size_t i = 0; i < at; i++)
        dt_strbuf_add_fmt(&words, "%s%s", i > 0 ? " " : "", l->words[i].text);
    if (!l->keeps || strcmp(wrapper->name, "timeout") == 0)
        dt_draft_left(draft, words.data, "%s", wrapper->why);
    else
        for (size_t i = 0; i < at; i++, l->wrappers++)
            keep(l, l->words[i].text, l->words[i].open, draft);
    dt_strbuf_release(&words);
    drop(l, at);
}

static const struct wrapper *find_wrapper(const char *name)
{
    for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++)
        if (strcmp(wrappers[i].name, name) == 0)
            return &wrappers[i];
    return NULL;
}

/* Skips one item before the program, such as NAME=value or a wrapper. *more: another one may
 * follow. */
static dt_status take_one(bool *more, dt_launcher *l, dt_draft *draft, dt_error *err)
{
    static const char *const plain[] = {"nohup", "exec",  "time",  "env", "if", "then",    "else",
                                        "do",    "while", "until", "!",   "{",  "command", NULL};
    static const char *const mpis[] = {"mpirun", "mpiexec", "mpiexec.hydra", NULL};
    const char *word = l->words[0].text, *name = dt_launcher_name(word);

    *more = true;
    if (dt_shell_assigned(word) > 0) {
        take_variable(l, &l->words[0], draft);
        drop(l, 1);
    } else if (is_one_of(name, plain)) {
        drop(l, 1);
    } else if (find_wrapper(name) != NULL) {
        take_wrapper(l, find_wrapper(name), draft);
    } else if (strncmp(name, "python", 6) == 0 &&
               name[6 + strspn(name + 6, "0123456789.")] == '\0') {
        return take_python(more, l, draft, err);
    } else if (strcmp(name, "torchrun") == 0) {
        drop(l, 1);
        return take_torch(l, word, draft, err);
    } else if (l->keeps && strcmp(name, "deepspeed") == 0) {
        drop(l, 1);
        return take_deepspeed(l, word, draft, err);
    } else if (l->keeps && strcmp(name, "accelerate") == 0 && l->count > 1 &&
               strcmp(l->words[1].text, "launch") == 0) {
        take_accelerate(l, draft);
        *more = false;
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

dt_status dt_launcher_read(dt_launcher *out, const dt_shell_command *command,
                           const dt_shell_words *exported, bool keeps, dt_draft *draft,
                           dt_error *err)
{
    bool more = true;
    dt_status st = DT_OK;

    *out = (dt_launcher){.program = "",
                         .words = command->words,
                         .count = command->count,
                         .visible = -1,
                         .keeps = keeps};
    for (size_t i = 0; i < exported->count; i++)
        take_variable(out, &exported->items[i], draft);
    while (st == DT_OK && more && out->count > 0)
        st = take_one(&more, out, draft, err);
    if (st == DT_OK && out->count > 0) {
        out->program = out->words[0].text;
        drop(out, 1);
    }
    return st;
}
