/* read: reads slices of tensors as fp32, from any type and layout. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/checkpoint/read_at.h"
#include "engine/ops/cpu/half_int.h"
#include "engine/weights/weights_int.h"

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
