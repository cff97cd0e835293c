/* node: prepares nodes and fetches from them; replaces most of runner/node_setup and the format of checkpoints. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/checkpoint/checkpoint.h"
#include "runner/node_setup/node_setup.h"
#include "runner/transport/transport.h"
#include "tests/sim/sim.h"

static sim_machine *machine_of(const char *name)
{
    for (int i = 0; i < sim.machine_count; i++)
        if (strcmp(sim.machines[i].name, name) == 0)
            return &sim.machines[i];
    return NULL;
}

/* Simulates one task on a node; DT_ERR_PEER if the node cannot be reached now. */
static dt_status visit(const sim_machine *machine, const atomic_bool *cancelled, dt_error *err)
{
    sim_sleep(sim_between(20 * SIM_MS, 600 * SIM_MS));
    if (!sim_net_open(machine))
        sim_sleep(sim_between(1 * SIM_SECOND, 10 * SIM_SECOND));
    if (!sim_net_open(machine) || machine->closed_until_ns > sim_now_ns)
        return DT_FAIL(err, DT_ERR_PEER, "node '%s': it cannot be reached", machine->name);
    if (cancelled != NULL && atomic_load(cancelled))
        return DT_FAIL(err, DT_ERR_PEER, "node '%s': given up", machine->name);
    return DT_OK;
}

static void make_folders(sim_machine *machine, const char *path)
{
    char part[512];

    for (const char *at = path + 1;; at++)
        if (*at == '/' || *at == '\0') {
            snprintf(part, sizeof(part), "%.*s", (int)(at - path), path);
            if (sim_fs_find(machine, part) == NULL)
                sim_fs_make(machine, part, true);
            if (*at == '\0')
                return;
        }
}

/* A simulated checkpoint is only its marker. */
static bool copy_checkpoint(sim_machine *to, const char *to_path, sim_machine *from,
                            const char *from_path)
{
    char path[512], text[128];
    const sim_inode *inode;

    snprintf(path, sizeof(path), "%s/" DT_CHECKPOINT_MARKER, from_path);
    inode = sim_fs_find(from, path);
    if (inode == NULL)
        return false;
    snprintf(text, sizeof(text), "%.*s", (int)inode->length, inode->data);
    make_folders(to, to_path);
    snprintf(path, sizeof(path), "%s/" DT_CHECKPOINT_MARKER, to_path);
    sim_fs_put(to, path, text);
    return true;
}

static dt_status bring_resume_point(const dt_prepare_request *request, sim_machine *machine,
                                    const char *there, dt_arena *arena, dt_error *err)
{
    const char *from = json_string_value(json_object_get(request->plan, "resume_from"));
    const char *slash = from != NULL ? strrchr(from, '/') : NULL;

    if (slash == NULL || machine->number == 0)
        return DT_OK;
    if (machine->full_until_ns > sim_now_ns)
        return DT_FAIL(err, DT_ERR_IO, "node '%s': no space", machine->name);
    if (!copy_checkpoint(machine, dt_arena_printf(arena, "%s%s", there, slash), &sim.machines[0],
                         from))
        return DT_FAIL(err, DT_ERR_NOT_FOUND, "the checkpoint '%s' is not here", from);
    return DT_OK;
}

dt_status dt_node_prepare(dt_node_layout *out, const dt_prepare_request *request, dt_arena *arena,
                          dt_error *err)
{
    sim_machine *machine = machine_of(request->node);
    bool here = machine->number == 0;
    dt_status st;

    *out = (dt_node_layout){.node = request->node,
                            .here = here,
                            .agent = "/bin/dtrun-agent",
                            .engine = "/bin/dtrun-engine",
                            .address = "127.0.0.1",
                            .checkpoints_shared = here};
    DT_TRY(visit(machine, request->cancelled, err));
    request->progress(request->context, "copying the engine");
    DT_TRY(visit(machine, request->cancelled, err));
    out->folder =
        here ? request->here
             : dt_arena_printf(arena, "/cache/runs/%s/attempt-%lld/node-%lld", request->run,
                               (long long)request->attempt, (long long)request->node_index);
    out->checkpoints = here ? request->checkpoints_here
                            : dt_arena_printf(arena, "/cache/runs/%s/checkpoints", request->run);
    make_folders(machine, out->folder);
    make_folders(machine, out->checkpoints);
    DT_TRY(bring_resume_point(request, machine, out->checkpoints, arena, err));
    out->paths = json_object();
out:
    return st;
}

/* --- commands, which net.c runs */

static dt_status command(const char ***argv, const char *node, const char *mode,
                         const char *const *words, dt_arena *arena, dt_error *err)
{
    const char **made = dt_arena_alloc_array(arena, 12, sizeof(made[0]));
    int count = 3;

    made[0] = "sim-reach";
    made[1] = node;
    made[2] = mode;
    while (*words != NULL)
        made[count++] = *words++;
    made[count] = NULL;
    *argv = made;
    return DT_OK;
}

dt_status dt_node_command(const char ***argv, const char *node, const char *const *words,
                          bool renew, dt_arena *arena, dt_error *err)
{
    return command(argv, node, "run", words, arena, err);
}

dt_status dt_node_probe_command(const char ***argv, const char *node, const char *const *words,
                                dt_arena *arena, dt_error *err)
{
    return command(argv, node, "probe", words, arena, err);
}

/* --- fetching and removing */

dt_status dt_nodes_gather(char *name, const dt_gather_request *request, dt_error *err)
{
    dt_status st = DT_OK;
    char here[512], there[512];

    for (int64_t i = 0; i < request->count; i++)
        DT_TRY(visit(machine_of(request->layouts[i].node), request->cancelled, err));
    snprintf(here, sizeof(here), "%s/%s", request->checkpoints_here, request->name);
    if (request->layouts[0].checkpoints_shared) /* as in runner/node_setup/node_layout.c */
        snprintf(there, sizeof(there), "%s/%s/%s", request->layouts[0].checkpoints,
                 strrchr(request->layouts[0].folder, '/') + 1, request->name);
    else
        snprintf(there, sizeof(there), "%s/%s", request->layouts[0].checkpoints, request->name);
    if (sim.machines[0].full_until_ns > sim_now_ns)
        DT_THROW(err, DT_ERR_IO, "no space");
    if (!copy_checkpoint(&sim.machines[0], here, machine_of(request->layouts[0].node), there))
        DT_THROW(err, DT_ERR_NOT_FOUND, "the nodes have let '%s' go", request->name);
    snprintf(name, DT_CHECKPOINT_NAME_SIZE, "%s", request->name);
out:
    return st;
}

dt_status dt_node_forget(dt_strbuf *kept, dt_strbuf *files, const dt_node_layout *place,
                         const char *home, const atomic_bool *cancelled, dt_error *err)
{
    sim_machine *machine = machine_of(place->node);
    size_t length = strlen(place->folder);
    dt_status st = visit(machine, cancelled, err);

    if (st != DT_OK || place->here)
        return st;
    for (int i = machine->file_count - 1; i >= 0; i--)
        if (strncmp(machine->files[i]->path, place->folder, length) == 0)
            sim_fs_remove(machine, machine->files[i]);
    return DT_OK;
}

void dt_transports_remove(const char *run_folder, bool good) {}

/* --- checkpoints: DIRECTORY/step-N/complete holds "ATTEMPT STEP TOTAL" */

struct dt_checkpoint {
    dt_checkpoint_info info;
};

static bool read_marker(dt_checkpoint_info *out, const char *folder)
{
    char path[512], text[128];
    long long attempt, step, total;
    const sim_inode *inode;

    snprintf(path, sizeof(path), "%s/" DT_CHECKPOINT_MARKER, folder);
    inode = sim_fs_find(sim_machine_self(), path);
    if (inode == NULL)
        return false;
    snprintf(text, sizeof(text), "%.*s", (int)inode->length, inode->data);
    if (sscanf(text, "%lld %lld %lld", &attempt, &step, &total) != 3)
        return false;
    *out = (dt_checkpoint_info){.attempt = attempt, .step = step, .steps_total = total};
    return true;
}

dt_status dt_checkpoint_find_newest_fit(const char **path, const char *parent,
                                        dt_checkpoint_fit_fn *fits, const void *context,
                                        dt_arena *arena, dt_error *err)
{
    sim_machine *machine = sim_machine_self();
    size_t length = strlen(parent);
    int64_t newest = -1;

    *path = NULL;
    for (int i = 0; i < machine->file_count; i++) {
        const sim_inode *inode = machine->files[i];
        dt_checkpoint_info info;

        if (inode->folder && strncmp(inode->path, parent, length) == 0 &&
            inode->path[length] == '/' && read_marker(&info, inode->path) && info.step > newest &&
            fits(context, inode->path)) {
            newest = info.step;
            *path = dt_arena_strdup(arena, inode->path);
        }
    }
    return DT_OK;
}

dt_status dt_checkpoint_open(dt_checkpoint **out, const char *path, dt_error *err)
{
    *out = calloc(1, sizeof(**out));
    return read_marker(&(*out)->info, path) ? DT_OK
                                            : DT_FAIL(err, DT_ERR_CORRUPT, "'%s' is damaged", path);
}

void dt_checkpoint_close(dt_checkpoint *checkpoint)
{
    free(checkpoint);
}

const dt_checkpoint_info *dt_checkpoint_get_info(const dt_checkpoint *checkpoint)
{
    return &checkpoint->info;
}
