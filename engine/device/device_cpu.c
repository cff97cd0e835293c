/* device_cpu: the CPU as a device, and its queues, which are synchronous. */
#include <errno.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/resources.h"
#include "engine/device/device.h"
#include "engine/device/queue.h"
#include "engine/ops/cpu/cpu_int.h"
#include "engine/ops/cpu/isa.h"
#include "engine/ops/cpu/product.h"

extern const dt_queues dt_cpu_queues;

/* --- queues */

static dt_status queue_open(dt_device *device, dt_queue **out, dt_error *err)
{
    *out = NULL;
    return DT_OK;
}

static void queue_close(dt_device *device, dt_queue *queue) {}

static dt_status event_open(dt_device *device, dt_device_event **out, dt_error *err)
{
    *out = NULL;
    return DT_OK;
}

static void event_close(dt_device *device, dt_device_event *event) {}

static dt_status record(dt_device *device, dt_device_event *event, dt_queue *queue, dt_error *err)
{
    return DT_OK;
}

static dt_status follow(dt_device *device, dt_queue *queue, dt_device_event *event, dt_error *err)
{
    return DT_OK;
}

static dt_status wait(dt_device *device, dt_device_event *event, dt_error *err)
{
    return DT_OK;
}

static dt_status copy_in(dt_device *device, dt_queue *queue, void *device_memory, const void *host,
                         size_t bytes, dt_error *err)
{
    memcpy(device_memory, host, bytes);
    return DT_OK;
}

static dt_status copy_out(dt_device *device, dt_queue *queue, void *host, const void *device_memory,
                          size_t bytes, dt_error *err)
{
    memcpy(host, device_memory, bytes);
    return DT_OK;
}

const dt_queues dt_cpu_queues = {
    .open = queue_open,
    .close = queue_close,
    .event_open = event_open,
    .event_close = event_close,
    .record = record,
    .follow = follow,
    .wait = wait,
    .copy_in = copy_in,
    .copy_out = copy_out,
};

/* --- the device */

#define ALIGN        ((size_t)64)
#define ALIGN_HUGE   ((size_t)2 << 20) /* large blocks use huge pages if available */
#define FLOATS_ALIGN (ALIGN / sizeof(float))
#define THREADS_MAX  1024

/* Zero with all threads: a first touch costs more than writing zeros, and determines the NUMA node
 * of the page. */
static void zero(char *memory, size_t bytes, int threads)
{
    int64_t parts = (int64_t)(bytes / ALIGN_HUGE);

#pragma omp parallel for schedule(static) num_threads(threads) if (parts > 1)
    for (int64_t part = 0; part < parts; part++)
        memset(memory + (size_t)part * ALIGN_HUGE, 0, ALIGN_HUGE);
    memset(memory + (size_t)parts * ALIGN_HUGE, 0, bytes - (size_t)parts * ALIGN_HUGE);
}

static dt_status cpu_alloc(dt_device *device, void **out, size_t bytes, dt_error *err)
{
    size_t align = bytes >= ALIGN_HUGE ? ALIGN_HUGE : ALIGN;
    size_t rounded = bytes > 0 ? (bytes + align - 1) & ~(align - 1) : align;

    *out = rounded < bytes ? NULL : aligned_alloc(align, rounded);
    if (*out == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM,
                       "cannot allocate %.1f MB of memory: use a smaller batch or model",
                       (double)bytes / 1e6);
    if (align == ALIGN_HUGE)
        (void)madvise(*out, rounded, MADV_HUGEPAGE); /* a hint; failure is harmless */
    zero(*out, rounded, device->threads);
    return DT_OK;
}

static void cpu_free(dt_device *device, void *memory)
{
    free(memory);
}

static dt_status cpu_copy_in(dt_device *device, void *device_memory, const void *host, size_t bytes,
                             dt_error *err)
{
    memcpy(device_memory, host, bytes);
    return DT_OK;
}

static dt_status cpu_copy_out(dt_device *device, void *host, const void *device_memory,
                              size_t bytes, dt_error *err)
{
    memcpy(host, device_memory, bytes);
    return DT_OK;
}

static dt_status cpu_copy_from(dt_device *device, void *device_memory, dt_device *other,
                               const void *other_memory, size_t bytes, dt_error *err)
{
    memcpy(device_memory, other_memory, bytes);
    return DT_OK;
}

/* Free memory: what the kernel can provide without swapping, within the limits of the control
 * groups. */
static dt_status cpu_memory_info(dt_device *device, int64_t *free_bytes, int64_t *total_bytes,
                                 dt_error *err)
{
    FILE *file = fopen("/proc/meminfo", "re");
    long long total = 0;
    char line[128];

    if (file == NULL)
        return DT_FAIL(err, DT_ERR_IO, "cannot read /proc/meminfo: %s", strerror(errno));
    while (fgets(line, sizeof(line), file) != NULL)
        (void)sscanf(line, "MemTotal: %lld kB", &total);
    fclose(file);
    *total_bytes = total * 1024;
    return dt_resources_memory(free_bytes, err);
}

static dt_status cpu_open_replica(dt_device *device, dt_device *out, int64_t n, dt_error *err)
{
    return dt_device_open_cpu(out, device->threads, err);
}

static dt_status cpu_enter(dt_device *device, dt_error *err)
{
    return DT_OK;
}

static dt_status cpu_synchronize(dt_device *device, dt_error *err)
{
    return DT_OK;
}

static void cpu_close(dt_device *device)
{
    dt_cpu_state *state = device->state;

    if (state == NULL)
        return;
    dt_cpu_team_free(state->team);
    dt_cpu_products_free(state->products);
    free(state->scratch);
    free(state);
    device->state = NULL;
}

dt_status dt_device_open_cpu(dt_device *out, int threads, dt_error *err)
{
    dt_status st = DT_OK;
    dt_cpu_state *state = NULL;

    memset(out, 0, sizeof *out);
    if (threads < 0 || threads > THREADS_MAX)
        DT_THROW(err, DT_ERR_USAGE, "cannot use %d threads: expected 1 to %d, or 0 for all cores",
                 threads, THREADS_MAX);
    if ((state = calloc(1, sizeof *state)) == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the cpu device");
    out->name = "cpu";
    /* this count respects the processor affinity */
    out->threads = threads > 0 ? threads : omp_get_num_procs();
    out->host_reads = true;
    out->queues = &dt_cpu_queues;
    out->state = state;
    out->alloc = cpu_alloc;
    out->free = cpu_free;
    out->host_alloc = cpu_alloc;
    out->host_free = cpu_free;
    out->memory_info = cpu_memory_info;
    out->copy_in = cpu_copy_in;
    out->copy_out = cpu_copy_out;
    out->copy_from = cpu_copy_from;
    out->open_replica = cpu_open_replica;
    out->enter = cpu_enter;
    out->synchronize = cpu_synchronize;
    out->close = cpu_close;
    DT_TRY(dt_cpu_isa_pick(&out->ops, &state->isa, err));
    DT_TRY(dt_cpu_products_new(&state->products, err));
out:
    if (st != DT_OK)
        dt_device_close(out);
    return st;
}

dt_status dt_cpu_scratch_take(dt_cpu_scratch *out, dt_device *device, int64_t floats_per_thread,
                              dt_error *err)
{
    dt_cpu_state *state = device->state;
    size_t stride = ((size_t)floats_per_thread + FLOATS_ALIGN - 1) & ~(FLOATS_ALIGN - 1);
    size_t need = stride * (size_t)device->threads;

    if (need > state->scratch_floats) {
        free(state->scratch);
        state->scratch_floats = 0;
        state->scratch = aligned_alloc(ALIGN, need * sizeof(float));
        if (state->scratch == NULL)
            return DT_FAIL(err, DT_ERR_NOMEM,
                           "cannot allocate %.1f MB for the cpu's working memory",
                           (double)(need * sizeof(float)) / 1e6);
        state->scratch_floats = need;
    }
    out->base = state->scratch;
    out->stride = stride;
    return DT_OK;
}

dt_status dt_cpu_pieces_run(dt_device *device, int64_t work, dt_cpu_piece *run, void *self,
                            int64_t pieces, dt_cpu_coming coming, dt_error *err)
{
    dt_cpu_state *state = device->state;

    dt_progress_made();
    if (dt_cpu_threads(device, work) == 1) {
        for (int64_t i = 0; i < pieces; i++)
            run(self, 0, i);
        return DT_OK;
    }
    if (state->team == NULL && (state->team = dt_cpu_team_new(device->threads)) == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for %d threads", device->threads);
    dt_cpu_team_run(state->team, run, self, pieces, coming);
    return DT_OK;
}

dt_cpu_coming dt_cpu_coming_after(dt_device *device, const void *w, size_t bytes)
{
    dt_cpu_state *state = device->state;
    uint64_t hash = (uint64_t)(uintptr_t)w / ALIGN * 0x9e3779b97f4a7c15u;
    dt_cpu_after *entry = &state->after[hash >> 32 & (DT_CPU_AFTER - 1)];

    if (state->last != NULL)
        state->last->next = (dt_cpu_coming){w, bytes};
    if (entry->w != w)
        *entry = (dt_cpu_after){.w = w};
    state->last = entry;
    return entry->next;
}
