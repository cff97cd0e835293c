/* checkpoint: a sink's file holds what was written to it, with and without the page cache. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/checkpoint/checkpoint_int.h"

#define BLOCK ((size_t)1 << 20)

/* Records real calls; `refuse`: opening with O_DIRECT fails, as on some file systems; `take`:
 * the largest write accepted. */
typedef struct watched {
    dt_checkpoint_io io;
    bool refuse;
    size_t take;
    int direct, cached, refused; /* number of writes */
} watched;

static ssize_t on_write(void *self, int fd, const void *bytes, size_t length)
{
    watched *io = self;
    bool direct = (fcntl(fd, F_GETFL) & O_DIRECT) != 0;

    if (direct && io->refuse) {
        io->refused++;
        errno = EINVAL;
        return -1;
    }
    *(direct ? &io->direct : &io->cached) += 1;
    return dt_checkpoint_io_system.write(NULL, fd, bytes,
                                         io->take > 0 && length > io->take ? io->take : length);
}

static watched watched_make(bool refuse, size_t take)
{
    watched io = {.io = dt_checkpoint_io_system, .refuse = refuse, .take = take};

    io.io.write = on_write;
    return io;
}

static char *random_bytes(size_t length)
{
    char *bytes = malloc(length + 1);
    uint32_t state = 1;

    assert_non_null(bytes);
    for (size_t i = 0; i < length; i++) {
        state = state * 1664525u + 1013904223u;
        bytes[i] = (char)(state >> 24);
    }
    return bytes;
}

/* Writes in pieces of `piece` bytes, reads the file back, and compares its digest. */
static void comes_back(watched *io, const char *bytes, size_t length, size_t piece)
{
    char path[] = "./sink-XXXXXX", hex[DT_DIGEST_SIZE], wanted[DT_DIGEST_SIZE];
    dt_checkpoint_sink sink = {0};
    dt_error err = DT_ERROR_INIT;
    dt_strbuf read;

    close(mkstemp(path));
    unlink(path);
    io->io.self = io;
    assert_int_equal(dt_checkpoint_sink_open(&sink, &io->io, path, &err), DT_OK);
    for (size_t at = 0; at < length; at += piece)
        assert_int_equal(dt_checkpoint_sink_write(&sink, bytes + at,
                                                  length - at < piece ? length - at : piece, &err),
                         DT_OK);
    assert_int_equal(dt_checkpoint_sink_finish(&sink, hex, &err), DT_OK);
    assert_int_equal(sink.bytes, length);
    dt_checkpoint_sink_release(&sink);
    dt_digest_of(wanted, bytes, length);
    assert_string_equal(hex, wanted);
    dt_strbuf_init(&read);
    assert_int_equal(dt_file_read(&read, path, 16 * BLOCK, &err), DT_OK);
    assert_int_equal(read.length, length);
    assert_memory_equal(read.data, bytes, length);
    dt_strbuf_release(&read);
    unlink(path);
}

static void what_is_written_comes_back(void **state)
{
    static const size_t lengths[] = {
        0, 1, 4095, 4096, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 4096, 3 * BLOCK + 5};
    static const size_t pieces[] = {777, 4096, BLOCK, 16 * BLOCK};
    char *bytes = random_bytes(4 * BLOCK);

    for (size_t l = 0; l < sizeof(lengths) / sizeof(*lengths); l++)
        for (size_t p = 0; p < sizeof(pieces) / sizeof(*pieces); p++)
            for (int refuse = 0; refuse < 2; refuse++) {
                watched io = watched_make(refuse != 0, 0);

                comes_back(&io, bytes, lengths[l], pieces[p]);
                assert_true(io.refused <= 1); /* tried once for each file, not for each block */
            }
    free(bytes);
}

static void short_writes_are_continued(void **state)
{
    static const size_t takes[] = {512, 4096, 100000}; /* the last gives an unaligned offset */
    char *bytes = random_bytes(2 * BLOCK + 9);

    for (size_t i = 0; i < sizeof(takes) / sizeof(*takes); i++) {
        watched io = watched_make(false, takes[i]);

        comes_back(&io, bytes, 2 * BLOCK + 9, BLOCK);
    }
    free(bytes);
}

/* Requires a working folder on a file system that supports it. */
static void whole_blocks_go_past_the_page_cache(void **state)
{
    char path[] = "./probe-XXXXXX";
    watched io = watched_make(false, 0);
    int fd = mkstemp(path);
    bool can = fcntl(fd, F_SETFL, O_DIRECT) == 0;
    char *bytes;

    close(fd);
    unlink(path);
    if (!can)
        skip();
    bytes = random_bytes(3 * BLOCK + 5);
    comes_back(&io, bytes, 3 * BLOCK + 5, 777);
    free(bytes);
    assert_int_equal(io.direct, 3);
    assert_int_equal(io.cached, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_written_comes_back),
                                       cmocka_unit_test(short_writes_are_continued),
                                       cmocka_unit_test(whole_blocks_go_past_the_page_cache)};

    return cmocka_run_group_tests_name("checkpoint_sink", tests, NULL, NULL);
}
