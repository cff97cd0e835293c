/* recording: opens the record of a rank, with what identifies the rank and its arithmetic. */
#include <stdio.h>
#include <string.h>

#include "base/version.h"
#include "engine/record/record.h"
#include "engine/train/train_int.h"
#include "recipes/fields/fields.h"

#define TEXT_BYTES 320

/* The model of the processor; "" if unknown. */
static void find_processor(char *out, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char row[512], *value;

    out[0] = '\0';
    if (file == NULL)
        return;
    while (out[0] == '\0' && fgets(row, sizeof(row), file) != NULL)
        if (strncmp(row, "model name", strlen("model name")) == 0 &&
            (value = strchr(row, ':')) != NULL) {
            value[strcspn(value, "\n")] = '\0';
            snprintf(out, size, "%s", value + 1 + strspn(value + 1, " "));
        }
    fclose(file);
}

static json_t *nodes_of_ranks(const dt_plan *plan)
{
    json_t *nodes = json_array();

    for (int64_t i = 0; i < plan->world_size; i++)
        json_array_append_new(nodes, json_integer((json_int_t)plan->ranks[i].node));
    return nodes;
}

static dt_status make_header(json_t **out, const dt_train_session *session, dt_error *err)
{
    const dt_plan *plan = session->plan;
    const dt_mesh *mesh = &session->mesh;
    char arithmetic[TEXT_BYTES], processor[TEXT_BYTES], hash[33];
    json_t *recipe = dt_recipe_to_json(session->recipe);
    dt_status st = DT_OK;

    *out = NULL;
    DT_TRY(dt_replicas_describe(arithmetic, sizeof(arithmetic), &session->device, mesh, err));
    find_processor(processor, sizeof(processor));
    dt_recipe_hash(hash, &plan->recipe);
    *out = json_pack(
        "{s:i, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:o, s:s, s:I, s:[I, I, I], s:o, s:O, "
        "s:O}",
        "record", 1, "version", DT_VERSION, "run", plan->run, "recipe", hash, "attempt",
        (json_int_t)plan->attempt, "rank", (json_int_t)mesh->world.rank, "ranks",
        (json_int_t)mesh->world.size, "after", (json_int_t)session->step, "seed",
        (json_int_t)session->recipe->seed, "device", session->device.name, "processor",
        dt_json_text(processor), "arithmetic", arithmetic, "threads",
        (json_int_t)session->device.threads, "mesh", (json_int_t)mesh->axis[DT_AXIS_REPLICA].size,
        (json_int_t)mesh->axis[DT_AXIS_SHARD].size, (json_int_t)mesh->axis[DT_AXIS_TENSOR].size,
        "nodes", nodes_of_ranks(plan), "strategy", json_object_get(recipe, "strategy"), "precision",
        json_object_get(recipe, "precision"));
out:
    json_decref(recipe);
    return st;
}

dt_status dt_recording_open(dt_train_session *session, dt_error *err)
{
    double items = dt_train_session_mean_items(session) / (double)session->mesh.world.size;
    dt_record_setup setup = {.state = &session->state,
                             .events = session->events,
                             .step_flops =
                                 items * dt_model_flops_per_token(&session->model->config)};
    dt_status st = DT_OK;

    DT_TRY(make_header(&setup.header, session, err));
    DT_TRY(dt_record_open(&session->record, &setup, err));
out:
    return st;
}
