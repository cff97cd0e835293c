/* fuzz_databin: any bytes as the index of a .bin file. It is refused with its name, or it has a
 * type of ids that a recipe supports.
 *
 * Corpus     corpus/databin: of fairseq, of Megatron-LM, of fairseq before mmap, of no sentence
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "recipes/foreign/databin.h"

#define BIN_BYTES 26 /* as in the corpus */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static char folder[] = "/tmp/dtrun-databin-XXXXXX", bin[64];
static int index_fd;

static void remove_folder(void)
{
    dt_file_remove_tree(folder, NULL);
}

/* Makes once: x.bin, and x.idx, which is in memory. */
static void make_folder(void)
{
    char index_path[64], target[64];
    int fd;

    DT_ASSERT(mkdtemp(folder) != NULL && atexit(remove_folder) == 0);
    snprintf(bin, sizeof(bin), "%s/x.bin", folder);
    snprintf(index_path, sizeof(index_path), "%s/x.idx", folder);
    DT_ASSERT(dt_file_write_atomic(bin, "", 0, 0600, NULL) == DT_OK);
    DT_ASSERT(truncate(bin, BIN_BYTES) == 0);
    fd = memfd_create("fuzz", MFD_CLOEXEC);
    DT_ASSERT(fd >= 0);
    snprintf(target, sizeof(target), "/proc/self/fd/%d", fd);
    DT_ASSERT(symlink(target, index_path) == 0);
    index_fd = fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    dt_error err = DT_ERROR_INIT;
    dt_databin found;

    if (index_fd == 0)
        make_folder();
    DT_ASSERT(ftruncate(index_fd, 0) == 0);
    DT_ASSERT(pwrite(index_fd, bytes, size, 0) == (ssize_t)size);
    if (dt_databin_look(&found, bin, &err) == DT_OK)
        DT_ASSERT(found.kind == DT_TOKENS_AUTO || dt_databin_word(found.kind)[0] != '\0');
    else
        DT_ASSERT(err.code == DT_ERR_RECIPE && strstr(err.message, "x.") != NULL);
    return 0;
}
