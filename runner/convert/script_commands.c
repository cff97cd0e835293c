/* script_commands: takes the commands of a script: settings, lines that only print, and the one command that trains. */
#include <stdlib.h>
#include <string.h>

#include "recipes/fields/values.h"
#include "runner/convert/convert_int.h"
#include "runner/convert/launcher.h"

enum { VARIABLES_MOST = 1000, SHOWN_MOST = 50 /* lines that change nothing */ };

static dt_status refuse_command(dt_script_scanner *s, const dt_shell_word *word, const char *reason)
{
    return dt_script_refuse(s, word->line,
                            dt_arena_printf(s->script->arena, "'%s': %s", word->text, reason));
}

static void define(dt_script *script, const char *assignment, bool exported)
{
    size_t length = dt_shell_assigned(assignment);

    dt_script_define(script, dt_arena_strndup(script->arena, assignment, length),
                     assignment + length + 1, exported);
}

static dt_status take_export(dt_script_scanner *s)
{
    dt_script *script = s->script;

    for (size_t i = 1; i < s->command.count; i++) {
        const dt_shell_word *word = &s->command.words[i];
        size_t before = script->variables_count, at = before;

        if (dt_shell_assigned(word->text) > 0) {
            define(script, word->text, true);
            continue;
        }
        while (at > 0 && strcmp(script->variables[at - 1].name, word->text) != 0)
            at--;
        if (word->open != NULL || word->text[0] == '-' || at == 0)
            return refuse_command(s, word,
                                  word->text[0] == '-' ? "an option of export"
                                                       : "export of a variable that has no value "
                                                         "in the script: write it");
        dt_script_define(script, word->text, script->variables[at - 1].value, true);
    }
    return DT_OK;
}

static dt_status take_cd(dt_script_scanner *s)
{
    const dt_shell_word *word = &s->command.words[s->command.count - 1];
    dt_script *script = s->script;

    if (s->command.count != 2 || strcmp(word->text, "-") == 0 || word->text[0] == '\0')
        return refuse_command(s, &s->command.words[0], "it has not one folder");
    if (word->open != NULL)
        return dt_script_refuse_open(script->source, word,
                                     dt_arena_printf(script->arena, "cd %s", word->text), s->err);
    if (script->folder == NULL || word->text[0] == '/')
        script->folder = word->text;
    else
        script->folder = dt_arena_printf(script->arena, "%s/%s", script->folder, word->text);
    return DT_OK;
}

/* Returns true for "set -eux" and the like, which change nothing of a script with one command. */
static bool is_harmless_set(const dt_shell_command *command)
{
    for (size_t i = 1; i < command->count; i++) {
        const char *word = command->words[i].text;
        size_t length = strlen(word);

        if (strcmp(word, "pipefail") == 0 && i > 1 &&
            command->words[i - 1].text[strlen(command->words[i - 1].text) - 1] == 'o')
            continue;
        if (length < 2 || strchr("+-", word[0]) == NULL ||
            strspn(word + 1, "euxvE") + (word[length - 1] == 'o') != length - 1)
            return false;
    }
    return command->count > 1;
}

/* Returns true for a line that only prints or waits. */
static bool only_prints(const dt_shell_command *command)
{
    static const char *const names[] = {"echo", "printf", "date",  "hostname", "nvidia-smi",
                                        "pwd",  "true",   ":",     "sleep",    "which",
                                        "free", "env",    "lscpu", "uname",    NULL};

    for (size_t i = 0; names[i] != NULL; i++)
        if (strcmp(command->words[0].text, names[i]) == 0)
            return strcmp(names[i], "env") != 0 || command->count == 1;
    if (strcmp(command->words[0].text, "exit") == 0)
        return command->count == 1 || strcmp(command->words[1].text, "0") == 0 ||
               strcmp(command->words[1].text, "$?") == 0;
    return false;
}

static const char *join(const dt_shell_command *command, dt_arena *arena)
{
    const char *text;
    dt_strbuf out;

    dt_strbuf_init(&out);
    for (size_t i = 0; i < command->count; i++)
        dt_strbuf_add_fmt(&out, "%s%s", i > 0 ? " " : "", command->words[i].text);
    text = dt_arena_strdup(arena, out.data);
    dt_strbuf_release(&out);
    return text;
}

/* Returns true for a line that prepares the environment with plain words: "module load cuda", "conda activate x",
 * "source venv/bin/activate". */
static bool activates(const dt_shell_command *command)
{
    const char *first = command->words[0].text,
               *second = command->count > 1 ? command->words[1].text : "";

    if (dt_field_find("activate") == NULL)
        return false;
    for (size_t i = 0; i < command->count; i++)
        if (command->words[i].open != NULL ||
            strpbrk(command->words[i].text, " \t\n'\"\\$`;&|<>()*?[]{}~") != NULL)
            return false;
    return strcmp(first, "module") == 0 || strcmp(first, "ml") == 0 ||
           strcmp(first, "source") == 0 || strcmp(first, ".") == 0 ||
           ((strcmp(first, "conda") == 0 || strcmp(first, "mamba") == 0) &&
            strcmp(second, "activate") == 0);
}

static void note_exported(dt_script *script)
{
    for (size_t i = 0; i < script->variables_count; i++) {
        const dt_script_variable *variable = &script->variables[i];
        const char *text, *open;

        if (!variable->exported)
            continue;
        text = dt_script_plain(script, variable->value, &open);
        text = dt_arena_printf(script->arena, "%s=%s", variable->name, text);
        dt_shell_add_to(&script->exported, text, strlen(text), 0, script->arena);
        script->exported.items[script->exported.count - 1].open = open;
    }
}

/* Takes the command that trains; a second one is refused. */
static dt_status take_training(dt_script_scanner *s)
{
    dt_script *script = s->script;

    if (script->command.count > 0)
        return dt_script_refuse(
            s, s->command.words[0].line,
            dt_arena_printf(script->arena,
                            "'%s' is a second command (the first is '%s' in line %d): keep the "
                            "one that trains",
                            s->command.words[0].text, script->command.words[0].text,
                            script->command.words[0].line));
    for (size_t i = 0; i < s->command.count; i++) {
        dt_shell_word *word = &s->command.words[i];

        if (word->assigns)
            word->text = dt_script_plain(script, word->text, &word->open);
    }
    script->command = s->command;
    note_exported(script);
    return DT_OK;
}

dt_status dt_script_take_command(dt_script_scanner *s)
{
    const dt_shell_command *command = &s->command;
    dt_script *script = s->script;
    size_t assigned = 0;
    const char *first, *reason;

    if (command->count == 0)
        return s->redirections == 0
                   ? DT_OK
                   : dt_script_refuse(s, s->line, "a redirection without a command");
    while (assigned < command->count && command->words[assigned].assigns)
        assigned++;
    if (script->variables_count > VARIABLES_MOST)
        return dt_script_refuse(s, s->line, "more than 1000 variables");
    if (assigned == command->count) {
        for (size_t i = 0; i < assigned; i++)
            define(script, command->words[i].text, false);
        return DT_OK;
    }
    first = command->words[assigned].text;
    if (command->words[assigned].open != NULL)
        return dt_script_refuse_open(script->source, &command->words[assigned], first, s->err);
    if (first[0] == '-' && first[1] != '\0')
        return refuse_command(s, &command->words[assigned],
                              "the line begins with a flag: end the line before with a backslash");
    if ((strcmp(first, "$") == 0 || strcmp(first, "%") == 0) && command->count > 1)
        return refuse_command(s, &command->words[assigned], "a prompt: remove it");
    if (assigned == 0 && s->redirections == 0) {
        if (strcmp(first, "export") == 0)
            return take_export(s);
        if (strcmp(first, "cd") == 0)
            return take_cd(s);
        if (activates(command) && script->command.count == 0) {
            const char *line = join(command, script->arena);

            dt_shell_add_to(&script->activate, line, strlen(line), command->words[0].line,
                            script->arena);
            return DT_OK;
        }
        if (only_prints(command) || (strcmp(first, "set") == 0 && is_harmless_set(command))) {
            const char *line = join(command, script->arena);

            if (script->unused.count < SHOWN_MOST)
                dt_shell_add_to(&script->unused, line, strlen(line), command->words[0].line,
                                script->arena);
            return DT_OK;
        }
    }
    if (only_prints(command))
        return refuse_command(s, &command->words[assigned],
                              "it writes a file: run it before the launch");
    if (strcmp(first, "set") == 0)
        return refuse_command(s, &command->words[assigned],
                              "its options change how the shell reads the script");
    if (strcmp(first, "conda") == 0 && command->count > assigned + 1 &&
        strcmp(command->words[assigned + 1].text, "run") != 0)
        return refuse_command(s, &command->words[assigned], dt_script_refused_program("source"));
    reason = dt_script_refused_program(first);
    if (reason == NULL)
        reason = dt_script_refused_program(dt_launcher_name(first));
    if (reason != NULL)
        return refuse_command(s, &command->words[assigned], reason);
    return take_training(s);
}
