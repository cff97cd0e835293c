/* script_commands: takes the commands of a script: settings, lines that only print, and the one command that trains. */
#include <stdlib.h>
#include <string.h>

#include "recipes/fields/values.h"
#include "runner/convert/launcher.h"
#include "runner/convert/script_int.h"

#include "base/banned.h"

enum { VARIABLES_MOST = 1000, SHOWN_MOST = 50 /* lines that change nothing */ };

#define OTHER_TOOL                                                                        \
    "a launcher that is not supported: give the command that it starts, or keep it with " \
    "'processes: node' (docs/command.md)"
#define NOT_RUN                                                                                  \
    "it is not run before the command: put it into 'setup' of the recipe, or run it before the " \
    "launch"
#define CONTAINER "the program of a container: its paths and packages are not those of the nodes"
#define ELSEWHERE "a program that runs the command elsewhere: give the command itself"

/* Commands that are refused, each with its reason. */
static const struct refused {
    const char *name, *reason;
} refused[] = {
    {"if", "'if' decides what runs: write the command that shall run"},
    {"then", "'if' decides what runs: write the command that shall run"},
    {"case", "'case' decides what runs: write the command that shall run"},
    {"for", "a loop: write one command, and 'sweep' for several values"},
    {"while", "a loop: write one command, and 'failure.max_restarts' for repeated starts"},
    {"until", "a loop: write one command, and 'failure.max_restarts' for repeated starts"},
    {"select", "'select' asks what runs: write the command that shall run"},
    {"function", "a function"},
    {"{", "commands in braces"},
    {"[", "a test decides what runs: write the command that shall run"},
    {"[[", "a test decides what runs: write the command that shall run"},
    {"test", "a test decides what runs: write the command that shall run"},
    {"!", "'!' inverts the result of a command"},
    {"eval", "'eval' builds a command: write the command"},
    {"exec", "'exec' replaces the shell: write only its command"},
    {"trap", "'trap' runs commands at signals: see 'stop_signal' of the recipe"},
    {"declare", "'declare' has effects that are not read: write NAME=value"},
    {"typeset", "'typeset' has effects that are not read: write NAME=value"},
    {"local", "'local' belongs into a function"},
    {"readonly", "'readonly' has effects that are not read: write NAME=value"},
    {"unset", "'unset' removes a variable: remove its assignment"},
    {"shift", "'shift' changes the arguments of the script"},
    {"read", "'read' reads a value: write it"},
    {"getopts", "'getopts' reads the arguments of the script: write their values"},
    {"wait", "'wait' waits for commands in the background"},
    {"pushd", "'pushd' changes the folder: write 'cd FOLDER'"},
    {"popd", "'popd' changes the folder: write 'cd FOLDER'"},
    {"docker", CONTAINER},
    {"podman", CONTAINER},
    {"singularity", CONTAINER},
    {"apptainer", CONTAINER},
    {"enroot", CONTAINER},
    {"tmux",
     "tmux starts it in a terminal: give the command alone ('dtrun launch' returns at once)"},
    {"screen",
     "screen starts it in a terminal: give the command alone ('dtrun launch' returns at once)"},
    {"ssh", "ssh runs it on another machine: name that machine in 'nodes'"},
    {"pdsh", "pdsh runs it on other machines: name them in 'nodes'"},
    {"sudo", "sudo runs it as another user: sign in to the nodes as this user"},
    {"su", "su runs it as another user: sign in to the nodes as this user"},
    {"bash", "a script inside of a command: give the command in it"},
    {"sh", "a script inside of a command: give the command in it"},
    {"zsh", "a script inside of a command: give the command in it"},
    {"xargs", "xargs builds commands: write the command"},
    {"parallel", "parallel starts several commands: use 'sweep'"},
    {"watch", "watch repeats a command: write the command"},
    {"script", "'script' keeps the output: 'dtrun logs' has it"},
    {"qsub", ELSEWHERE},
    {"bsub", ELSEWHERE},
    {"kubectl", ELSEWHERE},
    {"gcloud", ELSEWHERE},
    {"modal", ELSEWHERE},
    {"sky", ELSEWHERE},
    {"ray", OTHER_TOOL},
    {"torchx", OTHER_TOOL},
    {"horovodrun", OTHER_TOOL},
    {"colossalai", OTHER_TOOL},
    {"composer", OTHER_TOOL},
    {"llamafactory-cli", OTHER_TOOL},
    {"axolotl", OTHER_TOOL},
    {"tune", OTHER_TOOL},
    {"litgpt", OTHER_TOOL},
    {"swift", OTHER_TOOL},
    {"xtuner", OTHER_TOOL},
    {"fabric", OTHER_TOOL},
    {"lightning", OTHER_TOOL},
    {"jsrun", OTHER_TOOL},
    {"aprun", OTHER_TOOL},
    {"ibrun", OTHER_TOOL},
    {"mpiexec_mpt", OTHER_TOOL},
    {"make", NOT_RUN},
    {"pip", NOT_RUN},
    {"pip3", NOT_RUN},
    {"git", NOT_RUN},
    {"wget", NOT_RUN},
    {"curl", NOT_RUN},
    {"mkdir", NOT_RUN},
    {"rm", NOT_RUN},
    {"cp", NOT_RUN},
    {"mv", NOT_RUN},
    {"ln", NOT_RUN},
    {"touch", NOT_RUN},
    {"tar", NOT_RUN},
    {"unzip", NOT_RUN},
    {"rsync", NOT_RUN},
    {"nvcc", NOT_RUN},
    {"cat", NOT_RUN},
    {"kill", NOT_RUN},
    {"pkill", NOT_RUN},
    {"apt-get", NOT_RUN},
    {"ulimit", "'ulimit' changes the limits of the shell: set them on the nodes"},
    {"source",
     "it changes the environment: run it in the shell that launches, or put both into a program"},
    {".",
     "it changes the environment: run it in the shell that launches, or put both into a program"},
    {"module",
     "it changes the environment: run it in the shell that launches, or put both into a program"},
    {"ml",
     "it changes the environment: run it in the shell that launches, or put both into a program"},
    {"alias", "'alias' gives a command another name: write the command"},
    {"shopt", "'shopt' changes how the shell reads the script"},
};

const char *dt_script_refused_program(const char *name)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (strcmp(refused[i].name, name) == 0)
            return refused[i].reason;
    return NULL;
}

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
        if (activates(command)) {
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
