/* memory: frees what was allocated in a world at the end of the world.
 *
 * Replaces libc's allocator, also for SQLite and Jansson: a killed virtual process frees nothing, and the next world
 * reuses the same pages, which are in the cache. Blocks come from one region; freed blocks are kept in a list for each
 * size. Outside of worlds, and for what has to outlive one (sim_keep), libc's allocator is used. */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>

#include "tests/sim/sim.h"

enum { STEP = 16, SMALL_BYTES = 1024, SMALL_SIZES = SMALL_BYTES / STEP, SIZES = SMALL_SIZES + 24 };
enum { ALIGN = 64 }; /* of larger blocks */

#define REGION_BYTES ((size_t)4 << 30) /* of address space; untouched pages cost nothing */
#define WARM_BYTES   ((size_t)64 << 20)

/* Precedes each block. A free block holds the address of the next one in its first bytes. */
typedef struct header {
    _Alignas(STEP) size_t size; /* index of its size */
} header;

static struct {
    char *begin, *first, *at; /* memory before `first` is kept from world to world */
    void *free[SIZES];
    bool open;
} region;

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);
void __libc_free(void *memory);

void sim_memory_begin(void)
{
    if (region.begin == NULL)
        region.begin = region.first = mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    DT_ASSERT(region.begin != MAP_FAILED);
    region.at = region.first;
    memset(region.free, 0, sizeof(region.free));
    region.open = true;
}

void *sim_memory_slice(void)
{
    memset(region.free, 0, sizeof(region.free));
    region.at += -(uintptr_t)region.at % ALIGN;
    region.first = region.at;
    return region.at;
}

void sim_memory_end(void)
{
    char *warm = region.first + WARM_BYTES;

    region.open = false;
    if (region.at > warm)
        madvise(warm, REGION_BYTES - (size_t)(warm - region.begin), MADV_DONTNEED);
}

void *sim_keep(void *memory, size_t bytes)
{
    void *kept = __libc_realloc(memory, bytes);

    DT_ASSERT(kept != NULL);
    return kept;
}

void *sim_alloc(size_t bytes)
{
    void *memory = calloc(1, bytes);

    DT_ASSERT(memory != NULL);
    return memory;
}

static bool is_inside(const void *memory)
{
    return (size_t)((const char *)memory - region.begin) < REGION_BYTES && region.begin != NULL;
}

static header *header_of(void *memory)
{
    return (header *)memory - 1;
}

static size_t size_for(size_t bytes)
{
    if (bytes <= SMALL_BYTES)
        return bytes == 0 ? 0 : (bytes - 1) / STEP;
    return SMALL_SIZES + (size_t)(63 - __builtin_clzll((bytes - 1) / SMALL_BYTES));
}

static size_t bytes_of(size_t size)
{
    return size < SMALL_SIZES ? (size + 1) * STEP : (size_t)2 * SMALL_BYTES << (size - SMALL_SIZES);
}

static void *take_new(size_t size)
{
    char *memory = region.at + sizeof(header);

    if (size >= SMALL_SIZES)
        memory += -(uintptr_t)memory % ALIGN;
    region.at = memory + bytes_of(size);
    DT_ASSERT(region.at <= region.begin + REGION_BYTES);
    header_of(memory)->size = size;
    return memory;
}

void *malloc(size_t bytes)
{
    size_t size;
    void *memory;

    if (!region.open)
        return __libc_malloc(bytes);
    if (bytes > REGION_BYTES / 4) {
        errno = ENOMEM;
        return NULL;
    }
    size = size_for(bytes);
    memory = region.free[size];
    if (memory == NULL)
        return take_new(size);
    region.free[size] = *(void **)memory;
    return memory;
}

void free(void *memory)
{
    size_t size;

    if (!is_inside(memory)) {
        __libc_free(memory);
        return;
    }
    size = header_of(memory)->size;
    *(void **)memory = region.free[size];
    region.free[size] = memory;
}

void *calloc(size_t count, size_t bytes)
{
    void *memory;

    if (!region.open)
        return __libc_calloc(count, bytes);
    memory = count > 0 && bytes > REGION_BYTES / count ? NULL : malloc(count * bytes);
    if (memory != NULL)
        memset(memory, 0, count * bytes);
    return memory;
}

void *realloc(void *memory, size_t bytes)
{
    size_t before;
    void *grown;

    if (memory == NULL)
        return malloc(bytes);
    if (!is_inside(memory))
        return __libc_realloc(memory, bytes);
    before = bytes_of(header_of(memory)->size);
    if (bytes <= before)
        return memory;
    grown = malloc(bytes);
    if (grown != NULL) {
        memcpy(grown, memory, before);
        free(memory);
    }
    return grown;
}

void *memalign(size_t align, size_t bytes)
{
    if (!region.open)
        return __libc_memalign(align, bytes);
    DT_ASSERT(align <= ALIGN);
    return malloc(align > STEP && bytes <= SMALL_BYTES ? SMALL_BYTES + 1 : bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
    return memalign(align, bytes);
}

int posix_memalign(void **out, size_t align, size_t bytes)
{
    *out = memalign(align, bytes);
    return *out == NULL ? ENOMEM : 0;
}
