/* strategy_int: what the strategies are made of: recorded ops, a pass over a model, a model on its device,
 * device memory as the host sees it, the part of every unit that a rank updates, collectives beside a pass,
 * and a thread per replica. */
#ifndef DT_ENGINE_STRATEGY_STRATEGY_INT_H
#define DT_ENGINE_STRATEGY_STRATEGY_INT_H

#include <stdint.h>

#include "base/error.h"
#include "engine/comm/comm.h"
#include "engine/device/device.h"
#include "engine/model/model.h"
#include "engine/strategy/strategy.h"
#include "engine/tensor.h"

/* graph_cache: records ops that repeat every step and launches them as CUDA graphs (engine/device/queue.h).
 *
 * Breaks     where the host takes part, for example in a collective, the ops are split: a run launches
 *            a graph, performs the break's work, launches the next graph. So collectives are never
 *            recorded, and they overlap with the ops as they would without graphs
 * Key        the values that recorded ops contain: shapes, addresses, numbers. Ops are recorded when a key
 *            has come DT_GRAPH_CACHE_RUNS times in a row: by then algorithms have been chosen and
 *            working memory has grown. If the key changes, ops are launched one by one, and recorded again
 *            once the new key is as steady. Values that change from run to run under one key are sent
 *            before each run in an upload buffer (engine/device/device.h)
 * Failure    recording executes nothing. If it fails, the recording is dropped, the log says why, and the
 *            ops are launched one by one, so results are never wrong. It is retried after 100, 1,000
 *            and 10,000 runs, and given up after DT_GRAPH_CACHE_TRIES consecutive failures
 * Ownership  borrows the device; owns graphs and keys. Threads: the one that drives the device
 */

#define DT_GRAPH_CACHE_RUNS  2
#define DT_GRAPH_CACHE_TRIES 4

typedef struct dt_graph_cache dt_graph_cache;

typedef struct dt_graph_cache_ops {
    void *self;
    /* Launch the ops, and do the work of the breaks between them. */
    dt_status (*give)(void *self, dt_error *err);
    /* Launch the same ops for recording, calling dt_graph_cache_break instead of doing the work of
     * a break. Must not change anything that affects a run. */
    dt_status (*record)(void *self, dt_graph_cache *cache, dt_error *err);
    /* Do the work of a break; NULL if there are none. */
    dt_status (*graph_break)(void *self, int64_t which, dt_error *err);
} dt_graph_cache_ops;

/* *out is NULL if the device has no graphs or they are not wanted; all functions accept NULL. what:
 * name for the log; tells: log each recording. */
dt_status dt_graph_cache_open(dt_graph_cache **out, dt_device *device, const char *what,
                              size_t key_bytes, bool tells, dt_error *err);
void dt_graph_cache_close(dt_graph_cache *cache);

/* The buffer for the next run's key; the caller must write all its bytes. NULL if no key is needed. */
void *dt_graph_cache_key(dt_graph_cache *cache);
dt_status dt_graph_cache_run(dt_graph_cache *cache, const dt_graph_cache_ops *ops, dt_error *err);
/* While recording: the ops that follow come after break `which`. */
dt_status dt_graph_cache_break(dt_graph_cache *cache, int64_t which, dt_error *err);

/* pass: runs a model's forward and backward pass over a micro-step, recorded as graphs if the device can
 * (dt_graph_cache). Each of the strategy's hooks is a break, and so is each collective of ranks that divide a layer
 * (dt_layer_peers); they are called in every run in the same order as the model would call them.
 *
 * What changes from micro-step to micro-step is in device memory: the batch's inputs, the clock of
 * dropout, and the scale of the loss, which changes with the number of targets and with fp16. Seed, data
 * rank, shapes and the addresses of all these are the key.
 * Ownership  borrows the model. Threads: one per model
 */

/* A collective of the ranks that divide a layer, as a recorded pass has it. */
typedef struct dt_layer_call {
    bool gathers;  /* else it sums `all` */
    dt_tensor all; /* in device memory, as `own` */
    dt_tensor own; /* gathers only */
} dt_layer_call;

/* The recording of a pass: its ops, and the calls between layers that break it. */
typedef struct dt_recorded_pass {
    dt_graph_cache *graph_cache; /* recorded ops; NULL: ops are launched one by one */
    dt_layer_call *layer_calls;  /* in the order of the pass */
    int layer_call_count, layer_call_capacity;
} dt_recorded_pass;

typedef struct dt_pass {
    dt_model *model;
    dt_recorded_pass
        recorded[2]; /* of passes that accumulate gradients, and of those that overwrite them */
    /* addresses of the units' weights, gradients, and frozen weights; swapped with the model's during recording */
    void **places;
} dt_pass;

/* replica: holds a model on its device, the device's copy of a micro-step's batch, and the pass over it.
 *
 * ddp and fsdp have one replica, dp has one per thread. Ownership: borrows model and device; owns the
 * batch's memory. Threads: one per replica.
 */

typedef struct dt_replica {
    dt_model *model;
    dt_upload_buffer upload;  /* device copy of dropout clock, loss scale and inputs */
    const double *loss_scale; /* points to the loss scale in `upload` */
    size_t offsets[DT_INPUTS_MAX];
    int input_count;
    dt_batch batch;
    dt_pass pass;
} dt_replica;

/* Sizes come from the model's config. recorded, tells: as in dt_pass_open. */
dt_status dt_replica_open(dt_replica *out, dt_model *model, bool recorded, bool tells,
                          dt_error *err);
void dt_replica_close(dt_replica *replica); /* accepts a zeroed replica */

/* Process part `part` of `parts` of the micro-batch's samples. A part can be empty if there are
 * several; then no pass runs. */
dt_status dt_replica_forward_backward(dt_replica *replica, const dt_micro_batch *batch,
                                      int64_t part, int64_t parts, double loss_scale,
                                      double *loss_sum, dt_error *err);
dt_status dt_replica_evaluate(dt_replica *replica, const dt_micro_batch *batch, int64_t part,
                              int64_t parts, double *loss_sum, double *counted, dt_error *err);

/* host_mirror: gives the host access to tensors that are in device memory.
 *
 * Purpose    the only place that knows whether the host can read a device's memory. On the CPU a
 *            piece is the memory itself and nothing is copied; on a GPU it is a copy in host memory
 * Frozen     weights that are not trained are seldom read, and held in the compute type: their copies, in fp32, exist
 *            only from dt_host_mirror_hold or from_device until to_device or release. So do those of states in bf16
 * Ownership  owns the copies; borrows device and device memory
 * Threads    the device's
 */

typedef struct dt_host_mirror {
    dt_device *device;
    struct dt_host_mirror_piece *pieces;
    int count, capacity;
} dt_host_mirror;

/* Allocate the copies of frozen tensors, zeroed; release them. */
dt_status dt_host_mirror_hold(dt_host_mirror *mirror, dt_error *err);
void dt_host_mirror_release(dt_host_mirror *mirror);
/* Copy all pieces from or to the device; complete on return. */
dt_status dt_host_mirror_from_device(dt_host_mirror *mirror, dt_error *err);
dt_status dt_host_mirror_to_device(dt_host_mirror *mirror, dt_error *err);

/* shard: updates the part of every unit that a rank owns, with its optimizer state.
 *
 * Purpose    what strategies share once gradients are reduced: norm, update, initial
 *            values, checkpoints. dp and ddp: whole units; fsdp: 1/W of each
 * Shapes     a slice is `elems` elements of a unit's flat buffer, starting at start_elems; it can extend
 *            past the unit's end, where everything is and stays zero
 * Tensor     a slice is of what this tensor rank holds; chunks say where that is in the whole parameter
 * Frozen     parameters that are not trained are a second flat buffer, in the compute type: without gradient, states and
 *            master; only initial values and checkpoints (both through chunks) concern them. Those of the base of an
 *            adapter are in no checkpoint, and are never copied as a whole to the host: dt_shard_import_base sets them
 * Groups     weight_decay is 0 for parameters without decay (dt_param.decay), unless all decay: two sets
 *            of factors
 * Ownership  owns its tables and the host's copies (dt_host_mirror); the strategy owns the memory of
 *            the slices
 */

/* Tensors are F32 unless noted. */
typedef struct dt_shard_unit {
    int64_t start_elems, elems;
    float *master;
    /* optimizer states; NULL if the optimizer lacks that one. Laid out like the slice, or, if
     * matrices lack it, as the concatenation of the other parameters */
    void *state[DT_OPTIMIZER_STATES]; /* in the type of dt_optimizer_state_dtype */
    int64_t state_elems[DT_OPTIMIZER_STATES];
    float *grad; /* reduced gradient of the slice */
    void *copy;  /* in the compute type, equal to master after every update; MAY be NULL */
    /* the slice of the unit's frozen parameters, in the compute type */
    int64_t frozen_start_elems, frozen_elems;
    void *frozen;
} dt_shard_unit;

/* Ranks that hold the same whole units and divide the work on matrices among themselves. */
typedef struct dt_shard_peers {
    void *self;
    int64_t rank, count; /* this rank's number and the number of peers; count 0: none */
    /* Broadcast the matrix of rank `from` to the others; starts once the direction is computed,
     * does not wait */
    dt_status (*give)(void *self, float *matrix, int64_t elems, int64_t from, dt_error *err);
    dt_status (*wait)(void *self, dt_error *err); /* wait for all broadcasts */
} dt_shard_peers;

typedef struct dt_shard {
    dt_model *model;
    const dt_optimizer *optimizer;
    dt_optimizer_options options;
    void *work; /* the optimizer's scratch for a whole matrix; NULL: not needed */
    size_t work_bytes;
    /* MAY: gathers a unit's directions into *whole, after every rank has converted its slice of the
     * gradients to directions; NULL: the slice is the whole unit */
    dt_status (*gather)(void *self, int unit, float **whole, dt_error *err);
    void *gather_self;
    dt_shard_peers peers;
    /* filled by the strategy between dt_shard_open and dt_shard_make_tables */
    dt_shard_unit *units;
    struct dt_shard_run *runs;
    int run_count;
    dt_state_chunk *chunks; /* the parameters' parts in the slices; host-readable */
    /* the first counted_chunks are those that this rank counts (dt_param.held.counted) and checkpoints have */
    int chunk_count, counted_chunks;
    dt_host_mirror host_mirror;
    /* the optimizer's factors for this step: without decay, and with decay */
    dt_upload_buffer factors;
    dt_graph_cache *graph_cache; /* the recorded update; NULL: ops are launched one by one */
} dt_shard;

dt_status dt_shard_open(dt_shard *out, dt_model *model, const dt_optimizer_options *optimizer,
                        dt_error *err);
/* Record updates as graphs if the device can; tells: whether this shard writes to the log about
 * them. */
dt_status dt_shard_record(dt_shard *shard, bool recorded, bool tells, dt_error *err);
void dt_shard_close(dt_shard *shard); /* accepts a zeroed or partly opened shard */

/* Allocate the optimizer states of a slice. */
void dt_shard_take_states(dt_shard *shard, int unit, dt_layout *layout);
/* Allocate the optimizer's scratch; call once. */
void dt_shard_take_work(dt_shard *shard, dt_layout *layout);
/* Allocate a slice that is the whole unit: master, states, gradient, the copy if the compute type is
 * not fp32, and the frozen parameters. The model computes with them. */
void dt_shard_take_unit(dt_shard *shard, int unit, dt_layout *layout);
/* with_chunks: this rank reads and writes checkpoints. */
dt_status dt_shard_make_tables(dt_shard *shard, bool with_chunks, dt_error *err);

/* Bytes of one state of an element. */
size_t dt_shard_state_bytes(const dt_shard *shard);
/* Bytes of the optimizer states, and of the slices of frozen parameters. */
int64_t dt_shard_optimizer_bytes(const dt_shard *shard);
int64_t dt_shard_frozen_bytes(const dt_shard *shard);
/* Implements held_part of dt_strategy. */
bool dt_shard_held_part(const dt_shard *shard, int param, dt_held_part *out);
/* Implement export_state and import_state of dt_strategy. */
dt_status dt_shard_export(dt_shard *shard, const dt_state_chunk **chunks, int *count,
                          dt_error *err);
dt_status dt_shard_import(dt_shard *shard, const dt_state_chunk **chunks, int *count,
                          dt_error *err);

/* Implement import_base of dt_strategy. */
dt_status dt_shard_import_base(dt_strategy_state *state, const dt_state_chunk *chunk, int64_t at,
                               const float *values, int64_t elems, dt_error *err);

/* Initialize the master, through the chunks. */
dt_status dt_shard_init(dt_shard *shard, uint64_t seed, dt_error *err);
/* Set each copy to its master: copy := master. */
dt_status dt_shard_refresh(dt_shard *shard, dt_error *err);

/* Once gradients are reduced along the data axis: add the terms of those that tensor ranks share (state->layer,
 * state->sharers). */
dt_status dt_shard_sum_terms(dt_shard *shard, const dt_strategy_state *state, dt_error *err);
/* Sum of squares of all slices' gradients that this rank counts, in a fixed order. */
dt_status dt_shard_sum_squares(dt_shard *shard, double *out, dt_error *err);
dt_status dt_shard_update(dt_shard *shard, const dt_optimizer_args *args, dt_error *err);

/* Zero the gradients of all units, except those that the first pass overwrites; returns in *overwrites whether there
 * are such gradients, which dt_model.overwrites says to the pass. */
dt_status dt_zero_first_gradients(dt_model *model, bool *overwrites, dt_error *err);

/* Shows gradients that are about to be sent to state->before_send, if the ops before are done: on the CPU. */
static inline void dt_show_before_send(const dt_strategy_state *state, int unit, float *grads,
                                       int64_t elems)
{
    if (state->before_send.see != NULL && state->model->device->host_reads)
        state->before_send.see(state->before_send.self, unit, grads, elems);
}

/* Detach a strategy's memory and hooks from the model. */
void dt_shard_leave_model(dt_model *model);

/* --- what shard.c and shard_step.c share */

/* Adjacent parameters of one slice and group, or a part of one matrix: the unit of an optimizer
 * call. */
typedef struct dt_shard_run {
    int unit, param;            /* unit, and first parameter of the run */
    int64_t start_elems, elems; /* range within the slice */
    int64_t state_start[DT_OPTIMIZER_STATES];
    dt_optimizer_group group;
} dt_shard_run;

/* The range of a parameter, relative to its first element that this rank holds, that is in this rank's slice (of the
 * trained or the frozen parameters); false: none. *at: where it starts in the slice. */
bool dt_shard_part_in_slice(int64_t *first, int64_t *end, int64_t *at, const dt_shard *shard,
                            const dt_param *param);

/* Make the optimizer's argument for a run. */
dt_optimizer_part dt_shard_part_of(const dt_shard *shard, const dt_shard_run *run);

/* How the optimizer computes the direction of whole matrices, and in which type. Only if it has
 * `matrices`. */
const dt_whole_matrices *dt_shard_shaping(const dt_shard *shard);
dt_dtype dt_shard_work_dtype(const dt_shard *shard);

/* async_comm: runs collectives of gradients and parameters in device memory, concurrently with passes.
 *
 * Purpose    a separate communicator executes jobs in the order of their launch. All ranks must launch
 *            the same jobs in the same order: by the index of a unit, never by readiness
 * Order      a job starts after the device ops issued before it; ops issued after a wait see the job's
 *            result. A communicator that queues (NCCL) does this without blocking the host; for others a
 *            thread runs the collectives, and wait() returns when they are done
 * Ownership  the memory of a launched job must not be touched until the job was waited for
 * Threads    launch and wait from one thread; neither allocates memory
 * Errors     after the first error every launch and wait returns it; DT_ERR_COMM if a peer is lost
 */

typedef struct dt_async_comm dt_async_comm;

/* Number of a job, from 1; 0 stands for a finished job. */
typedef int64_t dt_async_comm_ticket;

/* At most `capacity` jobs can be in progress. Takes *comm (dt_comm_open_device), on failure too. */
dt_status dt_async_comm_open(dt_async_comm **out, dt_comm *comm, dt_device *device,
                             int64_t capacity, dt_error *err);

/* Launch a collective, with the arguments of comm.h. ticket MAY be NULL. */
dt_status dt_async_comm_all_reduce(dt_async_comm *async, dt_async_comm_ticket *ticket, void *data,
                                   int64_t elems, dt_dtype dtype, dt_error *err);
dt_status dt_async_comm_reduce_scatter(dt_async_comm *async, dt_async_comm_ticket *ticket,
                                       void *out, const void *in, int64_t elems, dt_dtype dtype,
                                       dt_error *err);
dt_status dt_async_comm_all_gather(dt_async_comm *async, dt_async_comm_ticket *ticket, void *out,
                                   const void *in, size_t bytes, dt_error *err);
dt_status dt_async_comm_broadcast(dt_async_comm *async, dt_async_comm_ticket *ticket, void *data,
                                  size_t bytes, int64_t root, dt_error *err);

/* Wait until the job and all jobs launched before it are done, as seen by later ops. */
dt_status dt_async_comm_wait(dt_async_comm *async, dt_async_comm_ticket ticket, dt_error *err);
/* Wait on the host for all jobs. Returns an error if any failed. */
dt_status dt_async_comm_wait_all(dt_async_comm *async, dt_error *err);

/* bytes sent by finished jobs since it was opened */
int64_t dt_async_comm_sent_bytes(dt_async_comm *async);

/* Waits for the job in progress and drops the jobs after it. Accepts NULL. */
void dt_async_comm_close(dt_async_comm *async);

/* thread_pool: runs a task in several threads, one per replica.
 *
 * Purpose    member 0 is the caller's thread; the others wait between tasks
 * Threads    call dt_thread_pool_run from the thread that opened the pool
 * Errors     all members finish; returns the error of the lowest-numbered member that failed
 */

typedef struct dt_thread_pool dt_thread_pool;
typedef dt_status (*dt_thread_pool_task)(void *self, int64_t member, dt_error *err);

dt_status dt_thread_pool_open(dt_thread_pool **out, int64_t members, dt_error *err);
/* Call task(self, m) for every member m; returns when all have finished. */
dt_status dt_thread_pool_run(dt_thread_pool *pool, dt_thread_pool_task task, void *self,
                             dt_error *err);
void dt_thread_pool_close(dt_thread_pool *pool); /* accepts NULL */

#endif
