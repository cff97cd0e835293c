/* tools: which commands are tools of `dtrun mcp`, their schemas from the tables of options, and the words of a call. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runner/cli/help.h"
#include "runner/mcp/mcp.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Options that follow a run, choose another form of output, or another server. */
static const char *const never[] = {"json",   "help",  "server", "csv",
                                    "format", "watch", "follow", NULL};
static const char *const none[] = {NULL};

const dt_mcp_tool dt_mcp_tools[] = {
    {.name = "list",
     .title = "List runs",
     .command = &dt_command_list,
     .about = "The answer has runs: run (the id), name, state, step, loss, tags, group and more.",
     .fixed = none,
     .left_out = none,
     .array = "runs",
     .less = "ask with a smaller limit, or with filters, state, name, group or since"},
    {.name = "show",
     .title = "Show a run",
     .command = &dt_command_show,
     .about = "The answer has numbers, attempts, checkpoints, metrics and the recipe.",
     .fixed = none,
     .left_out = none,
     .needs_operand = true,
     .less = "ask for status, metrics or checkpoints of the run instead"},
    {.name = "status",
     .title = "State of a run or a sweep",
     .command = &dt_command_status,
     .about = "",
     .fixed = none,
     .left_out = none,
     .array = "nodes",
     .less = "ask for list, which has a line a run"},
    {.name = "compare",
     .title = "Compare runs",
     .command = &dt_command_compare,
     .about = "",
     .fixed = none,
     .left_out = none,
     .less = "ask with metric, or with fewer runs"},
    {.name = "metrics",
     .title = "Points of the metrics of runs",
     .command = &dt_command_metrics,
     .about = "A long answer has every nth point of each metric, and the last one.",
     .fixed = none,
     .left_out = none,
     .needs_operand = true,
     .array = "metrics",
     .cut = DT_MCP_THIN,
     .less = "ask with name, or with fewer runs"},
    {.name = "logs",
     .title = "Log of a run",
     .command = &dt_command_logs,
     .about = "",
     .fixed = none,
     .left_out = none,
     .needs_operand = true,
     .array = "lines",
     .cut = DT_MCP_LAST,
     .less = "ask with fewer lines, with rank or with steps"},
    {.name = "checkpoints",
     .title = "Checkpoints of a run",
     .command = &dt_command_checkpoints,
     .about = "",
     .fixed = none,
     .left_out = none,
     .needs_operand = true,
     .array = "checkpoints",
     .cut = DT_MCP_LAST,
     .less = "the newest are there"},
    {.name = "launch_dry_run",
     .title = "Check a recipe",
     .command = &dt_command_launch,
     .about =
         "Checks a recipe, its data, nodes and memory as a launch does, and predicts what would be "
         "started. Starts nothing. It asks the nodes of the recipe by ssh, and downloads data "
         "that the recipe names by URL.",
     .fixed = WORDS("--dry-run"),
     .left_out = WORDS("wait", "log-steps", "detach", "dry-run", "queue", "priority", "after",
                       "not-before", "lasts", "tag", "group", "note"),
     .less = "the recipe is too long"},
    {.name = "launch",
     .title = "Launch a run",
     .command = &dt_command_launch,
     .about =
         "Starts the run, or the runs of a sweep, and returns once it is supervised; it continues "
         "by itself. 'status' shows how far it is.",
     .fixed = WORDS("--detach"),
     .left_out = WORDS("wait", "log-steps", "detach", "dry-run", "gpus-as"),
     .writes = true,
     .less = "ask for status"},
    {.name = "stop",
     .title = "Stop a run",
     .command = &dt_command_stop,
     .about = "",
     .fixed = none,
     .left_out = WORDS("node", "all", "forgive-node"),
     .needs_operand = true,
     .writes = true,
     .destroys = true,
     .less = "ask for status"},
    {0},
};

static bool is_in(const char *name, const char *const *names)
{
    for (size_t i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool has_option(const dt_mcp_tool *tool, const dt_option *option)
{
    return !is_in(option->name, never) && !is_in(option->name, tool->left_out);
}

/* --- the operands, which are one argument: "run" of "[RUN|GROUP]", "filters" of "[FILTER]..." */

typedef struct operand {
    char name[32]; /* "": the command has none */
    bool many, needed;
} operand;

static operand operand_of(const dt_mcp_tool *tool)
{
    const char *text = tool->command->operands;
    operand out = {.many = tool->command->operands_max != 1,
                   .needed = tool->needs_operand || tool->command->operands_min > 0};
    size_t length = 0;

    text += strcspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    for (; isupper((unsigned char)text[length]) && length + 2 < sizeof(out.name); length++)
        out.name[length] = (char)tolower((unsigned char)text[length]);
    if (length > 0 && out.many)
        out.name[length] = 's';
    return out;
}

/* --- schemas */

static json_t *text_schema(void)
{
    return json_pack("{s:s}", "type", "string");
}

static json_t *list_schema(void)
{
    return json_pack("{s:s, s:o}", "type", "array", "items", text_schema());
}

static void add_range(json_t *schema, const dt_option *option)
{
    bool whole = option->kind == DT_OPTION_INT;

    if (isfinite(option->low))
        json_object_set_new(schema, "minimum",
                            whole ? json_integer((json_int_t)option->low) : json_real(option->low));
    if (isfinite(option->high) && option->high < 1e18)
        json_object_set_new(schema, "maximum",
                            whole ? json_integer((json_int_t)option->high)
                                  : json_real(option->high));
}

static json_t *option_schema(const dt_option *option)
{
    json_t *schema = NULL, *choices;

    switch (option->kind) {
    case DT_OPTION_FLAG:
        return json_pack("{s:s}", "type", "boolean");
    case DT_OPTION_INT:
    case DT_OPTION_NUMBER:
        schema = json_pack("{s:s}", "type", option->kind == DT_OPTION_INT ? "integer" : "number");
        add_range(schema, option);
        if (option->fallback != NULL)
            json_object_set_new(schema, "default",
                                option->kind == DT_OPTION_INT
                                    ? json_integer(strtoll(option->fallback, NULL, 10))
                                    : json_real(strtod(option->fallback, NULL)));
        return schema;
    case DT_OPTION_LIST:
        return list_schema();
    case DT_OPTION_CHOICE:
        choices = json_array();
        for (size_t i = 0; option->choices[i] != NULL; i++)
            json_array_append_new(choices, json_string(option->choices[i]));
        schema = json_pack("{s:s, s:o}", "type", "string", "enum", choices);
        break;
    case DT_OPTION_TEXT:
        schema = text_schema();
        break;
    }
    if (option->fallback != NULL)
        json_object_set_new(schema, "default", json_string(option->fallback));
    return schema;
}

static const char *about_operand(const dt_command *command)
{
    if (command->takes == DT_OPERAND_RUN)
        return dt_help_about_runs;
    if (command->takes == DT_OPERAND_FILE)
        return "path of the file; a relative one is in the folder of the server";
    return command->operands;
}

static json_t *input_schema(const dt_mcp_tool *tool)
{
    json_t *properties = json_object(), *required = json_array(), *one;
    const operand given = operand_of(tool);
    const dt_option *options;
    dt_arena arena;
    size_t count;

    dt_arena_init(&arena, 0);
    dt_options_of(&options, &count, tool->command, &arena);
    if (given.name[0] != '\0') {
        one = given.many ? list_schema() : text_schema();
        json_object_set_new(one, "description", json_string(about_operand(tool->command)));
        if (given.many && given.needed)
            json_object_set_new(one, "minItems", json_integer(1));
        json_object_set_new(properties, given.name, one);
        if (given.needed)
            json_array_append_new(required, json_string(given.name));
    }
    for (size_t i = 0; i < count; i++) {
        if (!has_option(tool, &options[i]))
            continue;
        one = option_schema(&options[i]);
        json_object_set_new(one, "description", json_string(options[i].help));
        json_object_set_new(properties, options[i].name, one);
    }
    dt_arena_release(&arena);
    one = json_pack("{s:s, s:o, s:b}", "type", "object", "properties", properties,
                    "additionalProperties", 0);
    if (json_array_size(required) > 0)
        json_object_set(one, "required", required);
    json_decref(required);
    return one;
}

/* The object of --json begins with its version. What was left out of a long answer is in left_out. */
static json_t *output_schema(const dt_mcp_tool *tool)
{
    json_t *properties =
        json_pack("{s:{s:s}, s:{s:s}}", "version", "type", "integer", "left_out", "type", "object");

    if (tool->array != NULL)
        json_object_set_new(
            properties, tool->array,
            json_pack("{s:s, s:{s:s}}", "type", "array", "items", "type", "object"));
    return json_pack("{s:s, s:o, s:[s]}", "type", "object", "properties", properties, "required",
                     "version");
}

static json_t *description(const dt_mcp_tool *tool)
{
    const dt_command *command = tool->command;
    json_t *out;
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (command != &dt_command_launch) { /* its notes are about following a run */
        dt_strbuf_add_fmt(&text, "%c%s.", toupper((unsigned char)command->summary[0]),
                          command->summary + 1);
        if (tool->about[0] != '\0')
            dt_strbuf_add_char(&text, ' ');
    }
    dt_strbuf_add_str(&text, tool->about);
    if (command != &dt_command_launch && command->notes != NULL)
        dt_strbuf_add_fmt(&text, "\n\n%s", command->notes);
    out = json_string(text.data);
    dt_strbuf_release(&text);
    return out;
}

json_t *dt_mcp_tool_to_json(const dt_mcp_tool *tool)
{
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:{s:b, s:b, s:b, s:b}}", "name", tool->name,
                     "title", tool->title, "description", description(tool), "inputSchema",
                     input_schema(tool), "outputSchema", output_schema(tool), "annotations",
                     "readOnlyHint", !tool->writes, "destructiveHint", tool->destroys,
                     "idempotentHint", !tool->writes || tool->destroys, "openWorldHint",
                     tool->command == &dt_command_launch);
}

/* --- the words of a call */

typedef struct words {
    const char **items;
    int64_t count, capacity;
    dt_arena *arena;
} words;

static void add_word(words *out, const char *word)
{
    out->items = dt_arena_array_room(out->arena, out->items, out->count + 1, &out->capacity,
                                     sizeof(out->items[0]));
    out->items[out->count++] = word;
}

static dt_status mistyped(const char *name, const char *wanted, dt_error *err)
{
    return DT_FAIL(err, DT_ERR_USAGE, "argument '%s': expected %s", name, wanted);
}

/* Adds --NAME=VALUE. The command itself checks ranges and choices. */
static dt_status add_option(words *out, const dt_option *option, const json_t *value, dt_error *err)
{
    dt_arena *arena = out->arena;
    json_t *item;
    size_t i;

    switch (option->kind) {
    case DT_OPTION_FLAG:
        if (!json_is_boolean(value))
            return mistyped(option->name, "true or false", err);
        if (json_is_true(value))
            add_word(out, dt_arena_printf(arena, "--%s", option->name));
        return DT_OK;
    case DT_OPTION_INT:
        if (json_is_real(value) && json_real_value(value) == rint(json_real_value(value)) &&
            fabs(json_real_value(value)) < 9e15)
            add_word(out,
                     dt_arena_printf(arena, "--%s=%.0f", option->name, json_real_value(value)));
        else if (json_is_integer(value))
            add_word(out, dt_arena_printf(arena, "--%s=%lld", option->name,
                                          (long long)json_integer_value(value)));
        else
            return mistyped(option->name, "a whole number", err);
        return DT_OK;
    case DT_OPTION_NUMBER:
        if (!json_is_number(value))
            return mistyped(option->name, "a number", err);
        add_word(out, dt_arena_printf(arena, "--%s=%.17g", option->name, json_number_value(value)));
        return DT_OK;
    case DT_OPTION_TEXT:
    case DT_OPTION_CHOICE:
        if (!json_is_string(value))
            return mistyped(option->name, "a text", err);
        add_word(out, dt_arena_printf(arena, "--%s=%s", option->name, json_string_value(value)));
        return DT_OK;
    case DT_OPTION_LIST:
        if (!json_is_array(value))
            return mistyped(option->name, "an array of texts", err);
        json_array_foreach(value, i, item) {
            if (!json_is_string(item))
                return mistyped(option->name, "an array of texts", err);
            add_word(out, dt_arena_printf(arena, "--%s=%s", option->name, json_string_value(item)));
        }
        return DT_OK;
    }
    return DT_OK;
}

static dt_status add_operands(words *out, const operand *given, const json_t *value, dt_error *err)
{
    json_t *item;
    size_t i;

    if (value == NULL || json_is_null(value) || (given->many && json_array_size(value) == 0)) {
        if (value != NULL && !json_is_null(value) && !json_is_array(value))
            return mistyped(given->name, "an array of texts", err);
        return given->needed ? DT_FAIL(err, DT_ERR_USAGE, "argument '%s' is missing", given->name)
                             : DT_OK;
    }
    add_word(out, "--");
    if (!given->many) {
        if (!json_is_string(value))
            return mistyped(given->name, "a text", err);
        add_word(out, dt_arena_strdup(out->arena, json_string_value(value)));
        return DT_OK;
    }
    json_array_foreach(value, i, item) {
        if (!json_is_string(item))
            return mistyped(given->name, "an array of texts", err);
        add_word(out, dt_arena_strdup(out->arena, json_string_value(item)));
    }
    return DT_OK;
}

static dt_status unknown(const char *name, const dt_mcp_tool *tool, const dt_option *options,
                         size_t count, const operand *given, dt_arena *arena, dt_error *err)
{
    const char **names = dt_arena_alloc_array(arena, count + 2, sizeof(names[0])), *closest;
    size_t known = 0;

    if (given->name[0] != '\0')
        names[known++] = given->name;
    for (size_t i = 0; i < count; i++)
        if (has_option(tool, &options[i]))
            names[known++] = options[i].name;
    names[known] = NULL;
    closest = dt_suggest(name, names);
    if (closest != NULL)
        return DT_FAIL(err, DT_ERR_USAGE, "unknown argument '%.100s' (did you mean '%s'?)", name,
                       closest);
    return DT_FAIL(err, DT_ERR_USAGE, "unknown argument '%.100s' of tool '%s'", name, tool->name);
}

dt_status dt_mcp_tool_words(const char ***out, const dt_mcp_tool *tool, const json_t *arguments,
                            dt_arena *arena, dt_error *err)
{
    const operand given = operand_of(tool);
    words all = {.arena = arena};
    const dt_option *options;
    dt_status st = DT_OK;
    const char *name;
    json_t *value;
    size_t count;

    dt_options_of(&options, &count, tool->command, arena);
    add_word(&all, "dtrun");
    add_word(&all, tool->command->name);
    for (size_t i = 0; tool->fixed[i] != NULL; i++)
        add_word(&all, tool->fixed[i]);
    add_word(&all, "--json");
    json_object_foreach((json_t *)arguments, name, value) {
        size_t i = 0;

        if (strcmp(name, given.name) == 0)
            continue;
        while (i < count && (strcmp(options[i].name, name) != 0 || !has_option(tool, &options[i])))
            i++;
        if (i == count)
            DT_TRY(unknown(name, tool, options, count, &given, arena, err));
        if (!json_is_null(value))
            DT_TRY(add_option(&all, &options[i], value, err));
    }
    if (given.name[0] != '\0')
        DT_TRY(add_operands(&all, &given, json_object_get(arguments, given.name), err));
    add_word(&all, NULL);
    *out = all.items;
out:
    return st;
}
