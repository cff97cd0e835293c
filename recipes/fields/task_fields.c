/* task_fields: finds fields: rows of the table by path or map, and those that have an effect on a task. */
#include <stdlib.h>
#include <string.h>

#include "recipes/fields/fields.h"

/* --- by path or map */

const dt_field *dt_field_find(const char *path)
{
    for (size_t i = 0; i < dt_fields_count; i++)
        if (dt_fields[i].path[0] == path[0] && strcmp(dt_fields[i].path, path) == 0)
            return &dt_fields[i];
    return NULL;
}

static bool is_alias(const dt_field *field, const char *path)
{
    const char *key = path;
    size_t length;

    if (field->aliases == NULL)
        return false;
    length = dt_field_group_length(field);
    if (length != 0 && strncmp(path, field->path, length + 1) == 0)
        key += length + 1;
    for (size_t i = 0; field->aliases[i] != NULL; i++)
        if (strcmp(field->aliases[i], key) == 0)
            return true;
    return false;
}

const char *dt_field_unalias(const char *path)
{
    for (size_t i = 0; i < dt_fields_count; i++)
        if (is_alias(&dt_fields[i], path))
            return dt_fields[i].path;
    return path;
}

size_t dt_field_group_length(const dt_field *field)
{
    const char *dot = strrchr(field->path, '.');

    return dot != NULL ? (size_t)(dot - field->path) : 0;
}

bool dt_field_in_group(const dt_field *field, const char *group)
{
    size_t length = dt_field_group_length(field);

    return length != 0 && strlen(group) == length && memcmp(group, field->path, length) == 0;
}

bool dt_field_below(const dt_field *field, const char *map)
{
    size_t length = strlen(map);

    return length == 0 || (strncmp(field->path, map, length) == 0 && field->path[length] == '.');
}

bool dt_field_is_map(const char *path)
{
    for (size_t i = 0; path[0] != '\0' && i < dt_fields_count; i++)
        if (dt_field_below(&dt_fields[i], path))
            return true;
    return false;
}

const dt_field *dt_field_find_item(const dt_field_table *items, const char *key)
{
    for (size_t i = 0; i < items->count; i++)
        if (strcmp(items->fields[i].path, key) == 0)
            return &items->fields[i];
    return NULL;
}

/* --- descriptions of valid values --- */

void dt_field_range(dt_strbuf *out, const dt_field *field)
{
    if (field->type != DT_FIELD_INT && field->type != DT_FIELD_NUMBER &&
        field->type != DT_FIELD_DURATION)
        return;
    if (field->low_open)
        dt_strbuf_add_fmt(out, "above %.16g, up to %.16g", field->low, field->high);
    else
        dt_strbuf_add_fmt(out, "%.16g to %s%.16g", field->low, field->high_open ? "below " : "",
                          field->high);
    if (field->type == DT_FIELD_DURATION)
        dt_strbuf_add_str(out, " seconds");
    if (field->unit != NULL)
        dt_strbuf_add_fmt(out, " %s", field->unit);
}

void dt_field_expected(dt_strbuf *out, const dt_field *field)
{
    switch (field->type) {
    case DT_FIELD_INT:
        dt_strbuf_add_str(out, "a whole number, ");
        break;
    case DT_FIELD_NUMBER:
        dt_strbuf_add_str(out, "a number, ");
        break;
    case DT_FIELD_BOOL:
        dt_strbuf_add_str(out, "'true' or 'false'");
        break;
    case DT_FIELD_DURATION:
        dt_strbuf_add_str(out, "seconds, or a time like '90s', '10m', '2h' or '1d', ");
        break;
    case DT_FIELD_STRINGS:
        dt_strbuf_add_fmt(out, "a list of text, %.16g to %.16g items", field->low, field->high);
        break;
    case DT_FIELD_MAPS:
        dt_strbuf_add_fmt(out, "a list of maps, %.16g to %.16g, of", field->low, field->high);
        for (size_t i = 0; i < field->items->count; i++)
            dt_strbuf_add_fmt(out, "%s %s", i != 0 ? "," : "", field->items->fields[i].path);
        break;
    case DT_FIELD_STRING:
    case DT_FIELD_CHOICE:
        if (field->choices == NULL)
            dt_strbuf_add_str(out, "text");
        else if (field->choices[1] != NULL)
            dt_strbuf_add_str(out, "one of ");
        for (size_t i = 0; field->choices != NULL && field->choices[i] != NULL; i++)
            dt_strbuf_add_fmt(out, "%s'%s'", i != 0 ? ", " : "", field->choices[i]);
    }
    dt_field_range(out, field);
    if (field->zero_word != NULL)
        dt_strbuf_add_fmt(out, ", or '%s' for 0", field->zero_word);
    if (field->count_of != NULL)
        dt_strbuf_add_fmt(out, " (%s)", field->count_of);
}

/* --- by task */

#define PROCESSES_MOST 1024

/* Fields, and maps of fields, that generate and score have. */
static const char *const of_lines[] = {
    "name",    "task",  "nodes",         "hostfile", "nodes_min", "gpus",  "ranks",      "threads",
    "network", "slurm", "grace_seconds", "failure",  "notify",    "lines", "log.system", NULL};
static const char *const of_evaluation[] = {
    "name",           "task",    "nodes",         "hostfile",       "nodes_min",  "gpus",
    "ranks",          "threads", "network",       "slurm",          "failure",    "notify",
    "evaluate.tasks", "lines",   "grace_seconds", "precision.kind", "log.system", NULL};
static const char *const of_command[] = {
    "name",        "task",       "nodes",      "hostfile",      "nodes_min",   "gpus",
    "threads",     "network",    "slurm",      "grace_seconds", "failure",     "notify",
    "search",      "early_stop", "time_limit", "command",       "args",        "shell",
    "processes",   "workdir",    "env",        "metrics",       "checkpoints", "resume",
    "stop_signal", "setup",      "collect",    "activate",      "log.system",  NULL};

/* Those of a command that no other task has. */
static const char *const of_command_alone[] = {
    "command", "shell",       "processes", "workdir", "env",     "metrics",  "checkpoints",
    "resume",  "stop_signal", "args",      "setup",   "collect", "activate", NULL};

typedef struct option {
    const char *path, *name;
} option;

static const option of_generate[] = {
    {"seed", "seed"},
    {"precision.kind", "precision"},
    {"generate.tokens", "tokens"},
    {"generate.batch", "batch"},
    {"generate.beam", "beam"},
    {"generate.length_penalty", "length-penalty"},
    {"generate.stop", "stop"},
    {"generate.past_end", "past-end"},
    {"generate.no_special", "no-special"},
    {"generate.temperature", "temperature"},
    {"generate.top_k", "top-k"},
    {"generate.top_p", "top-p"},
    {"generate.repetition_penalty", "repetition-penalty"},
};

const char *dt_field_generate_option(const dt_field *field)
{
    for (size_t i = 0; i < sizeof(of_generate) / sizeof(of_generate[0]); i++)
        if (strcmp(field->path, of_generate[i].path) == 0)
            return of_generate[i].name;
    return NULL;
}

static bool is_listed(const dt_field *field, const char *const *list)
{
    for (size_t i = 0; list[i] != NULL; i++)
        if (strcmp(field->path, list[i]) == 0 || dt_field_in_group(field, list[i]))
            return true;
    return false;
}

bool dt_field_is_of_task(const dt_field *field, dt_task_kind task)
{
    if (task == DT_TASK_TRAIN)
        return !dt_field_in_group(field, "lines") && !dt_field_in_group(field, "generate") &&
               !is_listed(field, of_command_alone);
    if (task == DT_TASK_COMMAND)
        return is_listed(field, of_command);
    if (task == DT_TASK_EVALUATE)
        return is_listed(field, of_evaluation) && strcmp(field->path, "lines.input") != 0 &&
               strcmp(field->path, "lines.target") != 0;
    if (strcmp(field->path, "lines.target") == 0)
        return task == DT_TASK_SCORE;
    return is_listed(field, of_lines) ||
           (task == DT_TASK_GENERATE && dt_field_generate_option(field) != NULL);
}

bool dt_task_has_lines(dt_task_kind task)
{
    return task == DT_TASK_GENERATE || task == DT_TASK_SCORE || task == DT_TASK_EVALUATE;
}

int64_t dt_recipe_processes(const dt_recipe *recipe)
{
    const char *text = recipe->processes;
    char *end;
    long long number;

    if (recipe->task != DT_TASK_COMMAND || strcmp(text, "gpu") == 0)
        return DT_PROCESSES_GPU;
    if (strcmp(text, "node") == 0)
        return DT_PROCESSES_NODE;
    number = strtoll(text, &end, 10);
    return text[strspn(text, "0123456789")] == '\0' && number >= 1 && number <= PROCESSES_MOST
               ? number
               : DT_PROCESSES_WRONG;
}

void dt_command_add_word(dt_strbuf *out, const char *word)
{
    bool plain = word[0] != '\0' && strpbrk(word, " \t\n'\"\\|&;<>()$`") == NULL;

    if (out->length > 0)
        dt_strbuf_add_char(out, ' ');
    if (plain || strchr(word, '\'') == NULL) {
        dt_strbuf_add_fmt(out, plain ? "%s" : "'%s'", word);
        return;
    }
    dt_strbuf_add_char(out, '"');
    for (; *word != '\0'; word++) {
        if (*word == '"' || *word == '\\')
            dt_strbuf_add_char(out, '\\');
        dt_strbuf_add_char(out, *word);
    }
    dt_strbuf_add_char(out, '"');
}

void dt_command_words(dt_strbuf *out, const dt_recipe *recipe)
{
    for (int64_t i = 0; i < recipe->command.count; i++)
        if (recipe->shell)
            dt_strbuf_add_str(out, recipe->command.items[i]);
        else
            dt_command_add_word(out, recipe->command.items[i]);
}

bool dt_command_sets_variable(const char *name, size_t length)
{
    static const char *const names[] = {"RANK",
                                        "LOCAL_RANK",
                                        "WORLD_SIZE",
                                        "LOCAL_WORLD_SIZE",
                                        "NODE_RANK",
                                        "GROUP_RANK",
                                        "MASTER_ADDR",
                                        "MASTER_PORT",
                                        "TORCHELASTIC_RESTART_COUNT",
                                        "CUDA_VISIBLE_DEVICES"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return true;
    return length >= 6 && memcmp(name, "DTRUN_", 6) == 0;
}

const char *dt_command_activated(const char *activate, const char *then, dt_arena *arena)
{
    return dt_arena_printf(arena,
                           "%s\ndtrun_code=$?\nif [ $dtrun_code -ne 0 ]; then\n"
                           "echo \"'activate' ended with code $dtrun_code\" >&2\n"
                           "exit $dtrun_code\nfi\nunset dtrun_code\n%s",
                           activate, then);
}

const char *dt_task_name(dt_task_kind task)
{
    return dt_field_find("task")->choices[task];
}
