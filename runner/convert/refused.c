/* refused: refuses what is not certain in a script, with its line, its reason and what to do. */
#include <string.h>

#include "runner/convert/convert_int.h"
#include "runner/convert/launcher.h"

#define ADVICE "'dtrun import --record -- bash SCRIPT' runs a script and notes the exact words"

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

dt_status dt_script_refuse(dt_script_scanner *s, int line, const char *what)
{
    return DT_FAIL(s->err, DT_ERR_USAGE, "%s:%d: %s; " ADVICE, s->script->source, line, what);
}

dt_status dt_script_refuse_open(const char *source, const dt_shell_word *word, const char *shown,
                                dt_error *err)
{
    return DT_FAIL(err, DT_ERR_USAGE, "%s:%d: '%s': %s; " ADVICE, source, word->line, shown,
                   word->open);
}
