#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "engine/weights/torch_int.h"

#define PICKLE_NAME    "/data.pkl"
#define PICKLE_MOST    ((int64_t)64 << 20)
#define ENTRIES_MOST   1000000
#define DIRECTORY_MOST ((int64_t)256 << 20)

/* --- the zip archive (APPNOTE.TXT of PKWARE, 4.3) */

enum {
    LOCAL_BYTES = 30,
    ENTRY_BYTES = 46,
    END_BYTES = 22,
    END64_BYTES = 56,
    LOCATOR64_BYTES = 20,
    COMMENT_MOST = 65535
};
#define LOCAL_MAGIC     0x04034b50u
#define ENTRY_MAGIC     0x02014b50u
#define END_MAGIC       0x06054b50u
#define END64_MAGIC     0x06064b50u
#define LOCATOR64_MAGIC 0x07064b50u

/* A file with its entries: {"NAME/data.pkl": [start of its local header, bytes], ...}. */
typedef struct archive {
    int fd;
    int64_t bytes;
    const char *path;
    json_t *entries;
    char *prefix; /* "NAME/", of the entry that ends with /data.pkl */
    dt_error *err;
} archive;

static uint64_t number_at(const unsigned char *at, size_t bytes)
{
    uint64_t number = 0;

    for (size_t i = 0; i < bytes; i++)
        number |= (uint64_t)at[i] << 8 * i;
    return number;
}

static dt_status refuse_damage(const archive *a)
{
    return DT_FAIL(a->err, DT_ERR_CORRUPT,
                   "'%s' is damaged or cut off: its directory of tensors is missing", a->path);
}

/* Reads a range into new memory. */
static dt_status read_range(unsigned char **out, const archive *a, int64_t start, int64_t bytes)
{
    dt_status st = DT_OK;

    *out = NULL;
    if (start < 0 || bytes < 0 || start > a->bytes - bytes)
        return refuse_damage(a);
    *out = malloc((size_t)bytes + 1);
    if (*out == NULL)
        return DT_FAIL(a->err, DT_ERR_NOMEM, "'%s': no memory to read its directory", a->path);
    st = dt_checkpoint_read_at(*out, (size_t)bytes, a->fd, start, a->path, a->err);
    if (st != DT_OK) {
        free(*out);
        *out = NULL;
    }
    return st;
}

/* Where the directory is, in an archive with places of 64 bits. `end`: the place of the usual end record. */
static dt_status find_directory64(int64_t *start, int64_t *bytes, const archive *a, int64_t end)
{
    unsigned char *locator = NULL, *record = NULL;
    dt_status st = DT_OK;

    DT_TRY(read_range(&locator, a, end - LOCATOR64_BYTES, LOCATOR64_BYTES));
    if (number_at(locator, 4) != LOCATOR64_MAGIC) {
        st = refuse_damage(a);
        goto out;
    }
    DT_TRY(read_range(&record, a, (int64_t)number_at(locator + 8, 8), END64_BYTES));
    if (number_at(record, 4) != END64_MAGIC) {
        st = refuse_damage(a);
        goto out;
    }
    *bytes = (int64_t)number_at(record + 40, 8);
    *start = (int64_t)number_at(record + 48, 8);
out:
    free(locator);
    free(record);
    return st;
}

static dt_status find_directory(int64_t *start, int64_t *bytes, const archive *a)
{
    int64_t most = END_BYTES + COMMENT_MOST, tail = a->bytes < most ? a->bytes : most, at;
    unsigned char *text = NULL;
    dt_status st = DT_OK;

    DT_TRY(read_range(&text, a, a->bytes - tail, tail));
    for (at = tail - END_BYTES; at >= 0 && number_at(text + at, 4) != END_MAGIC;)
        at--;
    if (at < 0) {
        st = refuse_damage(a);
        goto out;
    }
    *bytes = (int64_t)number_at(text + at + 12, 4);
    *start = (int64_t)number_at(text + at + 16, 4);
    if (*bytes == UINT32_MAX || *start == UINT32_MAX || number_at(text + at + 10, 2) == UINT16_MAX)
        DT_TRY(find_directory64(start, bytes, a, a->bytes - tail + at));
out:
    free(text);
    return st;
}

/* Replaces what has 64 bits: the extra field has these numbers in a fixed order, those that the entry lacks. */
static bool read_extra64(uint64_t values[], size_t count, const unsigned char *extra, size_t length)
{
    while (length >= 4) {
        size_t size = number_at(extra + 2, 2), at = 4;

        if (size > length - 4)
            return false;
        if (number_at(extra, 2) == 1) {
            for (size_t i = 0; i < count; i++) {
                if (values[i] != UINT32_MAX)
                    continue;
                if (at + 8 > size + 4)
                    return false;
                values[i] = number_at(extra + at, 8);
                at += 8;
            }
            return true;
        }
        extra += size + 4;
        length -= size + 4;
    }
    return true;
}

/* Adds the entry at `at`. Returns its bytes in the directory; 0: it is damaged. */
static size_t add_entry(archive *a, const unsigned char *at, size_t left)
{
    size_t name, extra, comment;
    uint64_t values[3]; /* uncompressed, compressed, place */
    char *key;

    if (left < ENTRY_BYTES || number_at(at, 4) != ENTRY_MAGIC)
        return 0;
    name = number_at(at + 28, 2);
    extra = number_at(at + 30, 2);
    comment = number_at(at + 32, 2);
    values[0] = number_at(at + 24, 4);
    values[1] = number_at(at + 20, 4);
    values[2] = number_at(at + 42, 4);
    if (ENTRY_BYTES + name + extra + comment > left ||
        !read_extra64(values, 3, at + ENTRY_BYTES + name, extra) || number_at(at + 10, 2) != 0 ||
        values[0] != values[1] || values[0] > INT64_MAX || values[2] > INT64_MAX ||
        json_object_size(a->entries) >= ENTRIES_MOST)
        return 0;
    key = strndup((const char *)at + ENTRY_BYTES, name);
    if (key == NULL || strlen(key) != name) { /* no memory, or a NUL */
        free(key);
        return 0;
    }
    /* text that is not UTF-8 is not added, and not found later */
    (void)json_object_set_new(a->entries, key,
                              json_pack("[I, I]", (json_int_t)values[2], (json_int_t)values[0]));
    if (name > strlen(PICKLE_NAME) && a->prefix == NULL &&
        strcmp(key + name - strlen(PICKLE_NAME), PICKLE_NAME) == 0)
        a->prefix = strndup(key, name + 1 - strlen(PICKLE_NAME));
    free(key);
    return ENTRY_BYTES + name + extra + comment;
}

static dt_status read_directory(archive *a)
{
    unsigned char *text = NULL;
    int64_t start = 0, bytes = 0;
    dt_status st = DT_OK;

    DT_TRY(find_directory(&start, &bytes, a));
    if (bytes > DIRECTORY_MOST || bytes < 0) {
        st = refuse_damage(a);
        goto out;
    }
    DT_TRY(read_range(&text, a, start, bytes));
    for (size_t at = 0, used; at < (size_t)bytes; at += used) {
        used = add_entry(a, text + at, (size_t)bytes - at);
        if (used == 0) {
            st = refuse_damage(a);
            goto out;
        }
    }
    if (a->prefix == NULL)
        DT_THROW(a->err, DT_ERR_RECIPE,
                 "'%s' is an archive without data.pkl, and so not a file of PyTorch's weights",
                 a->path);
out:
    free(text);
    return st;
}

/* Finds the contents of an entry "PREFIX NAME". *start -1: there is none. */
static dt_status find_entry(int64_t *start, int64_t *bytes, const archive *a, const char *folder,
                            const char *name)
{
    unsigned char *local = NULL;
    const json_t *entry;
    dt_status st = DT_OK;
    dt_strbuf key;

    dt_strbuf_init(&key);
    dt_strbuf_add_fmt(&key, "%s%s%s", a->prefix, folder, name);
    entry = json_object_get(a->entries, key.data);
    *start = -1;
    if (entry == NULL)
        goto out;
    *bytes = json_integer_value(json_array_get(entry, 1));
    *start = json_integer_value(json_array_get(entry, 0));
    DT_TRY(read_range(&local, a, *start, LOCAL_BYTES));
    *start += LOCAL_BYTES + (int64_t)(number_at(local + 26, 2) + number_at(local + 28, 2));
    if (number_at(local, 4) != LOCAL_MAGIC || *bytes > a->bytes || *start > a->bytes - *bytes)
        st = refuse_damage(a);
out:
    free(local);
    dt_strbuf_release(&key);
    return st;
}

/* --- the tensors */

static const struct {
    const char *storage, *type;
    int bytes;
} types[] = {{"FloatStorage", "F32", 4},  {"BFloat16Storage", "BF16", 2}, {"HalfStorage", "F16", 2},
             {"DoubleStorage", "F64", 8}, {"LongStorage", "I64", 8},      {"IntStorage", "I32", 4},
             {"ShortStorage", "I16", 2},  {"CharStorage", "I8", 1},       {"ByteStorage", "U8", 1},
             {"BoolStorage", "BOOL", 1}};

/* Returns the elements of a tensor; -1: it is not stored row by row, or too large. */
static int64_t count_elems(const dt_pickle_value *sizes, const dt_pickle_value *strides)
{
    int64_t elems = 1;

    for (int64_t i = sizes->count - 1; i >= 0; i--) {
        int64_t size = sizes->items[i]->number;

        if (size > 1 && strides->items[i]->number != elems)
            return -1;
        if (size > 0 && elems > INT64_MAX / 16 / size)
            return -1;
        elems *= size;
    }
    return elems;
}

static dt_status add_tensor(json_t *header, const archive *a, const char *name,
                            const dt_pickle_value *tensor)
{
    const dt_pickle_value *storage = tensor->items[0], *sizes = tensor->items[1];
    int64_t elems = count_elems(sizes, tensor->items[2]), start = -1, bytes = 0, from;
    json_t *shape = json_array();
    dt_status st = DT_OK;
    size_t type = 0;

    while (type < sizeof(types) / sizeof(types[0]) &&
           strcmp(types[type].storage, storage->type) != 0)
        type++;
    if (type == sizeof(types) / sizeof(types[0]))
        DT_THROW(a->err, DT_ERR_RECIPE, "'%s': '%.120s' has the unsupported type %.40s", a->path,
                 name, storage->type);
    if (elems < 0)
        DT_THROW(a->err, DT_ERR_RECIPE,
                 "'%s': '%.120s' is not stored row by row: save it after contiguous(), or save the "
                 "model as safetensors",
                 a->path, name);
    DT_TRY(find_entry(&start, &bytes, a, "data/", storage->text));
    if (start < 0 || tensor->number < 0 || tensor->number > INT64_MAX / 16 ||
        tensor->number * types[type].bytes > bytes ||
        elems > (bytes - tensor->number * types[type].bytes) / types[type].bytes)
        DT_THROW(a->err, DT_ERR_CORRUPT, "'%s' is damaged or cut off: it lacks data of '%.120s'",
                 a->path, name);
    from = start + tensor->number * types[type].bytes;
    for (int64_t i = 0; i < sizes->count; i++)
        json_array_append_new(shape, json_integer(sizes->items[i]->number));
    json_object_set_new(header, name,
                        json_pack("{s:s, s:O, s:[I, I]}", "dtype", types[type].type, "shape", shape,
                                  "data_offsets", (json_int_t)from,
                                  (json_int_t)(from + elems * types[type].bytes)));
out:
    json_decref(shape);
    return st;
}

static dt_status add_tensors(json_t *header, const archive *a, const dt_pickle_value *all)
{
    dt_status st = DT_OK;

    if (all->kind != DT_PICKLE_DICT)
        DT_THROW(a->err, DT_ERR_RECIPE, "'%s' has no dictionary of tensors", a->path);
    for (int64_t i = 0; i + 1 < all->count; i += 2) {
        const dt_pickle_value *key = all->items[i], *value = all->items[i + 1];

        if (key->kind != DT_PICKLE_TEXT || value->kind != DT_PICKLE_TENSOR)
            DT_THROW(a->err, DT_ERR_RECIPE,
                     "'%s': '%.120s' is not a tensor: save the state_dict() of the model alone",
                     a->path, key->kind == DT_PICKLE_TEXT ? key->text : "?");
        DT_TRY(add_tensor(header, a, key->text, value));
    }
out:
    return st;
}

/* --- the file */

bool dt_torch_is_file(int fd)
{
    unsigned char head[4];

    return pread(fd, head, sizeof(head), 0) == sizeof(head) && number_at(head, 4) == LOCAL_MAGIC;
}

static dt_status check_order(const archive *a)
{
    unsigned char *text = NULL;
    int64_t start, bytes = 0;
    dt_status st = DT_OK;

    DT_TRY(find_entry(&start, &bytes, a, "", "byteorder"));
    if (start < 0) /* before PyTorch 2.1, that of the machine: little in practice */
        goto out;
    DT_TRY(read_range(&text, a, start, bytes < 16 ? bytes : 16));
    if (bytes != 6 || memcmp(text, "little", 6) != 0)
        DT_THROW(a->err, DT_ERR_RECIPE, "'%s' has numbers of another byte order (expected little)",
                 a->path);
out:
    free(text);
    return st;
}

dt_status dt_torch_read(dt_safetensors *out, int fd, int64_t bytes, const char *path, dt_error *err)
{
    archive a = {.fd = fd, .bytes = bytes, .path = path, .entries = json_object(), .err = err};
    const dt_pickle_value *all = NULL;
    unsigned char *text = NULL;
    int64_t start, length = 0;
    dt_status st = DT_OK;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    *out = (dt_safetensors){.header = json_object()};
    DT_TRY(read_directory(&a));
    DT_TRY(check_order(&a));
    DT_TRY(find_entry(&start, &length, &a, "", "data.pkl"));
    if (start < 0 || length > PICKLE_MOST) {
        st = refuse_damage(&a);
        goto out;
    }
    DT_TRY(read_range(&text, &a, start, length));
    DT_TRY(dt_pickle_read(&all, text, (size_t)length, path, &arena, err));
    DT_TRY(add_tensors(out->header, &a, all));
out:
    if (st != DT_OK)
        dt_safetensors_release(out);
    free(text);
    free(a.prefix);
    json_decref(a.entries);
    dt_arena_release(&arena);
    return st;
}
