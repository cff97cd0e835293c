/* command: converts the start of any distributed program to a recipe with a `command`: the launcher becomes nodes and
 * processes, the program stays as it is. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "recipes/fields/task_fields.h"
#include "runner/convert/tool.h"

#include "base/banned.h"

#define SHELL_ONLY "only a shell knows this value: replace it in the recipe"

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

static bool is_secret(const char *name, size_t length, dt_arena *arena)
{
    static const char *const parts[] = {"KEY", "TOKEN", "SECRET", "PASSWORD"};
    const char *text = dt_arena_strndup(arena, name, length);

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strstr(text, parts[i]) != NULL)
            return true;
    return false;
}

static void carry_env(dt_draft *draft, const dt_launcher *launcher)
{
    const char **items =
        dt_arena_alloc_array(draft->arena, launcher->env.count + 1, sizeof(*items));
    size_t count = 0;

    for (size_t i = 0; i < launcher->env.count; i++) {
        const dt_shell_word *word = &launcher->env.items[i];
        size_t length = dt_shell_assigned(word->text);
        const char *name = dt_arena_strndup(draft->arena, word->text, length);

        if (dt_command_sets_variable(word->text, length)) {
            dt_draft_same(draft, name, "dtrun sets it for each process");
        } else if (is_secret(word->text, length, draft->arena)) {
            items[count++] = dt_arena_printf(draft->arena, "%s=${env:%s}", name, name);
            setenv(name, "imported", 0); /* so that the check of the recipe finds it */
            dt_draft_note(draft, name,
                          "its value may be a secret: set it where the run is launched");
        } else if (word->open) {
            dt_draft_left(draft, word->text, SHELL_ONLY);
        } else {
            items[count++] = word->text;
        }
    }
    if (count > 0)
        dt_draft_map(draft, "env", items, count, "variables of the command line");
}

/* --- the command */

static void add(const char **words, size_t *count, const dt_shell_word *word, dt_draft *draft)
{
    bool arguments = strcmp(word->text, "$@") == 0 || strcmp(word->text, "$*") == 0;

    if (arguments)
        dt_draft_left(draft, word->text, "the arguments of the script: add them to the command");
    else if (word->open)
        dt_draft_left(draft, word->text, SHELL_ONLY);
    if (!arguments)
        words[(*count)++] = word->text;
}

/* Returns true for the name of a program in PATH, as $(which NAME) is read: Python would not find it. */
static bool is_installed(const char *program)
{
    size_t length = strlen(program);

    return strchr(program, '/') == NULL && (length < 4 || strcmp(program + length - 3, ".py") != 0);
}

/* Returns true if Python starts the program as a file. */
static bool starts_file(const dt_launcher *launcher)
{
    const dt_shell_words *before = &launcher->before;

    return before->count > 0 && !launcher->by_node &&
           strcmp(before->items[before->count - 1].text, "-m") != 0;
}

static void carry_command(dt_draft *draft, const dt_launcher *launcher)
{
    const char **words = dt_arena_alloc_array(
        draft->arena, launcher->before.count + launcher->count + 2, sizeof(*words));
    size_t count = 0, before = launcher->before.count;
    const char *from = launcher->program;
    dt_strbuf text;

    while (before > launcher->wrappers && starts_file(launcher) && is_installed(from))
        before--;
    for (size_t i = 0; i < before; i++)
        add(words, &count, &launcher->before.items[i], draft);
    words[count++] = launcher->program;
    if (launcher->adds_local_rank)
        words[count++] = "--local_rank={local_rank}";
    for (size_t i = 0; i < launcher->count; i++)
        add(words, &count, &launcher->words[i], draft);
    dt_strbuf_init(&text);
    for (size_t i = 0; i < count; i++)
        dt_command_add_word(&text, words[i]);
    dt_draft_text(draft, "command", text.data, "%s", from);
    dt_strbuf_release(&text);
    if (launcher->by_node)
        dt_draft_word(draft, "processes", "node", "it starts the processes of a node itself");
}

static dt_status convert(dt_draft *draft, const dt_launcher *launcher, const char *folder,
                         dt_error *err)
{
    (void)folder;
    (void)err;
    dt_launcher_carry(launcher, draft);
    carry_command(draft, launcher);
    carry_env(draft, launcher);
    carry_known(draft, launcher);
    return DT_OK;
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
    return launcher->distributes || ends_with(launcher->program, ".py") ||
           strncmp(dt_launcher_name(launcher->program), "python", 6) == 0 ||
           strcmp(dt_launcher_name(launcher->program), "fairseq-train") == 0;
}

/* --- commands before it */

void dt_command_precedes(dt_draft *draft, const dt_shell_command *command)
{
    static const char ignored[] =
        " echo printf set export date hostname nvidia-smi ulimit mkdir wait sleep true pwd ";
    const char *first = command->count > 0 ? command->words[0].text : "";
    const char *padded = dt_arena_printf(draft->arena, " %s ", first);
    dt_strbuf shown;

    if (first[0] == '\0' || dt_shell_assigned(first) > 0 || strstr(ignored, padded) != NULL)
        return;
    if (strcmp(first, "cd") == 0 && command->count == 2 && !command->words[1].open) {
        dt_draft_text(draft, "workdir.folder", command->words[1].text, "cd");
        return;
    }
    dt_strbuf_init(&shown);
    for (size_t i = 0; i < command->count; i++)
        dt_strbuf_add_fmt(&shown, "%s%s", i > 0 ? " " : "", command->words[i].text);
    dt_draft_left(draft, shown.data,
                  "it is not run before the command: name the programs of an environment by their "
                  "paths, or put both into a script");
    dt_strbuf_release(&shown);
}

const dt_convert_tool dt_tool_command = {
    .name = "command",
    .what = "command that torchrun, python -m torch.distributed.launch, deepspeed, accelerate "
            "launch, mpirun, srun or python starts",
    .hint = " ('dtrun run -- PROGRAM ...' runs any program)",
    .flags = &dt_launcher_torch_flags,
    .knows = knows,
    .convert = convert};
