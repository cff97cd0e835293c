#include "runner/agent/journal/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "runner/channel/protocol.h"

#define LOG_PENDING_BYTES ((size_t)1 << 20)

dt_status dt_journal_open(dt_journal *journal, const char *path, dt_journal_fn *seen, void *context,
                          dt_error *err)
{
    dt_status st = DT_OK;

    memset(journal, 0, sizeof(*journal));
    dt_strbuf_init(&journal->pending);
    journal->note_fd = -1;
    journal->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (journal->fd < 0)
        DT_THROW(err, DT_ERR_IO, "cannot open the journal '%s': %s", path, strerror(errno));
    journal->path = dt_strdup(path);
    DT_TRY(dt_journal_note_open(journal, path, err));
    DT_TRY(dt_journal_scan(journal, seen, context, err));
    if (ftruncate(journal->fd, journal->whole_bytes) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot repair the journal '%s': %s", path, strerror(errno));
    journal->written_bytes = journal->whole_bytes;
out:
    return st;
}

void dt_journal_close(dt_journal *journal)
{
    if (journal->fd >= 0)
        close(journal->fd);
    if (journal->note_fd >= 0)
        close(journal->note_fd);
    journal->fd = journal->note_fd = -1;
    dt_strbuf_release(&journal->pending);
    free(journal->marks);
    free(journal->path);
    journal->marks = NULL;
    journal->path = NULL;
}

static bool must_last(const char *kind)
{
    static const char *const kinds[] = {"checkpoint", "exited", "finished", "failed", "released"};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(kind, kinds[i]) == 0)
            return true;
    return false;
}

/* Numbers an event. A previous agent may have given more numbers than its journal still shows,
 * so the first number after opening jumps. */
static void number(dt_journal *journal, json_t *event)
{
    int64_t last = journal->next_sequence - 1;
    bool jump = journal->opened_again;

    if (jump)
        journal->next_sequence = (journal->next_sequence / DT_JOURNAL_JUMP + 1) * DT_JOURNAL_JUMP;
    journal->opened_again = false;
    if (jump || journal->mark_count == 0 || journal->next_sequence % DT_JOURNAL_MARK_EVERY == 0)
        dt_journal_mark_add(journal, journal->next_sequence,
                            journal->written_bytes + (int64_t)journal->pending.length);
    json_object_del(event, "sequence"); /* so that the new one comes last (scan.c) */
    json_object_del(event, "sum");
    json_object_set_new(event, "sequence", json_integer(journal->next_sequence));
    if (jump)
        json_object_set_new(event, "after", json_integer(last));
    if (!journal->version_said)
        json_object_set_new(event, "journal", json_integer(DT_PROTOCOL_JOURNAL_VERSION));
    journal->version_said = true;
    journal->next_sequence++;
}

void dt_journal_skip_to(dt_journal *journal, int64_t sequence)
{
    int64_t next = journal->next_sequence;

    if (journal->opened_again)
        next = (next / DT_JOURNAL_JUMP + 1) * DT_JOURNAL_JUMP;
    if (sequence <= next)
        return;
    journal->opened_again = false;
    journal->next_sequence = sequence;
    dt_journal_mark_add(journal, sequence,
                        journal->written_bytes + (int64_t)journal->pending.length);
}

void dt_journal_add(dt_journal *journal, json_t *event)
{
    const char *kind = json_string_value(json_object_get(event, "event"));
    size_t begins;

    DT_ASSERT(kind != NULL);
    if (strcmp(kind, "log") == 0 && journal->pending.length > LOG_PENDING_BYTES) {
        journal->dropped_lines++;
        json_decref(event);
        return;
    }
    number(journal, event);
    json_object_set_new(event, "time_ms", json_integer(dt_clock_wall_ms()));
    begins = journal->pending.length;
    dt_json_write(&journal->pending, event);
    dt_journal_line_sign(&journal->pending, begins);
    dt_strbuf_add_char(&journal->pending, '\n');
    journal->sync_wanted = journal->sync_wanted || must_last(kind);
    json_decref(event);
}

/* Reports dropped lines; with rank -1, because several ranks may have printed them. */
static void tell_dropped(dt_journal *journal)
{
    char text[128];

    snprintf(text, sizeof(text),
             "%lld lines of output were dropped: the journal could not be written",
             (long long)journal->dropped_lines);
    journal->dropped_lines = 0;
    dt_journal_add(journal, json_pack("{s:s, s:i, s:s, s:s}", "event", "log", "rank", -1, "stream",
                                      "agent", "text", text));
}

dt_status dt_journal_flush(dt_journal *journal, dt_error *err)
{
    while (journal->pending.length > 0) {
        ssize_t put = write(journal->fd, journal->pending.data, journal->pending.length);
        const char *newline;

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return DT_FAIL(err, DT_ERR_IO, "cannot write the journal: %s", strerror(errno));
        newline = memrchr(journal->pending.data, '\n', (size_t)put);
        if (newline != NULL)
            journal->whole_bytes = journal->written_bytes + (newline - journal->pending.data) + 1;
        journal->written_bytes += put;
        dt_strbuf_remove_front(&journal->pending, (size_t)put);
        if (journal->pending.length == 0 && journal->dropped_lines > 0)
            tell_dropped(journal);
    }
    if (journal->sync_wanted && fdatasync(journal->fd) != 0 && errno != EINVAL)
        return DT_FAIL(err, DT_ERR_IO, "cannot sync the journal: %s", strerror(errno));
    journal->sync_wanted = false;
    return DT_OK;
}

/* Returns the end of the readable part that contains *offset: the head ends at the hole. */
static int64_t readable_end(const dt_journal *journal, int64_t *offset)
{
    if (journal->kept_bytes == 0 || *offset >= journal->kept_bytes)
        return journal->whole_bytes;
    if (*offset < journal->head_bytes)
        return journal->head_bytes;
    *offset = journal->kept_bytes;
    return journal->whole_bytes;
}

/* Reads complete lines as they are in the file. */
static dt_status read_raw(const dt_journal *journal, int64_t offset, int64_t end, size_t want,
                          dt_strbuf *out, dt_error *err)
{
    char chunk[16384];

    dt_strbuf_reset(out);
    while (offset < end) {
        int64_t left = end - offset;
        const char *newline = memrchr(out->data, '\n', out->length);
        ssize_t got;

        if (out->length >= want && newline != NULL)
            break;
        got = pread(journal->fd, chunk,
                    left < (int64_t)sizeof(chunk) ? (size_t)left : sizeof(chunk), offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return DT_FAIL(err, DT_ERR_IO, "cannot read the journal: %s",
                           got < 0 ? strerror(errno) : "the file became shorter");
        dt_strbuf_add(out, chunk, (size_t)got);
        offset += got;
    }
    while (offset < end && out->length > 0 && out->data[out->length - 1] != '\n')
        out->data[--out->length] = '\0';
    return DT_OK;
}

/* Removes damaged lines from `out`. */
static void take_damaged_out(dt_journal *journal, dt_strbuf *out)
{
    size_t kept = 0, at = 0;

    while (at < out->length) {
        const char *newline = memchr(out->data + at, '\n', out->length - at);
        size_t length = (newline != NULL ? (size_t)(newline - out->data) : out->length) - at;
        size_t whole = length + (newline != NULL ? 1 : 0);

        if (newline != NULL && dt_journal_line_sequence(out->data + at, length) >= 0) {
            memmove(out->data + kept, out->data + at, whole);
            kept += whole;
        } else {
            dt_journal_set_aside(journal, out->data + at, length);
        }
        at += whole;
    }
    out->length = kept;
    out->data[kept] = '\0';
}

dt_status dt_journal_read(dt_journal *journal, int64_t *offset, size_t want, dt_strbuf *out,
                          dt_error *err)
{
    int64_t end = readable_end(journal, offset);
    dt_status st = read_raw(journal, *offset, end, want, out, err);

    if (st == DT_OK) {
        *offset += (int64_t)out->length;
        take_damaged_out(journal, out);
    }
    return st;
}

/* Returns the offset of the last mark at or before `sequence`; 0 if there is none. */
static int64_t nearest_mark(const dt_journal *journal, int64_t sequence)
{
    size_t low = 0, high = journal->mark_count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (journal->marks[middle].sequence <= sequence)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? journal->marks[low - 1].offset : 0;
}

/* Returns the bytes of the lines whose numbers are below `sequence`. */
static size_t count_below(const dt_strbuf *lines, int64_t sequence)
{
    size_t at = 0;

    while (at < lines->length) {
        const char *newline = memchr(lines->data + at, '\n', lines->length - at);
        size_t length = (newline != NULL ? (size_t)(newline - lines->data) : lines->length) - at;

        if (dt_journal_line_sequence(lines->data + at, length) >= sequence)
            break;
        at += length + (newline != NULL ? 1 : 0);
    }
    return at;
}

dt_status dt_journal_offset(dt_journal *journal, int64_t sequence, int64_t *offset, dt_error *err)
{
    int64_t at = nearest_mark(journal, sequence), end;
    dt_status st = DT_OK;
    dt_strbuf lines;

    *offset = 0;
    if (sequence < journal->kept_sequence && at >= journal->head_bytes)
        at = journal->kept_bytes;
    dt_strbuf_init(&lines);
    while (at < journal->whole_bytes) {
        size_t below;

        end = readable_end(journal, &at);
        DT_TRY(read_raw(journal, at, end, 16384, &lines, err));
        if (lines.length == 0)
            break;
        below = count_below(&lines, sequence);
        at += (int64_t)below;
        if (below < lines.length)
            break;
    }
    *offset = at < journal->whole_bytes ? at : journal->whole_bytes; /* not written yet */
out:
    dt_strbuf_release(&lines);
    return st;
}
