#include <string.h>

#include "runner/convert/tool.h"

#include "base/banned.h"

const dt_convert_tool *const dt_convert_tools[] = {&dt_tool_fairseq, &dt_tool_llmc,
                                                   &dt_tool_nanogpt, NULL};

static const dt_convert_tool *find(const dt_launcher *launcher, const dt_convert_tool *only)
{
    for (size_t i = 0; dt_convert_tools[i] != NULL; i++)
        if ((only == NULL || dt_convert_tools[i] == only) && dt_convert_tools[i]->knows(launcher))
            return dt_convert_tools[i];
    return NULL;
}

/* A word as it would be typed. */
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

/* The command again, in lines that begin with a flag. */
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

/* One command of the script, if a tool knows it. What the launcher says of others is not kept. */
static dt_status try_command(const dt_convert_tool **found, dt_draft *draft,
                             const dt_shell_command *command, const dt_convert_tool *only,
                             const char *folder, dt_error *err)
{
    dt_draft attempt = *draft;
    dt_launcher launcher;
    dt_status st = dt_launcher_read(&launcher, command, &attempt, err);

    if (st != DT_OK)
        return st;
    *found = find(&launcher, only);
    if (*found == NULL)
        return DT_OK;
    *draft = attempt;
    if (draft->said == NULL)
        draft->said = show(command, draft->arena);
    return (*found)->convert(draft, &launcher, folder, err);
}

dt_status dt_tools_convert(const dt_convert_tool **found, dt_draft *draft,
                           const dt_shell_script *script, const dt_convert_tool *tool,
                           const char *folder, dt_error *err)
{
    dt_status st = DT_OK;

    *found = NULL;
    for (size_t i = 0; i < script->count && *found == NULL && st == DT_OK; i++)
        st = try_command(found, draft, &script->commands[i], tool, folder, err);
    return st;
}
