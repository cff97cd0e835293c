/* completion: prints completion scripts for shells, and the candidates for the word that is being typed. */
#include <stdio.h>
#include <string.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/names.h"
#include "base/strbuf.h"
#include "recipes/fields/fields.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "store/run.h"
#include "store/store.h"

/* complete: prints the candidates for the word that is being typed in a shell: commands, options, fields of
 * recipes, and the runs of the store, from the tables that also parse them.
 *
 * One candidate a line, "VALUE" or "VALUE<tab>description"; after a value that ends with '=' typing continues.
 * The single line ":files" means: file names, recipes (*.yaml, *.yml) first.
 */

#define DT_COMPLETE_FILES ":files"

enum { RUNS_MOST = 50 };

static const char *const shells[] = {"bash", "zsh", "fish", NULL};

/* Adds a candidate if it starts with what was typed. */
static void offer(dt_strbuf *out, const char *typed, const char *front, const char *value,
                  const char *end, const char *what)
{
    size_t length = strlen(typed), front_length = strlen(front);

    if (strncmp(typed, front, length < front_length ? length : front_length) != 0 ||
        (length > front_length && strncmp(value, typed + front_length, length - front_length) != 0))
        return;
    dt_strbuf_add_fmt(out, "%s%s%s", front, value, end);
    if (what != NULL && what[0] != '\0')
        dt_strbuf_add_fmt(out, "\t%s", what);
    dt_strbuf_add_char(out, '\n');
}

static void offer_all(dt_strbuf *out, const char *typed, const char *front,
                      const char *const *values)
{
    for (size_t i = 0; values != NULL && values[i] != NULL; i++)
        offer(out, typed, front, values[i], "", NULL);
}

static void offer_commands(dt_strbuf *out, const char *typed)
{
    for (size_t i = 0; dt_commands[i] != NULL; i++)
        if (!dt_commands[i]->hidden)
            offer(out, typed, "", dt_commands[i]->name, "", dt_commands[i]->summary);
}

/* Offers the newest runs. Creates no store and starts no supervisor. */
static dt_status offer_runs(dt_strbuf *out, const char *typed, dt_arena *arena, dt_error *err)
{
    const char *folder, *path, *what;
    dt_store *store = NULL;
    dt_status st;
    int64_t count;
    dt_run *runs;

    DT_TRY(dt_dir_path(&folder, DT_DIR_STATE, arena, err));
    path = dt_arena_printf(arena, "%s/store.db", folder);
    if (!dt_file_exists(path))
        return DT_OK;
    DT_TRY(dt_store_open_to_read(&store, NULL, err));
    DT_TRY(dt_store_run_list(store, &runs, &count, -1, RUNS_MOST, arena, err));
    if (count > 0)
        offer(out, typed, "", DT_RUN_LAST, "", "the newest run");
    for (int64_t i = 0; i < count; i++) {
        bool first = true;

        what = dt_arena_printf(arena, "%s, %s", runs[i].name, dt_run_state_name(runs[i].state));
        offer(out, typed, "", runs[i].id, "", what);
        for (int64_t j = 0; j < i; j++)
            first = first && strcmp(runs[j].name, runs[i].name) != 0;
        if (first)
            offer(out, typed, "", runs[i].name, "", dt_run_state_name(runs[i].state));
    }
out:
    dt_store_close(store);
    return st;
}

/* --- values of options */

/* front: prefix of the assignment in the word ("--set=" or ""). */
static void offer_fields(dt_strbuf *out, const char *typed, const char *front)
{
    static const char *const truths[] = {"true", "false", NULL};
    const char *assignment = typed + strlen(front), *equals = strchr(assignment, '=');

    for (size_t i = 0; i < dt_fields_count; i++) {
        const dt_field *field = &dt_fields[i];
        size_t length = strlen(field->path);
        char before[160];

        if (equals == NULL) {
            offer(out, typed, front, field->path, "=", field->help);
        } else if (strncmp(assignment, field->path, length) == 0 && assignment[length] == '=') {
            snprintf(before, sizeof(before), "%s%s=", front, field->path);
            offer_all(out, typed, before, field->type == DT_FIELD_BOOL ? truths : field->choices);
        }
    }
}

static bool names_file(const char *value)
{
    static const char *const names[] = {"FILE", "PATH", "DIR", "FOLDER", "RECIPE"};
    bool found = false;

    for (size_t i = 0; value != NULL && i < sizeof(names) / sizeof(names[0]); i++)
        found = found || strcmp(value, names[i]) == 0;
    return found;
}

static void offer_values(dt_strbuf *out, const char *typed, const char *front,
                         const dt_option *option)
{
    if (option->kind == DT_OPTION_CHOICE)
        offer_all(out, typed, front, option->choices);
    else if (strcmp(option->name, "set") == 0)
        offer_fields(out, typed, front);
    else if (names_file(option->value))
        dt_strbuf_add_str(out, DT_COMPLETE_FILES "\n");
}

/* --- a command's words */

typedef struct line {
    const dt_option *options;
    size_t options_count;
    const dt_option *wants; /* the last word is the value of this option; NULL: it is not a value */
    int operands;           /* before the last word */
    bool only_operands;     /* "--" was there */
} line;

static const dt_option *find_option(const line *at, const char *word)
{
    size_t length = strcspn(word, "=");

    for (size_t i = 0; i < at->options_count; i++) {
        const dt_option *option = &at->options[i];

        if (word[0] == '-' && word[1] == option->letter && option->letter != 0 && word[2] == '\0')
            return option;
        if (length > 2 && strncmp(word, "--", 2) == 0 && strlen(option->name) == length - 2 &&
            strncmp(word + 2, option->name, length - 2) == 0)
            return option;
    }
    return NULL;
}

/* Reads all words but the last, which is being typed. */
static void read_words(line *at, char *const *words, int count)
{
    for (int i = 0; i + 1 < count; i++) {
        const dt_option *option = at->only_operands ? NULL : find_option(at, words[i]);

        if (at->wants != NULL)
            at->wants = NULL; /* this word was its value */
        else if (!at->only_operands && strcmp(words[i], "--") == 0)
            at->only_operands = true;
        else if (option != NULL && option->kind != DT_OPTION_FLAG && strchr(words[i], '=') == NULL)
            at->wants = option;
        else if (at->only_operands || words[i][0] != '-')
            at->operands++;
    }
}

static bool was_given(const line *at, const dt_option *option, char *const *words, int count)
{
    bool given = false;

    for (int i = 0; i + 1 < count; i++)
        given = given || find_option(at, words[i]) == option;
    return given && option->kind != DT_OPTION_LIST;
}

static void offer_options(dt_strbuf *out, const line *at, char *const *words, int count)
{
    const char *typed = words[count - 1];

    for (size_t i = 0; i < at->options_count; i++)
        if (!was_given(at, &at->options[i], words, count))
            offer(out, typed, "--", at->options[i].name, "", at->options[i].help);
}

/* Offers the words of the usage: "check|backup [FILE]", "[logs|cache]". False if it has none. */
static bool offer_words(dt_strbuf *out, const char *typed, const char *operands, bool first)
{
    const char *at = operands + (operands[0] == '[');
    size_t length = strcspn(at, " ]");
    char word[32];

    if (memchr(at, '|', length) == NULL || (!first && strchr(operands, ' ') != NULL))
        return false;
    for (const char *end = at + length; at < end; at += strcspn(at, "| ]") + 1) {
        snprintf(word, sizeof(word), "%.*s", (int)strcspn(at, "| ]"), at);
        offer(out, typed, "", word, "", NULL);
    }
    return true;
}

static dt_status offer_operands(dt_strbuf *out, const dt_command *command, const line *at,
                                const char *typed, dt_arena *arena, dt_error *err)
{
    if (command->operands_max >= 0 && at->operands >= command->operands_max)
        return DT_OK;
    switch (command->takes) {
    case DT_OPERAND_RUN:
        return offer_runs(out, typed, arena, err);
    case DT_OPERAND_COMMAND:
        offer_commands(out, typed);
        return DT_OK;
    case DT_OPERAND_SHELL:
        offer_all(out, typed, "", shells);
        return DT_OK;
    case DT_OPERAND_WORD:
        if (!offer_words(out, typed, command->operands, at->operands == 0))
            dt_strbuf_add_str(out, DT_COMPLETE_FILES "\n");
        return DT_OK;
    case DT_OPERAND_FILE:
        dt_strbuf_add_str(out, DT_COMPLETE_FILES "\n");
        return DT_OK;
    case DT_OPERAND_TEXT:
        break;
    }
    return DT_OK;
}

/* words: those after `dtrun`; the last one is being typed and may be "". */
static dt_status dt_complete(dt_strbuf *out, char *const *words, int count, dt_arena *arena,
                             dt_error *err)
{
    const char *typed = count > 0 ? words[count - 1] : "", *front;
    const dt_command *command;
    const dt_option *option;
    line at = {0};
    dt_status st = DT_OK;

    if (count <= 1) {
        offer_commands(out, typed);
        if (typed[0] == '-') {
            offer(out, typed, "", "--help", "", "list the commands");
            offer(out, typed, "", "--version", "", "print the version");
        }
        return DT_OK;
    }
    command = dt_command_find(words[0]);
    if (command == NULL || command->hidden)
        return DT_OK;
    dt_options_of(&at.options, &at.options_count, command, arena);
    read_words(&at, words + 1, count - 1);
    option = find_option(&at, typed);
    if (at.wants != NULL) {
        offer_values(out, typed, "", at.wants);
    } else if (!at.only_operands && option != NULL && strchr(typed, '=') != NULL) {
        front = dt_arena_printf(arena, "--%s=", option->name);
        offer_values(out, typed, front, option);
    } else if (!at.only_operands && typed[0] == '-') {
        offer_options(out, &at, words + 1, count - 1);
    } else {
        DT_TRY(offer_operands(out, command, &at, typed, arena, err));
    }
out:
    return st;
}

/* dtrun completion: prints the completion script of a shell. `dtrun complete`, which that script calls,
 * prints the candidates for a word (not for people). */

extern const char dt_embedded_completion_bash[], dt_embedded_completion_zsh[],
    dt_embedded_completion_fish[];

static dt_status print(const char *bytes, const dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf text;
    json_t *object;

    dt_strbuf_init(&text);
    dt_strbuf_add_str(&text, bytes);
    if (call->json) {
        object = dt_report_object();
        json_object_set_new(object, "text", json_string(text.data));
        st = dt_report_json(object, err);
    } else {
        st = dt_report_text(&text, err);
    }
    dt_strbuf_release(&text);
    return st;
}

static dt_status completion(dt_call *call, dt_error *err)
{
    const char *shell = call->args->operands[0];

    if (strcmp(shell, "bash") == 0)
        return print(dt_embedded_completion_bash, call, err);
    if (strcmp(shell, "zsh") == 0)
        return print(dt_embedded_completion_zsh, call, err);
    if (strcmp(shell, "fish") == 0)
        return print(dt_embedded_completion_fish, call, err);
    return DT_FAIL(err, DT_ERR_USAGE, "unknown shell '%s' (one of bash, zsh, fish)", shell);
}

static dt_status complete(dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    DT_TRY(dt_complete(&text, call->args->operands, call->args->operands_count, call->arena, err));
    DT_TRY(print(text.data, call, err));
out:
    dt_strbuf_release(&text);
    return st;
}

const dt_command dt_command_completion = {
    .name = "completion",
    .summary = "print a shell completion script",
    .operands = "SHELL",
    .takes = DT_OPERAND_SHELL,
    .operands_min = 1,
    .operands_max = 1,
    .notes = "SHELL is bash, zsh or fish. An installed dtrun needs no setup; otherwise add:\n"
             "  source <(dtrun completion bash)      in ~/.bashrc\n"
             "  source <(dtrun completion zsh)       in ~/.zshrc, after compinit\n"
             "  dtrun completion fish | source       in ~/.config/fish/config.fish\n",
    .run = completion,
};

const dt_command dt_command_complete = {
    .name = "complete",
    .summary = "print the candidates for the last of these words",
    .operands = "[WORD...]",
    .operands_max = -1,
    .hidden = true,
    .run = complete,
};
