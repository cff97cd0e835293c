/* file: writes a GGUF file from the files of a folder. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/gguf/gguf_int.h"

enum { VERSION = 3, ROW_MULTIPLE = 32 };
#define CONFIG_MOST ((size_t)16 << 20)

typedef struct writer {
    const char *folder;
    dt_gguf_type type;
    dt_arena arena;
    const dt_gguf_kind *kind;
    json_t *config, *names; /* config.json, the header of the safetensors file */
    unsigned char *mapped;
    size_t mapped_bytes;
    dt_gguf_tensor *tensors;
    size_t count;
    dt_gguf_header header;
} writer;

bool dt_gguf_type_of(dt_gguf_type *out, const char *name)
{
    static const struct {
        const char *name;
        dt_gguf_type type;
    } types[] = {
        {"f32", DT_GGUF_F32}, {"f16", DT_GGUF_F16}, {"bf16", DT_GGUF_BF16}, {"q8_0", DT_GGUF_Q8_0}};

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(types[i].name, name) == 0) {
            *out = types[i].type;
            return true;
        }
    return false;
}

/* --- the source */

static dt_status map_weights(writer *w, dt_error *err)
{
    const char *path = dt_arena_printf(&w->arena, "%s/model.safetensors", w->folder);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    dt_status st = DT_OK;
    uint64_t header = 0;
    struct stat info;
    void *bytes;

    if (fd < 0 || fstat(fd, &info) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    w->mapped = bytes;
    w->mapped_bytes = (size_t)info.st_size;
    if (w->mapped_bytes >= sizeof(header))
        memcpy(&header, w->mapped, sizeof(header));
    if (header == 0 || header > w->mapped_bytes - sizeof(header))
        DT_THROW(err, DT_ERR_CORRUPT, "'%s' is not a safetensors file", path);
    DT_TRY(dt_json_parse(&w->names, (const char *)w->mapped + sizeof(header), header, path, err));
out:
    if (fd >= 0)
        close(fd);
    return st;
}

static int64_t number_of(const writer *w, const char *key)
{
    return dt_gguf_number(w->config, key);
}

static dt_gguf_type type_of(const writer *w, const dt_gguf_tensor *tensor)
{
    if (tensor->ndim < 2 || tensor->row->wide)
        return DT_GGUF_F32;
    if (w->type == DT_GGUF_Q8_0 && tensor->dim[tensor->ndim - 1] % ROW_MULTIPLE != 0)
        return DT_GGUF_F16;
    return w->type;
}

static dt_status take_tensor(dt_gguf_tensor *out, const writer *w, const char *theirs,
                             const json_t *entry, dt_error *err)
{
    const json_t *shape = json_object_get(entry, "shape");
    const json_t *offsets = json_object_get(entry, "data_offsets");
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    int64_t begin = json_integer_value(json_array_get(offsets, 0));
    int64_t end = json_integer_value(json_array_get(offsets, 1)), swap;
    uint64_t header;

    memcpy(&header, w->mapped, sizeof(header));
    out->ndim = (int)json_array_size(shape);
    out->elems = 1;
    if (out->ndim < 1 || out->ndim > DT_GGUF_DIMS || dtype == NULL || strcmp(dtype, "F32") != 0)
        return DT_FAIL(err, DT_ERR_CORRUPT, "tensor '%s' is not of F32 with 1 to 4 dimensions",
                       theirs);
    for (int i = 0; i < out->ndim; i++) {
        out->dim[i] = json_integer_value(json_array_get(shape, (size_t)i));
        out->elems *= out->dim[i];
    }
    if (begin < 0 || end - begin != 4 * out->elems ||
        (uint64_t)end + header + sizeof(header) > w->mapped_bytes)
        return DT_FAIL(err, DT_ERR_CORRUPT, "tensor '%s' is not where its file says", theirs);
    out->values = w->mapped + sizeof(header) + header + begin;
    if (out->row->turn == DT_GGUF_TRANSPOSED && out->ndim == 2) {
        swap = out->dim[0];
        out->dim[0] = out->dim[1];
        out->dim[1] = swap;
    }
    out->heads = number_of(w, "num_attention_heads");
    if (out->row->turn == DT_GGUF_KEY_PAIRS && number_of(w, "num_key_value_heads") > 0)
        out->heads = number_of(w, "num_key_value_heads");
    if (out->row->turn >= DT_GGUF_QUERY_PAIRS &&
        (out->heads < 1 || out->dim[0] % (2 * out->heads) != 0))
        return DT_FAIL(err, DT_ERR_CORRUPT, "tensor '%s' does not consist of heads", theirs);
    out->type = type_of(w, out);
    out->bytes = dt_gguf_bytes(out->type, out->elems);
    return DT_OK;
}

static int64_t aligned(int64_t bytes)
{
    return (bytes + DT_GGUF_ALIGNMENT - 1) / DT_GGUF_ALIGNMENT * DT_GGUF_ALIGNMENT;
}

/* The tensors that the folder has not: a head that is the embedding, and factors of rotary positions. */
static void add_tensors(writer *w)
{
    const dt_gguf_tensor *embedding = NULL;
    bool head = !w->kind->own_head;

    for (size_t i = 0; i < w->count; i++) {
        if (strcmp(w->tensors[i].name, "token_embd.weight") == 0)
            embedding = &w->tensors[i];
        head = head || strcmp(w->tensors[i].name, "output.weight") == 0;
    }
    if (!head && embedding != NULL) {
        w->tensors[w->count] = *embedding;
        w->tensors[w->count++].name = "output.weight";
    }
    if (w->kind->ropes != NULL)
        w->count += dt_gguf_rope_tensors(&w->tensors[w->count], w->config, &w->arena);
}

static dt_status list_tensors(writer *w, dt_error *err)
{
    const char *theirs;
    int64_t offset = 0;
    json_t *entry;
    dt_status st = DT_OK;

    w->tensors = dt_arena_alloc_array(
        &w->arena, json_object_size(w->names) + 1 + DT_GGUF_ROPE_TENSORS, sizeof(w->tensors[0]));
    json_object_foreach(w->names, theirs, entry) {
        dt_gguf_tensor *out = &w->tensors[w->count];

        if (strcmp(theirs, "__metadata__") == 0)
            continue;
        *out = (dt_gguf_tensor){0};
        out->row = dt_gguf_find_tensor(&out->name, w->kind, theirs, &w->arena);
        if (out->row == NULL)
            DT_THROW(err, DT_ERR_RECIPE, "GGUF files of '%s' have no tensor for '%s'",
                     w->kind->architecture, theirs);
        DT_TRY(take_tensor(out, w, theirs, entry, err));
        w->count++;
    }
    add_tensors(w);
    for (size_t i = 0; i < w->count; i++) {
        w->tensors[i].offset = offset;
        offset += aligned(w->tensors[i].bytes);
    }
out:
    return st;
}

/* --- the header */

static void add_key(writer *w, const dt_gguf_key_row *row, double value)
{
    const char *key = dt_arena_printf(&w->arena, "%s.%s", w->kind->architecture, row->ours);

    if (row->type == DT_GGUF_FLOAT)
        dt_gguf_add_float(&w->header, key, (float)value);
    else
        dt_gguf_add_u32(&w->header, key, (uint32_t)value);
}

/* Llama.cpp has a pattern of its own for each architecture, which a list replaces. */
static void add_windows(writer *w)
{
    static const dt_gguf_key_row length = {"", "attention.sliding_window", DT_GGUF_U32, 0};
    int64_t window = dt_gguf_window(w->config), blocks = number_of(w, "num_hidden_layers");
    const char *key =
        dt_arena_printf(&w->arena, "%s.attention.sliding_window_pattern", w->kind->architecture);
    bool usual = true;

    if (w->kind->windows == DT_GGUF_WINDOWS_NONE ||
        (window == 0 && w->kind->windows == DT_GGUF_WINDOWS_MAYBE))
        return;
    add_key(w, &length, (double)(window > 0 ? window : number_of(w, "max_position_embeddings")));
    for (int64_t block = 0; window > 0 && block < blocks; block++)
        usual = usual && dt_gguf_has_window(w->kind, w->config, block) ==
                             ((block + 1) % w->kind->window_pattern != 0);
    if (usual)
        return;
    dt_gguf_begin_array(&w->header, key, DT_GGUF_BOOL, (uint64_t)blocks);
    for (int64_t block = 0; block < blocks; block++)
        dt_gguf_add_item_bool(&w->header, dt_gguf_has_window(w->kind, w->config, block));
}

static void add_keys(writer *w)
{
    static const dt_gguf_key_row inner = {"", "feed_forward_length", DT_GGUF_U32, 0};

    for (const dt_gguf_key_row *row = w->kind->keys; row->theirs != NULL; row++) {
        const json_t *value = json_object_get(w->config, row->theirs);

        if (json_is_number(value))
            add_key(w, row, json_number_value(value));
        else if (!isnan(row->fallback))
            add_key(w, row, row->fallback);
    }
    dt_gguf_add_rope(&w->header, w->kind, w->config);
    add_windows(w);
    if (w->kind->feed_forward != NULL)
        add_key(w, &inner, (double)w->kind->feed_forward(w->config));
}

static uint32_t file_type(dt_gguf_type type)
{
    return type == DT_GGUF_F32 ? 0 : type == DT_GGUF_F16 ? 1 : type == DT_GGUF_Q8_0 ? 7 : 32;
}

/* llama.cpp removes white space after special tokens if this name contains phi-3 or phi3. */
static void add_name(writer *w, const char *name)
{
    const char *at, *from = name;
    dt_strbuf other;

    dt_strbuf_init(&other);
    while ((at = strcasestr(from, "phi")) != NULL) {
        size_t dash = at[3] == '-';

        dt_strbuf_add(&other, from, (size_t)(at + 3 - from));
        if (at[3 + dash] == '3')
            dt_strbuf_add_char(&other, '_');
        from = at + 3 + (at[3 + dash] == '3' ? dash : 0);
    }
    dt_strbuf_add_str(&other, from);
    if (w->header.strips && strcmp(other.data, name) == 0) {
        dt_strbuf_reset(&other);
        dt_strbuf_add_fmt(&other, "Phi-3 %s", name);
    } else if (w->header.strips) {
        dt_strbuf_reset(&other);
        dt_strbuf_add_str(&other, name);
    } else if (strcmp(other.data, name) != 0) {
        dt_gguf_note(&w->header,
                     dt_arena_printf(&w->arena,
                                     "the file names the model '%s': llama.cpp would take the "
                                     "tokenizer of '%s' for that of Phi-3",
                                     other.data, name));
    }
    dt_gguf_add_text(&w->header, "general.name", other.data, other.length);
    dt_strbuf_release(&other);
}

static dt_status make_header(writer *w, const char *name, dt_error *err)
{
    dt_gguf_header *out = &w->header;
    dt_status st = DT_OK;

    dt_gguf_add_text(out, "general.architecture", w->kind->architecture,
                     strlen(w->kind->architecture));
    dt_gguf_add_text(out, "general.type", "model", 5);
    dt_gguf_add_u32(out, "general.file_type", file_type(w->type));
    dt_gguf_add_u32(out, "general.quantization_version", 2);
    add_keys(w);
    DT_TRY(dt_gguf_add_vocabulary(out, w->folder, number_of(w, "vocab_size"), w->config, err));
    add_name(w, name);
out:
    return st;
}

static void add_tensor(dt_strbuf *out, const dt_gguf_tensor *tensor)
{
    uint64_t length = strlen(tensor->name), number;
    uint32_t dims = (uint32_t)tensor->ndim, type = tensor->type;

    dt_strbuf_add(out, &length, sizeof(length));
    dt_strbuf_add_str(out, tensor->name);
    dt_strbuf_add(out, &dims, sizeof(dims));
    for (int i = tensor->ndim - 1; i >= 0; i--) { /* innermost first */
        number = (uint64_t)tensor->dim[i];
        dt_strbuf_add(out, &number, sizeof(number));
    }
    dt_strbuf_add(out, &type, sizeof(type));
    number = (uint64_t)tensor->offset;
    dt_strbuf_add(out, &number, sizeof(number));
}

static void pad(dt_strbuf *out)
{
    while (out->length % DT_GGUF_ALIGNMENT != 0)
        dt_strbuf_add_char(out, 0);
}

static dt_status write_header(int fd, writer *w, dt_error *err)
{
    uint64_t tensors = w->count, keys = w->header.count;
    uint32_t version = VERSION;
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    dt_strbuf_add_str(&text, "GGUF");
    dt_strbuf_add(&text, &version, sizeof(version));
    dt_strbuf_add(&text, &tensors, sizeof(tensors));
    dt_strbuf_add(&text, &keys, sizeof(keys));
    dt_strbuf_add(&text, w->header.text.data, w->header.text.length);
    for (size_t i = 0; i < w->count; i++)
        add_tensor(&text, &w->tensors[i]);
    pad(&text);
    st = dt_file_write_all(fd, text.data, text.length, err);
    dt_strbuf_release(&text);
    return st;
}

/* --- the file */

static dt_status write_tensors(int fd, const writer *w, dt_error *err)
{
    float *work = NULL;
    unsigned char *out = NULL;
    int64_t largest = 1;
    dt_status st = DT_OK;

    for (size_t i = 0; i < w->count; i++)
        largest = w->tensors[i].elems > largest ? w->tensors[i].elems : largest;
    work = malloc((size_t)largest * 2 * sizeof(*work));
    out = calloc((size_t)largest * sizeof(float) + DT_GGUF_ALIGNMENT, 1);
    if (work == NULL || out == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a tensor of %lld values", (long long)largest);
    for (size_t i = 0; i < w->count; i++) {
        int64_t bytes = w->tensors[i].bytes, rest = bytes % DT_GGUF_ALIGNMENT;

        DT_TRY(dt_gguf_convert(out, work, &w->tensors[i], err));
        rest = rest > 0 ? DT_GGUF_ALIGNMENT - rest : 0;
        memset(out + bytes, 0, (size_t)rest);
        DT_TRY(dt_file_write_all(fd, out, (size_t)(bytes + rest), err));
    }
out:
    free(work);
    free(out);
    return st;
}

/* Written under a temporary name, so that the file only appears complete. */
static dt_status write_file(writer *w, const char *path, bool replace, dt_error *err)
{
    const char *partial = dt_arena_printf(&w->arena, "%s.partial-%d", path, (int)getpid());
    int fd = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    dt_status st = DT_OK;

    if (fd < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot make '%s': %s", partial, strerror(errno));
    DT_TRY(write_header(fd, w, err));
    DT_TRY(write_tensors(fd, w, err));
    if (fsync(fd) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", partial, strerror(errno));
    st = dt_file_name(partial, path, replace, err);
    if (st == DT_ERR_BUSY)
        st = DT_FAIL(err, DT_ERR_USAGE, "'%s' already exists (--force replaces it)", path);
out:
    close(fd);
    if (st != DT_OK)
        (void)unlink(partial);
    return st;
}

static dt_status read_config(writer *w, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_json_read_foreign(&w->config, dt_arena_printf(&w->arena, "%s/config.json", w->folder),
                                CONFIG_MOST, err));
    DT_TRY(dt_gguf_find_kind(&w->kind, w->config, err));
    DT_TRY(dt_gguf_check_settings(w->kind, w->config, err));
    if (w->kind->ropes != NULL)
        DT_TRY(dt_gguf_check_rope(w->kind, w->config, err));
out:
    return st;
}

static void init(writer *w)
{
    dt_arena_init(&w->arena, 0);
    w->header.arena = &w->arena;
    w->header.notes = json_array();
    dt_strbuf_init(&w->header.text);
}

static void release(writer *w)
{
    if (w->mapped != NULL)
        munmap(w->mapped, w->mapped_bytes);
    json_decref(w->config);
    json_decref(w->names);
    json_decref(w->header.notes);
    dt_strbuf_release(&w->header.text);
    dt_arena_release(&w->arena);
}

dt_status dt_gguf_check(const char *folder, dt_error *err)
{
    writer w = {.folder = folder};
    dt_status st = DT_OK;

    init(&w);
    DT_TRY(read_config(&w, err));
    DT_TRY(make_header(&w, "", err));
out:
    if (st == DT_ERR_RECIPE)
        dt_error_prefix(err, "--to gguf");
    release(&w);
    return st;
}

dt_status dt_gguf_write(dt_gguf_result *out, const char *folder, const char *path,
                        dt_gguf_type type, const char *name, bool replace, dt_error *err)
{
    writer w = {.folder = folder, .type = type};
    dt_status st = DT_OK;

    *out = (dt_gguf_result){0};
    init(&w);
    DT_TRY(read_config(&w, err));
    DT_TRY(map_weights(&w, err));
    DT_TRY(list_tensors(&w, err));
    DT_TRY(make_header(&w, name, err));
    DT_TRY(write_file(&w, path, replace, err));
    out->tensors = (int64_t)w.count;
    for (size_t i = 0; i < w.count; i++)
        out->bytes += w.tensors[i].bytes;
    snprintf(out->architecture, sizeof(out->architecture), "%s", w.kind->architecture);
    out->notes = json_incref(w.header.notes);
out:
    release(&w);
    return st;
}
