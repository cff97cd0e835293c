/* dtrun queue: lists the runs that wait, and changes their order and the machines that they wait for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "recipes/fields/nodes.h"
#include "recipes/fields/values.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/queue/queue.h"
#include "runner/supervisor/rebuild/rebuild.h"
#include "runner/term/term.h"
#include "runner/view/runs/runs.h"
#include "store/store.h"

/* Runs of a list times later starts that are expected: each of these starts takes a decision about all runs. */
enum { EXPECT_RUNS = 500 };

/* --- the list */

/* Indices of what is listed: runs of the queue that run, then those that wait, in order. */
static void list_all(int64_t **out, int64_t *count, int64_t *running, const dt_queue_facts *facts,
                     dt_arena *arena)
{
    int64_t *waiting, waiting_count;

    dt_queue_sorted(&waiting, &waiting_count, facts, arena);
    *out = dt_arena_alloc_array(arena, (size_t)facts->order.run_count + 1, sizeof(**out));
    *count = 0;
    for (int64_t i = facts->order.run_count - 1; i >= 0; i--) /* the oldest first */
        if (!facts->order.runs[i].waits &&
            dt_queue_entry_find(&facts->file, facts->runs[i].id) != NULL)
            (*out)[(*count)++] = i;
    *running = *count;
    for (int64_t i = 0; i < waiting_count; i++)
        (*out)[(*count)++] = waiting[i];
}

static const char *reason_of(const dt_queue_facts *facts, int64_t index, dt_arena *arena)
{
    const dt_order_run *run = &facts->order.runs[index];
    char left[DT_FORMAT_SIZE];

    if (run->waits || run->end_ms == 0 || facts->runs[index].state != DT_RUN_RUNNING)
        return dt_queue_reason(facts, index, arena);
    return dt_arena_printf(
        arena, "ends in about %s",
        dt_format_seconds(
            left, sizeof(left),
            (double)(run->end_ms > facts->order.now_ms ? run->end_ms - facts->order.now_ms : 0) /
                1000));
}

/* Returns the slots that a running run uses, or a waiting one needs. */
static const char *slots_of(const dt_queue_facts *facts, int64_t index, dt_arena *arena)
{
    const dt_order_run *run = &facts->order.runs[index];
    const char *text = "";

    if (run->waits)
        return dt_queue_needs(&facts->order, run, arena);
    for (int64_t i = 0; i < run->part_count; i++) {
        int64_t gpus = __builtin_popcountll(run->parts[i].gpus);
        int64_t count = gpus > 0 ? gpus : run->parts[i].cores;

        text =
            dt_arena_printf(arena, "%s%s%lld %s%s on %s", text, i > 0 ? ", " : "", (long long)count,
                            gpus > 0 ? "GPU" : "processor", count == 1 ? "" : "s",
                            facts->order.machines[run->parts[i].machine].name);
    }
    return text;
}

static json_t *run_to_json(const dt_queue_facts *facts, int64_t index, int64_t position,
                           dt_arena *arena)
{
    const dt_order_run *run = &facts->order.runs[index];
    const dt_queue_entry *entry = dt_queue_entry_find(&facts->file, run->id);
    char expected[DT_CLOCK_ISO_SIZE];

    return json_pack(
        "{s:s, s:o, s:o, s:s, s:I, s:o, s:o, s:o, s:I}", "run", run->id, "name",
        dt_json_text(facts->runs[index].name), "position",
        position > 0 ? json_integer(position) : json_null(), "state",
        dt_run_state_name(facts->runs[index].state), "priority", (json_int_t)run->priority, "needs",
        dt_json_text(slots_of(facts, index, arena)), "reason",
        dt_json_text(reason_of(facts, index, arena)), "expected",
        run->waits && run->expected_ms > 0 ? json_string(dt_clock_iso(expected, run->expected_ms))
                                           : json_null(),
        "preemptions", (json_int_t)(entry != NULL ? entry->preemptions : 0));
}

static void add_row(dt_table *table, const dt_queue_facts *facts, int64_t index, int64_t position,
                    dt_arena *arena)
{
    const dt_order_run *run = &facts->order.runs[index];
    const dt_run *row = &facts->runs[index];
    char place[24] = "-", starts[DT_FORMAT_SIZE] = "-";

    if (position > 0)
        snprintf(place, sizeof(place), "%lld", (long long)position);
    if (run->waits && run->expected_ms > facts->order.now_ms)
        dt_format_seconds(starts, sizeof(starts),
                          (double)(run->expected_ms - facts->order.now_ms) / 1000);
    else if (run->waits && run->expected_ms > 0)
        snprintf(starts, sizeof(starts), "now");
    dt_table_add(table, DT_STYLE_PLAIN, "%s", place);
    dt_table_add(table, DT_STYLE_ACCENT, "%s", row->id);
    dt_table_add(table, DT_STYLE_BOLD, "%s", row->name);
    dt_table_add(table, run->waits ? DT_STYLE_DIM : DT_STYLE_GOOD, "%s",
                 dt_run_state_name(row->state));
    dt_table_add(table, DT_STYLE_PLAIN, "%lld", (long long)run->priority);
    dt_table_add(table, DT_STYLE_PLAIN, "%s", starts);
    dt_table_add(table, DT_STYLE_PLAIN, "%s", slots_of(facts, index, arena));
    dt_table_add(table, DT_STYLE_PLAIN, "%s", reason_of(facts, index, arena));
}

/* The keys of run_to_json, for a queue without a run. */
static json_t *csv_head(void)
{
    return json_pack("{s:n, s:n, s:n, s:n, s:n, s:n, s:n, s:n, s:n}", "run", "name", "position",
                     "state", "priority", "needs", "reason", "expected", "preemptions");
}

static dt_status print_list(const dt_queue_facts *facts, const dt_call *call, dt_error *err)
{
    bool csv = dt_arguments_flag(call->args, "csv");
    static const dt_table_column columns[] = {
        {"#", true},        {"run", false},   {"name", false},  {"state", false},
        {"priority", true}, {"starts", true}, {"slots", false}, {"reason", false}};
    int64_t *rows, count, running;
    json_t *array = NULL, *head = NULL;
    dt_status st = DT_OK;
    dt_table table;
    dt_strbuf text;
    dt_term term;

    dt_strbuf_init(&text);
    list_all(&rows, &count, &running, facts, call->arena);
    if (call->json || csv) {
        array = json_array();
        for (int64_t i = 0; i < count; i++)
            json_array_append_new(
                array, run_to_json(facts, rows[i], i < running ? 0 : i - running + 1, call->arena));
        head = csv_head();
        DT_TRY(csv ? dt_report_csv(head, array, err) : dt_report_json(json_incref(array), err));
        goto out;
    }
    if (count == 0) {
        dt_report_note(call, "nothing waits: 'dtrun launch RECIPE --queue' adds a run");
        goto out;
    }
    dt_term_init(&term, STDOUT_FILENO);
    dt_table_init(&table, columns, sizeof(columns) / sizeof(columns[0]), call->arena);
    for (int64_t i = 0; i < count; i++)
        add_row(&table, facts, rows[i], i < running ? 0 : i - running + 1, call->arena);
    dt_table_write(&text, &table, &term, 0);
    DT_TRY(dt_report_styled(&text, err));
out:
    json_decref(head);
    json_decref(array);
    dt_strbuf_release(&text);
    return st;
}

static dt_status look(dt_queue_facts *out, dt_call *call, dt_error *err)
{
    dt_store *store = NULL;
    dt_status st;

    DT_TRY(dt_store_open(&store, NULL, err));
    dt_restore_runs(store); /* runs of a lost history, which the arbiter does not see before */
    DT_TRY(dt_queue_look(out, store, NULL, NULL, call->arena, err));
    dt_order_expect(&out->order, EXPECT_RUNS / (out->order.run_count + 1), call->arena);
out:
    dt_store_close(store);
    return st;
}

/* --- changes of a run */

static dt_status find_waiting(int64_t *index, const dt_queue_facts *facts, const char *ref,
                              dt_call *call, dt_error *err)
{
    dt_store *store = NULL;
    dt_status st = DT_OK;
    dt_run run;

    *index = -1;
    DT_TRY(dt_runs_open(&store, &run, ref, call, err));
    for (int64_t i = 0; i < facts->order.run_count; i++)
        if (strcmp(facts->runs[i].id, run.id) == 0)
            *index = i;
    if (*index < 0 || dt_queue_entry_find(&facts->file, run.id) == NULL)
        DT_THROW(err, DT_ERR_USAGE, "run '%s' is not in the queue: it %s", ref,
                 dt_run_state_is_terminal(run.state) ? "has ended"
                                                     : "was launched without --queue");
out:
    dt_store_close(store);
    return st;
}

static dt_status number_of(int64_t *out, const char *text, int64_t low, int64_t high,
                           const char *what, dt_error *err)
{
    char *end;

    errno = 0;
    *out = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || *out < low || *out > high)
        return DT_FAIL(err, DT_ERR_USAGE, "%s '%s': expected a whole number from %lld to %lld",
                       what, text, (long long)low, (long long)high);
    return DT_OK;
}

/* Moves a waiting run to a position. It gets the priority of that part of the queue, and the places are dealt out again. */
static void move(dt_queue_file *file, const dt_queue_facts *facts, const int64_t *order,
                 int64_t count, int64_t from, int64_t to)
{
    int64_t *places = dt_arena_alloc_array(file->arena, (size_t)count, sizeof(*places));
    int64_t *moved = dt_arena_alloc_array(file->arena, (size_t)count, sizeof(*moved)), next = 0;
    int64_t priority = facts->order.runs[order[from]].priority, above, below;

    for (int64_t i = 0; i < count; i++) {
        places[i] = facts->order.runs[order[i]].place;
        if (i == to && from > to)
            moved[next++] = order[from];
        if (i != from)
            moved[next++] = order[i];
        if (i == to && from <= to)
            moved[next++] = order[from];
    }
    for (int64_t i = 1; i < count; i++) /* by insertion: they are sorted but for the priorities */
        for (int64_t j = i; j > 0 && places[j - 1] > places[j]; j--) {
            int64_t swap = places[j];

            places[j] = places[j - 1];
            places[j - 1] = swap;
        }
    above = to > 0 ? facts->order.runs[moved[to - 1]].priority : INT64_MAX;
    below = to + 1 < count ? facts->order.runs[moved[to + 1]].priority : INT64_MIN;
    priority = priority > above ? above : priority < below ? below : priority;
    for (int64_t i = 0; i < count; i++) {
        dt_queue_entry *entry = dt_queue_entry_add(file, facts->runs[moved[i]].id);

        entry->place = places[i];
        entry->priority = i == to ? priority : facts->order.runs[moved[i]].priority;
    }
}

static dt_status move_run(dt_queue_file *file, const dt_queue_facts *facts, int64_t index,
                          const char *text, dt_call *call, dt_error *err)
{
    int64_t *order, count, from = -1, to;
    dt_status st = DT_OK;

    dt_queue_sorted(&order, &count, facts, call->arena);
    for (int64_t i = 0; i < count; i++)
        from = order[i] == index ? i : from;
    if (from < 0)
        DT_THROW(err, DT_ERR_USAGE, "run '%s' runs already", facts->runs[index].id);
    DT_TRY(number_of(&to, text, 1, count, "position", err));
    move(file, facts, order, count, from, to - 1);
out:
    return st;
}

typedef enum action { MOVE, PRIORITY, HOLD, RELEASE } action;

static dt_status change_run(action what, const char *ref, const char *value, dt_call *call,
                            dt_error *err)
{
    dt_queue_file file = {.lock = -1};
    dt_queue_entry *entry;
    dt_queue_facts facts;
    dt_status st = DT_OK;
    int64_t index;

    DT_TRY(dt_queue_open(&file, call->arena, err)); /* first: nobody changes it meanwhile */
    DT_TRY(look(&facts, call, err));
    DT_TRY(find_waiting(&index, &facts, ref, call, err));
    entry = dt_queue_entry_find(&file, facts.runs[index].id);
    if (what == MOVE)
        DT_TRY(move_run(&file, &facts, index, value, call, err));
    else if (what == PRIORITY)
        DT_TRY(number_of(&entry->priority, value, -1000, 1000, "priority", err));
    else
        entry->held = what == HOLD;
    DT_TRY(dt_queue_write(&file, err));
out:
    dt_queue_close(&file);
    return st;
}

/* --- machines */

static dt_status drain(const char *node, bool drained, dt_call *call, dt_error *err)
{
    dt_queue_file file = {.lock = -1};
    dt_queue_machine *machine;
    dt_status st;

    DT_TRY(dt_queue_open(&file, call->arena, err));
    machine = dt_queue_machine_find(&file, node);
    if (machine == NULL)
        DT_THROW(err, DT_ERR_USAGE,
                 "the queue does not know '%s': 'dtrun queue nodes' lists its machines", node);
    machine->drained = drained;
    DT_TRY(dt_queue_write(&file, err));
out:
    dt_queue_close(&file);
    return st;
}

static dt_status expand(dt_string_list *out, const dt_call *call, size_t first, dt_error *err)
{
    dt_string_list items = {.items = (const char **)call->args->operands + first,
                            .count = call->args->operands_count - (int64_t)first};
    dt_status st = DT_OK;
    int64_t wrong;

    if (items.count < 1)
        return DT_FAIL(err, DT_ERR_USAGE, "expected nodes add NODE..., such as gpu[01-04]");
    DT_TRY(dt_nodes_expand(out, &wrong, &items, call->arena, err));
    for (int64_t i = 0; i < out->count; i++)
        if (strchr(out->items[i], ' ') != NULL || dt_node_is_slurm(out->items[i]))
            DT_THROW(err, DT_ERR_USAGE, "'%s': expected the name of a machine only", out->items[i]);
out:
    return st;
}

static dt_status add_nodes(dt_call *call, dt_error *err)
{
    dt_probe_report report = {0};
    dt_queue_file file = {.lock = -1};
    dt_string_list nodes;
    dt_probe_wish wish = {.interface = "", .command = true};
    int64_t *devices;
    dt_status st;

    DT_TRY(expand(&nodes, call, 2, err));
    devices = dt_arena_alloc_array(call->arena, (size_t)nodes.count, sizeof(*devices));
    wish.nodes = nodes.items;
    wish.count = nodes.count;
    wish.devices = devices;
    for (int64_t i = 0; i < nodes.count; i++)
        devices[i] = DT_PROBE_ALL;
    DT_TRY(dt_probe_all(&report, &wish, call->arena, err));
    for (int64_t i = 0; i < report.fault_count; i++)
        if (report.faults[i].fatal)
            DT_THROW(err, report.faults[i].status, "%s", report.faults[i].text);
    DT_TRY(dt_queue_open(&file, call->arena, err));
    for (int64_t i = 0; i < nodes.count; i++) {
        if (!dt_node_is_here(nodes.items[i]))
            dt_queue_machine_probed(&file, &report.probes[i]);
        dt_queue_machine_add(&file, nodes.items[i])->shared = true;
    }
    DT_TRY(dt_queue_write(&file, err));
out:
    dt_queue_close(&file);
    dt_probe_release(&report);
    return st;
}

/* A machine that was removed is still used by runs that name it. */
static dt_status remove_nodes(dt_call *call, dt_error *err)
{
    dt_queue_file file = {.lock = -1};
    dt_string_list nodes;
    dt_status st;

    DT_TRY(expand(&nodes, call, 2, err));
    DT_TRY(dt_queue_open(&file, call->arena, err));
    for (int64_t i = 0; i < nodes.count; i++) {
        dt_queue_machine *machine = dt_queue_machine_find(&file, nodes.items[i]);

        if (machine == NULL || !machine->shared)
            DT_THROW(err, DT_ERR_USAGE, "'%s' was not added", nodes.items[i]);
        machine->shared = false;
    }
    DT_TRY(dt_queue_write(&file, err));
out:
    dt_queue_close(&file);
    return st;
}

static void add_machine(dt_table *table, json_t *array, const dt_queue_facts *facts,
                        const dt_queue_machine *machine, dt_arena *arena)
{
    const dt_order *order = &facts->order;
    int64_t gpus = machine->gpus, cores = machine->cores;
    const char *runs = "", *others = "";

    for (int64_t i = 0; i < order->run_count; i++) {
        bool there = false;

        for (int64_t p = 0; !order->runs[i].waits && p < order->runs[i].part_count; p++) {
            const dt_order_part *part = &order->runs[i].parts[p];

            if (strcmp(order->machines[part->machine].name, machine->name) != 0)
                continue;
            gpus -= __builtin_popcountll(part->gpus);
            cores -= part->cores;
            there = true;
        }
        if (there)
            runs = dt_arena_printf(arena, "%s%s%s", runs, runs[0] != '\0' ? " " : "",
                                   order->runs[i].id);
    }
    for (int64_t i = 0; i < facts->gpu_count; i++)
        if (strcmp(facts->gpus[i].machine, machine->name) == 0) {
            others =
                dt_arena_printf(arena, "%s%sGPU %lld: %s", others, others[0] != '\0' ? ", " : "",
                                (long long)facts->gpus[i].gpu, facts->gpus[i].who);
            gpus--;
        }
    cores = cores > 0 ? cores : 0;
    gpus = gpus > 0 ? gpus : 0;
    json_array_append_new(
        array, json_pack("{s:o, s:I, s:I, s:I, s:I, s:b, s:b, s:o, s:o}", "node",
                         dt_json_text(machine->name), "gpus", (json_int_t)machine->gpus,
                         "free_gpus", (json_int_t)gpus, "processors", (json_int_t)machine->cores,
                         "free_processors", (json_int_t)cores, "shared", (int)machine->shared,
                         "drained", (int)machine->drained, "runs", dt_json_text(runs), "others",
                         dt_json_text(others)));
    dt_table_add(table, DT_STYLE_BOLD, "%s", machine->name);
    dt_table_add(table, DT_STYLE_PLAIN, "%lld of %lld", (long long)gpus, (long long)machine->gpus);
    dt_table_add(table, DT_STYLE_PLAIN, "%lld of %lld", (long long)cores,
                 (long long)machine->cores);
    dt_table_add(table, DT_STYLE_PLAIN, "%s", machine->shared ? "any run" : "runs that name it");
    dt_table_add(table, DT_STYLE_WARN, "%s", machine->drained ? "drained" : "");
    dt_table_add(table, DT_STYLE_ACCENT, "%s", runs);
    dt_table_add(table, DT_STYLE_PLAIN, "%s", others);
}

static dt_status print_nodes(dt_call *call, dt_error *err)
{
    static const dt_table_column columns[] = {
        {"node", false}, {"free GPUs", true}, {"free processors", true}, {"for", false},
        {"", false},     {"runs", false},     {"used by others", false}};
    json_t *array = json_array();
    dt_queue_facts facts;
    dt_status st = DT_OK;
    dt_table table;
    dt_strbuf text;
    dt_term term;

    dt_strbuf_init(&text);
    DT_TRY(look(&facts, call, err));
    dt_table_init(&table, columns, sizeof(columns) / sizeof(columns[0]), call->arena);
    for (int64_t i = 0; i < facts.file.machine_count; i++)
        add_machine(&table, array, &facts, &facts.file.machines[i], call->arena);
    if (call->json) {
        DT_TRY(dt_report_json(json_incref(array), err));
        goto out;
    }
    if (facts.file.machine_count == 0)
        dt_report_note(call, "no machine is known yet: 'dtrun queue nodes add NODE...' adds some");
    dt_term_init(&term, STDOUT_FILENO);
    dt_table_write(&text, &table, &term, 0);
    DT_TRY(dt_report_styled(&text, err));
out:
    json_decref(array);
    dt_strbuf_release(&text);
    return st;
}

static dt_status nodes(dt_call *call, dt_error *err)
{
    const char *what = call->args->operands_count > 1 ? call->args->operands[1] : "";

    if (what[0] == '\0')
        return print_nodes(call, err);
    if (strcmp(what, "add") == 0)
        return add_nodes(call, err);
    if (strcmp(what, "remove") == 0)
        return remove_nodes(call, err);
    return DT_FAIL(err, DT_ERR_USAGE,
                   "'%s': expected nodes, nodes add NODE... or nodes remove NODE...", what);
}

static dt_status set(bool strictness, const char *text, dt_call *call, dt_error *err)
{
    bool on = strcmp(text, "on") == 0;
    dt_queue_file file = {.lock = -1};
    double seconds = 0;
    dt_status st;

    if (strictness && !on && strcmp(text, "off") != 0)
        return DT_FAIL(err, DT_ERR_USAGE, "'%s': expected strict on or strict off", text);
    if (!strictness && !dt_text_duration(&seconds, text))
        return DT_FAIL(err, DT_ERR_USAGE, "'%s': expected guarantee TIME, such as 10m", text);
    DT_TRY(dt_queue_open(&file, call->arena, err));
    if (strictness)
        file.strict = on;
    else
        file.guarantee_ms = (int64_t)(seconds * 1000);
    DT_TRY(dt_queue_write(&file, err));
out:
    dt_queue_close(&file);
    return st;
}

/* --- the command */

static dt_status queue(dt_call *call, dt_error *err)
{
    static const struct {
        const char *name;
        action action;
        int64_t operands;
        const char *form;
    } of_runs[] = {{"move", MOVE, 3, "move RUN POSITION"},
                   {"priority", PRIORITY, 3, "priority RUN N"},
                   {"hold", HOLD, 2, "hold RUN"},
                   {"release", RELEASE, 2, "release RUN"}};
    int64_t count = call->args->operands_count;
    const char *what = count > 0 ? call->args->operands[0] : "";
    dt_queue_facts facts;
    dt_status st = DT_OK;

    if (dt_arguments_flag(call->args, "csv") && (call->json || count > 0))
        DT_THROW(err, DT_ERR_USAGE, "--csv prints the list of runs: leave out %s",
                 call->json ? "--json" : "the operands");
    if (count == 0) {
        DT_TRY(look(&facts, call, err));
        DT_TRY(print_list(&facts, call, err));
        return dt_arbiter_ensure(err);
    }
    if (strcmp(what, "nodes") == 0)
        return nodes(call, err);
    for (size_t i = 0; i < sizeof(of_runs) / sizeof(of_runs[0]); i++) {
        if (strcmp(what, of_runs[i].name) != 0)
            continue;
        if (count != of_runs[i].operands)
            DT_THROW(err, DT_ERR_USAGE, "expected %s", of_runs[i].form);
        DT_TRY(change_run(of_runs[i].action, call->args->operands[1],
                          count > 2 ? call->args->operands[2] : "", call, err));
        return dt_arbiter_ensure(err);
    }
    if ((strcmp(what, "drain") == 0 || strcmp(what, "undrain") == 0) && count == 2)
        return drain(call->args->operands[1], what[0] == 'd', call, err);
    if ((strcmp(what, "strict") == 0 || strcmp(what, "guarantee") == 0) && count == 2)
        return set(what[0] == 's', call->args->operands[1], call, err);
    DT_THROW(err, DT_ERR_USAGE,
             "'%s': expected move RUN POSITION, priority RUN N, hold RUN, release RUN, drain NODE, "
             "undrain NODE, strict on|off, guarantee TIME or nodes [add|remove NODE...]",
             what);
out:
    return st;
}

static const dt_option options[] = {
    {.name = "csv", .kind = DT_OPTION_FLAG, .help = "print CSV with the keys of --json"},
    {0},
};

const dt_command dt_command_queue = {
    .name = "queue",
    .summary = "list and order the runs that wait for machines",
    .operands = "[WHAT OPERANDS...]",
    .takes = DT_OPERAND_RUN,
    .runs = DT_RUNS_LOCAL,
    .operands_min = 0,
    .operands_max = -1,
    .options = options,
    .notes =
        "'dtrun launch RECIPE --queue' adds a run. It starts when what it needs is free: GPUs, or\n"
        "processors for ranks without one. The order is by priority, then by time; a later run\n"
        "starts before an earlier one only if that cannot delay it, by the expected ends of the\n"
        "runs ('strict on' never lets it). A run of a higher priority that does not fit preempts\n"
        "lower ones: they save at their next step, stop, wait at their place and lose no step.\n"
        "Each may run ten minutes ('guarantee') before it is preempted, then twenty, and so on.\n"
        "\n"
        "WHAT changes the queue:\n"
        "  move RUN POSITION   priority RUN N    hold RUN             release RUN\n"
        "  drain NODE          undrain NODE      strict on|off        guarantee TIME\n"
        "  nodes               nodes add NODE... nodes remove NODE...\n"
        "\n"
        "Without operands, the runs of the queue are listed, with the reason for which each\n"
        "waits. --json prints an array of them: run, name, position, state, priority, needs,\n"
        "reason, expected (its start, or null) and preemptions.\n"
        "\n"
        "nodes lists the machines; nodes add asks machines for their GPUs and processors and\n"
        "offers them to runs whose recipe names no nodes. Nothing starts on a drained machine.\n"
        "'dtrun stop' ends a run that waits. See docs/queue.md.\n",
    .dash_operands = true, /* "priority RUN -1" */
    .run = queue,
};
