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
