#include <string.h>

#include "runner/convert/tool.h"

#include "base/banned.h"

const dt_convert_tool *const dt_convert_tools[] = {&dt_tool_fairseq, &dt_tool_llmc,
                                                   &dt_tool_nanogpt, &dt_tool_command, NULL};

static const dt_convert_tool *find(const dt_launcher *launcher, const dt_convert_tool *only)
{
    for (size_t i = 0; dt_convert_tools[i] != NULL; i++)
        if ((only == NULL || dt_convert_tools[i] == only) && dt_convert_tools[i]->knows(launcher))
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
        add_word(&word, command->words[i].text);
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

/* --- scripts inside commands */

typedef struct search {
    const dt_convert_tool *only; /* NULL: any tool */
    const char *folder;
    int depth;
} search;

static dt_status convert_first(const dt_convert_tool **found, dt_draft *draft,
                               const dt_shell_script *script, const dt_launcher *job,
                               const search *how, dt_error *err);

static bool is_shell(const char *name)
{
    static const char *const names[] = {"sh", "bash", "dash", "zsh", "ksh", NULL};

    for (size_t i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* Returns true if a shell's option is -c, alone or in a group such as -lc. */
static bool is_command_option(const char *word)
{
    return word[0] == '-' && word[1] != '-' && strchr(word + 1, 'c') != NULL;
}

/* Returns true if the next word belongs to a shell's option: -o, and a group that ends with it,
 * such as -euo. */
static bool takes_name(const char *word)
{
    return word[1] != '-' && word[1] != '\0' && word[strlen(word) - 1] == 'o';
}

/* Appends the words from `first` on, separated by blanks. */
static void join(dt_strbuf *out, const dt_launcher *launcher, size_t first)
{
    for (size_t i = first; i < launcher->count; i++)
        dt_strbuf_add_fmt(out, "%s%s", i > first ? " " : "", launcher->words[i].text);
}

/* Finds the script that "bash -c", "eval" or "ssh HOST" runs; empty: the command runs none. */
static void find_inner(dt_strbuf *out, const dt_launcher *launcher)
{
    static const char ssh_takes[] = "BbcDEeFIiJLlmOopQRSWw";
    const char *name = dt_launcher_name(launcher->program);
    size_t at = 0;

    if (is_shell(name)) {
        while (at < launcher->count && launcher->words[at].text[0] == '-' &&
               !is_command_option(launcher->words[at].text))
            at += takes_name(launcher->words[at].text) ? 2 : 1;
        if (at + 1 < launcher->count && is_command_option(launcher->words[at].text))
            dt_strbuf_add_str(out, launcher->words[at + 1].text);
    } else if (strcmp(name, "eval") == 0) {
        join(out, launcher, 0);
    } else if (strcmp(name, "ssh") == 0) {
        while (at < launcher->count && launcher->words[at].text[0] == '-') {
            const char *word = launcher->words[at].text;

            at += strchr(ssh_takes, word[1]) != NULL && word[1] != '\0' && word[2] == '\0' ? 2 : 1;
        }
        join(out, launcher, at + 1);
    }
}

static dt_status convert_inner(const dt_convert_tool **found, dt_draft *draft,
                               const dt_shell_script *script, const dt_launcher *launcher,
                               const search *how, dt_error *err)
{
    enum { DEEPEST = 8 };
    dt_shell_script inner = *script; /* inherits the variables */
    search deeper = {how->only, how->folder, how->depth + 1};
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    find_inner(&text, launcher);
    if (text.length == 0 || how->depth == DEEPEST)
        goto out;
    inner.commands = NULL;
    inner.count = inner.capacity = 0;
    inner.variables_capacity = inner.variables_count; /* the outer script owns the array */
    DT_TRY(dt_shell_read(&inner, text.data, text.length, launcher->program, err));
    DT_TRY(convert_first(found, draft, &inner, launcher, &deeper, err));
out:
    dt_strbuf_release(&text);
    return st;
}

/* --- commands */

static void find_exported(dt_shell_words *out, const dt_shell_script *script,
                          const dt_shell_command *command)
{
    for (size_t i = 0; i < command->variables; i++) {
        const dt_shell_variable *variable = &script->variables[i];
        const char *text;
        bool last = true;

        for (size_t j = i + 1; j < command->variables; j++)
            last = last && strcmp(script->variables[j].name, variable->name) != 0;
        if (!variable->exported || !last || variable->value.count == 0)
            continue;
        text =
            dt_arena_printf(script->arena, "%s=%s", variable->name, variable->value.words[0].text);
        dt_shell_add_to(out, text, strlen(text), 0, script->arena);
        out->items[out->count - 1].open = variable->value.words[0].open;
    }
}

static void list_redirections(dt_draft *draft, const dt_shell_command *command)
{
    for (size_t i = 0; i < command->redirections.count; i++)
        dt_draft_left(draft, command->redirections.items[i].text,
                      "dtrun keeps what ranks print: 'dtrun logs'");
}

/* Adds a note for each place that is read in another way than a shell reads it. */
static void add_remarks(dt_draft *draft, const dt_shell_script *script)
{
    for (size_t i = 0; i < script->remarks.count; i++)
        dt_draft_note(draft,
                      dt_arena_printf(draft->arena, "line %d", script->remarks.items[i].line), "%s",
                      script->remarks.items[i].text);
}

/* Converts one command of the script if a tool supports it. Remarks about launchers of other commands are dropped. */
static dt_status try_command(const dt_convert_tool **found, dt_draft *draft,
                             const dt_shell_script *script, const dt_shell_command *command,
                             const dt_launcher *job, const search *how, dt_error *err)
{
    dt_draft attempt = *draft;
    dt_shell_words exported = {0};
    dt_launcher launcher;
    dt_status st = DT_OK;

    find_exported(&exported, script, command);
    DT_TRY(dt_launcher_read(&launcher, command, &exported, how->only == &dt_tool_command, &attempt,
                            err));
    if (job != NULL)
        dt_launcher_join(&launcher, job, &attempt);
    *found = find(&launcher, how->only);
    if (*found == NULL) {
        DT_TRY(convert_inner(found, &attempt, script, &launcher, how, err));
        if (*found != NULL) {
            *draft = attempt;
            list_redirections(draft, command);
        }
        goto out;
    }
    *draft = attempt;
    add_remarks(draft, script);
    list_redirections(draft, command);
    if (draft->said == NULL)
        draft->said = show(command, draft->arena);
    DT_TRY((*found)->convert(draft, &launcher, how->folder, err));
out:
    return st;
}

static dt_status convert_first(const dt_convert_tool **found, dt_draft *draft,
                               const dt_shell_script *script, const dt_launcher *job,
                               const search *how, dt_error *err)
{
    dt_status st = DT_OK;

    *found = NULL;
    for (size_t i = 0; i < script->count && *found == NULL && st == DT_OK; i++) {
        st = try_command(found, draft, script, &script->commands[i], job, how, err);
        for (size_t k = 0; st == DT_OK && *found == &dt_tool_command && k < i; k++)
            dt_command_precedes(draft, &script->commands[k]);
    }
    return st;
}

dt_status dt_tools_convert(const dt_convert_tool **found, dt_draft *draft,
                           const dt_shell_script *script, const dt_launcher *job,
                           const dt_convert_tool *tool, const char *folder, dt_error *err)
{
    search how = {tool, folder, 0};

    return convert_first(found, draft, script, job, &how, err);
}
