#include "engine/strategy/host_mirror.h"

#include <stdlib.h>
#include <string.h>

typedef struct dt_host_mirror_piece {
    float *host, *device_memory; /* both addresses of the piece; equal on the CPU */
    size_t bytes;
} dt_host_mirror_piece;

dt_status dt_host_mirror_open(dt_host_mirror *out, dt_device *device, int capacity, dt_error *err)
{
    memset(out, 0, sizeof(*out));
    out->device = device;
    out->capacity = capacity;
    out->pieces = calloc((size_t)capacity + 1, sizeof(*out->pieces));
    if (out->pieces == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the tables of the parameters");
    return DT_OK;
}

dt_status dt_host_mirror_add(dt_host_mirror *mirror, float **host, float *device_memory,
                             int64_t elems, dt_error *err)
{
    dt_host_mirror_piece piece = {.host = device_memory,
                                  .device_memory = device_memory,
                                  .bytes = (size_t)elems * sizeof(float)};

    *host = NULL;
    if (device_memory == NULL)
        return DT_OK;
    DT_ASSERT(mirror->count < mirror->capacity);
    if (!mirror->device->host_reads && (piece.host = calloc(1, piece.bytes)) == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM,
                       "no host memory (%.1f MB) for a copy of the device's tensors",
                       (double)piece.bytes / 1e6);
    mirror->pieces[mirror->count++] = piece;
    *host = piece.host;
    return DT_OK;
}

dt_status dt_host_mirror_from_device(dt_host_mirror *mirror, dt_error *err)
{
    dt_device *device = mirror->device;
    dt_status st = DT_OK;

    for (int i = 0; i < mirror->count; i++) {
        dt_host_mirror_piece *piece = &mirror->pieces[i];

        if (piece->host != piece->device_memory)
            DT_TRY(device->copy_out(device, piece->host, piece->device_memory, piece->bytes, err));
    }
    DT_TRY(device->synchronize(device, err));
out:
    return st;
}

dt_status dt_host_mirror_to_device(dt_host_mirror *mirror, dt_error *err)
{
    dt_device *device = mirror->device;
    dt_status st = DT_OK;

    for (int i = 0; i < mirror->count; i++) {
        dt_host_mirror_piece *piece = &mirror->pieces[i];

        if (piece->host != piece->device_memory)
            DT_TRY(device->copy_in(device, piece->device_memory, piece->host, piece->bytes, err));
    }
    DT_TRY(device->synchronize(device, err));
out:
    return st;
}

void dt_host_mirror_close(dt_host_mirror *mirror)
{
    for (int i = 0; i < mirror->count; i++)
        if (mirror->pieces[i].host != mirror->pieces[i].device_memory)
            free(mirror->pieces[i].host);
    free(mirror->pieces);
    memset(mirror, 0, sizeof(*mirror));
}
