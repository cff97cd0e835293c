/* checkpoint_int: declares what the files of this folder share beyond the public headers: the system calls
 * of a save, the writer of one file, an open checkpoint, a rank's part of a save, and the copy of the state
 * that is saved in the background. */
#ifndef DT_ENGINE_CHECKPOINT_CHECKPOINT_INT_H
#define DT_ENGINE_CHECKPOINT_CHECKPOINT_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/json.h"
#include "engine/checkpoint/digest.h"
#include "engine/checkpoint/index.h"
#include "engine/comm/comm.h"
#include "engine/strategy/strategy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* io: declares the system calls through which a checkpoint is written.
 *
 * They are in a struct so that a test can count them, make the Nth fail, or kill the process there. The
 * order of these calls is what makes a killed save harmless.
 */

/* Each is like the system call of its name: on failure it returns -1 and sets errno. */
typedef struct dt_checkpoint_io {
    void *self;
    int (*make_dir)(void *self, const char *path, mode_t mode);
    int (*open)(void *self, const char *path, int flags, mode_t mode);
    ssize_t (*write)(void *self, int fd, const void *bytes, size_t length);
    int (*sync)(void *self, int fd);
    int (*close)(void *self, int fd);
    int (*rename)(void *self, const char *from, const char *to);
} dt_checkpoint_io;

extern const dt_checkpoint_io dt_checkpoint_io_system;

/* Open, sync and close a directory. DT_ERR_IO naming it. */
dt_status dt_checkpoint_io_sync_dir(const dt_checkpoint_io *io, const char *path, dt_error *err);

/* sink: writes a new file once, front to back, computes its digest, and syncs it.
 *
 * Writes bypass the page cache if the file system allows it: a checkpoint is not read soon, and
 * a page of the cache costs the kernel several times what a copy within the process does, on the
 * processors that train (docs/notes/training.md).
 *
 * Errors  DT_ERR_IO naming the file; the message for a full disk has a remedy
 */

typedef struct dt_checkpoint_sink {
    const dt_checkpoint_io *io;
    const char *path; /* path of the file, borrowed */
    int fd;
    int64_t bytes; /* bytes written so far */
    char *block;   /* collects data for one write */
    size_t held;   /* bytes in `block` */
    bool direct;   /* writes currently bypass the page cache */
    bool cached;   /* use the page cache for the rest of the file */
    dt_digest *digest;
} dt_checkpoint_sink;

/* Create the file, which must not exist. */
dt_status dt_checkpoint_sink_open(dt_checkpoint_sink *out, const dt_checkpoint_io *io,
                                  const char *path, dt_error *err);
dt_status dt_checkpoint_sink_write(dt_checkpoint_sink *sink, const void *bytes, size_t length,
                                   dt_error *err);
/* Sync and close; hex can be NULL. */
dt_status dt_checkpoint_sink_finish(dt_checkpoint_sink *sink, char *hex, dt_error *err);
/* Call after a failure or after finish; accepts a zeroed sink. */
void dt_checkpoint_sink_release(dt_checkpoint_sink *sink);

/* Write a whole small file. */
dt_status dt_checkpoint_sink_put(const dt_checkpoint_io *io, const char *path, const void *bytes,
                                 size_t length, dt_error *err);

struct dt_checkpoint {
    dt_arena arena; /* owns the memory of the fields below, except what the JSON owns */
    const char *path;
    json_t *json;
    dt_checkpoint_index index;
    dt_checkpoint_part *parts; /* [index.file_count] files, opened on first use */
};

/* dt_checkpoint_save with the given system calls. */
dt_status dt_checkpoint_save_through(const dt_checkpoint_io *io, dt_checkpoint_saved *out,
                                     const dt_checkpoint_place *place,
                                     const dt_checkpoint_info *info, dt_strategy_state *state,
                                     dt_error *err);

/* Open the index of one node's part (marker `part`); some of its files can be on other nodes. */
dt_status dt_checkpoint_open_part(dt_checkpoint **out, const char *path, dt_error *err);

/* Check that its parameters are the model's. DT_ERR_RECIPE naming the first that differs. */
dt_status dt_checkpoint_check_model(const dt_checkpoint *checkpoint, const dt_model *model,
                                    dt_error *err);

/* Return the part of a file. On first use, opens it and checks its digest. */
dt_status dt_checkpoint_use_part(dt_checkpoint_part **out, dt_checkpoint *checkpoint, int64_t file,
                                 dt_error *err);

/* Remove a checkpoint. Removes its markers first, so that an interrupted removal leaves nothing
 * that a reader would accept. */
dt_status dt_checkpoint_remove(const char *path, dt_error *err);

/* shard: writes one rank's part of a checkpoint.
 *
 * Files      model-RANK.safetensors (values) and optimizer-RANK.safetensors (both moments), each
 *            only if the rank holds any. They are separate so that a reader of the model reads only a
 *            third, and other programs find only the model in its file.
 * Keys       a whole parameter has its own name and shape ("wte.weight"); a box keeps its
 *            dimensions and its key contains its position ("wte.weight[0:512,0:64]"); a range is flat and
 *            has its bounds ("wte.weight[4096:8192]"); moments have ".m" and ".v" before the bracket
 * Fragment   {"files": [...], "tensors": {NAME: {"value": [...], "m": [...], "v": [...]}}}, in the
 *            format of the index
 */

/* Write and sync this rank's files in `directory`. *fragment: new reference. */
dt_status dt_checkpoint_shard_write(json_t **fragment, const dt_checkpoint_io *io,
                                    const char *directory, dt_strategy_state *state, dt_error *err);

/* Write the tokenizer's file and add it to the fragment's files. */
dt_status dt_checkpoint_beside_write(json_t *fragment, const dt_checkpoint_io *io,
                                     const char *directory, const dt_checkpoint_beside *file,
                                     dt_error *err);

/* snapshot: copies what a rank writes into a checkpoint, so that training can continue meanwhile.
 *
 * Memory     4 bytes per element of every value and moment that the rank exports; allocated and touched
 *            once at the start. Copied by all threads at the speed of memory
 * Use        provides a strategy state whose export_state returns the copies
 */

typedef struct dt_snapshot_piece {
    float *to;
    const float *from;
    int64_t elems;
} dt_snapshot_piece;

typedef struct dt_snapshot {
    dt_strategy_state *live; /* the strategy state that is copied, borrowed */
    dt_state_chunk *chunks;  /* chunks that point into the copy */
    /* DT_STATE_KINDS per chunk; without elements if the chunk lacks that kind */
    dt_snapshot_piece *pieces;
    int count, threads;
    int64_t elems;
    float *memory;
    dt_status st; /* status of the last copy: a failure is reported on export */
    dt_error err;
} dt_snapshot;

/* Allocate a snapshot of the state's exported chunks. Errors: DT_ERR_NOMEM. */
dt_status dt_snapshot_open(dt_snapshot *out, dt_strategy_state *live, int threads, dt_error *err);
void dt_snapshot_close(dt_snapshot *snapshot); /* accepts a zeroed snapshot */
int64_t dt_snapshot_bytes(const dt_snapshot *snapshot);

#ifdef __cplusplus
}
#endif

#endif
