/* file: reads and writes queue.json. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/resources.h"
#include "recipes/fields/nodes.h"
#include "runner/launch/nodes.h"
#include "runner/queue/queue.h"

enum { FILE_MAX_BYTES = 64 << 20, GUARANTEE_MS = 600000 };
#define WAIT_SECONDS 10.0 /* a change takes milliseconds */
#define LOOK_SECONDS 0.005

dt_status dt_queue_path(const char **out, const char *name, dt_arena *arena, dt_error *err)
{
    const char *state;
    dt_status st = dt_dir_make(&state, DT_DIR_STATE, arena, err);

    if (st == DT_OK)
        *out = dt_arena_printf(arena, "%s/%s", state, name);
    return st;
}

/* --- reading */

static dt_status get_text(const char **out, const json_t *object, const char *key, dt_arena *arena,
                          dt_error *err)
{
    const char *text;
    dt_status st = dt_json_get_string(&text, object, key, "queue.json", err);

    if (st == DT_OK)
        *out = dt_arena_strdup(arena, text);
    return st;
}

/* The numbers of an entry and of a machine, for reading and writing. */
typedef struct number {
    const char *key;
    size_t at;
} number;

#define NUMBER(type, member)            \
    {                                   \
#member, offsetof(type, member) \
    }
static const number entry_numbers[] = {
    NUMBER(dt_queue_entry, priority),      NUMBER(dt_queue_entry, place),
    NUMBER(dt_queue_entry, not_before_ms), NUMBER(dt_queue_entry, units),
    NUMBER(dt_queue_entry, unit_gpus),     NUMBER(dt_queue_entry, unit_cores),
    NUMBER(dt_queue_entry, lasts_ms),      NUMBER(dt_queue_entry, preemptions),
};
static const number machine_numbers[] = {NUMBER(dt_queue_machine, gpus),
                                         NUMBER(dt_queue_machine, cores)};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static dt_status read_numbers(void *record, const number *numbers, size_t count,
                              const json_t *object, dt_error *err)
{
    dt_status st = DT_OK;

    for (size_t i = 0; i < count; i++)
        DT_TRY(dt_json_get_int((int64_t *)(void *)((char *)record + numbers[i].at), object,
                               numbers[i].key, "queue.json", err));
out:
    return st;
}

static void write_numbers(json_t *object, const void *record, const number *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        json_object_set_new(
            object, numbers[i].key,
            json_integer(*(const int64_t *)(const void *)((const char *)record + numbers[i].at)));
}

static dt_queue_entry *append_entry(dt_queue_file *file)
{
    file->entries = dt_arena_array_room(file->arena, file->entries, file->entry_count + 1,
                                        &file->entry_room, sizeof(file->entries[0]));
    file->by_run = NULL;
    return &file->entries[file->entry_count++];
}

static int by_run(const void *a, const void *b)
{
    return strcmp((*(const dt_queue_entry *const *)a)->run,
                  (*(const dt_queue_entry *const *)b)->run);
}

static void sort_entries(dt_queue_file *io)
{
    io->by_run =
        dt_arena_alloc_array(io->arena, (size_t)io->entry_count + 1, sizeof(io->by_run[0]));
    for (int64_t i = 0; i < io->entry_count; i++)
        io->by_run[i] = &io->entries[i];
    qsort((void *)io->by_run, (size_t)io->entry_count, sizeof(io->by_run[0]), by_run);
}

static dt_status read_entry(dt_queue_file *io, const json_t *object, dt_error *err)
{
    dt_queue_entry entry = {0};
    dt_status st;

    DT_TRY(get_text(&entry.run, object, "run", io->arena, err));
    DT_TRY(get_text(&entry.nodes, object, "nodes", io->arena, err));
    DT_TRY(get_text(&entry.after, object, "after", io->arena, err));
    DT_TRY(get_text(&entry.by, object, "by", io->arena, err));
    DT_TRY(dt_json_get_string_or(&entry.refused, object, "refused", "", "queue.json", err));
    entry.refused = dt_arena_strdup(io->arena, entry.refused);
    DT_TRY(dt_json_get_int_or(&entry.refused_ms, object, "refused_ms", 0, "queue.json", err));
    DT_TRY(dt_json_get_int_or(&entry.refusals, object, "refusals", 0, "queue.json", err));
    DT_TRY(dt_json_get_bool(&entry.held, object, "held", "queue.json", err));
    DT_TRY(read_numbers(&entry, entry_numbers, COUNT(entry_numbers), object, err));
    *append_entry(io) = entry;
out:
    return st;
}

static dt_status read_machine(dt_queue_file *io, const json_t *object, dt_error *err)
{
    dt_queue_machine machine = {0};
    dt_status st;

    DT_TRY(get_text(&machine.name, object, "name", io->arena, err));
    DT_TRY(dt_json_get_bool(&machine.shared, object, "shared", "queue.json", err));
    DT_TRY(dt_json_get_bool(&machine.drained, object, "drained", "queue.json", err));
    DT_TRY(read_numbers(&machine, machine_numbers, COUNT(machine_numbers), object, err));
    *dt_queue_machine_add(io, machine.name) = machine;
out:
    return st;
}

dt_status dt_queue_read(dt_queue_file *out, dt_arena *arena, dt_error *err)
{
    json_t *json = NULL, *item;
    dt_status st = DT_OK;
    const char *path;
    size_t i;

    *out = (dt_queue_file){.arena = arena, .guarantee_ms = GUARANTEE_MS, .lock = -1};
    DT_TRY(dt_queue_path(&path, "queue.json", arena, err));
    if (!dt_file_exists(path))
        goto out;
    DT_TRY(dt_json_read(&json, path, FILE_MAX_BYTES, err));
    DT_TRY(dt_json_get_bool(&out->strict, json, "strict", "queue.json", err));
    DT_TRY(dt_json_get_int(&out->guarantee_ms, json, "guarantee_ms", "queue.json", err));
    json_array_foreach(json_object_get(json, "runs"), i, item) {
        DT_TRY(read_entry(out, item, err));
    }
    sort_entries(out);
    json_array_foreach(json_object_get(json, "machines"), i, item) {
        DT_TRY(read_machine(out, item, err));
    }
out:
    json_decref(json);
    return st;
}

/* --- changes */

dt_status dt_queue_open(dt_queue_file *out, dt_arena *arena, dt_error *err)
{
    double end = dt_clock_monotonic_seconds() + WAIT_SECONDS;
    dt_error problem = DT_ERROR_INIT;
    const char *path;
    dt_status st;
    int lock = -1;

    *out = (dt_queue_file){.lock = -1};
    DT_TRY(dt_queue_path(&path, "queue.json.lock", arena, err));
    while ((st = dt_file_lock(&lock, path, &problem)) == DT_ERR_BUSY &&
           dt_clock_monotonic_seconds() < end) {
        dt_error_clear(&problem);
        dt_clock_sleep_seconds(LOOK_SECONDS);
    }
    if (st != DT_OK)
        DT_THROW(err, st, "the queue cannot be changed: %s", problem.message);
    DT_TRY(dt_queue_read(out, arena, err));
    out->lock = lock;
    lock = -1;
out:
    dt_error_clear(&problem);
    if (lock >= 0)
        close(lock);
    return st;
}

dt_status dt_queue_write(dt_queue_file *file, dt_error *err)
{
    json_t *runs = json_array(), *machines = json_array(), *json;
    dt_status st = DT_OK;
    const char *path;
    dt_strbuf text;

    dt_strbuf_init(&text);
    for (int64_t i = 0; i < file->entry_count; i++) {
        const dt_queue_entry *entry = &file->entries[i];
        json_t *object =
            json_pack("{s:s, s:o, s:s, s:s, s:b, s:o, s:I, s:I}", "run", entry->run, "nodes",
                      dt_json_text(entry->nodes), "after", entry->after, "by", entry->by, "held",
                      (int)entry->held, "refused", dt_json_text(entry->refused), "refused_ms",
                      (json_int_t)entry->refused_ms, "refusals", (json_int_t)entry->refusals);

        write_numbers(object, entry, entry_numbers, COUNT(entry_numbers));
        json_array_append_new(runs, object);
    }
    for (int64_t i = 0; i < file->machine_count; i++) {
        const dt_queue_machine *machine = &file->machines[i];
        json_t *object = json_pack("{s:o, s:b, s:b}", "name", dt_json_text(machine->name), "shared",
                                   (int)machine->shared, "drained", (int)machine->drained);

        write_numbers(object, machine, machine_numbers, COUNT(machine_numbers));
        json_array_append_new(machines, object);
    }
    json = json_pack("{s:i, s:b, s:I, s:o, s:o}", "queue", 1, "strict", (int)file->strict,
                     "guarantee_ms", (json_int_t)file->guarantee_ms, "runs", runs, "machines",
                     machines);
    dt_json_write_pretty(&text, json);
    json_decref(json);
    DT_TRY(dt_queue_path(&path, "queue.json", file->arena, err));
    DT_TRY(dt_file_write_atomic(path, text.data, text.length, 0600, err));
out:
    dt_strbuf_release(&text);
    return st;
}

void dt_queue_close(dt_queue_file *file)
{
    if (file->lock >= 0)
        close(file->lock);
    file->lock = -1;
}

/* --- entries and machines */

dt_queue_entry *dt_queue_entry_find(const dt_queue_file *file, const char *run)
{
    const dt_queue_entry key = {.run = run}, *wanted = &key, **found;

    if (file->by_run != NULL) {
        found = bsearch(&wanted, (const void *)file->by_run, (size_t)file->entry_count,
                        sizeof(file->by_run[0]), by_run);
        return found != NULL ? &file->entries[*found - file->entries] : NULL;
    }
    for (int64_t i = 0; i < file->entry_count; i++)
        if (strcmp(file->entries[i].run, run) == 0)
            return &file->entries[i];
    return NULL;
}

dt_queue_entry *dt_queue_entry_add(dt_queue_file *file, const char *run)
{
    dt_queue_entry *found = dt_queue_entry_find(file, run);

    if (found != NULL)
        return found;
    found = append_entry(file);
    *found = (dt_queue_entry){.run = dt_arena_strdup(file->arena, run),
                              .nodes = "",
                              .after = "",
                              .by = "",
                              .refused = ""};
    return found;
}

const char *dt_queue_item_of(const dt_queue_entry *entry, const char *node, const char *item,
                             dt_arena *arena)
{
    char *lines = dt_arena_strdup(arena, entry != NULL ? entry->nodes : ""), *rest = lines;
    size_t length = strlen(node);

    for (char *line; (line = strsep(&rest, "\n")) != NULL;)
        if (strncmp(line, node, length) == 0 && (line[length] == ' ' || line[length] == '\0'))
            return line;
    return item;
}

/* All names of this machine are one machine. */
static const char *name_of(const char *node)
{
    return dt_node_is_here(node) ? "localhost" : node;
}

dt_queue_machine *dt_queue_machine_find(const dt_queue_file *file, const char *node)
{
    for (int64_t i = 0; i < file->machine_count; i++)
        if (strcmp(file->machines[i].name, name_of(node)) == 0)
            return &file->machines[i];
    return NULL;
}

dt_queue_machine *dt_queue_machine_add(dt_queue_file *file, const char *node)
{
    dt_queue_machine *found = dt_queue_machine_find(file, node);

    if (found != NULL)
        return found;
    file->machines = dt_arena_array_room(file->arena, file->machines, file->machine_count + 1,
                                         &file->machine_room, sizeof(file->machines[0]));
    found = &file->machines[file->machine_count++];
    *found = (dt_queue_machine){.name = dt_arena_strdup(file->arena, name_of(node))};
    if (dt_node_is_here(node)) {
        found->gpus = dt_placement_gpus_here();
        found->cores = dt_resources_cores();
    }
    return found;
}

void dt_queue_machine_probed(dt_queue_file *file, const dt_node_probe *probe)
{
    dt_queue_machine *machine;

    if (probe->facts == NULL)
        return;
    machine = dt_queue_machine_add(file, probe->node);
    machine->gpus = (int64_t)json_array_size(json_object_get(probe->facts, "devices"));
    machine->cores = json_integer_value(json_object_get(probe->facts, "cores"));
}

/* Returns what all machines have, or those that are shared: "gpu1 has 4 GPUs and 32 processors, ...". */
const char *dt_queue_machines_text(const dt_queue_file *file, bool all, dt_arena *arena)
{
    const char *text = "";

    for (int64_t i = 0; i < file->machine_count; i++) {
        const dt_queue_machine *machine = &file->machines[i];

        if (all || machine->shared)
            text = dt_arena_printf(arena, "%s%s%s has %lld GPU%s and %lld processor%s", text,
                                   text[0] != '\0' ? ", " : "", machine->name,
                                   (long long)machine->gpus, machine->gpus == 1 ? "" : "s",
                                   (long long)machine->cores, machine->cores == 1 ? "" : "s");
    }
    return text;
}
