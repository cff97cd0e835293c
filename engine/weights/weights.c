/* weights: opens weights, and reads slices of them as fp32. */
#include "engine/weights/weights.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/checkpoint/safetensors.h"
#include "engine/ops/cpu/half_int.h"
#include "engine/weights/torch_int.h"
#include "engine/weights/weights_int.h"
#include "recipes/architecture/published.h"

/* --- slices, from any type and layout */

#define WINDOW_ELEMS ((int64_t)1 << 18)
#define BAND_ROWS    16 /* rows transposed per block; 16 floats fill one cache line of the output */

static void widen(float *out, const void *in, dt_dtype dtype, int64_t elems)
{
    if (dtype == DT_BF16)
        dt_bf16_widen_row(out, in, elems);
    else
        dt_f16_widen_row(out, in, elems);
}

/* Read consecutive elements from the file. `raw`: buffer for them if they are not F32. */
static dt_status read_elems(float *out, void *raw, const dt_weights_piece *piece, int64_t first,
                            int64_t elems, dt_error *err)
{
    int64_t width = (int64_t)dt_dtype_bytes(piece->dtype);
    void *into = piece->dtype == DT_F32 ? (void *)out : raw;
    dt_status st = DT_OK;

    DT_TRY(dt_checkpoint_read_at(into, (size_t)(elems * width), piece->part->fd,
                                 piece->start_bytes + first * width, piece->part->path, err));
    if (piece->dtype != DT_F32)
        widen(out, raw, piece->dtype, elems);
out:
    return st;
}

static dt_status take(void *out, int64_t elems, size_t bytes, const dt_weights_piece *piece,
                      dt_error *err)
{
    void *room = calloc((size_t)elems, bytes);

    memcpy(out, &room, sizeof(room));
    if (room == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "'%s': no memory to read it", piece->part->path);
    return DT_OK;
}

static dt_status read_straight(float *out, const dt_weights_piece *piece, int64_t first,
                               int64_t elems, dt_error *err)
{
    uint16_t *raw = NULL;
    dt_status st = DT_OK;

    DT_TRY(take(&raw, WINDOW_ELEMS, sizeof(*raw), piece, err));
    for (int64_t done = 0; done < elems; done += WINDOW_ELEMS) {
        int64_t count = elems - done < WINDOW_ELEMS ? elems - done : WINDOW_ELEMS;

        DT_TRY(read_elems(out + done, raw, piece, first + done, count, err));
    }
out:
    free(raw);
    return st;
}

/* Read a transposed matrix: ours is (R, C), the file's (C, R). Reads, of each row in the file, the
 * columns that are our rows r0 to r1. Our first and last row can be incomplete. */
static dt_status read_turned(float *out, const dt_weights_piece *piece, int64_t first,
                             int64_t elems, dt_error *err)
{
    int64_t rows = piece->slice.box.size[0], columns = piece->slice.box.size[1];
    int64_t r0 = first / columns, wide = (first + elems - 1) / columns - r0 + 1;
    float *band = NULL;
    uint16_t *raw = NULL;
    dt_status st = DT_OK;

    DT_TRY(take(&band, BAND_ROWS * wide, sizeof(*band), piece, err));
    DT_TRY(take(&raw, wide, sizeof(*raw), piece, err));
    for (int64_t c0 = 0; c0 < columns; c0 += BAND_ROWS) {
        int64_t deep = columns - c0 < BAND_ROWS ? columns - c0 : BAND_ROWS;

        for (int64_t c = 0; c < deep; c++)
            DT_TRY(read_elems(band + c * wide, raw, piece, (c0 + c) * rows + r0, wide, err));
        for (int64_t r = 0; r < wide; r++)
            for (int64_t c = 0; c < deep; c++) {
                int64_t at = (r0 + r) * columns + c0 + c - first;

                if (at >= 0 && at < elems)
                    out[at] = band[c * wide + r];
            }
    }
out:
    free(band);
    free(raw);
    return st;
}

/* Row in the file that corresponds to a row of ours. */
static int64_t paired_row(int64_t row, int64_t head_rows)
{
    int64_t at = row % head_rows, half = head_rows / 2;

    return row - at + 2 * (at % half) + at / half;
}

/* Read a matrix whose rows are permuted, one row at a time; the first and last can be incomplete. */
static dt_status read_paired(float *out, const dt_weights_piece *piece, int64_t first,
                             int64_t elems, dt_error *err)
{
    int64_t columns = piece->slice.box.size[1];
    uint16_t *raw = NULL;
    dt_status st = DT_OK;

    DT_TRY(take(&raw, columns, sizeof(*raw), piece, err));
    for (int64_t done = 0, count; done < elems; done += count) {
        int64_t row = (first + done) / columns, column = (first + done) % columns;

        count = columns - column < elems - done ? columns - column : elems - done;
        DT_TRY(read_elems(out + done, raw, piece,
                          paired_row(row, piece->paired_rows) * columns + column, count, err));
    }
out:
    free(raw);
    return st;
}

static dt_status check_finite(const float *values, int64_t elems, const dt_weights_piece *piece,
                              const char *name, dt_error *err)
{
    for (int64_t i = 0; i < elems; i++)
        if (!isfinite(values[i]))
            return DT_FAIL(err, DT_ERR_CORRUPT,
                           "'%s': '%s' contains %s, which is not a valid weight", piece->part->path,
                           name, isnan(values[i]) ? "NaN" : "an infinity");
    return DT_OK;
}

dt_status dt_weights_read_piece(float *out, const dt_weights_piece *piece, int64_t first,
                                int64_t elems, const char *name, dt_error *err)
{
    dt_status st = DT_OK;

    if (elems == 0)
        return DT_OK;
    DT_TRY(piece->transposed        ? read_turned(out, piece, first, elems, err)
           : piece->paired_rows > 0 ? read_paired(out, piece, first, elems, err)
                                    : read_straight(out, piece, first, elems, err));
    DT_TRY(check_finite(out, elems, piece, name, err));
out:
    return st;
}

/* --- the weights */

/* --- opening */

/* Open a file without checking a digest: published files have none. */
static dt_status open_file(dt_checkpoint_part *out, const char *path, dt_error *err)
{
    struct stat info;
    dt_status st = DT_OK;

    out->path = path;
    out->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (out->fd < 0 || fstat(out->fd, &info) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    if (dt_torch_is_file(out->fd))
        DT_TRY(dt_torch_read(&out->header, out->fd, info.st_size, path, err));
    else
        DT_TRY(dt_safetensors_read(&out->header, out->fd, info.st_size, path, err));
out:
    return st;
}

static dt_status open_files(dt_weights *weights, dt_error *err)
{
    const dt_string_list *files = &weights->files->files;
    dt_status st = DT_OK;

    for (int64_t i = 0; i < files->count; i++)
        DT_TRY(open_file(&weights->parts[i], files->items[i], err));
out:
    return st;
}

static dt_status open_huggingface(dt_weights *weights, dt_error *err)
{
    const dt_weights_files *files = weights->files;
    dt_huggingface_model model;
    dt_status st = DT_OK;

    DT_TRY(dt_huggingface_read(&model, weights->description, files->description, &weights->arena,
                               err));
    weights->family = model.family;
    DT_TRY(open_files(weights, err));
out:
    return st;
}

static dt_status open_bin(dt_weights *weights, dt_error *err)
{
    const char *path = weights->files->files.items[0];
    dt_checkpoint_part *part = &weights->parts[0];
    dt_weights_bin bin;
    dt_status st = DT_OK;

    DT_TRY(dt_weights_bin_read(&bin, path, err));
    weights->family = bin.family;
    weights->head_width = bin.head_width;
    part->header = (dt_safetensors){json_incref(bin.tensors), bin.header_bytes};
    dt_weights_bin_release(&bin);
    part->path = path;
    part->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (part->fd < 0)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
out:
    return st;
}

/* Index of the file with that name, in any folder; -1: not in the list. */
static int64_t find_file(const dt_weights_files *files, const char *name)
{
    for (int64_t i = 0; i < files->files.count; i++)
        if (strcmp(basename(files->files.items[i]), name) == 0)
            return i;
    return -1;
}

static dt_status open_checkpoint(dt_weights *weights, dt_error *err)
{
    const dt_weights_files *files = weights->files;
    dt_status st = DT_OK;

    DT_TRY(dt_checkpoint_index_parse(&weights->index, weights->description, files->description,
                                     &weights->arena, err));
    if (weights->index.info.base != NULL)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s' is an adapter, not a whole model: export it with 'dtrun export RUN --to hf "
                 "--merge FOLDER', and start from that folder",
                 files->folder);
    for (int64_t i = 0; i < weights->index.file_count; i++) {
        const dt_checkpoint_file *file = &weights->index.files[i];
        int64_t place = find_file(files, file->name);

        if (place >= 0)
            DT_TRY(dt_checkpoint_part_open(&weights->parts[place], files->files.items[place], file,
                                           err));
    }
out:
    return st;
}

dt_status dt_weights_open(dt_weights **out, const dt_weights_files *files, dt_error *err)
{
    dt_weights *opened = calloc(1, sizeof(*opened));
    dt_status st = DT_OK;

    *out = NULL;
    if (opened == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory to read weights");
    dt_arena_init(&opened->arena, 0);
    opened->files = files;
    opened->parts = dt_arena_alloc_array(&opened->arena, (size_t)files->files.count + 1,
                                         sizeof(*opened->parts));
    for (int64_t i = 0; i < files->files.count; i++)
        opened->parts[i].fd = -1;
    DT_TRY(dt_weights_describe(&opened->description, files, err));
    DT_TRY(files->kind == DT_WEIGHTS_CHECKPOINT ? open_checkpoint(opened, err)
           : files->kind == DT_WEIGHTS_BIN      ? open_bin(opened, err)
           : files->kind == DT_WEIGHTS_PEFT     ? open_files(opened, err)
                                                : open_huggingface(opened, err));
    *out = opened;
    opened = NULL;
out:
    dt_weights_close(opened);
    return st;
}

dt_status dt_weights_open_adapter(dt_weights **out, dt_weights_files *files,
                                  const dt_recipe *recipe, dt_arena *arena, dt_error *err)
{
    const char **items = dt_arena_alloc_array(arena, 1, sizeof(items[0]));
    const char *folder = recipe->lora.from;
    dt_status st = DT_OK;

    items[0] = dt_arena_printf(arena, "%s/" DT_PEFT_MODEL, folder);
    *files = (dt_weights_files){
        .kind = DT_WEIGHTS_PEFT,
        .folder = folder,
        .description = dt_arena_printf(arena, "%s/" DT_PEFT_CONFIG, folder),
        .files = {items, 1},
    };
    DT_TRY(dt_weights_open(out, files, err));
    (*out)->adapter = true;
    DT_TRY(dt_huggingface_family(&(*out)->family, recipe, err));
out:
    return st;
}

void dt_weights_close(dt_weights *weights)
{
    if (weights == NULL)
        return;
    for (int64_t i = 0; weights->parts != NULL && i < weights->files->files.count; i++)
        dt_checkpoint_part_close(&weights->parts[i]);
    json_decref(weights->description);
    dt_arena_release(&weights->arena);
    free(weights);
}

const json_t *dt_weights_tokenizer(const dt_weights *weights)
{
    return weights->files->kind == DT_WEIGHTS_CHECKPOINT ? weights->index.info.tokenizer : NULL;
}

/* --- reading */

/* Read the intersection of a stored piece of a checkpoint and a wanted slice. */
static dt_status read_overlaps(float *out, const dt_weights_piece *piece, const dt_slice *wanted,
                               const char *name, dt_error *err)
{
    dt_status st = DT_OK;

    for (dt_overlap run = dt_overlap_of(wanted, &piece->slice); dt_overlap_next(&run);)
        DT_TRY(dt_weights_read_piece(out + run.at_a, piece, run.at_b, run.elems, name, err));
out:
    return st;
}

static dt_status read_checkpoint(float *out, dt_weights *weights, const dt_param *param,
                                 const dt_slice *wanted, dt_error *err)
{
    const dt_checkpoint_tensor *tensor = dt_checkpoint_index_find(&weights->index, param->name);
    const dt_checkpoint_pieces *pieces;
    dt_status st = DT_OK;

    DT_ASSERT(tensor != NULL); /* dt_weights_check has found it */
    pieces = &tensor->pieces[DT_CHECKPOINT_VALUE];
    for (int64_t i = 0; i < pieces->count; i++) {
        const dt_checkpoint_piece *stored = &pieces->items[i];
        int64_t file = find_file(weights->files, weights->index.files[stored->file].name);
        dt_weights_piece piece = {.dtype = DT_F32, .slice = stored->slice};

        if (file < 0)
            DT_THROW(err, DT_ERR_CORRUPT, "'%s' names a file that does not exist",
                     weights->files->description);
        piece.part = &weights->parts[file];
        DT_TRY(dt_checkpoint_part_find(&piece.start_bytes, piece.part, stored, err));
        DT_TRY(read_overlaps(out, &piece, wanted, param->name, err));
    }
out:
    return st;
}

dt_status dt_weights_read(float *out, dt_weights *weights, const dt_model *model, int param,
                          const dt_slice *slice, dt_error *err)
{
    const dt_param *held = &model->params[param];
    dt_checkpoint_shape shape = dt_checkpoint_shape_of(held);
    dt_slice stored = dt_checkpoint_shape_clip(&shape, slice);
    dt_weights_piece piece;
    const char *key;
    dt_status st = DT_OK;

    memset(out + stored.elems, 0, (size_t)(slice->elems - stored.elems) * sizeof(*out));
    if (stored.elems == 0)
        return DT_OK;
    if (weights->files->kind == DT_WEIGHTS_CHECKPOINT)
        return read_checkpoint(out, weights, held, &stored, err);
    DT_TRY(dt_weights_find_tensor(&piece, &key, weights, held, err));
    DT_TRY(read_overlaps(out, &piece, &stored, key, err));
out:
    return st;
}
