/* The cards' memory: its pages have one address for kernels and another for copies. At the first
 * address the host faults outside of kernels. Both cards share one window.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>

#include "emulator.h"

#define WINDOW_BYTES ((size_t)4 << 30) /* untouched pages cost nothing */
#define PAGE_BYTES   ((size_t)4096)

namespace
{

unsigned char *kernels_view, *copies_view;
std::map<size_t, size_t> taken; /* offset → bytes, in pages */
size_t reach;                   /* end of the last allocation ever made */
int opened;

void make_window()
{
    int fd;

    if (kernels_view != NULL)
        return;
    fd = memfd_create("emulated-card", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)WINDOW_BYTES) != 0)
        abort();
    copies_view =
        (unsigned char *)mmap(NULL, WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    kernels_view = (unsigned char *)mmap(NULL, WINDOW_BYTES, PROT_NONE, MAP_SHARED, fd, 0);
    if (copies_view == MAP_FAILED || kernels_view == MAP_FAILED)
        abort();
    close(fd);
}

void protect(int how)
{
    if (reach > 0 && mprotect(kernels_view, reach, how) != 0)
        abort();
}

bool is_card(const void *at)
{
    const unsigned char *byte = (const unsigned char *)at;

    return kernels_view != NULL && byte >= kernels_view && byte < kernels_view + WINDOW_BYTES;
}

/* Returns the address for copies. Memory that is not a card's is used unchanged: the tests of the
 * ops pass host memory to kernels. */
unsigned char *for_copies(const void *at)
{
    return is_card(at) ? copies_view + ((const unsigned char *)at - kernels_view)
                       : (unsigned char *)at;
}

size_t used()
{
    size_t bytes = 0;

    for (const auto &piece : taken)
        bytes += piece.second;
    return bytes;
}

} // namespace

void dt_emulated_refuse(const char *what)
{
    fprintf(stderr, "emulated card: %s\n", what);
    abort();
}

dt_emulated_open::dt_emulated_open()
{
    if (opened++ == 0)
        protect(PROT_READ | PROT_WRITE);
}

dt_emulated_open::~dt_emulated_open()
{
    if (--opened == 0)
        protect(PROT_NONE);
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    std::lock_guard<std::recursive_mutex> held(dt_emulated_lock);
    size_t pages = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES, at = 0;

    make_window();
    *out = NULL;
    if (dt_emulated_spoil())
        return dt_emulated_fail(cudaErrorStreamCaptureUnsupported);
    for (const auto &piece : taken) {
        if (piece.first - at >= pages)
            break;
        at = piece.first + piece.second;
    }
    if (bytes == 0 || pages < bytes || at + pages > WINDOW_BYTES)
        return dt_emulated_fail(cudaErrorMemoryAllocation);
    taken[at] = pages;
    if (at + pages > reach)
        reach = at + pages;
    memset(copies_view + at, 0xdb, pages); /* as on a card, memory is not zeroed */
    *out = kernels_view + at;
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    std::lock_guard<std::recursive_mutex> held(dt_emulated_lock);

    if (memory == NULL)
        return cudaSuccess;
    if (dt_emulated_spoil())
        return dt_emulated_fail(cudaErrorStreamCaptureUnsupported);
    dt_emulated_drain();
    if (!is_card(memory) || taken.erase((size_t)((unsigned char *)memory - kernels_view)) != 1)
        dt_emulated_refuse("cudaFree of what was not taken");
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **out, size_t bytes)
{
    if (posix_memalign(out, PAGE_BYTES, bytes > 0 ? bytes : 1) != 0)
        return dt_emulated_fail(cudaErrorMemoryAllocation);
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *memory)
{
    std::lock_guard<std::recursive_mutex> held(dt_emulated_lock);

    if (memory != NULL)
        dt_emulated_drain();
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    std::lock_guard<std::recursive_mutex> held(dt_emulated_lock);

    *total_bytes = WINDOW_BYTES;
    *free_bytes = WINDOW_BYTES - used();
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    dt_emulated_enqueue(stream, [=]() { memset(for_copies(to), value, bytes); });
    return cudaSuccess;
}

cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    return cudaMemsetAsync(to, value, bytes, NULL);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    if (kind == cudaMemcpyHostToDevice ? is_card(from)
                                       : kind == cudaMemcpyDeviceToHost && is_card(to))
        dt_emulated_refuse("a copy whose host memory is the card's");
    dt_emulated_enqueue(stream, [=]() { memmove(for_copies(to), for_copies(from), bytes); });
    return cudaSuccess;
}

cudaError_t cudaMemcpyPeerAsync(void *to, int, const void *from, int, size_t bytes,
                                cudaStream_t stream)
{
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}
