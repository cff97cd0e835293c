/* parts: divides a corpus into parts, processes them with several threads, each part by one of them, and
 * writes files of tokens. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "runner/corpus/corpus_int.h"

/* Bounds of a part's size. Within them, all files together are divided into 64 parts: enough for
 * many threads, but not too many files. */
#define PART_LEAST ((size_t)1 << 20)
#define PART_MOST  ((size_t)64 << 20)

static void add_part(dt_corpus_parts *parts, const dt_corpus_file *file, size_t start, size_t end)
{
    parts->items =
        dt_array_room(parts->items, parts->count + 1, &parts->capacity, sizeof(*parts->items));
    parts->items[parts->count++] =
        (dt_corpus_part){file, start, end, start == 0, end == file->text.length};
}

static size_t line_end(const char *text, size_t length, size_t from)
{
    const char *found = memchr(text + from, '\n', length - from);

    return found != NULL ? (size_t)(found - text) + 1 : length;
}

/* Returns the end of the record at or after `from`. Reads from `start`, because quotes can only be
 * matched from the beginning. */
static size_t record_end(const char *text, size_t length, size_t start, size_t from)
{
    size_t at = start;

    while (at < from && at < length)
        at += dt_csv_record(text + at, length - at);
    return at;
}

size_t dt_corpus_file_start(const dt_corpus_file *file)
{
    const char *text = (const char *)file->text.bytes;
    size_t length = file->text.length, start = 0;

    if (file->kind != DT_CORPUS_TEXT && length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        start = 3;
    if (file->kind == DT_CORPUS_CSV)
        start += dt_csv_record(text + start, length - start);
    return start;
}

/* Returns the end of the part of about `size` bytes that begins at `start`. */
static size_t part_end(const dt_corpus_file *file, size_t start, size_t size, const dt_bpe *bpe)
{
    const char *text = (const char *)file->text.bytes;
    size_t length = file->text.length, from = length - start > size ? start + size : length;

    return from == length                  ? length
           : file->kind == DT_CORPUS_TEXT  ? dt_bpe_cut(bpe, text, length, from)
           : file->kind == DT_CORPUS_JSONL ? line_end(text, length, from)
                                           : record_end(text, length, start, from);
}

static void cut_file(dt_corpus_parts *parts, const dt_corpus_file *file, size_t size,
                     const dt_bpe *bpe)
{
    size_t end;

    for (size_t start = dt_corpus_file_start(file); start < file->text.length; start = end) {
        end = part_end(file, start, size, bpe);
        add_part(parts, file, start, end);
    }
}

static dt_status open_file(dt_corpus_file *out, const char *path, const char *field, dt_error *err)
{
    dt_status st = DT_OK;
    const char *text;
    size_t skip;

    *out = (dt_corpus_file){.path = path, .kind = dt_corpus_kind_of(path)};
    DT_TRY(dt_mapping_open(&out->text, path, err));
    if (out->kind != DT_CORPUS_CSV)
        goto out;
    text = (const char *)out->text.bytes;
    skip = out->text.length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    out->column = dt_csv_column(text + skip, out->text.length - skip, field);
    if (out->column < 0)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s' has no column '%s' in its first line; set data.field to one of its columns",
                 path, field);
out:
    return st;
}

dt_status dt_corpus_parts_open(dt_corpus_parts *out, const dt_data_files *files, const char *field,
                               const dt_bpe *bpe, dt_error *err)
{
    size_t size = (size_t)files->bytes / 64;
    dt_status st = DT_OK;

    *out = (dt_corpus_parts){0};
    size = size < PART_LEAST ? PART_LEAST : size > PART_MOST ? PART_MOST : size;
    out->files = dt_calloc((size_t)files->count + 1, sizeof(*out->files));
    for (int64_t i = 0; i < files->count; i++) {
        out->file_count = i + 1;
        DT_TRY(open_file(&out->files[i], files->items[i].path, field, err));
        cut_file(out, &out->files[i], size, bpe);
    }
out:
    return st;
}

void dt_corpus_parts_release(dt_corpus_parts *parts)
{
    for (int64_t i = 0; i < parts->file_count; i++)
        dt_mapping_close(&parts->files[i].text);
    free(parts->files);
    free(parts->items);
    *parts = (dt_corpus_parts){0};
}

/* --- tokens */

typedef struct encoding {
    dt_ids *ids;
    dt_bpe_encoder *encoder;
    dt_bpe_around around;
    int32_t end_of_text; /* -1: there is no such token */
    bool begins, ends;   /* false at a side where a part begins or ends inside a document */
} encoding;

static dt_status add_ids(dt_ids *to, const int32_t *ids, size_t count, dt_error *err)
{
    dt_status st = DT_OK;

    for (size_t i = 0; i < count && st == DT_OK; i++)
        st = dt_ids_add(to, ids[i], err);
    return st;
}

static dt_status encode(void *context, const char *text, size_t length, dt_error *err)
{
    encoding *to = context;
    const dt_bpe_around *around = &to->around;
    bool closed =
        around->after_count > 0 && around->after[around->after_count - 1] == to->end_of_text;
    dt_status st = DT_OK;

    if (to->begins)
        DT_TRY(add_ids(to->ids, around->before, around->before_count, err));
    DT_TRY(to->begins ? dt_bpe_encode(to->ids, to->encoder, text, length, err)
                      : dt_bpe_encode_rest(to->ids, to->encoder, text, length, err));
    if (to->ends)
        DT_TRY(add_ids(to->ids, around->after, around->after_count, err));
    if (to->ends && to->end_of_text >= 0 && !closed)
        DT_TRY(dt_ids_add(to->ids, to->end_of_text, err));
out:
    return st;
}

/* A document that continues after the part is counted in the part where it ends. */
static bool is_piece(const dt_corpus_part *part)
{
    return part->file->kind == DT_CORPUS_TEXT && !part->ends_document;
}

dt_status dt_corpus_part_read(dt_documents *documents, const dt_corpus_part *part,
                              const char *field, dt_document_fn *add, void *context, dt_error *err)
{
    const dt_corpus_file *file = part->file;
    int64_t before = documents->documents;
    dt_status st =
        dt_documents_read(documents, file->kind, (const char *)file->text.bytes + part->start,
                          part->end - part->start, field, file->column, add, context, err);

    if (is_piece(part))
        documents->documents = before;
    if (st == DT_ERR_USAGE && err != NULL)
        st = err->code = DT_ERR_RECIPE;
    if (st != DT_OK && part->start > 0)
        dt_error_prefix(err, "'%s', from byte %zu on", file->path, part->start);
    else if (st != DT_OK)
        dt_error_prefix(err, "'%s'", file->path);
    return st;
}

dt_status dt_corpus_part_encode(dt_ids *ids, dt_documents *documents, const dt_corpus_part *part,
                                const char *field, dt_bpe_encoder *encoder, const dt_bpe *bpe,
                                dt_error *err)
{
    bool text = part->file->kind == DT_CORPUS_TEXT;
    encoding to = {.ids = ids,
                   .encoder = encoder,
                   .around = dt_bpe_get_around(bpe),
                   .end_of_text = dt_bpe_end_of_text(bpe),
                   .begins = !text || part->begins_document,
                   .ends = !is_piece(part)};

    return dt_corpus_part_read(documents, part, field, encode, &to, err);
}

dt_status dt_corpus_head_encode(dt_ids *ids, dt_documents *documents, bool *whole, const char *path,
                                size_t bytes, const char *field, dt_bpe_encoder *encoder,
                                const dt_bpe *bpe, dt_error *err)
{
    dt_corpus_part head = {.begins_document = true};
    dt_status st = DT_OK;
    dt_corpus_file file;

    DT_TRY(open_file(&file, path, field, err));
    head.file = &file;
    head.start = dt_corpus_file_start(&file);
    head.end = head.start < file.text.length ? part_end(&file, head.start, bytes, bpe) : head.start;
    *whole = head.ends_document = head.end >= file.text.length;
    if (head.end > head.start)
        DT_TRY(dt_corpus_part_encode(ids, documents, &head, field, encoder, bpe, err));
out:
    dt_mapping_close(&file.text);
    return st;
}

/* --- files of tokens */

static void put_header(unsigned char *out, int64_t tokens, bool wide)
{
    int32_t header[3] = {wide ? 20240801 : 20240520, wide ? 7 : 1, (int32_t)tokens};

    memset(out, 0, DT_CORPUS_HEADER_BYTES);
    memcpy(out, header, sizeof(header));
}

static dt_status write_tokens(int fd, const dt_ids *ids, bool wide, dt_error *err)
{
    enum { BLOCK = 1 << 16 };
    uint16_t *block = dt_malloc(BLOCK * sizeof(*block));
    dt_status st = DT_OK;

    if (wide)
        DT_TRY(dt_file_write_all(fd, ids->items, ids->count * sizeof(ids->items[0]), err));
    for (size_t at = 0; !wide && at < ids->count; at += BLOCK) {
        size_t count = ids->count - at < BLOCK ? ids->count - at : BLOCK;

        for (size_t i = 0; i < count; i++)
            block[i] = (uint16_t)ids->items[at + i];
        DT_TRY(dt_file_write_all(fd, block, count * sizeof(*block), err));
    }
out:
    free(block);
    return st;
}

dt_status dt_corpus_tokens_write(const char *path, const dt_ids *ids, bool wide, dt_error *err)
{
    unsigned char header[DT_CORPUS_HEADER_BYTES];
    dt_status st = DT_OK;
    dt_strbuf partial;
    int fd = -1;

    dt_strbuf_init(&partial);
    dt_strbuf_add_fmt(&partial, "%s.partial", path);
    fd = open(partial.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", partial.data, strerror(errno));
    put_header(header, (int64_t)ids->count, wide);
    DT_TRY(dt_file_write_all(fd, header, sizeof(header), err));
    DT_TRY(write_tokens(fd, ids, wide, err));
    if (fsync(fd) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
    DT_TRY(dt_file_name(partial.data, path, true, err));
out:
    if (st != DT_OK)
        dt_error_prefix(err, "'%s'", path);
    if (st != DT_OK && fd >= 0)
        unlink(partial.data);
    if (fd >= 0)
        close(fd);
    dt_strbuf_release(&partial);
    return st;
}

#define THREADS_MOST 64
#define TELL_SECONDS 5.0 /* between two progress messages */

typedef struct crew {
    const dt_corpus_job *job;
    int64_t bytes;
    atomic_llong next, done_bytes;
    atomic_bool failed;
    pthread_mutex_t mutex; /* protects the fields below */
    dt_error err;          /* the first error */
    dt_status st;
    double told_seconds;
} crew;

static void tell_progress(crew *all)
{
    double now = dt_clock_monotonic_seconds();
    char text[96];

    if (all->job->tell == NULL)
        return;
    pthread_mutex_lock(&all->mutex);
    if (now - all->told_seconds >= TELL_SECONDS) {
        all->told_seconds = now;
        snprintf(text, sizeof(text), "%s: %lld of %lld MB", all->job->doing,
                 (long long)(atomic_load(&all->done_bytes) >> 20), (long long)(all->bytes >> 20));
        all->job->tell(text);
    }
    pthread_mutex_unlock(&all->mutex);
}

static void close_worker(crew *all, void *worker, dt_status st, dt_error *err)
{
    dt_error late = DT_ERROR_INIT;
    dt_status closed;

    pthread_mutex_lock(&all->mutex);
    closed = all->job->close(worker, all->job->context, &late);
    if (st == DT_OK && closed != DT_OK) {
        st = closed;
        *err = late;
    }
    if (st != DT_OK && all->st == DT_OK) {
        all->st = st;
        all->err = *err;
    }
    pthread_mutex_unlock(&all->mutex);
    if (st != DT_OK)
        atomic_store(&all->failed, true);
}

static void *work(void *argument)
{
    crew *all = argument;
    const dt_corpus_parts *parts = all->job->parts;
    dt_error err = DT_ERROR_INIT;
    void *worker = NULL;
    dt_status st = all->job->open(&worker, all->job->context, &err);

    while (st == DT_OK && !atomic_load(&all->failed)) {
        int64_t index = atomic_fetch_add(&all->next, 1);

        if (index >= parts->count)
            break;
        st = all->job->part(worker, all->job->context, index, &err);
        atomic_fetch_add(&all->done_bytes,
                         (long long)(parts->items[index].end - parts->items[index].start));
        tell_progress(all);
    }
    close_worker(all, worker, st, &err);
    return NULL;
}

dt_status dt_corpus_run(const dt_corpus_job *job, dt_error *err)
{
    crew all = {.job = job,
                .mutex = PTHREAD_MUTEX_INITIALIZER,
                .told_seconds = dt_clock_monotonic_seconds()};
    long wanted = job->threads > 0 ? job->threads : sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t threads[THREADS_MOST];
    int count = 0;

    for (int64_t i = 0; i < job->parts->count; i++)
        all.bytes += (int64_t)(job->parts->items[i].end - job->parts->items[i].start);
    wanted = wanted < THREADS_MOST ? wanted : THREADS_MOST;
    wanted = wanted < job->parts->count ? wanted : (long)job->parts->count;
    while (count < wanted - 1 && pthread_create(&threads[count], NULL, work, &all) == 0)
        count++;
    work(&all); /* this thread works too */
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return all.st == DT_OK ? DT_OK : DT_FAIL(err, all.st, "%s", all.err.message);
}
