/* fuzz_torch: a file of torch.save, or the pickle in it. It is refused with its name, or every tensor is inside the file.
 *
 * The first byte of an input selects one; the rest is the document.
 * Corpus     corpus/torch: '0' the file, '1' the pickle
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/weights/torch_int.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t length);

static void try_file(const unsigned char *bytes, size_t length)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    dt_error err = DT_ERROR_INIT;
    dt_safetensors_tensor tensor;
    dt_safetensors file;
    const char *key;
    json_t *entry;

    DT_ASSERT(fd >= 0 && write(fd, bytes, length) == (ssize_t)length);
    if (dt_torch_read(&file, fd, (int64_t)length, "m.bin", &err) == DT_OK) {
        json_object_foreach(file.header, key, entry) {
            if (!dt_safetensors_look(&tensor, &file, key))
                continue;
            DT_ASSERT(tensor.start_bytes >= 0 && tensor.bytes >= 0 && tensor.elems >= 0);
            DT_ASSERT(tensor.bytes <= (int64_t)length - tensor.start_bytes);
        }
        dt_safetensors_release(&file);
    } else {
        DT_ASSERT(strstr(err.message, "m.bin") != NULL);
    }
    close(fd);
}

static void try_pickle(const unsigned char *bytes, size_t length)
{
    const dt_pickle_value *value = NULL;
    dt_error err = DT_ERROR_INIT;
    dt_arena arena;
    dt_status st;

    dt_arena_init(&arena, 0);
    st = dt_pickle_read(&value, bytes, length, "m.bin", &arena, &err);
    DT_ASSERT(st == DT_OK ? value != NULL : strstr(err.message, "m.bin") != NULL);
    dt_arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t length)
{
    if (length == 0)
        return 0;
    if (data[0] % 2 == 0)
        try_file(data + 1, length - 1);
    else
        try_pickle(data + 1, length - 1);
    return 0;
}
