/* dtrun doctor: probes the nodes of a recipe and reports their hardware and faults. */
#include <string.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "recipes/fields/fields.h"
#include "recipes/fields/nodes.h"
#include "runner/cli/read_recipe.h"
#include "runner/cli/report.h"
#include "runner/launch/nodes.h"
#include "runner/launch/task.h"
#include "runner/stop/stop.h"
#include "runner/term/term.h"

/* Probes this machine alone, without the needs of a recipe. */
static dt_status probe_here(dt_probe_report *out, dt_arena *arena, dt_error *err)
{
    static const char *const here[] = {"localhost"};
    dt_probe_wish wish = {.nodes = here, .count = 1, .interface = ""};

    return dt_probe_all(out, &wish, arena, err);
}

static dt_status probe_recipe(dt_probe_report *out, const dt_call *call, dt_error *err)
{
    dt_recipe_source source;
    dt_status st = DT_OK;
    dt_preflight flight;
    dt_recipe recipe;

    DT_TRY(dt_read_recipe(&recipe, &source, call->args->operands[0], call, err));
    DT_TRY(dt_task_has_lines(recipe.task)
               ? dt_task_preflight(&flight, &recipe, &source, call, err)
               : dt_preflight_recipe(&flight, &recipe, &source, call->arena, err));
    DT_TRY(dt_nodes_probe(out, &flight, true, call->arena, err));
out:
    return st;
}

static bool is_good(const dt_probe_report *report, const char *node)
{
    for (int64_t i = 0; i < report->fault_count; i++)
        if (report->faults[i].fatal && strcmp(report->faults[i].node, node) == 0)
            return false;
    return true;
}

/* --- for people */

static const char *text_of(const json_t *facts, const char *key, const char *fallback)
{
    const char *text = json_string_value(json_object_get(facts, key));

    return text != NULL ? text : fallback;
}

static void add_bytes(dt_table *table, const json_t *facts, const char *key)
{
    const json_t *value = json_object_get(facts, key);
    char text[DT_FORMAT_SIZE];

    dt_table_add(table, DT_STYLE_PLAIN, "%s",
                 json_is_integer(value)
                     ? dt_format_bytes(text, sizeof(text), (double)json_integer_value(value))
                     : "-");
}

static void add_devices(dt_table *table, const json_t *facts)
{
    const json_t *devices = json_object_get(facts, "devices"), *first = json_array_get(devices, 0);
    char least[DT_FORMAT_SIZE];
    double free_bytes = -1;
    size_t i;
    const json_t *item;

    json_array_foreach((json_t *)devices, i, item) {
        double now = json_number_value(json_object_get(item, "free_bytes"));

        free_bytes = free_bytes < 0 || now < free_bytes ? now : free_bytes;
    }
    if (first == NULL)
        dt_table_add(table, DT_STYLE_PLAIN, "%s", facts == NULL ? "-" : "none");
    else
        dt_table_add(table, DT_STYLE_PLAIN, "%zu x %s, %s free, driver %s",
                     json_array_size(devices), text_of(first, "name", "?"),
                     json_object_get(first, "free_bytes") != NULL
                         ? dt_format_bytes(least, sizeof(least), free_bytes)
                         : "?",
                     text_of(facts, "driver", "?"));
}

static void add_probe(dt_table *table, const dt_node_probe *probe, bool good, bool command)
{
    const json_t *facts = probe->facts;
    int64_t off_ms = probe->skew_ms < 0 ? -probe->skew_ms : probe->skew_ms;
    bool has_engine;
    char skew[32];

    dt_table_add(table, DT_STYLE_BOLD, "%s", probe->node);
    dt_table_add(table, good ? DT_STYLE_GOOD : DT_STYLE_BAD, "%s",
                 good            ? "good"
                 : facts == NULL ? "not reached"
                                 : "not good");
    dt_table_add(table, DT_STYLE_PLAIN, "%s", probe->address != NULL ? probe->address : "-");
    dt_table_add(table, DT_STYLE_PLAIN, "%s", text_of(facts, "arch", "-"));
    dt_table_add(table, DT_STYLE_PLAIN, "%s", text_of(facts, "glibc", "-"));
    if (facts == NULL)
        dt_table_add(table, DT_STYLE_PLAIN, "-");
    else
        dt_table_add(table, DT_STYLE_PLAIN, "%lld",
                     (long long)json_integer_value(json_object_get(facts, "cores")));
    add_bytes(table, facts, "memory_free_bytes");
    add_bytes(table, facts, "state_free_bytes");
    if (facts == NULL)
        dt_table_add(table, DT_STYLE_PLAIN, "-");
    else if (off_ms < 1000)
        dt_table_add(table, DT_STYLE_PLAIN, "in sync");
    else
        dt_table_add(table, DT_STYLE_WARN, "%s%s", probe->skew_ms < 0 ? "-" : "+",
                     dt_clock_duration(skew, sizeof(skew), (double)off_ms / 1e3));
    has_engine = dt_node_is_here(probe->node) || json_is_true(json_object_get(facts, "bundle"));
    dt_table_add(table, DT_STYLE_PLAIN, "%s",
                 facts == NULL ? "-"
                 : command     ? "not needed"
                 : has_engine  ? "installed"
                               : "will be copied");
    add_devices(table, facts);
}

static dt_status print_table(const dt_probe_report *report, const dt_call *call, dt_error *err)
{
    static const dt_table_column columns[] = {
        {"NODE", false}, {"STATE", false},  {"ADDRESS", false}, {"ARCH", false},
        {"GLIBC", true}, {"CORES", true},   {"MEMORY", true},   {"DISK", true},
        {"CLOCK", true}, {"ENGINE", false}, {"DEVICES", false}};
    dt_table table;
    dt_strbuf text;
    dt_status st;
    dt_term term;

    dt_term_init(&term, 1);
    dt_strbuf_init(&text);
    dt_table_init(&table, columns, sizeof(columns) / sizeof(columns[0]), call->arena);
    for (int64_t i = 0; i < report->count; i++)
        add_probe(&table, &report->probes[i], is_good(report, report->probes[i].node),
                  report->command);
    dt_table_write(&text, &table, &term, 0);
    if (report->fault_count > 0)
        dt_strbuf_add_char(&text, '\n');
    for (int64_t i = 0; i < report->fault_count; i++) {
        const dt_probe_fault *fault = &report->faults[i];

        dt_term_add(&text, &term, fault->fatal ? DT_STYLE_BAD : DT_STYLE_WARN, "%s",
                    fault->fatal ? "fault: " : "note: ");
        dt_term_add(&text, &term, DT_STYLE_PLAIN, "%s\n", fault->text);
    }
    st = dt_report_styled(&text, err);
    dt_strbuf_release(&text);
    return st;
}

/* --- for programs */

static json_t *to_json(const dt_probe_report *report)
{
    json_t *object = dt_report_object(), *nodes = json_array(), *faults = json_array();

    json_object_set_new(object, "good", json_boolean(report->fatal_count == 0));
    for (int64_t i = 0; i < report->count; i++) {
        const dt_node_probe *probe = &report->probes[i];
        json_t *node = json_object();

        json_object_set_new(node, "node", json_string(probe->node));
        json_object_set_new(node, "reached", json_boolean(probe->facts != NULL));
        json_object_set_new(node, "good", json_boolean(is_good(report, probe->node)));
        json_object_set_new(node, "seconds", dt_json_number(probe->seconds));
        json_object_set_new(node, "clock_skew_ms", json_integer(probe->skew_ms));
        json_object_set_new(node, "address",
                            probe->address != NULL ? json_string(probe->address) : json_null());
        json_object_set_new(node, "facts",
                            probe->facts != NULL ? json_incref(probe->facts) : json_null());
        json_array_append_new(nodes, node);
    }
    for (int64_t i = 0; i < report->fault_count; i++)
        json_array_append_new(faults, json_pack("{s:s, s:b, s:o}", "node", report->faults[i].node,
                                                "fatal", (int)report->faults[i].fatal, "message",
                                                dt_json_text(report->faults[i].text)));
    json_object_set_new(object, "nodes", nodes);
    json_object_set_new(object, "faults", faults);
    return object;
}

/* Completes the history of runs that ended while one of these nodes could not be reached. */
static void settle_runs(const dt_probe_report *report, dt_arena *arena)
{
    const char **names = dt_arena_alloc_array(arena, (size_t)report->count + 1, sizeof(names[0]));
    const char *state = NULL, *path = NULL;
    dt_store *store = NULL;
    int64_t count = 0;

    if (dt_dir_path(&state, DT_DIR_STATE, arena, NULL) == DT_OK)
        path = dt_arena_printf(arena, "%s/store.db", state);
    if (path == NULL || !dt_file_exists(path))
        return; /* do not create a history */
    for (int64_t i = 0; i < report->count; i++)
        if (report->probes[i].facts != NULL)
            names[count++] = report->probes[i].node;
    if (dt_store_open(&store, NULL, NULL) == DT_OK)
        (void)dt_orphans_settle(store, names, count, arena, NULL);
    dt_store_close(store);
}

static dt_status doctor(dt_call *call, dt_error *err)
{
    dt_probe_report report = {0};
    dt_status st = DT_OK;

    if (call->args->operands_count > 0)
        DT_TRY(probe_recipe(&report, call, err));
    else
        DT_TRY(probe_here(&report, call->arena, err));
    settle_runs(&report, call->arena);
    DT_TRY(call->json ? dt_report_json(to_json(&report), err) : print_table(&report, call, err));
    if (report.fatal_count > 0)
        call->exit_code = DT_EXIT_SYSTEM;
out:
    dt_probe_release(&report);
    return st;
}

static const dt_option options[] = {
    DT_RECIPE_OPTIONS("override a recipe value, as in launch"),
    {0},
};

const dt_command dt_command_doctor = {
    .name = "doctor",
    .summary = "check the nodes of a recipe, or this machine",
    .operands = "[RECIPE]",
    .takes = DT_OPERAND_FILE,
    .operands_min = 0,
    .operands_max = 1,
    .options = options,
    .notes =

        "Asks all nodes at once: whether they can be reached, their hardware and software, the\n"
        "offset of their clocks, and whether they can connect to each other. Each fault comes\n"
        "with a remedy. Without RECIPE, checks this machine. 'dtrun launch' starts with the same\n"
        "checks.\n"
        "\n"
        "MEMORY and DISK are free space; DISK is the disk of the checkpoints. CLOCK is how far\n"
        "the node's clock is ahead of this machine's. ADDRESS is the address that its ranks use\n"
        "(network.interface).\n"
        "\n"
        "A node without dtrun gets its agent (2 MB) in ~/.cache/dtrun; nothing else is changed\n"
        "there. The exit code is 3 if a launch would fail.\n",
    .run = doctor,
};
