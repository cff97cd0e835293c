#define _GNU_SOURCE
#include "runner/agent/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#include "base/banned.h"

#define LOG_PENDING_BYTES ((size_t)1 << 20)

static void mark_add(dt_journal *journal, int64_t sequence, int64_t offset)
{
    if (sequence % DT_JOURNAL_MARK_EVERY != 0)
        return;
    if (journal->mark_count == journal->mark_capacity) {
        journal->mark_capacity = journal->mark_capacity != 0 ? 2 * journal->mark_capacity : 16;
        journal->marks =
            realloc(journal->marks, journal->mark_capacity * sizeof(journal->marks[0]));
        DT_ASSERT(journal->marks != NULL);
    }
    journal->marks[journal->mark_count++] = offset;
}

/* Past what was given back. The marks of what is in it are never read. */
static void jump(dt_journal *journal, FILE *file)
{
    int64_t marks = journal->kept_sequence / DT_JOURNAL_MARK_EVERY;

    if (journal->kept_bytes == 0 || journal->whole_bytes < journal->head_bytes ||
        journal->whole_bytes >= journal->kept_bytes)
        return;
    while ((int64_t)journal->mark_count < marks)
        mark_add(journal, (int64_t)journal->mark_count * DT_JOURNAL_MARK_EVERY, 0);
    journal->whole_bytes = journal->kept_bytes;
    journal->next_sequence = journal->kept_sequence;
    fseeko(file, (off_t)journal->kept_bytes, SEEK_SET);
}

/* Reads what is there; stops at the first line that is not whole or not the next number. */
static dt_status scan(dt_journal *journal, FILE *file, dt_journal_fn *seen, void *context)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;

    while ((length = getline(&line, &capacity, file)) > 0 && line[length - 1] == '\n') {
        json_t *event = NULL;
        int64_t sequence = -1;

        if (dt_json_parse(&event, line, (size_t)length - 1, "journal", NULL) == DT_OK)
            dt_json_get_int(&sequence, event, "sequence", "journal", NULL);
        if (sequence == journal->next_sequence && json_is_object(event)) {
            mark_add(journal, sequence, journal->whole_bytes);
            journal->next_sequence++;
            journal->whole_bytes += length;
            seen(context, event);
            jump(journal, file);
        } else {
            length = 0;
        }
        json_decref(event);
        if (length == 0)
            break;
    }
    free(line);
    return DT_OK;
}

dt_status dt_journal_open(dt_journal *journal, const char *path, dt_journal_fn *seen, void *context,
                          dt_error *err)
{
    dt_status st = DT_OK;
    FILE *file = NULL;

    memset(journal, 0, sizeof(*journal));
    dt_strbuf_init(&journal->pending);
    journal->note_fd = -1;
    journal->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (journal->fd < 0)
        DT_THROW(err, DT_ERR_IO, "cannot open the journal '%s': %s", path, strerror(errno));
    file = fopen(path, "re");
    if (file == NULL)
        DT_THROW(err, DT_ERR_IO, "cannot read the journal '%s': %s", path, strerror(errno));
    DT_TRY(dt_journal_note_open(journal, path, err));
    DT_TRY(scan(journal, file, seen, context));
    if (ftruncate(journal->fd, journal->whole_bytes) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot mend the journal '%s': %s", path, strerror(errno));
    journal->written_bytes = journal->whole_bytes;
out:
    if (file != NULL)
        fclose(file);
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
    journal->marks = NULL;
}

static bool must_last(const char *kind)
{
    static const char *const kinds[] = {"checkpoint", "exited", "finished", "failed", "released"};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(kind, kinds[i]) == 0)
            return true;
    return false;
}

void dt_journal_add(dt_journal *journal, json_t *event)
{
    const char *kind = json_string_value(json_object_get(event, "event"));

    DT_ASSERT(kind != NULL);
    if (strcmp(kind, "log") == 0 && journal->pending.length > LOG_PENDING_BYTES) {
        journal->dropped_lines++;
        json_decref(event);
        return;
    }
    json_object_set_new(event, "sequence", json_integer(journal->next_sequence));
    json_object_set_new(event, "time_ms", json_integer(dt_clock_wall_ms()));
    mark_add(journal, journal->next_sequence,
             journal->written_bytes + (int64_t)journal->pending.length);
    journal->next_sequence++;
    dt_json_write(&journal->pending, event);
    dt_strbuf_add_char(&journal->pending, '\n');
    journal->sync_wanted = journal->sync_wanted || must_last(kind);
    json_decref(event);
}

/* Rank -1: it may have been the output of several ranks. */
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

dt_status dt_journal_read(const dt_journal *journal, int64_t offset, size_t want, dt_strbuf *out,
                          dt_error *err)
{
    char chunk[16384];

    dt_strbuf_reset(out);
    while (offset < journal->whole_bytes) {
        int64_t left = journal->whole_bytes - offset;
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
                           got < 0 ? strerror(errno) : "it became shorter");
        dt_strbuf_add(out, chunk, (size_t)got);
        offset += got;
    }
    while (out->length > 0 && out->data[out->length - 1] != '\n')
        out->data[--out->length] = '\0';
    return DT_OK;
}

dt_status dt_journal_offset(const dt_journal *journal, int64_t sequence, int64_t *offset,
                            dt_error *err)
{
    dt_status st = DT_OK;
    int64_t at, left;
    dt_strbuf lines;

    *offset = 0;
    if (sequence < 0 || sequence > journal->next_sequence)
        return DT_FAIL(err, DT_ERR_NOT_FOUND,
                       "event %lld was asked for, and the journal ends before %lld",
                       (long long)sequence, (long long)journal->next_sequence);
    if (sequence < journal->kept_sequence)
        return DT_FAIL(err, DT_ERR_NOT_FOUND,
                       "event %lld was asked for, and what is before %lld was acknowledged and is "
                       "no longer kept",
                       (long long)sequence, (long long)journal->kept_sequence);
    *offset = journal->kept_bytes;
    if (sequence == journal->kept_sequence)
        return DT_OK;
    /* The one past the last may begin exactly where the next mark will be. */
    at = (sequence - 1) / DT_JOURNAL_MARK_EVERY;
    left = sequence - at * DT_JOURNAL_MARK_EVERY;
    at = journal->marks[at];
    dt_strbuf_init(&lines);
    while (left > 0) {
        DT_TRY(dt_journal_read(journal, at, 16384, &lines, err));
        if (lines.length == 0)
            DT_THROW(err, DT_ERR_BUSY, "event %lld is not written yet", (long long)sequence);
        for (size_t i = 0; i < lines.length && left > 0; i++) {
            at++;
            left -= lines.data[i] == '\n';
        }
    }
    *offset = at;
out:
    dt_strbuf_release(&lines);
    return st;
}
