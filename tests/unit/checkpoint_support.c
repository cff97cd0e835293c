#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "checkpoint_support.h"

#define MAX_CHUNKS 64
#define STRIPE     7

/* --- the model */

#define FAKE_PARAMS 5

static const dt_param params[FAKE_PARAMS] = {
    {.name = "wte.weight", .ndim = 2, .dim = {FAKE_PADDED, 3}, .elems = FAKE_PADDED * 3},
    {.name = "wpe.weight", .ndim = 2, .dim = {FAKE_PADDED, 3}, .elems = FAKE_PADDED * 3},
    {.name = "h.0.mlp.c_fc.weight", .ndim = 2, .dim = {12, 3}, .elems = 36},
    {.name = "h.0.mlp.c_fc.bias", .ndim = 1, .dim = {12, 1}, .elems = 12},
    {.name = "ln_f.bias", .ndim = 1, .dim = {1, 1}, .elems = 1},
};

static dt_model model_make(dt_param *copy, int64_t padded)
{
    dt_model model = {.params = copy, .param_count = FAKE_PARAMS};

    memcpy(copy, params, sizeof(params));
    copy[0].dim[0] = padded;
    for (int i = 0; i < FAKE_PARAMS; i++) {
        copy[i].stored_rows = copy[i].dim[0];
        copy[i].dim[2] = copy[i].dim[3] = 1;
    }
    copy[0].elems = padded * copy[0].dim[1];
    copy[0].stored_rows = FAKE_VOCAB;
    return model;
}

const dt_model *fake_model(void)
{
    static dt_param copy[FAKE_PARAMS];
    static dt_model model;

    model = model_make(copy, FAKE_PADDED);
    return &model;
}

float fake_value(int param, int64_t index, int kind)
{
    if (param == 0 && index >= FAKE_VOCAB * 3)
        return 0; /* padding */
    return (float)(1 + param * 1000 + index) * (kind == DT_CHECKPOINT_VALUE   ? 1.0f
                                                : kind == DT_CHECKPOINT_STATE ? -0.5f
                                                                              : 0.001f);
}

/* --- the strategy */

typedef struct fake_state {
    fake_world *world;
    dt_state_chunk chunks[MAX_CHUNKS];
    int count;
    dt_state_chunk written[MAX_CHUNKS]; /* chunks that no other rank writes */
    int written_count;
    float memory[3 * 512]; /* value, m and v of each chunk, chunk after chunk */
    int64_t used;
    bool finished;
} fake_state;

static void add_chunk(fake_state *own, int param, const dt_slice *slice, bool writes)
{
    dt_state_chunk *chunk = &own->chunks[own->count++];
    int64_t elems = slice->elems;
    float *at = own->memory + own->used;

    assert_true(own->count <= MAX_CHUNKS && own->used + 3 * elems <= 3 * 512);
    own->used += 3 * elems;
    *chunk = (dt_state_chunk){
        .param = param, .slice = *slice, .value = at, .state = {at + elems, at + 2 * elems}};
    if (own->world->no_moments)
        memset(chunk->state, 0, sizeof(chunk->state));
    if (writes)
        own->written[own->written_count++] = *chunk;
}

static dt_box whole_of(const dt_param *param)
{
    return dt_box_whole(param->dim, param->ndim);
}

/* Adds the part of [from, to) of the concatenation of all parameters. */
static void add_flat(fake_state *own, const dt_model *model, int64_t from, int64_t to)
{
    int64_t begin = 0;

    for (int i = 0; i < model->param_count; i++) {
        int64_t end = begin + model->params[i].elems;
        int64_t a = from > begin ? from : begin, b = to < end ? to : end;

        dt_slice slice = {whole_of(&model->params[i]), a - begin, b - a};

        if (a < b)
            add_chunk(own, i, &slice, true);
        begin = end;
    }
}

/* Adds part `part` of `parts` of the rows or columns from `first` to first + size; the part may be empty. */
static void add_box(fake_state *own, const dt_model *model, int param, int dim, int64_t first,
                    int64_t size, const dt_mesh *mesh)
{
    bool fsdp = own->world->layout == FAKE_FSDP, cut = dim >= 0;
    int64_t part = mesh->axis[DT_AXIS_TENSOR].rank, parts = mesh->axis[DT_AXIS_TENSOR].size, elems;
    dt_slice slice = {.box = whole_of(&model->params[param])};

    if (cut) {
        slice.box.start[dim] = first + size * part / parts;
        slice.box.size[dim] = first + size * (part + 1) / parts - slice.box.start[dim];
    }
    elems = dt_box_elems(&slice.box);
    slice.start_elems = fsdp ? elems * mesh->data.rank / mesh->data.size : 0;
    slice.elems =
        fsdp ? elems * (mesh->data.rank + 1) / mesh->data.size - slice.start_elems : elems;
    if (slice.elems > 0)
        add_chunk(own, param, &slice,
                  dt_mesh_speaks(mesh, (fsdp ? DT_MESH_DATA : 0u) | (cut ? DT_MESH_TENSOR : 0u)));
}

/* Lays out a mesh: rows of the embedding with its padding, columns of the positions, a part of
 * each third of the matrix (as if it packed queries, keys and values); every rank holds
 * parameters of one element. */
static void lay_out_mesh(fake_state *own, const dt_model *model, const dt_mesh *mesh)
{
    add_box(own, model, 0, 0, 0, model->params[0].dim[0], mesh);
    add_box(own, model, 1, 1, 0, model->params[1].dim[1], mesh);
    for (int64_t at = 0, rows = mesh->axis[DT_AXIS_TENSOR].size > 1 ? 4 : 12; at < 12; at += rows)
        add_box(own, model, 2, 0, at, rows, mesh);
    add_box(own, model, 3, 0, 0, model->params[3].dim[0], mesh);
    add_box(own, model, 4, -1, 0, 0, mesh);
}

static void lay_out(fake_state *own, const dt_model *model, const dt_mesh *mesh)
{
    const fake_world *world = own->world;
    int64_t rank = mesh->world.rank;
    int64_t total = 0;

    for (int i = 0; i < model->param_count; i++)
        total += model->params[i].elems;
    if (world->layout == FAKE_LEAD && rank == 0)
        add_flat(own, model, 0, total);
    if (world->layout == FAKE_FLAT)
        add_flat(own, model, total * rank / world->ranks, total * (rank + 1) / world->ranks);
    for (int64_t k = 0; world->layout == FAKE_STRIPES && k * STRIPE < total; k++)
        if (k % world->ranks == rank)
            add_flat(own, model, k * STRIPE, (k + 1) * STRIPE < total ? (k + 1) * STRIPE : total);
    if (world->layout == FAKE_DDP || world->layout == FAKE_FSDP)
        lay_out_mesh(own, model, mesh);
}

/* Returns the place of element k of a chunk in the flattened parameter. */
static int64_t index_of(const dt_state_chunk *chunk, const dt_model *model, int64_t k)
{
    const dt_box *box = &chunk->slice.box;
    int64_t at[DT_BOX_DIMS], left = chunk->slice.start_elems + k, index = 0;

    for (int d = box->ndim - 1; d >= 0; d--) {
        at[d] = box->start[d] + left % box->size[d];
        left /= box->size[d];
    }
    for (int d = 0; d < box->ndim; d++)
        index = index * model->params[chunk->param].dim[d] + at[d];
    return index;
}

static void fill(fake_state *own, const dt_model *model, bool poison)
{
    for (int i = 0; i < own->count; i++) {
        const dt_state_chunk *chunk = &own->chunks[i];

        for (int kind = 0; kind < DT_CHECKPOINT_KINDS; kind++)
            for (int64_t k = 0; k < chunk->slice.elems && dt_state_chunk_data(chunk, kind); k++)
                dt_state_chunk_data(chunk, kind)[k] =
                    poison ? NAN : fake_value(chunk->param, index_of(chunk, model, k), kind);
    }
}

void fake_fill(dt_strategy_state *state, bool poison)
{
    fill(state->own, state->model, poison);
}

static dt_status expect(const fake_state *own, const dt_model *model, dt_error *err)
{
    if (!own->finished)
        return DT_FAIL(err, DT_ERR_CORRUPT, "import_finish was not called");
    for (int i = 0; i < own->count; i++) {
        const dt_state_chunk *chunk = &own->chunks[i];

        for (int kind = 0; kind < DT_CHECKPOINT_KINDS; kind++)
            for (int64_t k = 0; k < chunk->slice.elems && dt_state_chunk_data(chunk, kind); k++) {
                int64_t index = index_of(chunk, model, k);

                if (dt_state_chunk_data(chunk, kind)[k] != fake_value(chunk->param, index, kind))
                    return DT_FAIL(err, DT_ERR_CORRUPT, "parameter %d kind %d element %lld is %g",
                                   chunk->param, kind, (long long)index,
                                   (double)dt_state_chunk_data(chunk, kind)[k]);
            }
    }
    return DT_OK;
}

static dt_status may_fail(const dt_strategy_state *state, dt_error *err)
{
    const fake_state *own = state->own;

    if (own->world->failing_rank == state->comm->rank)
        return DT_FAIL(err, DT_ERR_NOMEM, "this rank must fail");
    return DT_OK;
}

static dt_status fake_export(dt_strategy_state *state, const dt_state_chunk **chunks, int *count,
                             dt_error *err)
{
    fake_state *own = state->own;

    *chunks = own->written;
    *count = own->written_count;
    return may_fail(state, err);
}

static dt_status fake_import(dt_strategy_state *state, const dt_state_chunk **chunks, int *count,
                             dt_error *err)
{
    fake_state *own = state->own;

    *chunks = own->chunks;
    *count = own->count;
    return may_fail(state, err);
}

static dt_status fake_finish(dt_strategy_state *state, dt_error *err)
{
    ((fake_state *)state->own)->finished = true;
    return DT_OK;
}

static const dt_strategy fake_strategy = {.name = "fake",
                                          .export_state = fake_export,
                                          .import_state = fake_import,
                                          .import_finish = fake_finish};

/* --- the communicator: barriers around shared memory */

struct fake_shared {
    pthread_barrier_t barrier;
    double sums[FAKE_MAX_RANKS][8];
    void *sent;
};

static dt_status comm_barrier(dt_comm *comm, dt_error *err)
{
    pthread_barrier_wait(&((struct fake_shared *)comm->state)->barrier);
    return DT_OK;
}

static dt_status comm_all_reduce_f64(dt_comm *comm, double *data, int64_t elems, dt_error *err)
{
    struct fake_shared *shared = comm->state;

    assert_true(elems <= 8);
    memcpy(shared->sums[comm->rank], data, (size_t)elems * sizeof(*data));
    comm_barrier(comm, err);
    for (int64_t i = 0; i < elems; i++) {
        data[i] = 0;
        for (int64_t r = 0; r < comm->world_size; r++)
            data[i] += shared->sums[r][i];
    }
    return comm_barrier(comm, err);
}

static dt_status comm_broadcast(dt_comm *comm, void *data, size_t bytes, int64_t root,
                                dt_error *err)
{
    struct fake_shared *shared = comm->state;

    if (comm->rank == root)
        shared->sent = data;
    comm_barrier(comm, err);
    if (comm->rank != root)
        memcpy(data, shared->sent, bytes);
    return comm_barrier(comm, err);
}

/* --- the world */

void fake_world_init(fake_world *world, const char *parent)
{
    memset(world, 0, sizeof(*world));
    world->ranks = world->tensor_size = 1;
    world->padded = FAKE_PADDED;
    world->failing_rank = -1;
    world->io = &dt_checkpoint_io_system;
    snprintf(world->parent, sizeof(world->parent), "%s/checkpoints", parent);
    for (int rank = 0; rank < FAKE_MAX_RANKS; rank++)
        snprintf(world->node_parent[rank], sizeof(world->node_parent[rank]), "%s/node%d", parent,
                 rank);
    world->info =
        (dt_checkpoint_info){.run = "k3v9x2",
                             .attempt = 1,
                             .step = 100,
                             .epoch = 2,
                             .sample = 17,
                             .loss = 2.5,
                             .valid_loss = NAN,
                             .best_score = NAN,
                             .valid_bleu = NAN,
                             .kept_for = DT_CHECKPOINT_STEPS,
                             .optimizer = "adamw",
                             .recipe = json_pack("{s:i}", "seed", 42),
                             .tokenizer = json_pack("{s:s, s:i}", "kind", "byte", "vocab", 256)};
}

void fake_world_release(fake_world *world)
{
    json_decref(world->info.recipe);
    json_decref(world->info.tokenizer);
}

typedef struct rank_call {
    fake_world *world;
    fake_task task;
    int64_t rank;
} rank_call;

dt_status fake_world_run_rank(fake_world *world, int64_t rank, dt_comm *comm, fake_task task)
{
    fake_state *own = calloc(1, sizeof(*own));
    dt_param copy[FAKE_PARAMS];
    dt_model model = model_make(copy, world->padded);
    dt_strategy_state state = {
        .strategy = &fake_strategy,
        .model = &model,
        .mesh = dt_mesh_of(rank, world->ranks / world->tensor_size, 1, world->tensor_size),
        .comm = comm,
        .own = own};

    assert_non_null(own);
    own->world = world;
    lay_out(own, &model, &state.mesh);
    world->err[rank] = (dt_error)DT_ERROR_INIT;
    world->st[rank] = task(world, &state, &world->err[rank]);
    free(own);
    return world->st[rank];
}

static void *rank_main(void *argument)
{
    rank_call *call = argument;
    dt_comm comm = {.name = "fake",
                    .rank = call->rank,
                    .world_size = call->world->ranks,
                    .state = call->world->shared,
                    .all_reduce_f64 = comm_all_reduce_f64,
                    .broadcast = comm_broadcast,
                    .barrier = comm_barrier};

    fake_world_run_rank(call->world, call->rank, &comm, call->task);
    return NULL;
}

dt_status fake_world_run(fake_world *world, fake_task task)
{
    struct fake_shared shared = {0};
    rank_call calls[FAKE_MAX_RANKS];
    pthread_t threads[FAKE_MAX_RANKS];

    world->shared = &shared;
    pthread_barrier_init(&shared.barrier, NULL, (unsigned)world->ranks);
    for (int64_t rank = 0; rank < world->ranks; rank++) {
        calls[rank] = (rank_call){world, task, rank};
        /* rank 0 runs on this thread, so that a test may let it die */
        if (rank > 0)
            assert_int_equal(pthread_create(&threads[rank], NULL, rank_main, &calls[rank]), 0);
    }
    rank_main(&calls[0]);
    for (int64_t rank = 1; rank < world->ranks; rank++)
        pthread_join(threads[rank], NULL);
    pthread_barrier_destroy(&shared.barrier);
    for (int64_t rank = 0; rank < world->ranks; rank++)
        if (world->st[rank] != DT_OK)
            return world->st[rank];
    return DT_OK;
}

dt_status fake_save(fake_world *world, dt_strategy_state *state, dt_error *err)
{
    int64_t rank = state->comm->rank;
    dt_checkpoint_place place = {world->parent, true, rank == 0};
    dt_status st = DT_OK;

    fake_fill(state, false);
    if (world->apart) { /* each rank is a node */
        place.shared = false;
        place.lead = true;
        place.parent = world->node_parent[rank];
    }
    DT_TRY(dt_checkpoint_save_through(world->io, &world->saved[rank], &place, &world->info, state,
                                      err));
out:
    return st;
}

dt_status fake_load(fake_world *world, dt_strategy_state *state, dt_error *err)
{
    dt_status st = DT_OK;
    dt_checkpoint *checkpoint = NULL;
    const char *path;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    fake_fill(state, true);
    DT_TRY(dt_checkpoint_find_newest(&path, world->parent, &arena, err));
    if (path == NULL)
        DT_THROW(err, DT_ERR_NOT_FOUND, "nothing to load");
    DT_TRY(dt_checkpoint_open(&checkpoint, path, err));
    DT_TRY(dt_checkpoint_load(checkpoint, state, err));
    DT_TRY(expect(state->own, state->model, err));
out:
    dt_checkpoint_close(checkpoint);
    dt_arena_release(&arena);
    return st;
}

dt_status fake_prune(const char *parent, int64_t newest)
{
    dt_checkpoint_keep keep = {.newest = newest};

    return dt_checkpoint_prune(parent, &keep, NULL);
}

static void must(fake_world *world, fake_task task)
{
    if (fake_world_run(world, task) == DT_OK)
        return;
    for (int64_t rank = 0; rank < world->ranks; rank++)
        print_error("rank %d: %s\n", (int)rank, world->err[rank].message);
    fail();
}

void fake_must_save(fake_world *world)
{
    must(world, fake_save);
}

void fake_must_load(fake_world *world)
{
    must(world, fake_load);
}

int fake_folder_make(void **state)
{
    char path[] = "/tmp/dtrun-checkpoint-XXXXXX";

    *state = mkdtemp(path) != NULL ? strdup(path) : NULL;
    return *state == NULL;
}

int fake_folder_remove(void **state)
{
    dt_status st = dt_file_remove_tree(*state, NULL);

    free(*state);
    return st != DT_OK;
}
