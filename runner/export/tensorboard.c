/* tensorboard: writes one folder a run, each with one event file.
 *
 * File     records of [length, 8 bytes][masked CRC-32C of it, 4][an Event][masked CRC-32C of that, 4], little
 *          endian; the first has the version of the format
 * Event    protocol buffer: wall_time (1, double), step (2, varint), file_version (3) or summary (5), which has
 *          values (1) of tag (1) and simple_value (2, float): values are rounded to 24 bits
 * NaN and infinities are written as floats.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/display.h"
#include "base/file.h"
#include "runner/cli/report.h"
#include "runner/export/export.h"

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

typedef struct board {
    dt_output output;
    dt_strbuf value, summary, event, tag; /* scratch: the parts of a record, innermost first */
} board;

static void add_key(dt_strbuf *out, int field, int wire)
{
    dt_varint_add(out, (uint64_t)(field << 3 | wire));
}

static void add_bytes(dt_strbuf *out, int field, const dt_strbuf *bytes)
{
    add_key(out, field, WIRE_BYTES);
    dt_varint_add(out, bytes->length);
    dt_strbuf_add(out, bytes->data, bytes->length);
}

static void add_record(board *b)
{
    uint64_t length = b->event.length;
    uint32_t sum = dt_crc32c_masked(&length, sizeof(length));

    dt_strbuf_add(&b->output.text, &length, sizeof(length));
    dt_strbuf_add(&b->output.text, &sum, sizeof(sum));
    dt_strbuf_add(&b->output.text, b->event.data, b->event.length);
    sum = dt_crc32c_masked(b->event.data, b->event.length);
    dt_strbuf_add(&b->output.text, &sum, sizeof(sum));
}

static void begin_event(board *b, int64_t time_ms)
{
    double seconds = (double)time_ms / 1000;

    dt_strbuf_reset(&b->event);
    add_key(&b->event, 1, WIRE_64);
    dt_strbuf_add(&b->event, &seconds, sizeof(seconds));
}

static void add_version(board *b, int64_t time_ms)
{
    begin_event(b, time_ms);
    dt_strbuf_reset(&b->tag);
    dt_strbuf_add_str(&b->tag, "brain.Event:2");
    add_bytes(&b->event, 3, &b->tag);
    add_record(b);
}

static dt_status add_point(void *context, const dt_metric *point, dt_error *err)
{
    float value = (float)point->value;
    board *b = context;

    dt_strbuf_reset(&b->tag);
    dt_utf8_add_valid(&b->tag, point->name, strlen(point->name));
    dt_strbuf_reset(&b->value);
    add_bytes(&b->value, 1, &b->tag);
    add_key(&b->value, 2, WIRE_32);
    dt_strbuf_add(&b->value, &value, sizeof(value));
    dt_strbuf_reset(&b->summary);
    add_bytes(&b->summary, 1, &b->value);
    begin_event(b, point->time_ms);
    add_key(&b->event, 2, WIRE_VARINT);
    dt_varint_add(&b->event, (uint64_t)point->step);
    add_bytes(&b->event, 5, &b->summary);
    add_record(b);
    return dt_output_pass(&b->output, err);
}

/* Returns DIR/NAME-ID, which TensorBoard shows; characters that are unsafe in a folder name become '_'. */
static const char *find_folder(const dt_export_job *job, const dt_run *run)
{
    char name[64];
    size_t length = 0;

    for (const char *at = run->name; *at != '\0' && length + 1 < sizeof(name); at++) {
        bool plain =
            isalnum((unsigned char)*at) || *at == '_' || *at == '-' || (*at == '.' && length > 0);

        name[length++] = plain && (unsigned char)*at < 128 ? *at : '_';
    }
    name[length] = '\0';
    return dt_arena_printf(job->call->arena, "%s/%s-%s", job->target, name, run->id);
}

static dt_status write_run(board *b, const dt_export_job *job, const dt_run *run, dt_error *err)
{
    const char *folder = find_folder(job, run), *path;
    dt_status st;

    path = dt_arena_printf(job->call->arena, "%s/events.out.tfevents.%lld.dtrun.%s", folder,
                           (long long)(run->created_ms / 1000), run->id);
    DT_TRY(dt_file_make_dirs(folder, 0777, err));
    DT_TRY(dt_output_open(&b->output, path, job->replace, job->call->arena, err));
    add_version(b, run->created_ms);
    st = dt_export_points(job, run, add_point, b, err);
    st = dt_output_close(&b->output, st, err);
out:
    return st;
}

static dt_status write_board(const dt_export_job *job, dt_error *err)
{
    dt_status st = DT_OK;
    board b = {0};

    dt_strbuf_init(&b.value);
    dt_strbuf_init(&b.summary);
    dt_strbuf_init(&b.event);
    dt_strbuf_init(&b.tag);
    for (size_t i = 0; i < job->count; i++)
        DT_TRY(write_run(&b, job, &job->runs[i], err));
out:
    dt_strbuf_release(&b.value);
    dt_strbuf_release(&b.summary);
    dt_strbuf_release(&b.event);
    dt_strbuf_release(&b.tag);
    return st;
}

const dt_export_format dt_export_tensorboard = {
    .name = "tensorboard",
    .target = "DIR",
    .help = "a folder of event files, for tensorboard --logdir DIR",
    .write = write_board,
};
