/* place: the steps of the preparation that belong to the transport: it lends the node, and it starts the agent. */
#include <string.h>

#include "base/names.h"
#include "runner/node_setup/node_setup.h"
#include "runner/node_setup/node_setup_int.h"
#include "runner/transport/transport.h"

/* Returns the highest device number plus one, since ranks can share a GPU. */
static int64_t gpus_per_node(const json_t *plan)
{
    const json_t *item;
    int64_t most = 0;
    size_t i;

    json_array_foreach(json_object_get(plan, "ranks"), i, item) {
        int64_t first = dt_device_gpu(json_string_value(json_object_get(item, "device")));
        int64_t replicas = json_integer_value(json_object_get(item, "replicas"));

        if (first >= 0 && first + replicas > most)
            most = first + replicas;
    }
    return most;
}

/* Collects what the plan's ranks need on each node, and the options that the recipe has for the transport. */
static void make_wish(dt_place_wish *out, const dt_transport *transport, const json_t *plan,
                      int64_t nodes, dt_arena *arena)
{
    const json_t *recipe = json_object_get(plan, "recipe"), *item;
    const json_t *list = json_object_get(json_object_get(recipe, transport->kind), "options");
    const char **options =
        dt_arena_alloc_array(arena, json_array_size(list) + 1, sizeof(options[0]));
    const char *name = json_string_value(json_object_get(recipe, "name"));
    size_t i;

    *out = (dt_place_wish){.name = name != NULL ? name : "dtrun",
                           .nodes = nodes,
                           .tasks_per_node = 1,
                           .cpus_per_task = 1,
                           .options = options,
                           .option_count = (int64_t)json_array_size(list)};
    json_array_foreach((json_t *)list, i, item)
        options[i] = json_string_value(item);
    json_array_foreach(json_object_get(plan, "ranks"), i, item) {
        int64_t tasks = json_integer_value(json_object_get(item, "local_rank")) + 1;
        int64_t cpus = json_integer_value(json_object_get(item, "threads")) *
                       json_integer_value(json_object_get(item, "replicas"));

        if (tasks > out->tasks_per_node)
            out->tasks_per_node = tasks;
        if (cpus > out->cpus_per_task)
            out->cpus_per_task = cpus;
    }
    out->gpus_per_node = gpus_per_node(plan);
}

dt_status dt_nodes_try_place(const json_t *plan, const char *node, int64_t nodes, dt_arena *arena,
                             dt_error *err)
{
    const dt_transport *transport;
    dt_place_wish wish;
    dt_status st;

    DT_TRY(dt_transport_find(&transport, node, err));
    if (transport->try_place == NULL)
        return DT_OK;
    make_wish(&wish, transport, plan, nodes, arena);
    DT_TRY(transport->try_place(&wish, err));
out:
    return st;
}

dt_status dt_nodes_place(const char **node, const dt_prepare_request *request, dt_arena *arena,
                         dt_error *err)
{
    const char *slash = strrchr(request->checkpoints_here, '/'); /* runs/ID/checkpoints */
    size_t length = slash != NULL ? (size_t)(slash - request->checkpoints_here) : 0;
    const dt_transport *transport;
    dt_place_wish wish;
    dt_status st;

    *node = request->node;
    DT_TRY(dt_transport_find(&transport, request->node, err));
    if (transport->place == NULL)
        return DT_OK;
    make_wish(&wish, transport, request->plan, request->node_count, arena);
    DT_TRY(transport->place(node,
                            &(dt_place_request){.node = request->node,
                                                .run = request->run,
                                                .run_folder = dt_arena_strndup(
                                                    arena, request->checkpoints_here, length),
                                                .wish = &wish,
                                                .cancelled = request->cancelled,
                                                .progress = request->progress,
                                                .context = request->context},
                            arena, err));
out:
    return st;
}

dt_status dt_nodes_start_agent(const dt_node_layout *layout, const dt_prepare_request *request,
                               dt_arena *arena, dt_error *err)
{
    const dt_transport *transport;
    dt_status st;

    DT_TRY(dt_transport_find(&transport, layout->node, err));
    if (transport->start == NULL)
        return DT_OK;
    DT_TRY(transport->start(&(dt_start_request){.node = layout->node,
                                                .agent = layout->agent,
                                                .folder = layout->folder,
                                                .here = request->here,
                                                .cancelled = request->cancelled},
                            arena, err));
out:
    return st;
}
