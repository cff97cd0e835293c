/* launcher_torch: reads the flags of torchrun, deepspeed and accelerate. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "runner/convert/launcher.h"

enum { CONFIG_MOST = 1 << 20 };

static dt_status begin(dt_launcher *l, const char *name, dt_error *err)
{
    if (l->by != NULL)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "%s starts %s, which starts processes too: give one of them", l->by, name);
    l->by = name;
    return DT_OK;
}

/* Adds the Python that a launcher runs a script with: `python`, or the one of the launcher's folder. */
static void keep_python(dt_launcher *l, const char *launcher, const dt_flags *flags,
                        dt_draft *draft)
{
    size_t folder = (size_t)(dt_launcher_name(launcher) - launcher);

    if (!l->keeps)
        return;
    if (!dt_flags_given(flags, "--no_python") && launcher[0] != '\0')
        dt_launcher_keep_text(l, dt_arena_printf(draft->arena, "%.*spython", (int)folder, launcher),
                              draft);
    if (dt_flags_given(flags, "--no_python") && launcher[0] == '\0')
        l->before.count = 0; /* that of "python -m torch.distributed.run --no_python" */
    if (dt_flags_given(flags, "--module"))
        dt_launcher_keep_text(l, "-m", draft);
}

/* Drops the launcher's words, and the "--" that argparse removes after the program. */
static void finish(dt_launcher *l, size_t taken, dt_draft *draft)
{
    if (taken < l->count && strcmp(l->words[taken].text, "--") == 0)
        taken++;
    dt_launcher_drop(l, taken);
    if (l->count >= 2 && strcmp(l->words[1].text, "--") == 0) {
        dt_shell_word *words = dt_arena_alloc_array(draft->arena, l->count, sizeof(words[0]));

        words[0] = l->words[0];
        memcpy(words + 1, l->words + 2, (l->count - 2) * sizeof(words[0]));
        l->words = words;
        l->count--;
    }
}

/* Takes the address of the first node as its name. */
static void take_first(dt_launcher *l, const dt_flags *flags, const char *flag, dt_draft *draft)
{
    const char *text = dt_flags_text(flags, flag, NULL);

    (void)draft;
    if (text == NULL || strcmp(text, "localhost") == 0 || strcmp(text, "127.0.0.1") == 0)
        return;
    l->first_node = text;
    l->first_from = dt_flags_from(flags, flag);
}

/* --- torchrun */

/* Parses --nnodes: "2", or "2:4" for 2 to 4 nodes. */
static dt_status take_nodes(dt_launcher *l, const dt_flags *flags, dt_error *err)
{
    const char *text = dt_flags_text(flags, "--nnodes", "1"), *colon;
    long long first, last;
    char *end;

    first = last = strtoll(text, &end, 10);
    colon = *end == ':' ? end : NULL;
    if (colon != NULL)
        last = strtoll(colon + 1, &end, 10);
    if (end == text || *end != '\0' || first < 1 || last < first || last > DT_LAUNCHER_NODES_MOST)
        return DT_FAIL(err, DT_ERR_USAGE, "--nnodes %s: expected 1 to %d nodes, or MIN:MAX", text,
                       DT_LAUNCHER_NODES_MOST);
    l->asked = last;
    l->asked_min = colon != NULL && first < last ? first : 0;
    l->asked_from = dt_flags_from(flags, "--nnodes");
    if (last == 1 && dt_flags_given(flags, "--nnodes"))
        dt_draft_same(flags->draft, l->asked_from, "one node is the default");
    return DT_OK;
}

static dt_status take_per_node(dt_launcher *l, const dt_flags *flags, dt_draft *draft,
                               dt_error *err)
{
    const char *text = dt_flags_text(flags, "--nproc_per_node", "1");
    char *end;

    l->from = dt_flags_given(flags, "--nproc_per_node") ? dt_flags_from(flags, "--nproc_per_node")
                                                        : "torchrun without --nproc_per_node";
    if (strcmp(text, "gpu") == 0 || strcmp(text, "auto") == 0) {
        l->all = true;
        dt_draft_same(draft, l->from, "all GPUs of a node are used by default");
        return DT_OK;
    }
    l->per_node = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || l->per_node < 1 || l->per_node > DT_LAUNCHER_NODES_MOST)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "--nproc_per_node %s: expected 1 to %d processes, or 'gpu'", text,
                       DT_LAUNCHER_NODES_MOST);
    return DT_OK;
}

/* launcher: as written; "" for "python -m torch.distributed.launch", whose Python is kept already. */
dt_status dt_launcher_torch(dt_launcher *l, const char *launcher, bool older, dt_draft *draft,
                            dt_error *err)
{
    dt_flags flags;
    dt_status st = DT_OK;

    DT_TRY(begin(l, "torchrun", err));
    DT_TRY(dt_flags_read(&flags, &dt_launcher_torch_flags, l->words, l->count, draft, err));
    if (older && !dt_flags_given(&flags, "--use_env")) {
        l->local_rank = "--local_rank={local_rank}";
        if (l->keeps)
            dt_draft_note(draft, "torch.distributed.launch",
                          "it adds --local_rank=N, since PyTorch 2 --local-rank=N: use the form "
                          "that the program reads");
    }
    keep_python(l, launcher, &flags, draft);
    dt_flags_carry(&flags);
    DT_TRY(take_nodes(l, &flags, err));
    DT_TRY(take_per_node(l, &flags, draft, err));
    if (dt_flags_given(&flags, "--standalone") && l->asked > 1)
        DT_THROW(err, DT_ERR_USAGE, "--standalone is for one node: remove it or --nnodes");
    take_first(l, &flags, "--master_addr", draft);
    finish(l, flags.taken, draft);
out:
    return st;
}

/* --- deepspeed */

/* Parses --include: "localhost:4,5" or "h1:0,1@h2:0,1", with the same GPUs on each host. */
static dt_status take_include(dt_launcher *l, const dt_flags *flags, dt_draft *draft, dt_error *err)
{
    const char *text = dt_flags_text(flags, "--include", ""), *slots = NULL,
               *from = dt_flags_from(flags, "--include");
    size_t length;

    l->hosts = dt_arena_alloc_array(draft->arena, strlen(text) + 1, sizeof(l->hosts[0]));
    for (const char *at = text; *at != '\0'; at += length + (at[length] == '@')) {
        size_t name = strcspn(at, ":@");
        const char *own;

        length = strcspn(at, "@");
        own = name < length ? dt_arena_strndup(draft->arena, at + name + 1, length - name - 1) : "";
        if (own[0] == '\0' || own[strspn(own, "0123456789,")] != '\0' ||
            !dt_launcher_is_host(at, name))
            return DT_FAIL(err, DT_ERR_USAGE,
                           "%s: expected HOST:GPU,GPU@HOST:GPU,GPU: name the GPUs of each host",
                           from);
        if (slots != NULL && strcmp(slots, own) != 0)
            return DT_FAIL(err, DT_ERR_USAGE,
                           "%s: the hosts have different GPUs: write 'nodes' yourself", from);
        slots = own;
        if (l->asked == DT_LAUNCHER_NODES_MOST)
            return DT_FAIL(err, DT_ERR_USAGE, "%s: more than %d hosts", from,
                           DT_LAUNCHER_NODES_MOST);
        l->hosts[l->asked++] = (dt_launcher_host){dt_arena_strndup(draft->arena, at, name), 0};
    }
    if (l->asked == 0)
        return DT_FAIL(err, DT_ERR_USAGE, "--include names no host");
    dt_launcher_choose(l, slots, from, draft);
    l->asked_from = from;
    l->per_node = l->gpus;
    l->from = from;
    if (l->asked == 1 && strcmp(l->hosts[0].name, "localhost") == 0)
        l->hosts = NULL;
    else if (l->slurm)
        return DT_FAIL(err, DT_ERR_USAGE, "%s: the job gives the nodes: remove the hosts", from);
    return DT_OK;
}

dt_status dt_launcher_deepspeed(dt_launcher *l, const char *launcher, dt_draft *draft,
                                dt_error *err)
{
    static const char *const chosen[] = {"--num_nodes", "--num_gpus", "--include"};
    bool includes, named;
    dt_flags flags;
    dt_status st = DT_OK;

    DT_TRY(dt_flags_read(&flags, &dt_launcher_deepspeed_flags, l->words, l->count, draft, err));
    includes = dt_flags_given(&flags, "--include");
    named = dt_flags_given(&flags, "--hostfile");
    if (includes && (dt_flags_given(&flags, chosen[0]) || dt_flags_given(&flags, chosen[1])))
        DT_THROW(err, DT_ERR_USAGE,
                 "deepspeed refuses --include together with --num_nodes or --num_gpus");
    for (size_t i = 0; i < 3; i++)
        if (l->gpus_from != NULL && !l->slurm && dt_flags_given(&flags, chosen[i])) {
            dt_draft_note(draft, l->gpus_from, "deepspeed ignores it together with %s", chosen[i]);
            l->gpus = 0;
            l->devices = l->gpus_from = NULL;
        }
    if (!dt_flags_given(&flags, "--no_local_rank"))
        l->local_rank = "--local_rank={local_rank}";
    l->asked = (int64_t)dt_flags_number(&flags, "--num_nodes", 0);
    l->asked_from = dt_flags_from(&flags, "--num_nodes");
    l->per_node = (int64_t)dt_flags_number(&flags, "--num_gpus", 0);
    l->from = dt_flags_from(&flags, "--num_gpus");
    if (l->asked < -1 || l->asked > DT_LAUNCHER_NODES_MOST || l->per_node < -1 ||
        l->per_node > DT_LAUNCHER_NODES_MOST)
        DT_THROW(err, DT_ERR_USAGE, "deepspeed: expected 1 to %d nodes and GPUs",
                 DT_LAUNCHER_NODES_MOST);
    l->asked = l->asked < 0 ? 0 : l->asked;
    l->per_node = l->per_node < 0 ? 0 : l->per_node;
    if (includes)
        DT_TRY(take_include(l, &flags, draft, err));
    if (named && !includes) {
        bool limited = l->per_node > 0;
        int64_t each = l->per_node;

        const char *from = dt_flags_from(&flags, "--hostfile"), *gpus = l->from;

        if (l->asked > 0)
            from = dt_arena_printf(draft->arena, "%s, %s", from, l->asked_from);
        DT_TRY(dt_launcher_hostfile(l, dt_flags_text(&flags, "--hostfile", ""), l->asked, from,
                                    draft, err));
        l->asked = 0;
        if (limited) {
            l->uneven = false;
            l->per_node = each;
            l->from = gpus;
        }
    } else if (named) {
        dt_draft_same(draft, dt_flags_from(&flags, "--hostfile"), "--include names the hosts");
    }
    l->all = l->per_node == 0 && !l->uneven;
    take_first(l, &flags, "--master_addr", draft);
    keep_python(l, launcher, &flags, draft);
    dt_flags_carry(&flags);
    finish(l, flags.taken, draft);
out:
    return st;
}

/* --- accelerate */

/* Returns the value of "KEY: VALUE" at the beginning of a line of accelerate's file; NULL: there is none. */
static const char *config_value(const char *text, const char *key, dt_arena *arena)
{
    size_t length = strlen(key);

    for (const char *at = text; at != NULL;
         at = strchr(at, '\n'), at = at != NULL ? at + 1 : NULL) {
        const char *value;
        size_t size;

        if (strncmp(at, key, length) != 0 || at[length] != ':')
            continue;
        value = at + length + 1 + strspn(at + length + 1, " '\"");
        size = strcspn(value, "#\r\n'\"");
        while (size > 0 && value[size - 1] == ' ')
            size--;
        return strncmp(value, "null", 4) == 0 ? NULL : dt_arena_strndup(arena, value, size);
    }
    return NULL;
}

/* Reads the file of --config_file, or the one that accelerate takes without it; leaves `out` empty if there is none. */
static dt_status read_config(dt_strbuf *out, const dt_launcher *l, const dt_flags *flags,
                             dt_draft *draft, dt_error *err)
{
    const char *path = dt_flags_text(flags, "--config_file", NULL);
    const char *home = getenv("HF_HOME"), *cache = getenv("XDG_CACHE_HOME"), *user = getenv("HOME");
    dt_error ignored = DT_ERROR_INIT;

    if (path != NULL) {
        if (dt_file_read(out, dt_launcher_path(l, path, draft->arena), CONFIG_MOST, &ignored) !=
            DT_OK)
            return DT_FAIL(err, DT_ERR_USAGE,
                           "%s: cannot read the file, which has the number of processes: import "
                           "where it is, or give --num_processes and --num_machines",
                           dt_flags_from(flags, "--config_file"));
        return DT_OK;
    }
    if (home == NULL)
        home = cache != NULL ? dt_arena_printf(draft->arena, "%s/huggingface", cache)
                             : dt_arena_printf(draft->arena, "%s/.cache/huggingface",
                                               user != NULL ? user : "");
    path = dt_arena_printf(draft->arena, "%s/accelerate/default_config.yaml", home);
    if (!dt_file_exists(path) || dt_flags_given(flags, "--cpu"))
        return DT_OK;
    dt_draft_note(draft, "accelerate launch", "it uses the settings of '%s'", path);
    return dt_file_read(out, path, CONFIG_MOST, err);
}

/* Returns a number of the flag, else of the file, else 0. */
static dt_status take_number(int64_t *out, const char **from, const dt_flags *flags,
                             const char *flag, const char *config, dt_error *err)
{
    dt_arena *arena = flags->draft->arena;
    const char *text = dt_flags_text(flags, flag, NULL);
    char *end;

    *out = 0;
    *from = dt_flags_from(flags, flag);
    if (text == NULL && (text = config_value(config, flag + 2, arena)) != NULL)
        *from = dt_arena_printf(arena, "%s: %s of its file", flag + 2, text);
    if (text == NULL)
        return DT_OK;
    *out = strtoll(text, &end, 10);
    if (*end != '\0' || end == text || *out < 1 || *out > 1048576)
        return DT_FAIL(err, DT_ERR_USAGE, "%s: expected a number from 1", *from);
    return DT_OK;
}

/* Adds "accelerate launch" with its own flags, which pass settings to the program. On several nodes, the flags about
 * machines get dtrun's values. */
static void keep_accelerate(dt_launcher *l, size_t words, const dt_flags *flags, int64_t machines,
                            dt_draft *draft)
{
    static const char *const ours[] = {"--num_machines",      "{nnodes}",          "--machine_rank",
                                       "{node_rank}",         "--main_process_ip", "{master_addr}",
                                       "--main_process_port", "{master_port}",     NULL};
    static const char own[] =
        " --num_machines --machine_rank --main_process_ip --main_process_port ";

    for (size_t i = 0; i < words; i++)
        dt_launcher_keep(l, &l->words[i], draft);
    for (size_t i = 0; machines > 1 && ours[i] != NULL; i++)
        dt_launcher_keep_text(l, ours[i], draft);
    for (size_t i = words; i < words + flags->taken; i++) {
        const dt_shell_word *word = &l->words[i];
        size_t length = strcspn(word->text, "="),
               row = dt_flags_row(flags->table, word->text, length);
        const dt_flag *flag = &flags->table->flags[row < flags->table->count ? row : 0];
        bool drops = row < flags->table->count &&
                     strstr(own, dt_arena_printf(draft->arena, " %s ", flag->name)) != NULL;
        bool value = row < flags->table->count && flag->takes != DT_TAKES_NOTHING &&
                     word->text[length] != '=';

        for (size_t k = i; k <= i + value && (machines <= 1 || !drops); k++)
            dt_launcher_keep(l, &l->words[k], draft);
        i += value;
    }
}

dt_status dt_launcher_accelerate(dt_launcher *l, size_t words, dt_draft *draft, dt_error *err)
{
    const char *chosen, *nodes_from, *total_from;
    int64_t machines, total;
    dt_flags flags;
    dt_strbuf config;
    dt_status st = DT_OK;

    dt_strbuf_init(&config);
    DT_TRY(begin(l, "accelerate", err));
    DT_TRY(dt_flags_read(&flags, &dt_launcher_accelerate_flags, l->words + words, l->count - words,
                         draft, err));
    if (!dt_flags_given(&flags, "--num_processes") || !dt_flags_given(&flags, "--num_machines"))
        DT_TRY(read_config(&config, l, &flags, draft, err));
    DT_TRY(take_number(&machines, &nodes_from, &flags, "--num_machines",
                       config.length > 0 ? config.data : "", err));
    DT_TRY(take_number(&total, &total_from, &flags, "--num_processes",
                       config.length > 0 ? config.data : "", err));
    chosen = dt_flags_text(&flags, "--gpu_ids", NULL);
    if (chosen == NULL && config.length > 0)
        chosen = config_value(config.data, "gpu_ids", draft->arena);
    if (machines > DT_LAUNCHER_NODES_MOST || (machines > 1 && total % machines != 0))
        DT_THROW(err, DT_ERR_USAGE, "%s: %lld processes cannot be divided among %lld machines",
                 total_from, (long long)total, (long long)machines);
    if (machines > 1 && total == 0)
        DT_THROW(err, DT_ERR_USAGE, "%s: give --num_processes too", nodes_from);
    if (chosen != NULL && strcmp(chosen, "all") != 0) {
        dt_launcher_choose(l, chosen, "--gpu_ids", draft);
        l->devices = NULL; /* accelerate chooses them */
        l->gpus_from = dt_flags_from(&flags, "--gpu_ids");
    }
    if (dt_flags_given(&flags, "--config_file"))
        dt_draft_same(draft, dt_flags_from(&flags, "--config_file"), "it stays in the command");
    if (dt_flags_given(&flags, "--gpu_ids"))
        dt_draft_same(draft, dt_flags_from(&flags, "--gpu_ids"), "it stays in the command");
    if (dt_flags_given(&flags, "--num_machines") && machines == 1)
        dt_draft_same(draft, nodes_from, "it stays in the command");
    if (dt_flags_given(&flags, "--cpu") && total > 0)
        dt_draft_same(draft, total_from, "it stays in the command");
    l->by_node = true;
    l->asked = machines > 0 ? machines : 1;
    l->asked_from = nodes_from;
    l->per_node = total / l->asked;
    l->all = l->per_node == 0;
    l->from = total_from;
    take_first(l, &flags, "--main_process_ip", draft);
    for (size_t i = 0; l->asked > 1 && i < flags.table->count; i++)
        if (flags.table->flags[i].fate == DT_FLAG_LEFT && flags.uses[i].shown != NULL)
            dt_draft_same(draft, flags.uses[i].shown, "dtrun sets it on each node");
    keep_accelerate(l, words, &flags, l->asked, draft);
    if (dt_flags_given(&flags, "--cpu"))
        l->gpus = -1;
    dt_launcher_drop(l, words + flags.taken);
out:
    dt_strbuf_release(&config);
    return st;
}
