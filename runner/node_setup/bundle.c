/* bundle: collects the engine and its libraries from this machine, and sends them to a node. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "runner/node_setup/node_setup_int.h"
#include "runner/transport/remote.h"

#define LIST_SECONDS 20.0
#define GPU_PART     "libdtrun-cuda.so" /* DT_CUDA_LIBRARY of engine/device/device_cuda.h */
#define NCCL         "libnccl.so.2"     /* libdtrun-cuda.so loads it by name (comm/nccl/link.cu) */
#ifdef __aarch64__
#define LOADER "/lib/ld-linux-aarch64.so.1"
#else
#define LOADER "/lib64/ld-linux-x86-64.so.2"
#endif

enum { FILES_MAX = 256 };

/* Returns true for libraries of glibc and of the driver: ranks use the node's own. */
static bool is_the_nodes(const char *name)
{
    static const char *const names[] = {
        "linux-vdso.so",  "ld-linux",    "libc.so.",         "libm.so.",        "libmvec.so.",
        "libpthread.so.", "libdl.so.",   "librt.so.",        "libutil.so.",     "libresolv.so.",
        "libanl.so.",     "libnsl.so.1", "libthread_db.so.", "libBrokenLocale", "libnss_",
        "libcuda.so.",    "libnvidia-"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static dt_status add_file(dt_bundle *bundle, const char *folder, const char *name, const char *path,
                          dt_arena *arena, dt_error *err)
{
    dt_bundle_file *file = &bundle->files[bundle->file_count];
    dt_program_facts facts;
    dt_status st = DT_OK;

    if (bundle->file_count == FILES_MAX)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "the engine needs more than %d libraries", FILES_MAX);
    DT_TRY(dt_program_files_look(&facts, bundle->known, path, err));
    file->name = dt_arena_printf(arena, "%s/%s", folder, name);
    file->path = dt_arena_strdup(arena, path);
    file->bytes = facts.bytes;
    memcpy(file->digest, facts.digest, sizeof(file->digest));
    if (dt_glibc_compare(facts.glibc, bundle->glibc) > 0)
        memcpy(bundle->glibc, facts.glibc, sizeof(bundle->glibc));
    bundle->bytes += facts.bytes;
    bundle->file_count++;
out:
    return st;
}

/* Returns true if the bundle already has the library, since the engine and the GPU part share
 * some. */
static bool has_file(const dt_bundle *bundle, const char *library)
{
    for (int64_t i = 0; i < bundle->file_count; i++)
        if (strcmp(strchr(bundle->files[i].name, '/') + 1, library) == 0)
            return true;
    return false;
}

/* Parses a line of the loader's list, such as "\tlibdnnl.so.2 => /usr/lib/libdnnl.so.2
 * (0x00007f...)", and adds the library. */
static dt_status add_library(dt_bundle *bundle, char *line, dt_arena *arena, dt_error *err)
{
    char *name = line + strspn(line, " \t"), *path = strstr(name, " => "), *end;

    if (path == NULL)
        return DT_OK; /* the vdso, the loader, or "statically linked" */
    *path = '\0';
    path += 4;
    if (is_the_nodes(name))
        return DT_OK;
    if (strncmp(path, "not found", 9) == 0)
        return DT_FAIL(err, DT_ERR_IO,
                       "the installation is incomplete: dtrun-engine needs '%s', which is not here",
                       name);
    if (has_file(bundle, name))
        return DT_OK;
    end = strstr(path, " (0x");
    if (end != NULL)
        *end = '\0';
    return path[0] == '/' && strchr(name, '/') == NULL
               ? add_file(bundle, "lib", name, path, arena, err)
               : DT_OK;
}

/* Runs the loader to list the libraries that it would load: parsing the files could give another
 * result. */
static dt_status add_libraries(dt_bundle *bundle, const char *const *words, dt_arena *arena,
                               dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;
    dt_strbuf list;
    int code;

    dt_strbuf_init(&list);
    DT_TRY(dt_nodes_ask_code(&list, &code, &problem, "localhost", words, NULL, 0, LIST_SECONDS,
                             NULL, err));
    for (char *line = list.data, *next; line != NULL && line[0] != '\0'; line = next) {
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        DT_TRY(add_library(bundle, line, arena, err));
    }
out:
    dt_strbuf_release(&list);
    return st;
}

static dt_status add_engine(dt_bundle *bundle, const char *engine, dt_arena *arena, dt_error *err)
{
    const char *const words[] = {"/usr/bin/env", "LD_TRACE_LOADED_OBJECTS=1", engine, NULL};
    dt_status st = DT_OK;

    DT_TRY(add_file(bundle, "bin", "dtrun-engine", engine, arena, err));
    DT_TRY(add_libraries(bundle, words, arena, err));
out:
    return st;
}

/* Returns true for "PREFIX13" or, with two numbers, "PREFIX13.0": the name that is loaded, not the file
 * that it links to. */
static bool is_library(const char *name, const char *prefix, int numbers)
{
    size_t length = strlen(prefix);

    if (strncmp(name, prefix, length) != 0)
        return false;
    for (name += length; numbers > 0; numbers--) {
        size_t digits = strspn(name, "0123456789");

        if (digits == 0 || name[digits] != (numbers > 1 ? '.' : '\0'))
            return false;
        name += digits + 1;
    }
    return true;
}

/* Adds NVRTC from the folder of cuBLASLt, which loads it by name for kernels that it compiles.
 * Without NVRTC cuBLASLt uses other algorithms, so that results would depend on whether a node has
 * a CUDA toolkit. */
static dt_status add_compiler(dt_bundle *bundle, dt_arena *arena, dt_error *err)
{
    const char *beside = NULL;
    struct dirent *entry;
    dt_status st = DT_OK;
    DIR *folder = NULL;

    for (int64_t i = 0; i < bundle->file_count; i++)
        if (is_library(bundle->files[i].name, "lib/libcublasLt.so.", 1))
            beside = bundle->files[i].path;
    if (beside != NULL)
        folder = opendir(dt_arena_strndup(arena, beside, (size_t)(strrchr(beside, '/') - beside)));
    while (folder != NULL && (entry = readdir(folder)) != NULL)
        if ((is_library(entry->d_name, "libnvrtc.so.", 1) ||
             is_library(entry->d_name, "libnvrtc-builtins.so.", 2)) &&
            !has_file(bundle, entry->d_name))
            DT_TRY(add_file(bundle, "lib", entry->d_name,
                            dt_arena_printf(arena, "%.*s/%s", (int)(strrchr(beside, '/') - beside),
                                            beside, entry->d_name),
                            arena, err));
out:
    if (folder != NULL)
        closedir(folder);
    return st;
}

/* Adds the NCCL that DTRUN_NCCL names. *loads: the loader's variable that makes it preload NCCL if
 * DTRUN_NCCL names none. */
static dt_status add_nccl(dt_bundle *bundle, const char **loads, dt_arena *arena, dt_error *err)
{
    const char *named = getenv("DTRUN_NCCL");
    struct stat info;

    *loads = "LD_PRELOAD=" NCCL;
    if (named == NULL || named[0] == '\0')
        return DT_OK;
    *loads = "LD_PRELOAD=";
    if (stat(named, &info) == 0 && S_ISDIR(info.st_mode))
        named = dt_arena_printf(arena, "%s/" NCCL, named);
    return add_file(bundle, "lib", NCCL, named, arena, err);
}

/* Adds the GPU part, which is next to the engine, and its libraries. It is a library, so the loader
 * is run on it, with NCCL preloaded from where the GPU part would find it. Without NCCL, the loader
 * prints an error and continues. */
static dt_status add_gpu_part(dt_bundle *bundle, const char *engine, dt_arena *arena, dt_error *err)
{
    const char *slash = strrchr(engine, '/');
    const char *path = dt_arena_printf(arena, "%.*s/%s", (int)(slash - engine), engine, GPU_PART);
    const char *words[] = {"/usr/bin/env", "LD_TRACE_LOADED_OBJECTS=1", NULL, LOADER, path, NULL};
    dt_status st = DT_OK;

    if (access(path, R_OK) != 0)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                       "this dtrun has no code for GPUs: '%s' is missing (build it with the CUDA "
                       "toolkit, or set 'gpus: 0')",
                       path);
    DT_TRY(add_file(bundle, "bin", GPU_PART, path, arena, err));
    DT_TRY(add_nccl(bundle, &words[2], arena, err));
    DT_TRY(add_libraries(bundle, words, arena, err));
    DT_TRY(add_compiler(bundle, arena, err));
out:
    return st;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const dt_bundle_file *)a)->name, ((const dt_bundle_file *)b)->name);
}

dt_status dt_bundle_make(dt_bundle *out, bool gpus, dt_arena *arena, dt_error *err)
{
    dt_program_files known;
    dt_status st = DT_OK;
    const char *engine;
    dt_strbuf text;

    dt_program_files_open(&known);
    *out = (dt_bundle){.known = &known};
    dt_strbuf_init(&text);
    out->files = dt_arena_alloc_array(arena, FILES_MAX, sizeof(out->files[0]));
    DT_TRY(dt_dir_program(&engine, "dtrun-engine", "DTRUN_ENGINE", arena, err));
    DT_TRY(add_engine(out, engine, arena, err));
    if (gpus)
        DT_TRY(add_gpu_part(out, engine, arena, err));
    qsort(out->files, (size_t)out->file_count, sizeof(out->files[0]), by_name);
    for (int64_t i = 0; i < out->file_count; i++)
        dt_strbuf_add_fmt(&text, "%s %lld %s\n", out->files[i].name, (long long)out->files[i].bytes,
                          out->files[i].digest);
    dt_digest_of(out->hash, text.data, text.length);
out:
    out->known = NULL;
    dt_program_files_close(&known);
    dt_strbuf_release(&text);
    return st;
}

/* upload_bundle: sends a bundle to a node, as one zstd stream (remote_helper/receive.c reads it). */

#define PIECE_BYTES    ((size_t)262144)
#define ASK_SECONDS    20.0
#define STALL_SECONDS  30.0  /* time limit for the node to accept more bytes */
#define SETTLE_SECONDS 120.0 /* time limit for the node to write and check, after the last byte */
#define LINKS_SECONDS  600.0 /* both limits if the node first reads files that it links */

typedef struct sink {
    dt_remote remote;
    dt_packer *packer;
    char *piece;       /* PIECE_BYTES */
    int64_t done, all; /* bytes of files */
    void (*progress)(void *context, const char *text);
    void *context;
} sink;

/* Appends the header, a line of JSON. alike: {name: bundle} of files that the node links from
 * another bundle. */
static void write_header(dt_strbuf *out, const dt_bundle *bundle, const json_t *alike)
{
    json_t *files = json_array(), *header;

    for (int64_t i = 0; i < bundle->file_count; i++) {
        const dt_bundle_file *file = &bundle->files[i];
        json_t *item = json_pack(
            "{s:s, s:I, s:i, s:s}", "name", file->name, "bytes", (json_int_t)file->bytes, "mode",
            strncmp(file->name, "bin/", 4) == 0 ? 0700 : 0600, "digest", file->digest);

        if (json_object_get(alike, file->name) != NULL)
            json_object_set(item, "bundle", json_object_get(alike, file->name));
        json_array_append_new(files, item);
    }
    header = json_pack("{s:o}", "files", files);
    dt_json_write(out, header);
    dt_strbuf_add_char(out, '\n');
    json_decref(header);
}

/* Finds files of this bundle in other bundles on the node; none after a failure. */
static json_t *ask_alike(const dt_bundle *bundle, const char *node, const char *agent,
                         const atomic_bool *cancelled)
{
    const char *const words[] = {agent, "node", "alike", NULL};
    json_t *alike = json_object();
    dt_strbuf header, answer;

    dt_strbuf_init(&header);
    dt_strbuf_init(&answer);
    write_header(&header, bundle, NULL);
    if (dt_nodes_ask(&answer, node, words, header.data, header.length, ASK_SECONDS, cancelled,
                     NULL) == DT_OK)
        for (char *line = answer.data, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            char *space = memchr(line, ' ', (size_t)(end - line));

            *end = '\0';
            if (space != NULL) {
                *space = '\0';
                json_object_set_new(alike, line, json_string(space + 1));
            }
        }
    dt_strbuf_release(&header);
    dt_strbuf_release(&answer);
    return alike;
}

/* Counts bytes, and reports each tenth of the total. */
static void add_done(sink *to, int64_t bytes)
{
    int64_t told = to->done * 10 / to->all;
    char text[96];

    to->done += bytes;
    if (to->progress == NULL || (to->done > bytes && to->done * 10 / to->all == told))
        return;
    snprintf(text, sizeof(text), "copying the engine: %lld of %lld MB", (long long)(to->done >> 20),
             (long long)(to->all >> 20));
    to->progress(to->context, text);
}

static dt_status put_file(sink *to, const dt_bundle_file *file, dt_error *err)
{
    int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    int64_t left = file->bytes;
    dt_status st = DT_OK;

    if (fd < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot read '%s': %s", file->path, strerror(errno));
    while (left > 0) {
        ssize_t got = read(fd, to->piece, left < (int64_t)PIECE_BYTES ? (size_t)left : PIECE_BYTES);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            DT_THROW(err, DT_ERR_IO, "'%s' became shorter while it was sent", file->path);
        DT_TRY(dt_packer_put(to->packer, to->piece, (size_t)got, false, err));
        left -= got;
        add_done(to, got);
    }
out:
    close(fd);
    return st;
}

static dt_status put_all(sink *to, const dt_bundle *bundle, const json_t *alike, dt_error *err)
{
    dt_strbuf header;
    dt_status st;

    dt_strbuf_init(&header);
    write_header(&header, bundle, alike);
    DT_TRY(dt_packer_put(to->packer, header.data, header.length, false, err));
    for (int64_t i = 0; i < bundle->file_count; i++)
        if (json_object_get(alike, bundle->files[i].name) == NULL)
            DT_TRY(put_file(to, &bundle->files[i], err));
    DT_TRY(dt_packer_put(to->packer, NULL, 0, true, err));
out:
    dt_strbuf_release(&header);
    return st;
}

static dt_status send_all_but(const json_t *alike, const dt_bundle *bundle, const char *node,
                              const char *agent, void (*progress)(void *context, const char *text),
                              void *context, const atomic_bool *cancelled, dt_error *err)
{
    const char *const words[] = {agent, "node", "receive", bundle->hash, NULL};
    dt_error cause = DT_ERROR_INIT, problem = DT_ERROR_INIT;
    dt_status st = DT_OK, sent;
    bool links = json_object_size(alike) > 0;
    sink to = {.progress = progress, .context = context};
    int code = 0;

    for (int64_t i = 0; i < bundle->file_count; i++)
        if (json_object_get(alike, bundle->files[i].name) == NULL)
            to.all += bundle->files[i].bytes;
    to.piece = dt_malloc(PIECE_BYTES);
    DT_TRY(dt_packer_new(&to.packer, &to.remote, links ? LINKS_SECONDS : STALL_SECONDS, err));
    DT_TRY(dt_remote_open(&to.remote, node, words, cancelled, err));
    sent = put_all(&to, bundle, alike, &cause);
    if (sent != DT_OK && sent != DT_ERR_PEER)
        DT_THROW(err, sent, "%s", cause.message);
    /* If the node stopped reading, its exit code and stderr have the reason. */
    DT_TRY(
        dt_remote_finish(&to.remote, &code, &problem, links ? LINKS_SECONDS : SETTLE_SECONDS, err));
    if (code != 0 || sent != DT_OK)
        DT_THROW(err, DT_ERR_IO, "node '%s': %s", node,
                 code != 0 ? problem.message : cause.message);
out:
    dt_remote_close(&to.remote);
    dt_packer_free(to.packer);
    free(to.piece);
    return st;
}

dt_status dt_upload_bundle(const dt_bundle *bundle, const char *node, const char *agent,
                           void (*progress)(void *context, const char *text), void *context,
                           const atomic_bool *cancelled, dt_error *err)
{
    json_t *alike = ask_alike(bundle, node, agent, cancelled);
    dt_error problem = DT_ERROR_INIT;
    dt_status st;

    st = send_all_but(alike, bundle, node, agent, progress, context, cancelled, &problem);
    /* A bundle that files were to be linked from was damaged, removed, or is too slow to read: send
     * all files. */
    if ((st == DT_ERR_IO || st == DT_ERR_TIMEOUT) && json_object_size(alike) > 0) {
        json_object_clear(alike);
        dt_error_clear(&problem);
        st = send_all_but(alike, bundle, node, agent, progress, context, cancelled, &problem);
    }
    json_decref(alike);
    return st == DT_OK ? DT_OK : DT_FAIL(err, st, "%s", problem.message);
}
