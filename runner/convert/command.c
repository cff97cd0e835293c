/* command: converts the start of any distributed program to a recipe with a `command`: the launcher becomes
 * nodes and processes, the program stays as it is. Words and variables that look like secrets are
 * recognized. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "recipes/fields/fields.h"
#include "runner/convert/tool.h"

/* secrets: recognizes words and variables that look like secrets.
 *
 * A flag looks like one if the last part of its name is key, token, password or the like ("--hub_token X"), unless the part
 * before says what kind of key or token it is ("--text_key", "--pad_token"), or its value is a number. A value looks like
 * one if it begins with "hf_", "sk-" and the like.
 */

static bool is_in(const char *list, const char *word, size_t length)
{
    for (const char *at = list; *at != '\0'; at += strcspn(at, " ") + (strchr(at, ' ') != NULL))
        if (strcspn(at, " ") == length && strncasecmp(at, word, length) == 0)
            return true;
    return false;
}

/* Returns true for a name such as "hub_token", "wandb-key", "OPENAI_API_KEY". */
static bool is_secret_name(const char *name, size_t length)
{
    static const char last[] =
        "key keys apikey token tokens password passwd passphrase secret secrets credential "
        "credentials pat";
    static const char kinds[] =
        "pad eos bos unk mask sep cls image video audio special stop text label input output "
        "prompt response caption data dataset sort group target source query json column feature "
        "primary max min num per n total batch foreign tokens start end begin user assistant "
        "system message messages image_text ignore separator add";
    size_t at = length, before;

    while (at > 0 && strchr("_-.", name[at - 1]) == NULL)
        at--;
    if (!is_in(last, name + at, length - at))
        return false;
    if (at == 0)
        return true;
    before = --at;
    while (before > 0 && strchr("_-.", name[before - 1]) == NULL)
        before--;
    return !is_in(kinds, name + before, at - before);
}

static bool is_secret_value(const char *value)
{
    static const struct {
        const char *prefix;
        size_t length; /* of the whole value, at least */
    } forms[] = {{"hf_", 12},    {"sk-", 12},  {"ghp_", 12},  {"github_pat_", 16},
                 {"glpat-", 12}, {"AKIA", 16}, {"xoxb-", 12}, {"wandb_v1_", 12}};

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        if (strncmp(value, forms[i].prefix, strlen(forms[i].prefix)) == 0 &&
            strlen(value) >= forms[i].length &&
            value[strspn(
                value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")] == '\0')
            return true;
    return false;
}

/* Returns true for values that are not secrets: numbers, True, names of files, placeholders. */
static bool is_harmless(const char *value)
{
    char *end;

    (void)strtod(value, &end);
    return value[0] == '\0' || *end == '\0' || value[0] == '<' || value[0] == '/' ||
           strncmp(value, "./", 2) == 0 || strstr(value, "${") != NULL ||
           is_in("true false none null yes no auto", value, strlen(value));
}

bool dt_secret_is_variable(const char *assignment)
{
    size_t length = dt_shell_assigned(assignment);
    const char *value = assignment + length + 1;

    return length > 0 &&
           ((is_secret_name(assignment, length) && !is_harmless(value)) || is_secret_value(value));
}

const char *dt_secret_reason(const char *word, const char *next, dt_arena *arena)
{
    size_t dashes = strspn(word, "-"), length = strcspn(word, "=");
    const char *value = word[length] == '=' ? word + length + 1 : next;
    bool flag = dashes > 0 || word[length] == '=';

    if (flag && dashes < length && value != NULL && (value[0] != '-' || word[length] == '=') &&
        ((is_secret_name(word + dashes, length - dashes) && !is_harmless(value)) ||
         (word[length] == '=' && is_secret_value(value))))
        return dt_arena_printf(
            arena,
            "'%.*s' has a value that looks like a secret, and a recipe and the history would show "
            "it: remove it, and write 'env: {NAME: \"${env:NAME}\"}' with the variable that the "
            "program reads",
            (int)length, word);
    if (is_secret_value(word))
        return "a word looks like a secret, and a recipe and the history would show it: remove it, "
               "and write 'env: {NAME: \"${env:NAME}\"}' with the variable that the program reads";
    return NULL;
}

/* --- programs whose output is known */

static const char *flag_value(const dt_launcher *launcher, const char *flag, const char *fallback)
{
    size_t length = strlen(flag);

    for (size_t i = 0; i < launcher->count; i++) {
        const char *word = launcher->words[i].text;

        if (strncmp(word, flag, length) != 0)
            continue;
        if (word[length] == '=')
            return word + length + 1;
        if (word[length] == '\0' && i + 1 < launcher->count)
            return launcher->words[i + 1].text;
    }
    return fallback;
}

/* fairseq-train continues from checkpoint_last.pt of its folder by itself. */
static void carry_fairseq(dt_draft *draft, const dt_launcher *launcher)
{
    const char *format = flag_value(launcher, "--log-format", "");
    const char *folder = flag_value(launcher, "--save-dir", "checkpoints");

    if (strcmp(format, "json") == 0)
        dt_draft_text(draft, "metrics.pattern",
                      "\"loss\": \"(?P<loss>[\\d.]+)\".*\"num_updates\": \"(?P<step>\\d+)\"",
                      "--log-format json");
    else if (strcmp(format, "simple") == 0)
        dt_draft_text(draft, "metrics.pattern",
                      "loss=(?P<loss>[\\d.]+).*num_updates=(?P<step>\\d+)", "--log-format simple");
    else
        dt_draft_note(draft, "fairseq-train",
                      "with --log-format json or simple, 'metrics.pattern' can find its metrics");
    dt_draft_text(draft, "checkpoints.path",
                  dt_arena_printf(draft->arena, "%s/checkpoint_last.pt", folder),
                  "--save-dir: fairseq-train continues from it by itself");
}

static const struct known {
    const char *program;
    void (*carry)(dt_draft *draft, const dt_launcher *launcher);
} known[] = {{"fairseq-train", carry_fairseq}, {"fairseq_cli/train.py", carry_fairseq}};

static void carry_known(dt_draft *draft, const dt_launcher *launcher)
{
    size_t length = strlen(launcher->program);

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        size_t ending = strlen(known[i].program);

        if (length >= ending &&
            strcmp(launcher->program + length - ending, known[i].program) == 0) {
            known[i].carry(draft, launcher);
            return;
        }
    }
    dt_draft_note(draft, launcher->program,
                  "add 'metrics' if it prints metrics, and 'checkpoints' with 'resume' if it can "
                  "continue (docs/command.md)");
}

/* --- variables */

static dt_status carry_env(dt_draft *draft, const dt_launcher *launcher, dt_error *err)
{
    const char **items =
        dt_arena_alloc_array(draft->arena, launcher->env.count + 1, sizeof(*items));
    size_t count = 0;

    for (size_t i = 0; i < launcher->env.count; i++) {
        const dt_shell_word *word = &launcher->env.items[i];
        size_t length = strcspn(word->text, "=");
        const char *name = dt_arena_strndup(draft->arena, word->text, length);
        bool named = word->text[length] == '\0', secret = dt_secret_is_variable(word->text);

        if (dt_shell_assigned(dt_arena_printf(draft->arena, "%s=", name)) != length || length == 0)
            return DT_FAIL(err, DT_ERR_USAGE, "'%s' is not a variable", name);
        if (dt_command_sets_variable(word->text, length)) {
            dt_draft_same(draft, name, "dtrun sets it for each process");
        } else if (secret || named) {
            items[count++] = dt_arena_printf(draft->arena, "%s=${env:%s}", name, name);
            setenv(name, "imported", 0); /* so that the check of the recipe finds it */
            dt_draft_note(draft, name, "%s: set it where the run is launched",
                          secret ? "its value may be a secret"
                                 : "its value is that of the environment");
        } else if (word->open != NULL) {
            return DT_FAIL(err, DT_ERR_USAGE, "'%s': %s", word->text, word->open);
        } else if (strstr(word->text, "${") != NULL) {
            return DT_FAIL(err, DT_ERR_USAGE, "'%s': a recipe would replace '${...}'", word->text);
        } else {
            items[count++] = word->text;
        }
    }
    if (count > 0)
        dt_draft_map(draft, "env", items, count, "variables of the command line");
    return DT_OK;
}

/* --- the command */

/* Adds a word, unless a recipe would read something else in it. `own`: a word of dtrun, with {rank} and the like. */
static dt_status add(const char **words, size_t *count, const char *word, bool own, dt_error *err)
{
    static const char *const replaced[] = {
        "{nnodes}",      "{node_rank}",   "{nproc}", "{world_size}", "{rank}", "{local_rank}",
        "{master_addr}", "{master_port}", "{run}",   "{checkpoint}", "{args.", "${"};

    for (size_t i = 0; !own && i < sizeof(replaced) / sizeof(replaced[0]); i++)
        if (strstr(word, replaced[i]) != NULL)
            return DT_FAIL(err, DT_ERR_USAGE, "'%s': a recipe would replace '%s'", word,
                           replaced[i]);
    words[(*count)++] = word;
    return DT_OK;
}

static dt_status carry_command(dt_draft *draft, const dt_launcher *launcher, dt_error *err)
{
    const dt_shell_words *before = &launcher->before;
    const char **words =
        dt_arena_alloc_array(draft->arena, before->count + launcher->count + 6, sizeof(*words));
    const char *from = launcher->program;
    size_t count = 0, kept = before->count;
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (launcher->devices != NULL) {
        words[count++] = "env";
        words[count++] =
            dt_arena_printf(draft->arena, "CUDA_VISIBLE_DEVICES=%s", launcher->devices);
        dt_draft_note(draft, launcher->gpus_from,
                      "the program gets these GPUs; what dtrun shows of GPUs is about the first "
                      "ones");
    }
    if (launcher->in_path) /* Python would not find it; it starts its own */
        while (kept > 0 &&
               strncmp(dt_launcher_name(before->items[kept - 1].text), "python", 6) == 0)
            kept--;
    for (size_t i = 0; i < kept; i++)
        DT_TRY(add(words, &count, before->items[i].text, before->items[i].line == 0, err));
    DT_TRY(add(words, &count, launcher->program, false, err));
    if (launcher->local_rank != NULL)
        words[count++] = launcher->local_rank;
    for (size_t i = 0; i < launcher->count; i++)
        DT_TRY(add(words, &count, launcher->words[i].text, false, err));
    for (size_t i = 0; i < count; i++)
        dt_command_add_word(&text, words[i]);
    dt_draft_text(draft, "command", text.data, "%s", from);
out:
    dt_strbuf_release(&text);
    return st;
}

static dt_status convert(dt_draft *draft, const dt_launcher *launcher, const char *folder,
                         dt_error *err)
{
    dt_status st = DT_OK;

    (void)folder;
    DT_TRY(dt_launcher_carry(launcher, draft, err));
    DT_TRY(carry_command(draft, launcher, err));
    DT_TRY(carry_env(draft, launcher, err));
    if (launcher->any && launcher->by != NULL)
        dt_draft_note(draft, launcher->by,
                      "the program gets RANK and WORLD_SIZE; one that calls MPI_Init needs %s "
                      "itself: keep it with 'processes: node'",
                      launcher->by);
    else if (launcher->steps && launcher->by == NULL)
        dt_draft_note(draft, "srun",
                      "the program gets RANK, LOCAL_RANK and WORLD_SIZE; SLURM_PROCID is that of "
                      "dtrun's agent");
    carry_known(draft, launcher);
out:
    return st;
}

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), wanted = strlen(ending);

    return length > wanted && strcmp(text + length - wanted, ending) == 0;
}

static bool knows(const dt_launcher *launcher)
{
    if (!launcher->keeps || launcher->program[0] == '\0')
        return false;
    return launcher->by != NULL || launcher->slurm || ends_with(launcher->program, ".py") ||
           launcher->before.count > 0 ||
           strncmp(dt_launcher_name(launcher->program), "python", 6) == 0 ||
           strcmp(dt_launcher_name(launcher->program), "fairseq-train") == 0;
}

const dt_convert_tool dt_tool_command = {
    .name = "command",
    .what = "command that torchrun, python -m torch.distributed.launch, deepspeed, accelerate "
            "launch, mpirun, srun or python starts",
    .hint = " ('dtrun run -- PROGRAM ...' runs any program)",
    .flags = &dt_launcher_torch_flags,
    .knows = knows,
    .convert = convert};
